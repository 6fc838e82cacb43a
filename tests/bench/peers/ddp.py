#!/usr/bin/python3
"""Measures DistributedDataParallel over gloo: two processes of one thread, SGD with momentum.

Usage: ddp.py mlp|cnn SECONDS; prints one number: the samples a second of both processes together.
"""

import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from rendezvous import free_port

EXAMPLES = 10000
BATCH = {"mlp": 128, "cnn": 64}


def make_model(name):
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                             nn.Linear(256, 10))
    return nn.Sequential(nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 10))


def steps(model, name, seconds, rank):
    """Trains for about this number of seconds. Both ranks must make the same number of steps."""
    generator = torch.Generator().manual_seed(rank)
    images = torch.randn(EXAMPLES, 1, 28, 28, generator=generator)
    labels = torch.randint(0, 10, (EXAMPLES,), generator=generator)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss = nn.CrossEntropyLoss()
    order = torch.randperm(EXAMPLES, generator=generator)
    batch = BATCH[name]
    began, counted, place = None, 0, 0
    while True:
        chosen = order[place:place + batch]
        place = (place + batch) % (EXAMPLES - batch)
        optimizer.zero_grad(set_to_none=True)
        loss(model(images[chosen]), labels[chosen]).backward()
        optimizer.step()
        counted += 1
        if began is None and counted == 20:  # after the warm-up
            began, counted = time.perf_counter(), 0
        if began is not None and counted % 50 == 0:
            over = torch.tensor([float(time.perf_counter() - began >= seconds)])
            dist.broadcast(over, 0)
            if over.item():
                return counted * batch / (time.perf_counter() - began)


def run(rank, port, name, seconds):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    torch.manual_seed(1)
    rate = steps(DistributedDataParallel(make_model(name)), name, seconds, rank)
    total = torch.tensor([rate])
    dist.all_reduce(total)
    if rank == 0:
        print(f"{total.item():.1f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    processes.spawn(run, args=(free_port(), sys.argv[1], float(sys.argv[2])), nprocs=2)
