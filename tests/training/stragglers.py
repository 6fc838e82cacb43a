#!/usr/bin/python3
"""What each consistency mode does about slow workers. Steps are padded to a fixed length, so that the ratios do not
depend on the number of cores."""

import os
import signal

import runs

DATA = "optdigits/optdigits.tra"
# The length of a step in jobs with leased data.
STEP_SECONDS = 0.02
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
            "emulate: {step_milliseconds: 30}}", "limits.lease_seconds=1"]
    run = runs.Run("quickstart.yaml", [*BASE, *sets], runs.data_with(DATA))
    run.start()
    run.wait_for(lambda r: r.clock_of(1) >= 20)
    os.kill(run.process_of("worker", 1), signal.SIGKILL)
    summary = run.wait(timeout=120)
    runs.check(summary["state"] == "finished" and summary["clock"] == 150,
               "a worker that is killed and never comes back: the others finish the job")
    lost = run.events("worker_lost")[0]["rank"]
    runs.check(lost == 1 and run.clock_of(1) < 150, f"worker {lost} was lost after clock {run.clock_of(1)}")
    run.clean()


def lost_and_back():
    sets = ["consistency.mode=sync", "workers={on_worker_loss: continue, count: 4, "
            "emulate: {step_milliseconds: 20}}", "limits.lease_seconds=1", "stop={clocks: 400}"]
    run = runs.Run("quickstart.yaml", [*BASE, *sets], runs.data_with(DATA))
    run.start()
    run.wait_for(lambda r: r.clock_of(1) >= 20)
    pid = run.process_of("worker", 1)
    os.kill(pid, signal.SIGSTOP)
    run.wait_for(lambda r: r.events("worker_lost"))
    lost = run.events("worker_lost")[0]["rank"]
    passed = run.max_clock()
    run.wait_for(lambda r: r.max_clock() >= passed + 20)
    os.kill(pid, signal.SIGCONT)
    summary = run.wait(timeout=120)
    clocks = [e["clock"] for e in run.events("step") if e["rank"] == lost]
    runs.check(summary["state"] == "finished" and max(clocks) == 400,
               f"worker {lost}, stopped for a while, has joined again and finished")
    jump = max(b - a for a, b in zip(clocks, clocks[1:]))
    runs.check(jump >= 20, f"it went on {jump} clocks further")
    run.clean()


def equal_workers():
    """When workers are equally fast, one of them is always the last: without a grace its work is dropped."""
    shares = []
    for deviations in (0, 3):
        summary = train(["workers.emulate={step_milliseconds: 20}", "stop={clocks: 100}",
                         f"consistency={{mode: sync, backup_workers: 1, grace_deviations: {deviations}}}"])
        dropped = summary["dropped_steps"]
        shares.append(dropped / (summary["steps"] + dropped))
    runs.check(shares[1] < shares[0] / 2,
               f"equal workers: {100 * shares[1]:.1f} % of the steps dropped, {100 * shares[0]:.1f} % without grace")


def leased():
    """A worker is killed for good. The others train on what it had leased, and every epoch is complete."""
    sets = ["data.assignment=leased", "stop={epochs: 3}", "limits.lease_seconds=1",
            "consistency.mode=async", "workers={on_worker_loss: continue, max_restarts: 0, count: 4, "
            "emulate: {step_milliseconds: 20, slow: [{ranks: [3], factor: 5}]}}"]
    run = runs.Run("quickstart.yaml", ["servers.count=2", "evaluation={}", *sets], runs.data_with(DATA))
    run.start()
    run.wait_for(lambda r: r.max_clock() >= 10)
    os.kill(run.process_of("worker", 1), signal.SIGKILL)
    summary = run.wait(timeout=120)
    epochs = run.events("epoch_done")
    runs.check(summary["state"] == "finished" and len(run.events("worker_lost")) == 1, "the job has finished")
    runs.check("below 3 " in epochs[-1]["message"] and ", or left" not in epochs[-1]["message"],
               epochs[-1]["message"])
    lost = run.events("worker_lost")[0]["rank"]
    steps = [sum(e["steps"] for e in run.events("step") if e["rank"] == rank) for rank in range(4)]
    runs.check(lost == 1 and steps[3] < min(steps[0], steps[2]) / 2,
               f"steps by rank {steps}: the slow worker has taken fewer batches")
    run.clean()


def leased_rewind():
    """A server is killed: only data that the newest checkpoint does not have is trained on again."""
    workers = 3
    sets = ["data.assignment=leased", "stop={epochs: 3}", "checkpoint={every: {clocks: 10}}", f"workers.count={workers}",
            "servers.count=2", "consistency.mode=async", "evaluation={}",
            f"workers.emulate={{step_milliseconds: {1000 * STEP_SECONDS:g}}}"]
    run = runs.Run("quickstart.yaml", sets, runs.data_with(DATA))
    run.start()
    run.wait_for(lambda r: r.max_clock() >= 25)
    os.kill(run.process_of("server", 1), signal.SIGKILL)
    summary = run.wait(timeout=120)
    runs.check(summary["state"] == "finished" and len(run.events("went_back")) == 1,
               "a job with leased data has gone back to a checkpoint, and finished")
    runs.check("below 3 " in run.events("epoch_done")[-1]["message"], run.events("epoch_done")[-1]["message"])
    events = run.events()
    back = next(i for i, e in enumerate(events) if e["event"] == "went_back")
    again = sum(e["steps"] for e in events[back:] if e["event"] == "step")
    # A cut's clock is the mean of its workers' clocks: the cut has at most that number of contributions from each, of
    # one batch each.
    most = workers * events[back]["clock"]
    # The cut counts batches as open that a worker had not reported when the cut's manifest was made: a worker reports
    # every quarter of a second, and when it wants more. It also counts contributions that had reached only one of the
    # servers.
    unsure = workers * (0.3 / STEP_SECONDS + 2)
    runs.check(717 - most <= again <= 717 - most + unsure,
               f"the checkpoint has at most {most} of 717 batches; {again} steps after it was gone back to")
    run.clean()


def leased_long_clocks():
    """A clock has more steps than there are batches: each worker gets a share, no batch is trained on twice, and none
    is left over."""
    for exchange in ("{type: delta, local_steps: 500, optimizer: {type: sgd, learning_rate: 0.05}}",
                     "{type: gradient, accumulation: 100}"):
        sets = ["data.assignment=leased", "stop={epochs: 3}", "workers.count=4", "servers.count=2",
                "consistency.mode=async", "evaluation={}", f"exchange={exchange}",
                f"workers.emulate={{step_milliseconds: {1000 * STEP_SECONDS:g}}}"]
        run = runs.Run("quickstart.yaml", sets, runs.data_with(DATA))
        run.learns = False  # There are eight updates, each with a quarter of the rate.
        run.train(timeout=120)
        steps = [sum(e["steps"] for e in run.events("step") if e["rank"] == rank) for rank in range(4)]
        runs.check(sum(steps) == 717 and min(steps) > 717 / 4 / 2, f"{exchange}: of 717 batches {steps}")
        run.clean()


def shown(compare):
    return lambda: runs.shows(compare)


CASES = {"equal-workers": shown(equal_workers), "leased": leased, "leased-long-clocks": leased_long_clocks,
         "leased-rewind": leased_rewind, "lost-and-back": lost_and_back,
         "lost-for-good": lost_for_good, "one-slow": shown(one_slow), "quorum": shown(quorum),
         "sometimes-slow": shown(sometimes_slow)}

if __name__ == "__main__":
    runs.main(CASES)
