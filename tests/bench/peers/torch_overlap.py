#!/usr/bin/python3
"""Measures how much of its exchange a torch worker hides behind its compute, over a link of 1 Gb/s: an MLP of 10 M
parameters, one worker and one server in two network namespaces. Needs root.

Usage: torch_overlap.py [BATCH ...]; prints a line for each batch size. Three times are measured: a step of torch alone,
a clock that computes nothing, and a clock that does both. Hidden is the sum of the first two minus the third, as a
share of the smaller of them."""

import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[2]
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "tests/chaos")]
WIDTH, LAYERS = 1414, 5
STEPS, FIRST = 40, 5
JOB = """apiVersion: leeway/v1
kind: TrainingJob
metadata: {{name: torch-overlap, seed: 1}}
model: {{type: external}}
data: {{type: external, batch_size: {batch}, examples: 100000}}
exchange: {{type: gradient}}
consistency: {{mode: sync}}
servers: {{count: 1}}
workers: {{count: 1}}
stop: {{clocks: {steps}}}
"""


def make_model():
    import torch
    from torch import nn
    torch.set_num_threads(1)
    torch.manual_seed(1)
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = nn.Sequential(*layers[:-1])
    return model, torch.optim.SGD(model.parameters(), lr=1e-6)


def tell(began):
    print(f"milliseconds {1e3 * (time.perf_counter() - began) / (STEPS - FIRST):.1f}", flush=True)


def train(batch, joined):
    import torch
    model, optimizer = make_model()
    rounds = [torch.randn(batch, WIDTH)] * STEPS
    if joined:
        import leeway.torch
        rounds = leeway.torch.join(model, optimizer, overlap="forward").over(rounds)
    for count, x in enumerate(rounds):
        if count == FIRST:
            began = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        model(x).square().mean().backward()
        optimizer.step()
    tell(began)


def exchange():
    """A worker that sends whatever its contribution happens to hold."""
    from leeway import Tensor
    from leeway.session import LibrarySession, Report
    import numpy as np
    tensors = {f"w{i}": Tensor((WIDTH, WIDTH)) for i in range(LAYERS)}
    total = sum(tensor.size for tensor in tensors.values())
    session = LibrarySession(tensors, np.zeros(total, np.float32), "{type: sgd, learning_rate: 0.000001}")
    for count in range(STEPS):
        session.begin()
        session.wait(0, total)
        if count == FIRST:
            began = time.perf_counter()
        session.final(0, total)
        session.end(Report(1, 1))
    session.begin()
    tell(began)
    session.leave("finished")
    session.free()


def over_a_link(batch, *arguments):
    """Returns the milliseconds of a clock."""
    import network
    from cluster import Cluster, runs
    with network.Network(["servers", "workers"]) as link:
        for host in link.addresses:
            network.run(*link.within(host), "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "1gbit", "burst",
                        "128kb", "latency", "50ms")
        address = f"{link.addresses['servers']}:7000"
        cluster = Cluster(JOB.format(batch=batch, steps=STEPS), 1, 1, [sys.executable, str(HERE / "torch_overlap.py"), *arguments])
        cluster.within = lambda role, number: link.within(role + "s")
        cluster.reached = lambda number: ["--listen", address]
        cluster.coordinator = lambda role, number: address
        with cluster:
            cluster.wait_for(lambda _: False, "the end of the job", 300)
            said = cluster.parent.joinpath("worker-0.log").read_text(encoding="utf-8")
        return float(re.search(r"milliseconds (\S+)", said).group(1))


def main():
    if sys.argv[1:2] in (["train"], ["exchange"], ["alone"]):
        if "--coordinator" in sys.argv:
            os.environ["LEEWAY_COORDINATOR"] = sys.argv[sys.argv.index("--coordinator") + 1]
            os.environ["LEEWAY_RANK"] = sys.argv[sys.argv.index("--rank") + 1]
        return exchange() if sys.argv[1] == "exchange" else train(int(sys.argv[2]), sys.argv[1] == "train")
    os.environ["OMP_NUM_THREADS"] = "1"
    both_ways = over_a_link(64, "exchange")
    for batch in map(int, sys.argv[1:] or ["128", "256", "384", "512"]):
        said = subprocess.run([sys.executable, __file__, "alone", str(batch)], capture_output=True, text=True, check=True).stdout
        compute = float(re.search(r"milliseconds (\S+)", said).group(1))
        whole = over_a_link(batch, "train", str(batch))
        hidden = (compute + both_ways - whole) / min(compute, both_ways)
        print(f"batch {batch}: compute {compute:.0f} ms, exchange {both_ways:.0f} ms, together {whole:.0f} ms, "
              f"hidden {hidden:.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
