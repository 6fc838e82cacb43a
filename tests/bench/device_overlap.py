#!/usr/bin/env python3
"""Measures how much of the exchange of a device's workers hides behind their compute, over a link of 1 Gb/s. The device
is the fake one (tests/worker/device), which emulates times: kernels and copies take as long as moving their bytes
takes, and the host goes on meanwhile. Workers and servers are in two network namespaces; tbf shapes the link between
them. Needs root.

    tests/bench/device_overlap.py [--workers 1] [--servers 1] [--clocks 30] [--kernels GB/s ...] [--bus GB/s]

Prints a line for each speed of the kernels. Hidden is the time from the first block's departure to the last answer in
which the worker did not wait, as a share of the smaller of compute and exchange.
"""

import argparse
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "chaos"))
from cluster import Cluster, runs  # noqa: E402
import network  # noqa: E402

JOB = """
apiVersion: leeway/v1
kind: TrainingJob
metadata: {{name: device-overlap, seed: 1}}
model:
  layers: [{{flatten: {{}}}}, {{dense: {{units: {width}}}}}, {{relu: {{}}}}, {{dense: {{units: {width}}}}}, {{relu: {{}}}},
           {{dense: {{units: {width}}}}}, {{relu: {{}}}}, {{dense: {{units: 10}}}}]
  loss: softmax_cross_entropy
data:
  train: {{type: csv, files: optdigits/optdigits.tra, shape: [8, 8, 1]}}
  normalize: {{mean: 4.92, std: 6.04}}
  batch_size: {batch}
exchange: {{type: gradient}}
consistency: {{mode: sync}}
update: {{type: sgd, learning_rate: 0.001}}
servers: {{count: {servers}}}
workers: {{count: {workers}}}
stop: {{clocks: {clocks}}}
"""
# Clocks that warm up and are not counted.
FIRST = 3


def shaped(link):
    for host in link.addresses:
        network.run(*link.within(host), "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "1gbit", "burst",
                    "128kb", "latency", "50ms")


def figures(cluster):
    """Returns the means of a clock's compute, exchange and waiting, in seconds."""
    steps = [e for e in cluster.events("step") if e["clock"] > FIRST]
    clocks = sum(e["steps"] for e in steps)
    return [sum(e[f"{what}_seconds"] for e in steps) / clocks for what in ("compute", "exchange", "wait")]


def measure(options, kernels):
    os.environ["LEEWAY_FAKE_TIMES"] = f"{kernels * 1e9},{options.bus * 1e9}"
    job = JOB.format(width=options.width, batch=options.batch, servers=options.servers, workers=options.workers,
                     clocks=options.clocks)
    with network.Network(["servers", "workers"]) as link:
        shaped(link)
        worker = [str(runs.BIN / "fake_device/leeway-worker"), "--data", str(runs.SOURCE / "data")]
        cluster = Cluster(job, options.servers, options.workers, worker)
        address = link.addresses["servers"]
        cluster.within = lambda role, number: link.within(role + "s")
        cluster.reached = lambda number: ["--listen", f"{address}:{7000 + number}"]
        cluster.coordinator = lambda role, number: f"{address}:7000"
        with cluster:
            cluster.wait_for(lambda c: False, "the end of the job", 600)
            return figures(cluster)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--clocks", type=int, default=30)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--bus", type=float, default=10, help="GB/s of the bus, either way")
    parser.add_argument("--kernels", type=float, nargs="*", default=[0.1, 0.2, 0.4, 0.8],
                        help="GB/s that kernels read and write")
    options = parser.parse_args()
    if not (runs.BIN / "fake_device").exists():
        sys.exit("build the target fake-device-programs first")
    for kernels in options.kernels:
        compute, exchange, wait = measure(options, kernels)
        hidden = (exchange - wait) / min(compute, exchange)
        print(f"kernels {kernels:5.2f} GB/s: compute {1e3 * compute:6.0f} ms, exchange {1e3 * exchange:6.0f} ms, "
              f"waited {1e3 * wait:6.0f} ms, hidden {hidden:.2f}", flush=True)


if __name__ == "__main__":
    main()
