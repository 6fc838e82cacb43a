#!/usr/bin/python3
"""Runs every job of config/jobs with many seeds: all must reach what docs/guide.md promises. Takes hours, and continues
where it was interrupted.

    tests/training/seeds.py --results seeds.jsonl                                  # all jobs
    tests/training/seeds.py --results seeds.jsonl --jobs mnist-cnn --seeds 1-20,105
    tests/training/seeds.py --results seeds.jsonl --report                         # the table so far
"""

import argparse
import json
import pathlib
import re
import sys

import promised
import runs

# A job that takes minutes gets half of the seeds.
LONG = ["mnist-cnn", "mnist-cnn-int8", "mnist-cnn-top-k", "cifar10-cnn"]
SEEDS, SEEDS_OF_LONG = range(1, 21), range(1, 11)


def seeds_of(text):
    """Turns "1-3,105" into [1, 2, 3, 105]."""
    found = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def all_jobs():
    return sorted(path.stem for path in runs.JOBS.glob("*.yaml"))


def data_of(job):
    """Returns the folder with the first file that the job names."""
    text = (runs.JOBS / f"{job}.yaml").read_text()
    return runs.data_with(re.search(r"^[^#\n]*?\b((mnist|cifar10|optdigits|libsvm|heart-disease)/[\w.-]+)", text, re.MULTILINE)[1])


class Results:
    """One line for each run: job, seed, settings, and result."""

    def __init__(self, path):
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.all = {self.key(r): r for r in map(json.loads, lines)}

    @staticmethod
    def key(result):
        return result["job"], result["seed"], tuple(result["sets"])

    def add(self, result):
        self.all[self.key(result)] = result
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")

    def of(self, job, sets):
        return {r["seed"]: r for (name, _, with_sets), r in self.all.items() if (name, with_sets) == (job, sets)}


def train(job, seed, sets, data, timeout):
    """Makes one run. A failed run counts as one that has not learned."""
    run = runs.Run(f"{job}.yaml", [f"metadata.seed={seed}", *sets], data)
    try:
        summary = run.train(timeout)
    except runs.Failed as failure:
        return {"accuracy": None, "state": " ".join(str(failure).split())[-300:], "seconds": None}
    finally:
        run.clean()
    return {"accuracy": summary.get("test_accuracy"), "state": summary["state"], "seconds": summary["seconds"]}


def wanted(job, seed, results, sets):
    """Returns the accuracy to reach. A compressed job is compared with the plain one of the same seed, if that has been
    run."""
    if job in promised.LESS:
        plain, points = promised.LESS[job]
        beside = results.of(plain, sets).get(seed)
        if beside and beside["accuracy"] is not None:
            return beside["accuracy"] - points
    return promised.least(job)


def report(results, jobs, sets):
    """Prints the table. Returns whether all jobs have reached what is promised."""
    print(f"{'job':22}{'promised':>9}{'runs':>6}{'reached':>9}{'lowest':>9}{'median':>9}{'seconds':>9}  below")
    good = True
    for job in jobs:
        done = results.of(job, sets)
        if not done:
            print(f"{job:22}{100 * promised.least(job):8.1f}%{0:6}")
            good = False
            continue
        # Rounds as the table does, to two digits of a percentage.
        below = {seed: r for seed, r in done.items()
                 if r["accuracy"] is None or round(r["accuracy"], 4) < round(wanted(job, seed, results, sets), 4)}
        found = sorted(r["accuracy"] or 0 for r in done.values())
        seconds = [r["seconds"] for r in done.values() if r["seconds"]]
        print(f"{job:22}{100 * promised.least(job):8.1f}%{len(done):6}{len(done) - len(below):9}{100 * found[0]:8.2f}%"
              f"{100 * found[len(found) // 2]:8.2f}%{sum(seconds) / max(1, len(seconds)):9.1f}  "
              + ", ".join(f"{seed}: {100 * (r['accuracy'] or 0):.2f} %" for seed, r in below.items()))
        good &= not below
    return good


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=pathlib.Path, required=True, help="a line for each run")
    parser.add_argument("--jobs", type=lambda text: text.split(","), default=all_jobs())
    parser.add_argument("--seeds", type=seeds_of, help="such as 1-20,105; 20 of each job, 10 of the long ones")
    parser.add_argument("--set", action="append", default=[], dest="sets", help="for each run, as of leeway train")
    parser.add_argument("--timeout", type=float, default=1800, help="of one run, in seconds")
    parser.add_argument("--report", action="store_true", help="trains nothing")
    return parser.parse_args(arguments)


def main():
    options = options_of(sys.argv[1:])
    results, sets = Results(options.results), tuple(options.sets)
    for job in [] if options.report else options.jobs:
        for seed in options.seeds or (SEEDS_OF_LONG if job in LONG else SEEDS):
            if (job, seed, sets) not in results.all:
                outcome = train(job, seed, options.sets, data_of(job), options.timeout)
                results.add({"job": job, "seed": seed, "sets": options.sets, **outcome})
                print(f"{job}, seed {seed}: {outcome}", flush=True)
    return 0 if report(results, options.jobs, sets) else 1


if __name__ == "__main__":
    sys.exit(main())
