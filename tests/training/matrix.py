#!/usr/bin/python3
"""Combines every mode with every other: exchange x consistency x workers x model x rule, on the digits of
data/optdigits. Each job is compared with the one that it should equal: outside of sync with the same job in sync, in
sync with one worker.

The rates follow a few rules, so that the job, and not its rate, is at fault if it fails:
- All workers' batches together are 64 examples, so that one worker or eight take the same steps.
- A rate means the same in every mode, so the mode is the one word that differs.
- An elastic worker's rate is its own, whatever the others do. Its rule is the worker's optimizer, because the servers'
  rule is the centre's own.
The product refuses no combination of these, so all are tested.
"""

import itertools
import tempfile
import time
from collections import namedtuple
from pathlib import Path

import runs

Case = namedtuple("Case", "exchange consistency workers model rule")

VALUES = Case(exchange=["gradient", "delta", "elastic"],
              consistency=["sync", "bounded", "async"],
              workers=[1, 2, 4, 8],
              model=["plain", "batch_norm", "dropout"],
              rule=["sgd", "adam"])

POINTS = 0.03
LEARNED = 0.90
EXAMPLES = 64

LAYERS = {"plain": "- relu: {}",
          "batch_norm": "- batch_norm: {}\n    - relu: {}",
          "dropout": "- relu: {}\n    - dropout: {rate: 0.2}"}
SGD = "type: sgd, learning_rate: {}, momentum: 0.9"
ADAM = "type: adam, learning_rate: {}"
LOCAL_STEPS = 20

JOB = """apiVersion: leeway/v1
kind: TrainingJob
metadata: {{name: matrix, seed: {seed}}}
model:
  layers:
    - flatten: {{}}
    - dense: {{units: 64}}
    {layers}
    - dense: {{units: 10}}
  loss: softmax_cross_entropy
data:
  train: {{type: csv, files: optdigits/optdigits.tra, shape: [8, 8, 1]}}
  test: {{type: csv, files: optdigits/optdigits.tes, shape: [8, 8, 1]}}
  normalize: {{mean: 4.92, std: 6.04}}
  batch_size: {batch}
exchange: {exchange}
consistency: {{mode: {consistency}, staleness: 3}}
{update}
servers: {{count: 2}}
workers: {{count: {workers}}}
stop: {{epochs: {epochs}}}
"""


def knobs(case):
    """Returns the exchange and, where it has one, the servers' rule."""
    if case.exchange == "elastic":
        local = (SGD if case.rule == "sgd" else ADAM).format(0.05 if case.rule == "sgd" else 0.003)
        return f"{{type: elastic, every: 5, optimizer: {{{local}}}}}", ""
    if case.exchange == "delta":
        # Local SGD; with adam on the servers this is FedAdam.
        rule = "type: sgd, learning_rate: {}" if case.rule == "sgd" else ADAM + ", beta2: 0.99, epsilon: 0.001"
        rate = 1.0 if case.rule == "sgd" else 0.02
        exchange = f"{{type: delta, local_steps: {LOCAL_STEPS}, optimizer: {{{SGD.format(0.05)}}}}}"
    else:
        rule, rate = (SGD, 0.05) if case.rule == "sgd" else (ADAM, 0.003)
        exchange = "{type: gradient}"
    return exchange, f"update: {{{rule.format(rate)}}}"


class Matrix:
    """Trains each case once, and keeps the result."""

    def __init__(self, epochs=10, examples=EXAMPLES, seed=7):
        self.epochs, self.examples, self.seed = epochs, examples, seed
        self.data = runs.data_with("optdigits/optdigits.tra")
        self.accuracies = {}
        self.failures = []

    def accuracy(self, case):
        if case not in self.accuracies:
            self.accuracies[case] = self.train(case)
        return self.accuracies[case]

    def train(self, case):
        exchange, update = knobs(case)
        with tempfile.TemporaryDirectory(prefix="leeway-matrix-") as folder:
            job = Path(folder) / "job.yaml"
            job.write_text(JOB.format(seed=self.seed, layers=LAYERS[case.model], exchange=exchange, update=update,
                                      batch=max(self.examples // case.workers, 1), epochs=self.epochs,
                                      consistency=case.consistency, workers=case.workers))
            run = runs.Run(job, data=self.data, parent=Path(folder) / "runs")
            # The run ends before it has reported its first steps: its accuracy shows what it has learned.
            run.learns = False
            summary = run.train(timeout=300)
            runs.check(summary["state"] == "finished" and (run.dir / "model.safetensors").exists(),
                       f"{name(case)}: finished with a model, {summary['seconds']:.1f} s")
            return summary["test_accuracy"]

    def hold(self, case):
        """Whether the case is as good as the one that it should equal."""
        reference = reference_of(case)
        reached, wanted = self.accuracy(case), self.accuracy(reference)
        good = reached >= wanted - POINTS and wanted >= LEARNED
        text = f"{name(case)}: {100 * reached:.1f} %, {name(reference)} {100 * wanted:.1f} %"
        print(text if good else f"FAILED {text}", flush=True)
        if not good:
            self.failures.append(text)

    def end(self, cases, begun):
        print(f"{cases} cases, {len(self.accuracies)} jobs, {time.monotonic() - begun:.0f} s")
        if self.failures:
            raise runs.Failed(f"{len(self.failures)} of {cases}: " + "; ".join(self.failures))


def name(case):
    return " ".join(map(str, case))


def reference_of(case):
    if case.consistency != "sync":
        return case._replace(consistency="sync")
    return case._replace(workers=1)


def pairs(case):
    return set(itertools.combinations(enumerate(case), 2))


def covering():
    """Returns cases in which every two values of different kinds occur together. They are chosen greedily and are
    always the same."""
    cases = [Case(*values) for values in itertools.product(*VALUES)]
    missing = set().union(*map(pairs, cases))
    chosen = []
    while missing:
        chosen.append(max(cases, key=lambda case: len(pairs(case) & missing)))
        missing -= pairs(chosen[-1])
    return chosen


def hold_all(cases, matrix):
    begun = time.monotonic()
    for case in cases:
        matrix.hold(case)
    matrix.end(len(cases), begun)


def whole():
    hold_all([Case(*values) for values in itertools.product(*VALUES)], Matrix())


def statistics():
    """Batch norm with more workers than the machine has processors, in batches of 16 each."""
    failures = []
    for workers in (4, 8, 20):
        cases = [Case(exchange, consistency, workers, "batch_norm", "sgd")
                 for exchange in ("gradient", "delta") for consistency in ("bounded", "async")]
        try:
            hold_all(cases, Matrix(epochs=20, examples=16 * workers))
        except runs.Failed as failure:
            failures.append(f"{workers} workers: {failure}")
    if failures:
        raise runs.Failed("\n".join(failures))


# The most demanding case of each exchange.
HARDEST = [Case("gradient", "async", 4, "batch_norm", "adam"), Case("delta", "bounded", 4, "dropout", "adam"),
           Case("elastic", "async", 4, "batch_norm", "sgd")]

CASES = {"hardest": lambda: hold_all(HARDEST, Matrix()), "pairs": lambda: hold_all(covering(), Matrix()), "whole": whole, "statistics": statistics}

if __name__ == "__main__":
    runs.main({**CASES, "list": lambda: print("\n".join(map(name, covering())))})
