#!/usr/bin/python3
"""What a consistency mode does about slow workers. Steps are padded to a fixed length, so that the
ratios do not hang on how many cores the machine has."""

import runs

DATA = "optdigits/optdigits.tra"
BASE = ["servers.count=2", "workers.count=4", "stop={clocks: 150}", "evaluation={}"]


def train(sets):
    run = runs.Run("quickstart.yaml", [*BASE, *sets], runs.data_with(DATA))
    summary = run.train()
    run.clean()
    return summary


def rate(summary):
    return summary["steps"] / summary["seconds"]


def one_slow():
    slow = "workers.emulate={step_milliseconds: 10, slow: [{ranks: [3], factor: 5}]}"
    sync = rate(train([slow, "consistency.mode=sync"]))
    free = rate(train([slow, "consistency.mode=async"]))
    runs.check(free >= 2 * sync, f"async {free:.1f} steps/s, sync {sync:.1f}: {free / sync:.2f} times")


def sometimes_slow():
    slow = "workers.emulate={step_milliseconds: 20, slow: [{factor: 5, probability: 0.1}]}"
    sync = rate(train([slow, "consistency.mode=sync"]))
    summary = train([slow, "consistency={mode: bounded, staleness: 8}"])
    bounded = rate(summary)
    runs.check(summary["max_staleness"] <= 8, f"staleness at most {summary['max_staleness']}")
    runs.check(bounded >= 1.4 * sync,
               f"bounded s=8 {bounded:.1f} steps/s, sync {sync:.1f}: {bounded / sync:.2f} times")


CASES = {"one-slow": one_slow, "sometimes-slow": sometimes_slow}

if __name__ == "__main__":
    runs.main(CASES)
