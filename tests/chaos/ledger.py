#!/usr/bin/env python3
"""Compares what workers were told with what the servers have applied, in real jobs whose processes are killed.

leeway-ledger-worker contributes so that each contribution has a place of its own in the weights, and writes down what
was answered (tests/chaos/ledger.h). At the end every acknowledged contribution must be in every block once. Each answer
on the way was checked for what its reader was promised: its own contributions, those of all ranks in their order, and
no rank staler than the bound.

    tests/chaos/ledger.py CASE                    as ctest runs them
    tests/chaos/ledger.py random --runs 20 --seed 1 [--mode async] [--replicas 2] [--blows 4] [--push-every 1]
                                 [--report FILE]
"""

import argparse
import collections
import json
import pathlib
import random
import signal
import time

from cluster import Cluster, runs

BLOCKS = 4
PLACES = 4096  # for one rank in a block
# Updates take so long that a push that is answered before its update would be seen to be lost.
MANY_PLACES = 16 * PLACES
JOB = """
apiVersion: leeway/v1
kind: TrainingJob
metadata: {{name: ledger, seed: 1}}
model: {{layers: [{{dense: {{units: 1}}}}], loss: squared}}
data: {{train: {{type: csv, files: unused}}, batch_size: 1}}
exchange: {{type: gradient}}
consistency: {{mode: {mode}, staleness: 3}}
update: {{type: sgd, learning_rate: 1, scaling: linear}}
servers: {{count: {servers}, replicas: {replicas}, block_bytes: {block_bytes}}}
workers: {{count: 2}}
stop: {{clocks: {clocks}}}
checkpoint: {{every: {{clocks: {every}}}}}
limits: {{lease_seconds: {lease}}}
transport: {{type: {transport}}}
"""
WORKER = [str(runs.BIN / "leeway-ledger-worker"), "--told", "{folder}/told-{rank}", "--blocks", str(BLOCKS)]
# In async mode one worker may make all clocks of the job. With STEP they take 30 s, which is longer than any trouble;
# hasten() shortens what is left.
CLOCKS = 1000
STEP = 30  # milliseconds
# Uses Push and Pull in place of PushPull, at every clock or at every other one.
PUSH = ("--push-every", "1")
BOTH = ("--push-every", "2")
# Like a worker of stock gRPC stubs.
UNARY = (*PUSH, "--unary")


def job(mode, replicas=2, clocks=CLOCKS, transport="auto", lease=5, servers=2, places=PLACES):
    return JOB.format(mode=mode, replicas=replicas, clocks=clocks, every=max(1, clocks // 20), transport=transport,
                      lease=lease, servers=servers, block_bytes=4 * 2 * places)


def cluster(mode, replicas=2, worker=(), step=STEP, **more):
    run = Cluster(job(mode, replicas, **more), servers=more.get("servers", 2),
                  worker=[*WORKER, "--step-milliseconds", str(step), *worker])
    run.one_holder = replicas == 1
    return run


def hasten(run):
    """Makes the rest of the job go without pauses. For that each worker is killed once, which counts as a blow."""
    blow = [("worker", rank) for rank in range(run.workers)]
    for victim in blow:
        command = run.find(*victim).command
        command[command.index("--step-milliseconds") + 1] = "0"
    run.kill(*blow)
    return blow


# ---- the checker

Count = collections.namedtuple("Count", "told applied lost twice untold")


def told_by(run, rank):
    """Returns how often, in each generation, the rank was told that the contribution of a clock is applied."""
    lines = (run.parent / f"told-{rank}").read_text(encoding="utf-8").splitlines()
    told = collections.Counter()
    for line in lines:
        _, generation, clock = map(int, line.split())
        told[generation, clock] += 1
    return told


def stands(often):
    """Returns the clocks whose contributions must be in the weights: all of the newest generation, and those of earlier
    generations that the job kept when it went back, which are the clocks before the first one of the next
    generation."""
    first, standing = float("inf"), set()
    for generation in sorted({generation for generation, _ in often}, reverse=True):
        clocks = {clock for g, clock in often if g == generation and clock < first}
        standing |= clocks
        first = min(clocks, default=first)
    return standing


def reconcile(run, workers=2):
    """Compares every place of the ledger with every line. `lost`: acknowledged but missing in some block, or asked for
    once more by the servers, which shows that they had lost it. `twice`: more than once in a block. `untold`: applied,
    but the worker died before it was told."""
    book = run.export()["ledger"]
    places = len(book) // BLOCKS // workers
    told_all = applied_all = 0
    lost, twice, untold = [], [], []
    for rank in range(workers):
        often = told_by(run, rank)
        told = stands(often)
        told_all += len(told)
        lost += [(rank, clock, f"told {times} times") for (_, clock), times in often.items() if times > 1]
        for clock in range(places):
            counts = [book[(block * workers + rank) * places + clock] for block in range(BLOCKS)]
            applied_all += all(count >= 1 for count in counts)
            if clock in told and min(counts) < 1:
                lost.append((rank, clock, counts))
            if max(counts) > 1:
                twice.append((rank, clock, counts))
            if clock not in told and max(counts) > 0:
                untold.append((rank, clock, counts))
    return Count(told_all, applied_all, lost, twice, untold)


def verdict(run, blows):
    count = reconcile(run)
    print(f"  told {count.told}, applied {count.applied}; told and not applied {len(count.lost)}, applied twice "
          f"{len(count.twice)}, applied and not told {len(count.untold)}", flush=True)
    for name, found in (("told and not applied", count.lost), ("applied twice", count.twice)):
        if found:
            raise runs.Failed(f"{name} (rank, clock, counts by block): {found[:5]}\n{run.tail()}")
    # A worker whose life ends between the update and its line is not told: one clock for each life. The coordinator's
    # end, in server 0, ends the life of every worker, and so does going back.
    ends = sum(1 if role == "worker" else run.workers * (number == 0) for blow in blows for role, number in blow)
    ends += run.workers * len(run.events("went_back"))
    runs.check(len(count.untold) <= ends, "what was applied and not told is of lives that ended")
    return count


# ---- the blows

VICTIMS = [[("worker", 0)], [("worker", 1)], [("server", 1)], [("server", 0)],
           [("worker", 1), ("server", 1)], [("worker", 0), ("server", 0)]]
APART = 50  # in clocks


def recovered(run, blow, since):
    """Whether the killed processes are back, and each block has all its holders again."""
    later = [e for e in run.events() if e["time"] > since]
    kinds = {e["event"] for e in later}
    for role, number in blow:
        if role == "worker" and not any(e["event"] == "worker_registered" and e["rank"] == number for e in later):
            return False
        if role == "server" and not kinds & ({"went_back", "job_started"} if run.one_holder else {"replicas_synced"}):
            return False
    return run.one_holder or run.whole(since)


def trouble(run, draw, blows):
    """Deals seeded blows, each some clocks and a moment after the job has recovered from the previous one."""
    done = []
    for _ in range(blows):
        at = run.max_clock() + draw.randrange(1, APART)
        run.wait_for(lambda r, at=at: r.max_clock() >= at, f"clock {at}")
        pause = time.monotonic() + 0.3 * draw.random()
        run.wait_for(lambda r, until=pause: time.monotonic() > until, "a moment")
        blow = draw.choice(VICTIMS)
        if any(not run.find(*victim).alive for victim in blow):
            continue
        since = time.time()
        run.kill(*blow)
        done.append(blow)
        run.wait_for(lambda r: recovered(r, blow, since), "the recovery")
    return done


def one_run(mode, seed, replicas=2, blows=4, transport="auto", worker=BOTH, hasty=False):
    """`hasty`: workers hardly pause between large blocks."""
    draw = random.Random(seed)
    print(f"seed {seed}: {mode}, replicas {replicas}, transport {transport} {' '.join(worker)}", flush=True)
    how = {"step": 8, "places": MANY_PLACES} if hasty else {}
    with cluster(mode, replicas, transport=transport, worker=worker, **how) as run:
        done = trouble(run, draw, blows)
        runs.check(2 * len(done) >= blows, f"{len(done)} of {blows} blows struck")
        done.append(hasten(run))
        run.finish()
        went_back = [e["message"] for e in run.events("went_back")]
        runs.check(replicas == 1 or not went_back, f"nothing went back {went_back}")
        count = verdict(run, done)
        return {"seed": seed, "mode": mode, "blows": done, "told": count.told, "applied": count.applied,
                "lost": len(count.lost), "twice": len(count.twice), "untold": len(count.untold)}


def paused(mode):
    """A server stands still for three leases, twice, and wakes in the belief that it owns its blocks. The worker that
    was reading from it must not see an older state than it was promised, and what the server accepts must not count."""
    lease = 1
    with cluster(mode, lease=lease) as run:
        run.wait_for(lambda r: r.max_clock() > 50, "the beginning")
        for _ in range(2):
            since, until = time.time(), time.monotonic() + 3 * lease
            run.find("server", 1).process.send_signal(signal.SIGSTOP)
            run.say("server 1 stands still")
            run.wait_for(lambda r: time.monotonic() > until, "three leases")
            run.find("server", 1).process.send_signal(signal.SIGCONT)
            run.say("it wakes")
            run.wait_for(lambda r: r.events("server_lost") and r.whole(since), "two holders of each block")
        blow = hasten(run)
        run.finish()
        runs.check(len(run.events("server_lost")) == 2 and not run.events("went_back"), "lost twice, nothing went back")
        runs.check(run.find("server", 1).lives == 1, "the process that woke has stayed")
        verdict(run, [blow])


def seeds(mode, *several, **more):
    return lambda: [one_run(mode, seed, **more) for seed in several]


def finds(fault, wanted):
    """Runs a worker with a deliberate fault, which the checker must find."""
    with cluster("async", clocks=200, worker=fault, step=3) as run:
        run.finish()
        found = {name: len(getattr(reconcile(run), name)) for name in ("lost", "twice")}
    print(f"  {' '.join(fault)}: {found}")
    runs.check(found == wanted, f"the checker finds {wanted}")


def checker():
    finds(["--forget-at", "50"], {"lost": 2, "twice": 0})
    finds(["--repeat-at", "50"], {"lost": 0, "twice": 2})


CASES = {
    "sync": seeds("sync", 1),
    "bounded": lambda: [one_run("bounded", 1), one_run("bounded", 3, blows=6, worker=UNARY, hasty=True)],
    "async": seeds("async", 1, 2),
    "async-tcp": seeds("async", 3, 4, transport="tcp"),
    "paused-owner-async": lambda: paused("async"),
    "paused-owner-sync": lambda: paused("sync"),
    "one-holder": seeds("sync", 5, replicas=1),
    # The hardest case: each Push in a call of its own, hardly a pause, and two holders.
    "unary": lambda: [one_run("bounded", 3, blows=2, worker=UNARY, hasty=True)],
    "checker": checker,
}


def random_runs(arguments):
    parser = argparse.ArgumentParser(prog="ledger.py random")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=("sync", "bounded", "async"), default="async")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--blows", type=int, default=4)
    parser.add_argument("--transport", default="auto")
    parser.add_argument("--push-every", default="2", help="Push in place of PushPull at every so many clocks; 0: never")
    parser.add_argument("--hasty", action="store_true",
                        help="Push by calls of its own, with hardly a pause, in large blocks")
    parser.add_argument("--report", help="file for the records, as JSON")
    options = parser.parse_args(arguments)
    records = []
    for seed in range(options.seed, options.seed + options.runs):
        records.append(one_run(options.mode, seed, options.replicas, options.blows, options.transport,
                               UNARY if options.hasty else ("--push-every", options.push_every), options.hasty))
        if options.report:
            pathlib.Path(options.report).write_text(json.dumps(records, indent=1), encoding="utf-8")
    total = {name: sum(r[name] for r in records) for name in ("told", "applied", "lost", "twice", "untold")}
    print(f"{len(records)} runs, {sum(len(r['blows']) for r in records)} blows: {total}")


if __name__ == "__main__":
    runs.main(CASES, random=random_runs)
