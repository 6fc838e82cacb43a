#!/usr/bin/env python3
"""Measures how long training stands still when a server is killed whose shards have replicas: from its death until
every worker has the answer to a contribution that it began after the death. The ledger's workers write a line as soon
as they are answered (ledger.py). This script looks for these lines every millisecond.

    tests/chaos/failover.py CASE                        as ctest runs them, a few deaths
    tests/chaos/failover.py never --runs 30             killed and never started again; then the ledger is checked
    tests/chaos/failover.py four --runs 8               `leeway train`: server 1 is killed four times in a row
    tests/chaos/failover.py first --runs 5              server 0 and with it the coordinator, `leeway train`
"""

import argparse
import os
import random
import shutil
import signal
import statistics
import sys
import time

import ledger
from cluster import runs

WITHIN = 2.0  # seconds, at the 99th percentile
PATIENCE = 30
# Workers that write down what they are told, in place of the workers that train.
WORKER = """#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in
    --coordinator) coordinator=$2 ;;
    --rank) rank=$2 ;;
  esac
  shift
done
exec "{bin}/leeway-ledger-worker" --coordinator $coordinator --rank $rank --told "{folder}/told-$rank" --blocks {blocks} \\
  --step-milliseconds 20
"""


def lines_of(folder, rank):
    path = folder / f"told-{rank}"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def still_for(folder, workers, killed):
    """Returns the seconds after `killed` (time.monotonic) at which each worker has had two more answers: the first may
    be to a contribution that the dead server had already answered."""
    wanted = {rank: lines_of(folder, rank) + 2 for rank in range(workers)}
    while wanted:
        now = time.monotonic()
        if now - killed > PATIENCE:
            raise runs.Failed(f"workers {sorted(wanted)} stand still {PATIENCE} s after the death")
        for rank in [rank for rank, lines in wanted.items() if lines_of(folder, rank) >= lines]:
            del wanted[rank]
        time.sleep(0.001)
    return time.monotonic() - killed


def strike(folder, workers, kill):
    killed = time.monotonic()
    kill()
    return still_for(folder, workers, killed)


# ---- never started again

def never(seed):
    """The server is gone for good: the job ends without it, and every answer was true."""
    draw = random.Random(seed)
    mode = ("sync", "bounded", "async")[seed % 3]
    transport = ("auto", "tcp")[seed // 3 % 2]
    servers = draw.choice((2, 3))
    with ledger.cluster(mode, transport=transport, lease=10, servers=servers, clocks=500) as run:
        run.wait_for(lambda r: r.events("replicas_synced"), "two holders of each block")
        at = run.max_clock() + draw.randrange(5, 50)
        run.wait_for(lambda r: r.max_clock() >= at, f"clock {at}")
        time.sleep(0.3 * draw.random())
        victim = run.find("server", draw.randrange(1, servers))
        victim.killed = victim.done = True  # it is not started again
        seconds = strike(run.parent, run.workers, victim.process.kill)
        run.say(f"seed {seed}: {mode}, {transport}, {victim} of {servers}: {seconds:.3f} s")
        blow = ledger.hasten(run)
        run.finish()
        runs.check(not run.events("went_back"), "nothing went back")
        ledger.verdict(run, [blow])
    return seconds


# ---- `leeway train`, which starts dead processes again

def launched(mode, folder):
    """Returns a folder of programs in which the workers are the ledger's."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    shutil.copy(runs.BIN / "leeway", programs / "leeway")
    (programs / "leeway-server").symlink_to(runs.BIN / "leeway-server")
    worker = programs / "leeway-worker"
    worker.write_text(WORKER.format(bin=runs.BIN, folder=folder, blocks=ledger.BLOCKS))
    worker.chmod(0o755)
    (folder / "unused").write_text("1,0\n" * 64)
    job = folder / "job.yaml"
    # These clocks take 80 s; the test does not wait for their end.
    job.write_text(ledger.job(mode, lease=10, clocks=4000, places=2 * ledger.PLACES))
    return job, programs


def deaths(mode, number, times):
    """Kills server `number` again each time that every block has two holders again."""
    run = runs.Run(None, ["servers.max_restarts=10"])
    run.parent.mkdir(parents=True, exist_ok=True)
    run.job, programs = launched(mode, run.parent)
    run.data = run.parent
    command = run.command
    run.command = lambda *more: [str(programs / "leeway"), *command(*more)[1:]]
    run.start()
    seconds = []
    try:
        for time_of in range(times):
            since = 0 if not seconds else struck
            run.wait_for(lambda r, since=since: holders(r, since))
            time.sleep(0.2 + 0.2 * random.random())
            struck = time.time()
            pid = run.process_of("server", number)
            seconds.append(strike(run.parent, 2, lambda pid=pid: os.kill(pid, 9)))
            print(f"  {mode}: death {time_of + 1} of server {number}: {seconds[-1]:.3f} s", flush=True)
        went_back = [e["message"] for e in run.events("went_back")]
        runs.check(not went_back, f"nothing went back {went_back}")
    finally:
        # Twice, because the ledger's workers do not stop before their job's end. Two SIGTERM would count as one.
        run.process.terminate()
        time.sleep(0.3)
        run.process.send_signal(signal.SIGINT)
        run.process.wait(60)
    run.clean()
    return seconds


def holders(run, since):
    """Whether the newest event on placements says that every block has two holders, and that servers have their shards
    back."""
    kinds = [e for e in run.events() if e["time"] > since and e["event"] in ("replicas_synced", "placement_changed")]
    return kinds and kinds[-1]["event"] == "replicas_synced" and time.time() - kinds[-1]["time"] > 0.3


# ---- many deaths, and their figures

def figures(name, seconds):
    seconds = sorted(seconds)
    late = seconds[min(len(seconds) - 1, int(0.99 * len(seconds)))]
    print(f"{name}: {len(seconds)} deaths; seconds until every worker's next contribution was applied: median "
          f"{statistics.median(seconds):.3f}, p99 {late:.3f}, most {seconds[-1]:.3f}", flush=True)
    runs.check(late <= WITHIN, f"p99 within {WITHIN} s")


MODES = ("sync", "bounded", "async")
CASES = {
    "never": lambda count=4: figures("never started again", [never(seed) for seed in range(count)]),
    "four": lambda count=1: figures(
        "killed four times in a row", [s for i in range(count) for s in deaths(MODES[i % 3], 1, 4)]),
    "first": lambda count=1: figures(
        "server 0, started again", [s for i in range(count) for s in deaths(MODES[i % 3], 0, 1)]),
}

if __name__ == "__main__":
    if "--runs" in sys.argv:
        parser = argparse.ArgumentParser()
        parser.add_argument("case", choices=CASES)
        parser.add_argument("--runs", type=int, required=True)
        options = parser.parse_args()
        CASES[options.case](options.runs)
    else:
        runs.main(CASES)
