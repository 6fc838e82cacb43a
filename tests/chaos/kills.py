#!/usr/bin/env python3
"""Real jobs whose processes are killed (SIGKILL) at seeded moments: all complete, and in sync mode the
weights are those of the undisturbed run, bit for bit. Without real data they run on optdigits, which ships.

    tests/chaos/kills.py CASE                     one of the cases below, as ctest runs them
    tests/chaos/kills.py random --runs 100 --seed 1 [--mode sync] [--report FILE]
                                                  random victims at random times; prints how long each kind of
                                                  process took from its death to the next applied contribution
"""

import argparse
import json
import os
import pathlib
import random
import signal
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "training"))
import runs  # noqa: E402

DATA = "optdigits/optdigits.tra"
# Momentum, dropout and batch norm: everything that could be forgotten on the way back.
SGD = "update={type: sgd, learning_rate: 0.05, momentum: 0.9}"
SETS = ["servers.count=2", "workers.count=2",
        "stop={epochs: 30}", "checkpoint={every: {clocks: 40}}", "limits.lease_seconds=5",
        "model.layers=[{flatten: {}}, {dense: {units: 32}}, {batch_norm: {}}, {relu: {}}, "
        "{dropout: {rate: 0.2}}, {dense: {units: 10}}]"]
# Changes how long steps take, so that there is time to kill somebody, and nothing else.
SLOWLY = "workers.emulate={step_milliseconds: 3}"
ELASTIC = "exchange={type: elastic, every: 4, alpha: 0.4}"
DELTA = "exchange={type: delta, local_steps: 4, optimizer: {type: adam, learning_rate: 0.002}}"
REPLICAS = "servers.replicas=2"
MODES = {"sync": "consistency={mode: sync}", "bounded": "consistency={mode: bounded, staleness: 3}",
         "async": "consistency={mode: async}"}


def job(sets, name="run"):
    return runs.Run("quickstart.yaml", [*SETS, *sets], runs.data_with(DATA), name)


def process_of(run, role, number):
    """The process id of server or worker `number`, once it is there."""
    option = "--index" if role == "server" else "--rank"
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for pid, command in run.children(f"leeway-{role}"):
            if command[command.index(option) + 1] == str(number):
                return pid
        time.sleep(0.02)
    raise runs.Failed(f"{role} {number} does not run\n{run.tail()}")


def kill(run, role, number):
    pid = process_of(run, role, number)
    clock, now = run.max_clock(), time.time()
    os.kill(pid, signal.SIGKILL)
    print(f"  killed {role} {number} (process {pid}) at clock {clock}", flush=True)
    return {"role": role, "number": number, "clock": clock, "time": now}


def undisturbed(sets):
    run = job(sets, "undisturbed")
    summary = run.train()
    run.clean()
    return summary


# What the coordinator says when it has dealt with a lost server.
RECOVERED = ("job_started", "went_back", "placement_changed")


def recoveries(run):
    return sorted((e for kind in RECOVERED for e in run.events(kind)), key=lambda e: e["time"])


def killed_once_each(sets, victims=(("server", 1), ("server", 0), ("worker", 1))):
    """Each victim is killed when the run has come some clocks further; then all must be as if nothing had been."""
    whole = undisturbed(sets)
    run = job([*sets, SLOWLY])
    run.start()
    for role, number in victims:
        reached = run.max_clock()
        run.wait_for(lambda r, at=reached + 60: r.max_clock() >= at)
        before = len(recoveries(run))
        kill(run, role, number)
        if role == "server":
            run.wait_for(lambda r, n=before: len(recoveries(r)) > n)
            event = recoveries(run)[-1]
            print(f"  {event['event']} at clock {event.get('clock', '-')}: {event['message']}", flush=True)
    summary = run.wait()
    runs.check(summary["state"] == "finished", "the job has finished")
    went_back = [e["message"] for e in run.events("went_back")]
    runs.check(not (REPLICAS in sets and went_back), f"with replicas nothing goes back {went_back}")
    return run, summary, whole


def same_bits(*sets):
    run, summary, whole = killed_once_each([MODES["sync"], *sets])
    runs.check(summary["weights_sha256"] == whole["weights_sha256"],
               f"the same bits as undisturbed ({whole['weights_sha256'][:16]})")
    run.clean()


def same_accuracy(mode, *sets):
    run, summary, whole = killed_once_each([MODES[mode], *sets])
    got, wanted = summary["test_accuracy"], whole["test_accuracy"]
    runs.check(abs(got - wanted) < 0.03, f"test accuracy {got:.4f}, undisturbed {wanted:.4f}")
    run.clean()


CASES = {
    "sync": lambda: same_bits(SGD),
    "sync-adam": lambda: same_bits("update={type: adam, learning_rate: 0.002}"),
    "sync-elastic": lambda: same_bits(SGD, ELASTIC),
    "sync-delta": lambda: same_bits("update={type: sgd, learning_rate: 1}", DELTA),
    "sync-int8": lambda: same_bits(SGD, "compression={contributions: {type: int8}, weights: {type: int8}}"),
    "sync-replicas": lambda: same_bits(SGD, REPLICAS),
    "sync-replicas-adam": lambda: same_bits("update={type: adam, learning_rate: 0.002}", REPLICAS, "servers.count=3"),
    "bounded-replicas": lambda: same_accuracy("bounded", SGD, REPLICAS),
    "async-replicas": lambda: same_accuracy("async", SGD, REPLICAS),
    "bounded": lambda: same_accuracy("bounded", SGD),
    "async": lambda: same_accuracy("async", SGD),
}

if __name__ == "__main__":
    runs.main(CASES)
