#!/usr/bin/python3
"""What a consistency mode does about slow workers. Steps are padded to a fixed length, so that the
ratios do not hang on how many cores the machine has."""

import os
import signal

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


def quorum():
    slow = "workers.emulate={step_milliseconds: 20, slow: [{ranks: [3], factor: 5}]}"
    sync = rate(train([slow, "consistency.mode=sync", "stop={clocks: 40}"]))
    summary = train([slow, "consistency={mode: sync, backup_workers: 1}"])
    dropped = summary["dropped_steps"]
    share = dropped / (summary["steps"] + dropped)
    runs.check(rate(summary) >= 2.5 * sync,
               f"one backup worker {rate(summary):.1f} steps/s that count, sync {sync:.1f}: "
               f"{rate(summary) / sync:.2f} times; {100 * share:.1f} % of the steps dropped")
    runs.check(0 < share < 0.25, f"{dropped} steps dropped, {summary['steps']} counted")
    runs.check(summary["steps"] >= 150 * 3, "every clock is made of three workers' steps at least")


def lost_for_good():
    sets = ["consistency.mode=sync", "workers={on_worker_loss: continue, max_restarts: 0, count: 4, "
            "emulate: {step_milliseconds: 10}}", "limits.lease_seconds=1"]
    run = runs.Run("quickstart.yaml", [*BASE, *sets], runs.data_with(DATA))
    run.start()
    run.wait_for(lambda r: r.max_clock() >= 20)
    pid, _ = run.children("leeway-worker")[0]
    os.kill(pid, signal.SIGKILL)
    summary = run.wait(timeout=120)
    runs.check(summary["state"] == "finished" and summary["clock"] == 150,
               "a worker that is killed and never comes back: the others finish the job")
    lost = run.events("worker_lost")[0]["rank"]
    last = max(e["clock"] for e in run.events("step") if e["rank"] == lost)
    runs.check(last < 150, f"worker {lost} was lost after clock {last}")
    run.clean()


def lost_and_back():
    sets = ["consistency.mode=sync", "workers={on_worker_loss: continue, count: 4, "
            "emulate: {step_milliseconds: 10}}", "limits.lease_seconds=1"]
    run = runs.Run("quickstart.yaml", [*BASE, *sets], runs.data_with(DATA))
    run.start()
    run.wait_for(lambda r: r.max_clock() >= 20)
    pid, _ = run.children("leeway-worker")[1]
    os.kill(pid, signal.SIGSTOP)
    run.wait_for(lambda r: r.events("worker_lost"))
    lost = run.events("worker_lost")[0]["rank"]
    passed = run.max_clock()
    run.wait_for(lambda r: r.max_clock() >= passed + 20)
    os.kill(pid, signal.SIGCONT)
    summary = run.wait(timeout=120)
    clocks = [e["clock"] for e in run.events("step") if e["rank"] == lost]
    runs.check(summary["state"] == "finished" and max(clocks) == 150,
               f"worker {lost}, stopped for a while, has joined again and finished")
    jump = max(b - a for a, b in zip(clocks, clocks[1:]))
    runs.check(jump >= 20, f"it went on {jump} clocks further")
    run.clean()


CASES = {"one-slow": one_slow, "sometimes-slow": sometimes_slow, "quorum": quorum,
         "lost-for-good": lost_for_good, "lost-and-back": lost_and_back}

if __name__ == "__main__":
    runs.main(CASES)
