#!/usr/bin/python3
"""Rounds of what people do with runs on a cluster (fake_pods.py): two at a time, the same once more, paused and gone on
with server 0 killed, preempted by a queue, a pod evicted while the job ends, a program of one's own. A round's seed draws its
moments and pods. Each wait has the bound that its case says.

    tests/deploy/rounds.py [--runs N] [--first SEED]     as root
"""

import argparse
import random
import signal
import sys
import time

import fake_cluster
import fake_pods
from manifests import runs

SCENES = ("two-runs", "again", "paused", "preempted", "last-second", "program")


def outcome(seed, scene):
    """Of one round, as a sentence."""
    random.seed(seed)
    began = time.monotonic()
    try:
        fake_pods.CASES[scene]()
    except runs.Failed as failure:
        return f"FAILED: {failure}"
    except SystemExit as left:
        if left.code != runs.SKIPPED:
            raise
        return "skipped"
    return f"passed in {time.monotonic() - began:.1f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--first", type=int, default=1)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(fake_pods.SIGTERMED))
    fake_cluster.enter_node()
    failed = []
    for seed in range(options.first, options.first + options.runs):
        scene = SCENES[seed % len(SCENES)]
        print(f"round {seed}: {scene}", flush=True)
        ended = outcome(seed, scene)
        failed += [seed] if ended.startswith("FAILED") else []
        print(f"round {seed}: {scene} {ended}", flush=True)
    print(f"{options.runs} rounds, {len(failed)} failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    runs.ends_with(main)
