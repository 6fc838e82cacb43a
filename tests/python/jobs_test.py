#!/usr/bin/python3
"""Whole jobs of Python workers: jobs_test.py CASE."""

import pathlib
import random
import re
import signal
import sys
import tempfile
import time

from jobs import SHARED, SOURCE, Failed, check, job_of, job_yaml, main, need_torch, skip

HERE = pathlib.Path(__file__).resolve().parent
WORKER = HERE / "torch_worker.py"


def digests(job, ranks=(0, 1)):
    found = [re.search(r"ended finished digest (\w+)", job.said(rank)) for rank in ranks]
    check(all(found), f"ranks {list(ranks)} have finished")
    return {match.group(1) for match in found}


def equals_torch(optimizer, tolerance, model="mlp", yaml=None, clocks=50):
    """Two workers with batches of 32 against one process with batches of 64."""
    need_torch()
    import torch
    import torch_worker
    with tempfile.TemporaryDirectory() as folder, job_of(yaml or job_yaml()) as job:
        for rank in range(2):
            job.start_worker(rank, WORKER, model, optimizer, folder)
        job.wait()
        check(len(digests(job)) == 1, "both ranks have the same bits")
        found = torch.load(f"{folder}/rank-0.pt")
        import leeway.torch as leeway
        saved = leeway.load(f"{folder}/saved.safetensors")
        check(all(torch.equal(saved[name], value) for name, value in found.items()), "job.save() wrote the same bits")
        alone = torch_worker.alone(model, optimizer, clocks, 64)
        worst = torch_worker.furthest(found, alone.state_dict())
        check(worst <= tolerance, f"{optimizer}: after {clocks} steps weights are within {worst:.1e} of torch's, relatively; "
              f"{tolerance:.0e} is allowed")
        untrained = torch_worker.furthest(found, torch_worker.make_model(model).state_dict())
        check(untrained > 0.05, f"and they have moved by {untrained:.2f}")


def sync():
    equals_torch("sgd", 1e-5)
    equals_torch("nesterov", 1e-5)


def momentum():
    equals_torch("momentum", 1e-5)


def adam():
    equals_torch("adam", 1e-4)
    equals_torch("adagrad", 1e-4)


def adamw():
    equals_torch("adamw", 1e-4)


def groups():
    equals_torch("groups", 1e-5)


CASES = {case.__name__.replace("_", "-"): case for case in (sync, momentum, adam, adamw, groups)}

if __name__ == "__main__":
    main(CASES)
