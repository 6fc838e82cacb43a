#!/usr/bin/python3
"""All-reduce of a float vector between two processes by PyTorch's gloo: rank 0 prints the seconds of each one.

Usage: allreduce_gloo.py FLOATS REPEATS
"""

import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

from rendezvous import free_port


def run(rank, port, floats, repeats):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    vector = torch.ones(floats)
    for i in range(repeats + 2):
        dist.barrier()
        began = time.perf_counter()
        dist.all_reduce(vector)
        seconds = time.perf_counter() - began
        if rank == 0 and i >= 2:  # after two to warm up
            print(f"{seconds:.6f}", flush=True)
        vector.fill_(1)
    dist.destroy_process_group()


if __name__ == "__main__":
    processes.spawn(run, args=(free_port(), int(sys.argv[1]), int(sys.argv[2])), nprocs=2)
