#!/usr/bin/env python3
"""Real jobs whose number of servers changes while they train (leeway resize): nothing goes back, in sync mode the
weights are those of the undisturbed run, bit for bit, and in the others every contribution that was answered is in
the weights once; also where a server is killed in the middle of a move.

    tests/chaos/resize.py CASE                    as ctest runs them
    tests/chaos/resize.py random --runs 20 --seed 1 [--mode async] [--replicas 1]
                                                  ledgers: a random number of servers again and again, and nobody is killed
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time

import kills
import ledger
from cluster import Program, runs

# Far above what is measured, which is printed; a worker that nobody tells where its blocks are waits for ever.
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
    """The longest exchange of any worker among those that were going on then, in seconds."""
    return max((e["exchange_seconds"] for e in run.events("step") if since <= e["time"] <= until), default=0)


def resized(run, servers):
    """Another number of servers, in the middle of the training; how long a worker's exchange took at most."""
    reached = run.max_clock()
    run.wait_for(lambda r: r.max_clock() >= reached + 60)
    since = time.time()
    resize(run.dir, servers)
    # Workers report twice a second.
    run.wait_for(lambda r, clock=run.max_clock(): r.max_clock() >= clock + 60)
    pause = longest_pause(run, since, time.time())
    print(f"  the longest exchange meanwhile took {1000 * pause:.0f} ms", flush=True)
    runs.check(pause < PAUSE_MAX_SECONDS, f"nobody stood still for {PAUSE_MAX_SECONDS} s")


def same_bits(numbers, *sets):
    """From two servers to each of `numbers`."""
    sets = [kills.MODES["sync"], SHARDS, *sets]
    whole = kills.undisturbed(sets)
    run = kills.job([*sets, kills.SLOWLY])
    run.start()
    for servers in numbers:
        resized(run, servers)
    summary = run.wait()
    runs.check(len(run.events("resized")) == len(numbers), "each number of servers was reached")
    runs.check(not run.events("went_back"), "nothing went back")
    failed = [e["clock"] for e in run.events("checkpoint_failed")]
    print(f"  {len(run.events('checkpoint'))} checkpoints; not complete: {failed}", flush=True)
    runs.check(summary["weights_sha256"] == whole["weights_sha256"],
               f"the same bits as undisturbed ({whole['weights_sha256'][:16]})")
    run.clean()


def completes(numbers, *sets):
    run = kills.job([SHARDS, *sets, kills.SLOWLY])
    run.start()
    for servers in numbers:
        resized(run, servers)
    summary = run.wait()
    runs.check(summary["state"] == "finished" and not run.events("went_back"), "finished, and nothing went back")
    run.clean()


def placements(run):
    return len(run.events("placement_changed"))


def killed(victim, change, *sets, after=2):
    """SIGKILL of server `victim` when so many placements of the change from 2 servers to `change` have begun."""
    sets = [kills.MODES["sync"], SHARDS, *sets]
    whole = kills.undisturbed(sets)
    run = kills.job([*sets, kills.SLOWLY])
    run.start()
    run.wait_for(lambda r: r.max_clock() >= 100)
    before = placements(run)
    resize(run.dir, change, wait=False)
    run.wait_for(lambda r: len(r.events("server_registered")) >= max(2, change))
    # A new server's coming has a placement of its own.
    run.wait_for(lambda r: placements(r) >= before + after + max(0, change - 2))
    in_move = not run.events("resized")
    os.kill(run.process_of("server", victim), signal.SIGKILL)
    print(f"  killed server {victim}{'' if in_move else ', when all had moved'}: "
          f"{run.events('placement_changed')[-1]['message']}", flush=True)
    run.wait_for(lambda r: r.events("resized"))
    print(f"  went back: {[e['message'] for e in run.events('went_back')]}", flush=True)
    summary = run.wait()
    runs.check(summary["weights_sha256"] == whole["weights_sha256"],
               f"the same bits as undisturbed ({whole['weights_sha256'][:16]})")
    run.clean()


# ---- what workers were told against what was applied

def cluster_of(mode, replicas):
    run = ledger.cluster(mode, replicas, worker=["--step-milliseconds", "3"])
    path = run.parent / "job.yaml"
    job = path.read_text(encoding="utf-8").replace("replicas:", "shards: 4, replicas:")
    path.write_text(job, encoding="utf-8")
    return run


def start_wanted(run, servers):
    """Who is new, and who has left and is wanted again, as whatever runs the programs would."""
    for number in range(1, servers):
        known = [p for p in run.programs if (p.role, p.number) == ("server", number)]
        if known and not known[0].done:
            continue
        for program in known:
            run.programs.remove(program)
        run.programs.append(Program("server", number, run.server_command(number)))
        run.begin(run.programs[-1])


def more_or_fewer(run, servers):
    count = len(run.events("resized"))
    resize(run.coordinator("leeway", 0), servers, wait=False)

    def reached(job):
        start_wanted(job, servers)
        return len(job.events("resized")) > count

    run.wait_for(reached, f"{servers} servers", timeout=20)
    run.say(f"{servers} servers")


def in_the_ledger(mode, replicas, seed):
    draw = random.Random(seed)
    print(f"seed {seed}: {mode}, replicas {replicas}", flush=True)
    with cluster_of(mode, replicas) as run:
        servers = 2
        for at in range(1, 6):
            run.wait_for(lambda r, at=at: r.max_clock() >= at * ledger.CLOCKS // 8, f"part {at}")
            servers = draw.choice([s for s in range(replicas, 5) if s != servers])
            more_or_fewer(run, servers)
        run.finish()
        runs.check(not run.events("went_back"), "nothing went back")
        count = ledger.verdict(run, [])
        runs.check(len(run.events("resized")) == 5, "each number of servers was reached")
        return count


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
    "ledger-async": lambda: in_the_ledger("async", 1, 1),
    "ledger-async-replicas": lambda: in_the_ledger("async", 2, 2),
    "ledger-bounded": lambda: in_the_ledger("bounded", 1, 3),
    "ledger-sync": lambda: in_the_ledger("sync", 1, 4),
}


def random_runs(arguments):
    parser = argparse.ArgumentParser(prog="resize.py random")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=("sync", "bounded", "async"), default="async")
    parser.add_argument("--replicas", type=int, default=1)
    options = parser.parse_args(arguments)
    counts = [in_the_ledger(options.mode, options.replicas, seed)
              for seed in range(options.seed, options.seed + options.runs)]
    print(f"{len(counts)} runs: told {sum(c.told for c in counts)}")


if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["random"]:
            random_runs(sys.argv[2:])
        else:
            runs.main(CASES)
    except runs.Failed as failure:
        print(f"FAILED: {failure}")
        sys.exit(1)
