#!/usr/bin/env python3
"""Real jobs whose number of servers changes while they train (leeway resize). The job does not go back. In sync mode
the weights are those of the undisturbed run, bit for bit. In the other modes every answered contribution is in the
weights once, even if a server is killed in the middle of a move.

    tests/chaos/resize.py CASE                    as ctest runs them
    tests/chaos/resize.py random --runs 20 --seed 1 [--mode async] [--replicas 1] [--kills] [--push-every 2] [--unary]
                                                  ledgers: a random number of servers again and again; with --kills
                                                  somebody is killed in the middle of each move
"""

import argparse
import os
import random
import signal
import subprocess
import time

import kills
import ledger
from cluster import PLACEMENT, Program, runs

# Far above the measured time, which is printed. A worker that is not told where its blocks are would wait for ever.
PAUSE_MAX_SECONDS = 3
SHARDS = "servers.shards=12"
LEEWAY = str(runs.BIN / "leeway")


def resize(target, servers, wait=True):
    command = [LEEWAY, "resize", str(target), "--servers", str(servers), *([] if wait else ["--no-wait"])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    if done.returncode != 0:
        raise runs.Failed(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    print(f"  {', '.join(done.stdout.strip().splitlines())}", flush=True)


def longest_pause(run, since, until):
    """Returns the longest exchange of any worker during that time, in seconds."""
    return max((e["exchange_seconds"] for e in run.events("step") if since <= e["time"] <= until), default=0)


def resized(run, servers):
    """Changes the number of servers while the job trains. Returns the longest exchange of a worker meanwhile."""
    kills.forward(run)
    since = time.time()
    resize(run.dir, servers)
    # Workers report twice a second.
    kills.forward(run)
    pause = longest_pause(run, since, time.time())
    print(f"  the longest exchange meanwhile took {1000 * pause:.0f} ms", flush=True)
    runs.check(pause < PAUSE_MAX_SECONDS, f"nobody stood still for {PAUSE_MAX_SECONDS} s")


def through(numbers, sets):
    """Makes a run that has each number of servers in turn."""
    run = kills.in_trouble(sets)
    for servers in numbers:
        resized(run, servers)
    summary = kills.finished(run)
    runs.check(len(run.events("resized")) == len(numbers), "each number of servers was reached")
    runs.check(not run.events("went_back"), "nothing went back")
    return run, summary


def same_bits(numbers, *sets):
    """Goes from two servers to each of `numbers` in turn."""
    sets = [kills.MODES["sync"], SHARDS, *sets]
    run, summary = through(numbers, sets)
    failed = [e["clock"] for e in run.events("checkpoint_failed")]
    print(f"  {len(run.events('checkpoint'))} checkpoints; not complete: {failed}", flush=True)
    kills.check_bits(summary, sets)
    run.clean()


def completes(numbers, *sets):
    run, _ = through(numbers, [SHARDS, *sets])
    run.clean()


def placements(run):
    return len(run.events("placement_changed"))


def killed(victim, change, *sets, after=2):
    """Kills server `victim` when `after` placements of the change from 2 servers to `change` have begun."""
    sets = [kills.MODES["sync"], SHARDS, *sets]
    run = kills.in_trouble(sets)
    kills.forward(run, 100)
    before = placements(run)
    resize(run.dir, change, wait=False)
    run.wait_for(lambda r: len(r.events("server_registered")) >= max(2, change))
    # Each new server's coming has a placement of its own.
    run.wait_for(lambda r: placements(r) >= before + after + max(0, change - 2))
    in_move = not run.events("resized")
    os.kill(run.process_of("server", victim), signal.SIGKILL)
    print(f"  killed server {victim}{'' if in_move else ', when all had moved'}: "
          f"{run.events('placement_changed')[-1]['message']}", flush=True)
    run.wait_for(lambda r: r.events("resized"))
    print(f"  went back: {[e['message'] for e in run.events('went_back')]}", flush=True)
    kills.forward(run)
    kills.check_bits(kills.finished(run), sets)
    run.clean()


def told_while_the_coordinator_dies(*sets):
    """`leeway resize` waits for a coordinator that dies in the middle of a move and comes back, and says so."""
    run = kills.in_trouble([kills.MODES["sync"], SHARDS, *sets])
    kills.forward(run, 100)
    for servers in (4, 2):
        before = placements(run)
        command = subprocess.Popen([LEEWAY, "resize", str(run.dir), "--servers", str(servers)], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        run.wait_for(lambda r, before=before: placements(r) > before)
        os.kill(run.process_of("server", 0), signal.SIGKILL)
        told = command.communicate(timeout=130)[0]
        print("  " + "\n  ".join(told.splitlines()), flush=True)
        runs.check(command.returncode == 0, f"{servers} servers: it has waited to the end")
        runs.check("waiting for the coordinator" in told or "was started again" in told, "and has told of it")
    run.interrupt()
    run.wait(expect=runs.STOPPED)
    run.clean()


# ---- what workers were told against what was applied

def cluster_of(mode, replicas, worker):
    run = ledger.cluster(mode, replicas, worker)
    path = run.parent / "job.yaml"
    job = path.read_text(encoding="utf-8").replace("replicas:", "shards: 4, replicas:")
    path.write_text(job, encoding="utf-8")
    return run


def start_wanted(run, servers):
    """Starts new servers, and those that had left and are wanted again, as a service manager would."""
    for number in range(1, servers):
        known = [p for p in run.programs if (p.role, p.number) == ("server", number)]
        if known and not known[0].done:
            continue
        for program in known:
            run.programs.remove(program)
        run.programs.append(Program("server", number, run.server_command(number)))
        run.begin(run.programs[-1])


def asked(run, servers):
    try:
        resize(run.coordinator("leeway", 0), servers, wait=False)
    except runs.Failed as failure:
        if "connect" in str(failure):
            return False
        raise
    return True


def more_or_fewer(run, servers, blow=None):
    count, since = len(run.events("resized")), time.time()
    # Server 0 may be restarting at this moment.
    run.wait_for(lambda r: asked(r, servers), f"the coordinator to hear of {servers} servers")

    def reached(job):
        start_wanted(job, servers)
        # A job that goes back in the middle of the move starts anew with that number of servers.
        anew = [e for e in job.events("job_started") if e["time"] > since and f", {servers} servers," in e["message"]]
        return anew or len(job.events("resized")) > count

    if blow is not None:
        blow(lambda job: start_wanted(job, servers))
    run.wait_for(reached, f"{servers} servers", timeout=60)
    run.say(f"{servers} servers")


def settled(run, since):
    """Whether all servers are there, and no further move has begun after all had moved."""
    kinds = [e["event"] for e in run.events() if e["time"] > since and e["event"] in (*PLACEMENT, "resized")]
    return all(p.alive or p.done for p in run.programs) and kinds[-1:] in (["resized"], ["replicas_synced"])


def struck(run, draw, before, tend):
    """In the middle of the move that has just been asked for, kills one of the earlier servers, or sometimes a worker.
    Returns the victim."""
    until = time.monotonic() + 0.4 * draw.random()

    def later(job):
        tend(job)
        return time.monotonic() > until

    run.wait_for(later, "a moment")
    victim = ("worker", draw.randrange(2)) if draw.random() < 0.2 else ("server", draw.randrange(before))
    if not run.find(*victim).alive:
        return []
    run.kill(victim)
    return [[victim]]


def in_the_ledger(mode, replicas, seed, kills=False, worker=ledger.BOTH, parts=5):
    draw = random.Random(seed)
    print(f"seed {seed}: {mode}, replicas {replicas}{', kills' * kills} {' '.join(worker)}", flush=True)
    with cluster_of(mode, replicas, worker) as run:
        servers, blows = 2, []
        for at in range(1, parts + 1):
            clock = run.max_clock() + ledger.APART // 2
            run.wait_for(lambda r, clock=clock: r.max_clock() >= clock, f"part {at}")
            before, since = servers, time.time()
            servers = draw.choice([s for s in range(replicas, 5) if s != servers])
            strike = (lambda tend, before=before: blows.extend(struck(run, draw, before, tend))) if kills else None
            more_or_fewer(run, servers, strike)
            if kills:
                run.wait_for(lambda r, since=since: settled(r, since), "everybody, and two holders of each block")
            runs.check(not run.over, "the job has not ended before")
        blows.append(ledger.hasten(run))
        run.finish()
        went_back = [e["message"] for e in run.events("went_back")]
        # While a shard is being filled anew it has one holder (docs/reliability.md, 14).
        runs.check(kills or not went_back, f"nothing went back {went_back}")
        count = ledger.verdict(run, blows)
        runs.check(kills or len(run.events("resized")) == parts, "each number of servers was reached")
        return count, len(blows) - 1, len(went_back)


CASES = {
    "sync": lambda: same_bits((3, 1), kills.SGD),
    "sync-replicas": lambda: same_bits((4, 2), kills.SGD, kills.REPLICAS),
    "sync-adam-int8": lambda: same_bits((5, 2), "update={type: adam, learning_rate: 0.002}",
                                        "compression={contributions: {type: int8}, weights: {type: int8}}"),
    "quorum": lambda: completes((3, 1), kills.SGD, kills.MODES["sync"], "consistency.backup_workers=1"),
    "killed-target": lambda: killed(2, 3, kills.SGD),
    "killed-source": lambda: killed(1, 1, kills.SGD, after=1),
    "killed-target-replicas": lambda: killed(2, 3, kills.SGD, kills.REPLICAS),
    "killed-source-replicas": lambda: killed(1, 3, kills.SGD, kills.REPLICAS),
    "killed-coordinator": lambda: killed(0, 4, kills.SGD, kills.REPLICAS),
    "told": lambda: told_while_the_coordinator_dies(kills.SGD),
    "told-replicas": lambda: told_while_the_coordinator_dies(kills.SGD, kills.REPLICAS),
    "ledger-async": lambda: in_the_ledger("async", 1, 1),
    "ledger-async-replicas": lambda: in_the_ledger("async", 2, 2, kills=True),
    "ledger-bounded": lambda: in_the_ledger("bounded", 1, 3),
    "ledger-bounded-replicas": lambda: in_the_ledger("bounded", 2, 5, kills=True, worker=(*ledger.PUSH, "--unary")),
    "ledger-killed": lambda: in_the_ledger("async", 2, 2, kills=True, worker=(*ledger.PUSH, "--unary"), parts=2),
    "ledger-sync": lambda: in_the_ledger("sync", 1, 4),
}


def random_runs(arguments):
    parser = argparse.ArgumentParser(prog="resize.py random")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=("sync", "bounded", "async", "any"), default="async")
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--kills", action="store_true", help="somebody is killed in the middle of each move")
    parser.add_argument("--push-every", default="2", help="Push in place of PushPull at every so many clocks; 0: never")
    parser.add_argument("--unary", action="store_true", help="calls of their own in place of streams")
    options = parser.parse_args(arguments)
    worker = ("--push-every", options.push_every, *(["--unary"] if options.unary else []))
    told = lost = twice = blows = went_back = 0
    for seed in range(options.seed, options.seed + options.runs):
        mode = ("bounded", "async", "sync")[seed % 3] if options.mode == "any" else options.mode
        count, struck_now, back = in_the_ledger(mode, options.replicas, seed, options.kills, worker)
        told, lost, twice = told + count.told, lost + len(count.lost), twice + len(count.twice)
        blows, went_back = blows + struck_now, went_back + back
        print(f"so far: {blows} killed, {went_back} went back; told {told}, lost {lost}, twice {twice}", flush=True)


if __name__ == "__main__":
    runs.main(CASES, random=random_runs)
