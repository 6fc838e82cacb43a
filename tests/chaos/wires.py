#!/usr/bin/env python3
"""Bad wires: everything that reaches a server, from workers, from the other server and from the coordinator, goes
through a relay. The relay delays it, cuts connections in the middle of messages, or cuts all connections of a server at
once. The job completes, and every contribution counts once (ledger.py).

    tests/chaos/wires.py CASE                     as ctest runs them
"""

import random
import time

import ledger
from cluster import free_address, runs
from relay import Relays

CLOCKS = 700
# How often all connections are cut at once.
ROUNDS = 8
MILLION = 1_000_000


def wired(mode, seed, trouble, blows=0, step=3, **how):
    """Runs a job whose servers are reached through relays, while `trouble(run, relays, draw)` runs beside it."""
    draw = random.Random(seed)
    listen = [free_address() for _ in range(2)]
    # For draws on the relays' own thread.
    theirs = random.Random(seed + 1)
    how = {name: make(theirs) for name, make in how.items()}
    with Relays(listen, **how) as relays:
        job = ledger.cluster(mode, clocks=CLOCKS, transport="tcp", step=step)
        reached = [relay.address for relay in relays.relays]
        job.reached = lambda number: ["--listen", listen[number], "--advertise", reached[number]]
        job.coordinator = lambda role, number: reached[0]
        print(f"seed {seed}: {mode}", flush=True)
        with job as run:
            done = ledger.trouble(run, draw, blows)
            trouble(run, relays, draw)
            run.finish()
            runs.check(not run.events("went_back"), "nothing went back")
            print(f"  {relays.bytes / MILLION:,.0f} MB passed on, {relays.cuts} connections cut", flush=True)
            runs.check(all(relay.bytes > MILLION for relay in relays.relays), "all went through the relays")
            runs.check(len(done) > 0 or blows == 0, f"{len(done)} of {blows} blows struck")
            ledger.verdict(run, done)
            return relays.cuts


def nothing(run, relays, draw):
    pass


def lost_at_once(run, relays, draw):
    """Cuts every connection of a server repeatedly."""
    for _ in range(ROUNDS):
        pause = time.monotonic() + draw.uniform(0.1, 0.6)
        run.wait_for(lambda r, until=pause: time.monotonic() > until, "a moment")
        relays.cut_all(draw.randrange(2))


def delayed(mode, seed):
    """Each piece takes 1 to 10 ms, one way: pieces of different connections overtake each other."""
    wired(mode, seed, nothing, delay=lambda draw: lambda: draw.uniform(0.001, 0.010))


def cut(mode, seed, blows=0):
    """Cuts every connection after 0.1 to 3 MB, at any place in a message. The next connection is cut in the same
    way."""
    # Blows need time, while bytes flow fast.
    step = 20 if blows else 3
    cuts = wired(mode, seed, nothing, blows, step, bytes_to_cut=lambda draw: lambda: draw.randrange(100_000, 3 * MILLION))
    runs.check(cuts >= 20, f"{cuts} connections were cut")


def lost(mode, seed):
    cuts = wired(mode, seed, lost_at_once, step=20)
    runs.check(cuts >= 5, f"{cuts} connections were lost")


CASES = {f"{name}-{mode}": lambda case=case, mode=mode: case(mode, 1)
         for mode in ("sync", "bounded", "async")
         for name, case in (("delayed", delayed), ("cut", cut), ("lost", lost))}
CASES["cut-and-killed"] = lambda: cut("async", 2, blows=3)

if __name__ == "__main__":
    runs.main(CASES)
