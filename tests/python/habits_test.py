#!/usr/bin/python3
"""Runs the scripts of the folder habits. With one worker, each script must have the results of plain PyTorch, to 1e-5,
or fail with the expected error.

habits_test.py            without servers, in this process
habits_test.py jobs       one worker and a server; and two workers, sync, beside one process with twice the batch
habits_test.py jobs NAME  that script only"""

import os
import pathlib
import re
import sys
import tempfile

from jobs import check, Failed, job_of, job_yaml, need_torch

need_torch()

import torch

import habits
import leeway.torch as leeway
from fake_job import data, faked

torch.set_num_threads(1)
TOLERANCE = 1e-5
BATCH = 4


class PlainJob:
    """The `job` of a script without Leeway."""

    def over(self, loader):
        return loader

    def keep(self, scheduler):
        return scheduler


class Run:
    """A script in plain PyTorch, with the batches of all workers together. The base class of runs with Leeway."""

    def __init__(self, exchange, rank=0, share=1, workers=1):
        self.exchange, self._rank, self._share, self._workers = exchange, rank, share, workers

    def batches(self):
        size = BATCH * self._workers
        x, y = data(size * habits.STEPS)
        own = slice(self._rank * BATCH, self._rank * BATCH + BATCH * self._share)
        return [(x[first:first + size][own], y[first:first + size][own]) for first in range(0, len(x), size)]

    def held_out(self):
        return data(16, seed=8)

    def join(self, model, optimizer):
        return PlainJob()


class FakedRun(Run):
    """A worker in a session without servers."""

    def __init__(self, exchange, steps, stages):
        super().__init__(exchange)
        self._clocks = steps // stages

    def join(self, model, optimizer):
        with faked(exchange=self.exchange, clocks=self._clocks):
            return leeway.join(model, optimizer, coordinator="fake:1")


class WorkerRun(Run):
    """A worker in a job."""

    def join(self, model, optimizer):
        return leeway.join(model, optimizer)


def differs(found, expected):
    """Returns the worst tensor and its difference, in units of its largest value."""
    worst = ("", 0.0)
    for name, value in expected.items():
        if value.shape != found[name].shape:
            return name, float("inf")
        distance = float((found[name].float() - value.float()).abs().max()) / max(1e-3, float(value.float().abs().max()))
        if not distance <= worst[1]:  # Also if it is not a number.
            worst = (name, distance)
    return worst


def title(script, exchange, workers=1):
    return f"{script.__name__.replace('_', ' ')}, {exchange}" + (f", {workers} workers" if workers > 1 else "")


def without_servers():
    failures = []
    for script, exchange, refused, _, options in habits.ROWS:
        what = title(script, exchange)
        try:
            found = script(FakedRun(exchange, options.get("steps", habits.STEPS), options.get("stages", 1)))
        except leeway.Error as error:
            if refused is None or not re.search(refused, str(error)):
                failures.append(f"{what}: {type(error).__name__}: {error}")
            continue
        if refused is not None:
            failures.append(f"{what}: nothing was refused; {refused!r} was expected")
            continue
        name, worst = differs(found, script(Run(exchange)))
        if not worst <= TOLERANCE:
            failures.append(f"{what}: {name} differs by {worst:.1e}")
    count = len({script for script, *_ in habits.ROWS})
    if f" {count} habits of PyTorch scripts" not in (pathlib.Path(__file__).parents[2] / "docs/python.md").read_text():
        failures.append(f"docs/python.md: the number of habits is {count}")
    print(*failures, sep="\n")
    print(f"{len(habits.ROWS) - len(failures)} of {len(habits.ROWS)} rows hold")
    return 1 if failures else 0


EXCHANGES = {"gradient": ("{type: gradient}", ""),
             "delta": ("{type: delta, local_steps: 1}", "update: {type: sgd, learning_rate: 1}")}


def in_a_job(row, workers):
    script, exchange, refused, _, options = row
    what, steps = title(script, exchange, workers), options.get("steps", habits.STEPS)
    kind, update = EXCHANGES[exchange]
    yaml = job_yaml(batch_size=BATCH, examples=BATCH * workers * steps, servers=1, workers=workers, exchange=kind,
                    stop=f"{{clocks: {steps}}}", more=update)
    with tempfile.TemporaryDirectory() as folder, job_of(yaml, servers=1) as job:
        for rank in range(workers):
            job.fork_worker(rank, __file__, "worker", habits.ROWS.index(row), workers, folder)
        job.wait(codes=(0,) if refused is None else (3,), servers=refused is None)
        if refused is not None:
            return check(re.search(refused, job.said(0)), f"{what}: refused by name")
        expected = script(Run(exchange, share=workers, workers=workers))
        for rank in range(workers):
            name, worst = differs(torch.load(pathlib.Path(folder) / f"{rank}.pt"), expected)
            check(worst <= TOLERANCE, f"{what}, rank {rank}: within {worst:.1e} of plain PyTorch {name and f'({name})'}")


def worker(number, workers, folder):
    script, exchange, *_ = habits.ROWS[int(number)]
    rank = int(os.environ["LEEWAY_RANK"])
    found = script(WorkerRun(exchange, rank=rank, workers=int(workers)))
    torch.save(found, pathlib.Path(folder) / f"{rank}.pt")


def in_jobs(names):
    failures = []
    for row in habits.ROWS:
        script, exchange, refused, two, options = row
        if names and script.__name__ not in names or options.get("stages", 1) > 1:
            continue
        for workers in (1, 2) if two else (1,):
            try:
                in_a_job(row, workers)
            except Failed as failure:
                failures.append(f"{title(script, exchange, workers)}: {failure}")
    print(*failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(*sys.argv[2:])
    else:
        sys.exit(in_jobs(sys.argv[2:]) if sys.argv[1:2] == ["jobs"] else without_servers())
