#!/usr/bin/env python3
"""Measures what writing checkpoints costs training. A job writes a checkpoint every --every clocks. The files are
written during the first half of the clocks after each cut, and nothing is written during the second half. The two
halves are compared in pairs, a moment apart, so that other work on the machine weighs on both. Prints the median of the
share of time that a checkpoint costs, over the cuts.

    tests/bench/checkpoint_cost.py [--model mlp|10m] [--every 1000] [--cuts 30]
"""

import argparse
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "training"))
import runs  # noqa: E402

MODELS = {"mlp": [256, 128], "10m": [2048, 2048, 2048]}


def job(options):
    layers = "".join(f"{{dense: {{units: {units}}}}}, {{relu: {{}}}}, " for units in MODELS[options.model])
    return runs.Run("mnist-sync.yaml", [
        f"model.layers=[{{flatten: {{}}}}, {layers}{{dense: {{units: 10}}}}]", "evaluation={}",
        "servers.count=2", "workers.count=2", f"stop={{clocks: {options.every * (options.cuts + 1)}}}",
        f"checkpoint={{every: {{clocks: {options.every}}}, keep: 2}}"],
        runs.data_with("mnist/train-images-idx3-ubyte.gz"))


def seconds_by_clock(run):
    """Returns the whole time of each of worker 0's clocks. One line may cover several clocks, of one step each."""
    seconds = {}
    for event in run.events("step"):
        if event["rank"] != 0:
            continue
        together = event["data_seconds"] + event["compute_seconds"] + event["wait_seconds"]
        for clock in range(event["clock"] - event["steps"] + 1, event["clock"] + 1):
            seconds[clock] = together / event["steps"]
    return seconds


def shares(seconds, cuts, every):
    """Returns for each cut by how much its first half took longer than the second, as a share of the whole."""
    for cut in cuts:
        first = sum(seconds[cut + i + 1] for i in range(every // 2))
        second = sum(seconds[cut + i + 1] for i in range(every // 2, every // 2 * 2))
        yield (first - second) / (2 * second)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, default="mlp")
    parser.add_argument("--every", type=int, default=1000)
    parser.add_argument("--cuts", type=int, default=30)
    options = parser.parse_args()
    run = job(options)
    run.train()
    written = [e["clock"] for e in run.events("checkpoint")]
    seconds = seconds_by_clock(run)
    cuts = [clock for clock in written if clock + options.every <= max(seconds)]
    costs = sorted(shares(seconds, cuts, options.every))
    quarter = len(costs) // 4
    each, cost = 1000 * statistics.median(seconds.values()), 100 * statistics.median(costs)
    print(f"{options.model}: {len(cuts)} checkpoints, one in {options.every} clocks of {each:.2f} ms. They cost {cost:.1f} % "
          f"of the time (median; the middle half {100 * costs[quarter]:.1f} to {100 * costs[-quarter - 1]:.1f} %)")
    run.clean()


if __name__ == "__main__":
    main()
