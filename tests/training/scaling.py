#!/usr/bin/python3
"""The same epochs of ResNet-20 with 1, 2 and 4 workers on equal machines, which are emulated: each step takes as long
as on a machine of its own. The learning rate grows with the workers, after a warm-up (Goyal et al. 2017,
arXiv:1706.02677).

scaling.py cifar10 [EPOCHS]"""

import sys

import runs

JOB, DATA = "cifar10-resnet20.yaml", "cifar10/data_batch_1.first4000.bin.gz"
# Long enough for four workers' steps on two cores.
STEP_MILLISECONDS = 400
COUNTS = 1, 2, 4
LINEAR_MIN, POINTS_MAX = 0.9, 1


def sets(workers, epochs):
    return [f"workers={{count: {workers}, emulate: {{step_milliseconds: {STEP_MILLISECONDS}}}}}",
            "update={type: sgd, learning_rate: 0.05, momentum: 0.9, weight_decay: 0.0001, scaling: linear, "
            "schedule: {type: cosine, warm_up: {epochs: 5}}}", f"stop={{epochs: {epochs}}}"]


def cifar10(epochs="30"):
    results = {}
    for workers in COUNTS:
        run = runs.Run(JOB, sets(workers, epochs), runs.data_with(DATA))
        results[workers] = run.train(timeout=3600)
        steps = run.events("step")
        seconds, accuracy = results[workers]["seconds"], results[workers]["test_accuracy"]
        compute = max(e["compute_seconds"] for e in steps)
        print(f"{workers} workers: {seconds:.0f} s, test accuracy {100 * accuracy:.1f} %, "
              f"{results[1]['seconds'] / seconds / workers:.2f} of linear (a step {compute:.2f} s at most)", flush=True)
        run.clean()
    for workers in COUNTS[1:]:
        share = results[1]["seconds"] / results[workers]["seconds"] / workers
        less = 100 * (results[1]["test_accuracy"] - results[workers]["test_accuracy"])
        runs.check(share >= LINEAR_MIN, f"{workers} workers: {share:.2f} of linear, wanted {LINEAR_MIN}")
        runs.check(less <= POINTS_MAX, f"{workers} workers: {less:.1f} points less accurate than one")


if __name__ == "__main__":
    runs.main({"cifar10": lambda: cifar10(*sys.argv[2:])})
