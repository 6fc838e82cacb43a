#!/usr/bin/python3
"""The jobs of config/jobs with one word changed, `consistency.mode`. A learning rate means the same in every mode
(docs/algorithms.md, A rate in every mode), so each job ends within two points of its result in sync mode.

    tests/training/one_word.py CASE                       as ctest runs them
    tests/training/one_word.py table JOB... [--workers 2 4 8] [--modes bounded async] [--set KEY=VALUE]
"""

import argparse
import sys

import runs

POINTS = 0.02
MNIST, DIGITS = "mnist/train-images-idx3-ubyte.gz", "optdigits/optdigits.tra"
CIFAR = "cifar10/data_batch_1.first4000.bin.gz"
DATA = {"quickstart": DIGITS, "a9a-logistic": "libsvm/a9a.gz", "heart-federated": "heart-disease/processed.cleveland.data",
        "shakespeare-gpt": "tinyshakespeare/input.txt"}
# Only sync mode can send weights as differences (config/combinations.cc).
SYNC_ONLY = {"mnist-cnn-top-k": ["compression.weights={type: bf16}"]}


def data_of(job):
    return DATA.get(job, CIFAR if job.startswith("cifar10") else MNIST)


def accuracy(job, mode, workers, sets=()):
    run = runs.Run(f"{job}.yaml", [f"consistency={{mode: {mode}, staleness: 3}}", f"workers.count={workers}", *sets],
                   runs.data_with(data_of(job)))
    run.learns = False
    summary = run.train(timeout=1100)
    run.clean()
    runs.check(summary["state"] == "finished", f"{job} {mode}, {workers} workers: finished")
    return summary["test_accuracy"]


def holds(job, workers, modes=("bounded", "async"), sets=()):
    """Returns False if some mode ends more than two points below sync."""
    sets = [*SYNC_ONLY.get(job, ()), *sets]
    wanted = accuracy(job, "sync", workers, sets)
    reached = {mode: accuracy(job, mode, workers, sets) for mode in modes}
    print(f"{job}, {workers} workers: sync {100 * wanted:.2f} %, "
          + ", ".join(f"{mode} {100 * value:.2f} %" for mode, value in reached.items()), flush=True)
    return all(value >= wanted - POINTS for value in reached.values())


def case(job, workers, sets=()):
    runs.check(holds(job, workers, sets=sets), f"{job}, {workers} workers: every mode within {100 * POINTS:.0f} points of sync")


# A fifth of the length, which is enough to show a rate that is too high.
SHORT = ["stop.epochs=2"]
CASES = {
    "quickstart": lambda: case("quickstart", 8),
    "mnist-sync": lambda: case("mnist-sync", 4, SHORT),
    "mnist-local-sgd": lambda: case("mnist-local-sgd", 4, SHORT),
    "mnist-lenet": lambda: case("mnist-lenet", 4, ["stop.epochs=1"]),
}


def table():
    parser = argparse.ArgumentParser()
    parser.add_argument("jobs", nargs="+")
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--modes", nargs="+", default=["bounded", "async"])
    parser.add_argument("--set", action="append", default=[])
    flags = parser.parse_args(sys.argv[2:])
    bad = [(job, workers) for job in flags.jobs for workers in flags.workers
           if not holds(job, workers, flags.modes, flags.set)]
    runs.check(not bad, f"{len(bad)} more than {100 * POINTS:.0f} points below sync: {bad}")


if __name__ == "__main__":
    runs.main({**CASES, "table": table})
