#!/usr/bin/python3
"""Compares leeway.torch with DistributedDataParallel over gloo and with torch alone, one thread a process.

Usage: leeway_torch.py ddp|alone|python [REPEATS] [OVERLAP]; prints each ratio with its two rates, and the median. OVERLAP is
that of leeway.torch.join.
  ddp     samples a second of two workers with one server, and of two processes of DDP: MLP batch 128, CNN batch 64
  alone   one worker with one server, and torch alone
  python  microseconds of CPU time that a step costs more than torch alone, for a model of 60 tensors"""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[2]
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "tests/python"), str(HERE)]
STEPS = {"mlp": 1200, "cnn": 500}


def batches(name, rank):
    import torch
    from ddp import BATCH, EXAMPLES
    generator = torch.Generator().manual_seed(rank)
    images = torch.randn(EXAMPLES, 1, 28, 28, generator=generator)
    labels = torch.randint(0, 10, (EXAMPLES,), generator=generator)
    order = torch.randperm(EXAMPLES, generator=generator)
    place, batch = 0, BATCH[name]
    while True:
        chosen = order[place:place + batch]
        place = (place + batch) % (EXAMPLES - batch)
        yield images[chosen], labels[chosen]


def train(name, overlap):
    """Returns samples a second, after 20 steps to warm up."""
    import torch
    from torch import nn
    from ddp import BATCH, make_model
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = make_model(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss, rank = nn.CrossEntropyLoss(), int(os.environ.get("LEEWAY_RANK", "0"))
    loader = batches(name, rank)
    if overlap:
        import leeway.torch
        loader = leeway.torch.join(model, optimizer, overlap=overlap).over(loader)
    counted = 0
    for images, labels in loader:
        optimizer.zero_grad(set_to_none=True)
        loss(model(images), labels).backward()
        optimizer.step()
        counted += 1
        if counted == 20:
            began, busy = time.perf_counter(), time.thread_time()
        if counted == STEPS[name] and not overlap:
            break
    print(f"thread {1e6 * (time.thread_time() - busy) / (counted - 20):.0f} us a step", flush=True)
    print(f"rate {(counted - 20) * BATCH[name] / (time.perf_counter() - began):.1f}", flush=True)


def worker_rates(name, workers, overlap):
    from ddp import BATCH
    from jobs import job_of, job_yaml
    yaml = job_yaml(batch_size=BATCH[name], examples=10000, servers=1, workers=workers, stop=f"{{clocks: {STEPS[name]}}}")
    yaml = yaml.replace(", block_bytes: 4096", "")
    with job_of(yaml, servers=1) as job:
        for rank in range(workers):
            job.start_worker(rank, str(HERE / "leeway_torch.py"), "train", name, overlap,
                             OMP_NUM_THREADS="1")
        job.wait(timeout=300)
        return sum(float(re.search(r"rate (\S+)", job.said(rank)).group(1)) for rank in range(workers))


def alone_rate(name):
    said = subprocess.run([sys.executable, str(HERE / "leeway_torch.py"), "train", name], capture_output=True, text=True,
                          check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}).stdout
    return float(re.search(r"rate (\S+)", said).group(1))


def ddp_rate(name):
    said = subprocess.run([sys.executable, str(HERE / "ddp.py"), name, "5"], capture_output=True, text=True, check=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}).stdout
    return float(said.split()[-1])


def compare(what, repeats, overlap):
    for name in ("mlp", "cnn"):
        ratios = []
        for _ in range(repeats):
            ours = worker_rates(name, 2 if what == "ddp" else 1, overlap)
            theirs = ddp_rate(name) if what == "ddp" else alone_rate(name)
            ratios.append(ours / theirs)
            print(f"{name}: {ours:.0f} samples/s, {what} {theirs:.0f}: {ratios[-1]:.2f}", flush=True)
        print(f"{name}: median {statistics.median(ratios):.2f}, load {os.getloadavg()[0]:.1f}", flush=True)


def python_time(repeats):
    import torch
    from torch import nn
    from unittest import mock
    import leeway.torch
    from null_session import NullSession
    torch.set_num_threads(1)
    x = torch.randn(1, 8)

    def seconds(joined, steps=1000):
        model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(30)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
        if joined:
            with mock.patch("leeway.torch.LibrarySession", NullSession):
                leeway.torch.join(model, optimizer, coordinator="none:1")
        else:
            optimizer.step = lambda: None  # In a gradient exchange it does not step, either.
        for count in range(steps + 50):
            if count == 50:
                began = time.process_time()
            optimizer.zero_grad(set_to_none=True)
            model(x).sum().backward()
            optimizer.step()
        return (time.process_time() - began) / steps
    extra = [1e6 * (seconds(True) - seconds(False)) for _ in range(repeats)]
    print(f"60 tensors: {statistics.median(extra):.0f} us a step more than torch alone, "
          f"of {repeats} from {min(extra):.0f} to {max(extra):.0f}, load {os.getloadavg()[0]:.1f}")


def main():
    what = sys.argv[1]
    if what == "train":
        return train(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    overlap = sys.argv[3] if len(sys.argv) > 3 else "backward"
    return python_time(repeats) if what == "python" else compare(what, repeats, overlap)


if __name__ == "__main__":
    main()
