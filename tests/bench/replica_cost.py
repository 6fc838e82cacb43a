#!/usr/bin/env python3
"""Measures what `servers.replicas: 2` costs: the MNIST MLP with momentum, on two servers, in turns with and without
replicas. Prints medians of samples a second, and the median of the ratios of neighbouring runs.

    tests/bench/replica_cost.py [--rounds 5] [--epochs 8] [--transport auto tcp] [--mode sync async]
"""

import argparse
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "training"))
import runs  # noqa: E402

RATES = {"sync": 0.05, "async": 0.02}


def samples_per_second(mode, transport, replicas, epochs):
    run = runs.Run(f"mnist-{mode}.yaml", [
        "servers.count=2", f"servers.replicas={replicas}", f"transport.type={transport}", f"stop={{epochs: {epochs}}}",
        f"update={{type: sgd, learning_rate: {RATES[mode]}, momentum: 0.9}}"],
        runs.data_with("mnist/train-images-idx3-ubyte.gz"))
    run.train()
    if replicas == 2 and not run.events("replicas_synced"):
        raise runs.Failed("the replicas were not filled before the run ended: more --epochs are needed")
    samples = run.summary()["samples_per_second"]
    run.clean()
    return samples


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--transport", nargs="+", default=["auto", "tcp"])
    parser.add_argument("--mode", nargs="+", default=["sync", "async"])
    options = parser.parse_args()
    for transport in options.transport:
        for mode in options.mode:
            pairs = [[samples_per_second(mode, transport, replicas, options.epochs) for replicas in (1, 2)]
                     for _ in range(options.rounds)]
            one, two = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
            ratio = statistics.median(pair[1] / pair[0] for pair in pairs)
            print(f"{transport} {mode}: {one:.0f} samples/s without, {two:.0f} with: {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
