#!/usr/bin/python3
"""Leeway beside all-reduce (OpenMPI, gloo) and beside PyTorch's DistributedDataParallel, in one run.

The subjects take turns; medians of the rounds are printed, and the medians of the ratios of neighbours.
Whatever is not installed is skipped, aloud.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"  # the distribution's, which has the distribution's torch
# One thread a process, wherever threads hide.
ONE_THREAD = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")


def run(command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=ONE_THREAD, timeout=600,
                          **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def has_torch():
    probe = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True)
    return probe.returncode == 0


def skip(what, why):
    print(f"SKIPPED {what}: {why}", flush=True)


class AllReduce:
    """Seconds to bring a vector of floats of two processes to its sum, the same for all subjects."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.subjects = {"leeway": self.leeway}
        if shutil.which("mpicc") and shutil.which("mpirun"):
            run(["mpicc", "-O3", HERE / "allreduce_mpi.c", "-o", folder / "allreduce_mpi"])
            self.subjects["openmpi"] = self.openmpi
        else:
            skip("OpenMPI", "no mpicc and mpirun (openmpi-bin, libopenmpi-dev)")
        if has_torch():
            self.subjects["gloo"] = self.gloo
        else:
            skip("gloo", f"{PYTHON} has no torch (python3-torch)")

    def leeway(self):
        out = self.folder / "exchange.json"
        run([self.options.programs / "leeway", "bench", "exchange", "--parameters", self.options.floats, "--workers", 2,
             "--servers", self.options.servers, "--transports", "auto", "--rounds", 1, "--seconds", 1.5, "--no-raw",
             "--json", out])
        return json.loads(out.read_text())["results"]["rows"][0]["leeway"]["step_seconds"]["p50"]

    def openmpi(self):
        return self.median(run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", 2,
                                self.folder / "allreduce_mpi", self.options.floats, 15]))

    def gloo(self):
        return self.median(run([PYTHON, HERE / "allreduce_gloo.py", self.options.floats, 15]))

    @staticmethod
    def median(lines):
        return statistics.median(float(line) for line in lines.split())


class Training:
    """Samples a second of two workers."""

    def __init__(self, options, folder, model):
        self.options, self.folder, self.model = options, folder, model
        self.clocks = 500
        self.runs = 0
        self.leeway()  # to learn how many clocks take the time
        self.subjects = {"leeway": self.leeway}
        if has_torch():
            self.subjects["ddp"] = self.ddp
        else:
            skip("DistributedDataParallel", f"{PYTHON} has no torch (python3-torch)")

    def leeway(self):
        self.runs += 1
        where = self.folder / f"{self.model}-{self.runs}"
        run([self.options.programs / "leeway", "train", HERE / f"{self.model}.yaml", "--run-dir", where,
             "--set", f"stop.clocks={self.clocks}", "--set", f"servers.count={self.options.servers}",
             "--data", self.folder])
        summary = json.loads((where / "summary.json").read_text())
        seconds = summary["seconds"]
        self.clocks = max(100, int(self.clocks * self.options.seconds / max(seconds, 0.01)))
        return summary["samples_per_second"]

    def ddp(self):
        return float(run([PYTHON, HERE / "ddp.py", self.model, self.options.seconds]))


def measure(name, unit, more_is_better, subjects, rounds):
    values = {subject: [] for subject in subjects}
    for number in range(rounds):
        order = list(subjects) if number % 2 == 0 else list(reversed(subjects))
        for subject in order:
            values[subject].append(subjects[subject]())
    result = {"name": name, "unit": unit, "load_1_minute": os.getloadavg()[0], "rounds": values,
              "median": {subject: statistics.median(v) for subject, v in values.items()}, "leeway_against": {}}
    print(name)
    for subject, median in result["median"].items():
        line = f"  {subject:10} {median:12,.4g} {unit}"
        if subject != "leeway":
            pairs = zip(values["leeway"], values[subject])
            ratio = statistics.median(l / o if more_is_better else o / l for l, o in pairs)
            result["leeway_against"][subject] = ratio
            line += f"    leeway is {ratio:.2f} times as fast"
        print(line, flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="the folder with leeway and leeway-server")
    parser.add_argument("--what", default="allreduce,training")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="of a training")
    parser.add_argument("--floats", type=int, default=25_000_000)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.programs = options.programs.resolve()
    results = []
    with tempfile.TemporaryDirectory(prefix="leeway-peers-") as temporary:
        folder = pathlib.Path(temporary)
        if "allreduce" in options.what:
            subjects = AllReduce(options, folder).subjects
            name = f"sync exchange of {options.floats:,} floats, 2 workers, against all-reduce"
            results.append(measure(name, "s", False, subjects, options.rounds))
        if "training" in options.what:
            for model in ("mlp", "cnn"):
                subjects = Training(options, folder, model).subjects
                results.append(measure(f"training, {model}, 2 workers, sync", "samples/s", True, subjects, options.rounds))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
