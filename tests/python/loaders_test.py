#!/usr/bin/python3
"""A DataLoader with worker processes while the job's streams are busy: loaders_test.py fork|forkserver|spawn [RUNS].
Each run trains, and a child process that uses the job gets the typed error."""

import sys
import time

from jobs import check, job_of, job_yaml, need_torch

SCRIPT = '''
import os, sys, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
import leeway.torch as leeway

JOB = None


class Numbers(Dataset):
    def __len__(self):
        return 640

    def __getitem__(self, index):
        if index == 5 and JOB is not None and os.getpid() != PARENT:
            try:
                JOB._session.settle()
                raise SystemExit("no error in a fork")
            except leeway.ForkedError:
                pass
        generator = torch.Generator().manual_seed(index)
        return torch.randn(2000, generator=generator), index % 5


def main():
    global JOB, PARENT
    PARENT = os.getpid()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(2000, 100), nn.ReLU(), nn.Linear(100, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    JOB = leeway.join(model, optimizer)
    loader = DataLoader(Numbers(), batch_size=32, shuffle=True, num_workers=2, multiprocessing_context=sys.argv[1])
    seen = 0
    for x, y in JOB.over(JOB.batches(loader)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        seen += len(y)
    print("ended", JOB.ended, "after", seen, flush=True)


if __name__ == "__main__":
    main()
'''


def main():
    need_torch()
    method = sys.argv[1]
    for run in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1):
        began = time.monotonic()
        with job_of(job_yaml(workers=1, stop="{clocks: 30}", consistency="{mode: async}"), servers=2) as job:
            script = job.folder / "train.py"
            script.write_text(SCRIPT)
            job.fork_worker(0, script, method)
            job.wait(timeout=120)
            check("ended finished after 960" in job.said(0),
                  f"run {run}: trains with loaders by {method}, {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
