#!/usr/bin/env python3
"""What `leeway train` does about its processes: those that die now and then or repeatedly, those that die before they
listen, those that stand still, those that are only slow, and those that another process replaces.

    tests/chaos/supervise.py CASE                 as ctest runs them
"""

import os
import signal
import subprocess
import time

import kills
from cluster import runs

DATA = str(runs.SOURCE / "data")
SYNC = [kills.MODES["sync"], kills.SGD]
ROLES = (("server", 0), ("server", 1), ("worker", 1))


def running(*sets, options=()):
    """Starts a job in trouble. It has no end, unless `sets` says so."""
    run = kills.job([*SYNC, kills.SLOWLY, kills.ENDLESS, *sets])
    run.start(options=options)
    kills.forward(run)
    return run


def finished(run):
    """Ends the job. Other tests compare the bits; this one checks that the job ends and leaves all its files."""
    summary = run.wait(timeout=120)
    runs.check(summary["state"] == "finished" and (run.dir / "model.safetensors").exists(), "the job has finished")
    return summary


# ---- the budget of restarts

def budget_refills(role, number):
    """More deaths than max_restarts, each of which comes when the previous one no longer counts."""
    run = running("servers.max_restarts=1", "workers.max_restarts=1", options=["--restart-window", "2"])
    for _ in range(4):
        kills.kill(run, role, number)
        began = time.monotonic()
        run.wait_for(lambda r, until=began + 2.5: time.monotonic() >= until)
        kills.forward(run, 10)
    run.interrupt()
    summary = run.wait(expect=runs.STOPPED, timeout=60)
    restarts = summary["worker_restarts" if role == "worker" else "server_restarts"][number]
    runs.check(restarts == 4, f"{role} {number}: {restarts} restarts, one of which is allowed within 2 s")
    run.clean()


def crash_loop():
    """Deaths without a pause soon use up the budget, and the error names the process, its end and its log."""
    for role, number in ROLES:
        run = running()
        began, lives = time.monotonic(), set()
        while run.process.poll() is None and time.monotonic() < began + 60:
            option = "--index" if role == "server" else "--rank"
            for pid, command in run.children(f"leeway-{role}"):
                if pid not in lives and command[command.index(option) + 1] == str(number):
                    os.kill(pid, signal.SIGKILL)
                    lives.add(pid)
            time.sleep(0.01)
        took = time.monotonic() - began
        run.wait(expect=runs.TEMPORARY, timeout=1)
        told = run.said()
        runs.check(len(lives) == 4, f"{role} {number} lived {len(lives)} times in {took:.1f} s")
        runs.check(f"{role} {number} crashed with signal 9 (Killed) after 3 restarts" in told and
                   f"logs/{role}-{number}.log" in told, "named with its end and its log")
        if (role, number) != ("server", 0):
            runs.check(run.events("stop_requested") and not run.events("server_draining"),
                       "the job is asked to end, and no server to leave it")
        run.clean()


def killed_at_start():
    """Server 0 dies before it listens, in each phase of its start: it is started again."""
    for milliseconds in (0, 5, 10, 20, 30, 45, 60):
        # 100 clocks take longer than its start.
        run = kills.job([*SYNC, kills.SLOWLY, "stop={clocks: 100}"])
        run.start()
        pid = run.process_of("server", 0)
        time.sleep(milliseconds / 1000)
        os.kill(pid, signal.SIGKILL)
        summary = finished(run)
        runs.check(summary["server_restarts"][0] == 1, f"killed {milliseconds} ms after it was seen: restarted")
        run.clean()


# ---- processes that stand still, or are slow

def hung(role, number):
    """A process that stands still is killed and started again, and the bits are those of the undisturbed run."""
    run = running("limits.lease_seconds=1")
    pid = run.process_of(role, number)
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    run.wait_for(lambda r, p=pid: not os.path.exists(f"/proc/{p}"), timeout=60)
    took = time.monotonic() - began
    kills.forward(run)
    summary = kills.finished(run)
    kills.check_bits(summary, SYNC)
    restarts = summary["worker_restarts" if role == "worker" else "server_restarts"][number]
    runs.check(restarts == 1 == summary["restarts"], f"{role} {number} was ended after {took:.1f} s, and replaced")
    runs.check(f"{role} {number} (process {pid}) is running but does not respond" in run.said(), "and that was said")
    run.clean()


def hung_while_stopping():
    """Ctrl-C while a worker stands still: the job still stops in order."""
    run = running("limits.lease_seconds=1")
    os.kill(run.process_of("worker", 1), signal.SIGSTOP)
    run.interrupt()
    summary = run.wait(expect=runs.STOPPED, timeout=60)
    runs.check(summary["restarts"] == 1, f"stopped with a checkpoint at clock {summary['clock']}")
    run.clean()


def slow():
    """A worker whose steps take far longer than its lease and the watchdog's limit is left alone."""
    run = kills.job([*SYNC, "limits.lease_seconds=0.5", "stop={clocks: 2}", "checkpoint={every: {clocks: 2}}",
                     "workers.emulate={step_milliseconds: 9000}"])
    run.start()
    summary = finished(run)
    runs.check(summary["restarts"] == 0, f"{summary['seconds']:.0f} s for two steps, and nobody was restarted")
    run.clean()


def busy():
    """Workers that wait for a rank that is busy for longer than limits.exchange_seconds, but is still heard, go on
    waiting."""
    run = kills.job([*SYNC, "limits.exchange_seconds=8", "stop={clocks: 2}", "checkpoint={every: {clocks: 2}}",
                     "workers.emulate={step_milliseconds: 1500, slow: [{ranks: [1], factor: 10}]}"])
    run.start()
    summary = finished(run)
    runs.check(summary["restarts"] == 0, f"{summary['seconds']:.0f} s for two steps, and nobody was restarted")
    said = (run.dir / "logs/worker-0.log").read_text()
    runs.check("the coordinator hears them, so the wait goes on" in said, "and who waits says so")
    run.clean()


def stood_still(*who):
    run = running("limits.lease_seconds=1")
    pids = [pid for role in ("leeway-server", "leeway-worker") for pid, _ in run.children(role)]
    pids = {"launcher": [run.process.pid], "children": pids}
    chosen = [pid for each in who for pid in pids[each]]
    for pid in chosen:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(15)
    for pid in chosen:
        os.kill(pid, signal.SIGCONT)
    kills.forward(run, 200)
    run.interrupt()
    summary = run.wait(expect=runs.STOPPED, timeout=60)
    runs.check(summary["restarts"] == 0, f"{' and '.join(who)} stood still for 15 s: nobody was restarted")
    run.clean()


# ---- processes that are started by hand

def by_hand(run, role, number, before=None):
    """Starts a process as a person at a terminal would who follows the coordinator's message."""
    address = (run.dir / "coordinator").read_text(encoding="utf-8").strip()
    command = [str(runs.BIN / f"leeway-{role}"), "--index" if role == "server" else "--rank", str(number),
               "--token-file", str(run.dir / "token")]
    if (role, number) == ("server", 0):
        command += ["--listen", address, "--job", str(run.dir / "job.yaml"), "--run-dir", str(run.dir)]
    else:
        command += ["--coordinator", address]
    if role == "worker":
        command += ["--data", DATA]
    with open(run.parent / f"by-hand-{role}-{number}.log", "w", encoding="utf-8") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)


# A job of 18 s, which is far longer than replacing a process takes: all processes must end with the job.
TO_ITS_END = ["stop={clocks: 1200}", "workers.emulate={step_milliseconds: 15}", "limits.lease_seconds=1"]


def replaced(role, number, hand_dies=False):
    """A job that the coordinator calls finished is finished, with all that a run leaves behind."""
    run = running(*TO_ITS_END)
    old = run.process_of(role, number)
    hand = by_hand(run, role, number)
    try:
        run.wait_for(lambda r: not os.path.exists(f"/proc/{old}"), timeout=60)
        print(f"  {role} {number} is another's (process {hand.pid})", flush=True)
        kills.forward(run)
        if hand_dies:
            hand.kill()
            hand.wait()
            hand = by_hand(run, role, number)
        summary = finished(run)
        runs.check(hand.wait(30) == 0, f"and {role} {number}, started by hand, with it")
        runs.check(summary["restarts"] == 0, "the launcher has restarted nobody")
    finally:
        hand.kill()
    run.clean()


def added_by_hand():
    """The launcher leaves a server alone that a person adds to a job with servers.max."""
    run = running(*TO_ITS_END, "servers={count: 2, max: 3, shards: 6}")
    hand = by_hand(run, "server", 2)
    try:
        run.wait_for(lambda r: "server 2 was started by hand or elsewhere" in r.said(), timeout=60)
        kills.forward(run)
        finished(run)
        runs.check(hand.wait(30) == 0, "server 2, started by hand, has ended with the job")
        runs.check("went_back" not in (run.dir / "metrics.jsonl").read_text(), "and the job never went back")
    finally:
        hand.kill()
    run.clean()


def replaced_coordinator():
    """Server 0 dies, and a person restarts it at its address before the launcher does."""
    run = running(*TO_ITS_END)
    old = run.process_of("server", 0)
    os.kill(run.process.pid, signal.SIGSTOP)
    os.kill(old, signal.SIGKILL)
    hand = by_hand(run, "server", 0)
    try:
        deadline = time.monotonic() + 30
        while len(run.events("server_registered")) < 4 and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(run.process.pid, signal.SIGCONT)
        run.wait_for(lambda r: "server 0: another process has taken its place" in r.said(), timeout=60)
        kills.forward(run)
        summary = finished(run)
        runs.check(hand.wait(30) == 0, "and server 0, started by hand, with it")
        runs.check(summary["server_restarts"] == [1, 0], "the launcher has tried to restart it once")
    finally:
        hand.kill()
    run.clean()


CASES = {
    **{f"{name}-{role}-{number}": lambda case=case, role=role, number=number: case(role, number)
       for name, case in (("budget", budget_refills), ("hung", hung)) for role, number in ROLES},
    "crash-loop": crash_loop, "killed-at-start": killed_at_start,
    "hung-while-stopping": hung_while_stopping, "slow": slow,
    "busy": busy, "stopped-launcher": lambda: stood_still("launcher"), "stopped-all": lambda: stood_still("launcher", "children"),
    "replaced-worker": lambda: replaced("worker", 1), "replaced-server": lambda: replaced("server", 1),
    "replaced-coordinator": replaced_coordinator, "added-by-hand": added_by_hand,
    "replaced-twice": lambda: replaced("worker", 1, hand_dies=True),
}

if __name__ == "__main__":
    runs.main(CASES)
