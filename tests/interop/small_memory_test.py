#!/usr/bin/python3
"""Server 0 of a job runs in a control group of 256 MiB, which is what `leeway plan` gives it. First 64 strangers send
messages of 70 MiB, and then there are 10,000 connections. Server 0 is not killed for memory, trains on, and reports it
once.

    small_memory_test.py [--tls] [--seconds 8]

Environment as in stock_stubs_test.py. Skipped where no control group can be made."""

import argparse
import collections
import contextlib
import pathlib
import resource
import socket
import sys
import tempfile

import servers
import strangers_test

sys.path.insert(0, str(servers.SOURCE / "tests/training"))
import control_group  # noqa: E402

MEMORY_BYTES = 256 << 20
STRANGERS = 64
CONNECTIONS = 10_000
PACE_MIN = 0.9
SKIPPED = 77


def among_strangers(job, seconds):
    """Returns the clocks a second meanwhile."""
    crowd = strangers_test.Crowd(job.address, "messages of 70 MiB", STRANGERS, job.tls)
    try:
        return job.pace(seconds)
    finally:
        crowd.end()
        print(f"{STRANGERS} strangers: {crowd.came} connections, {crowd.sent >> 20} MiB")


def among_connections(job, seconds):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(CONNECTIONS, hard - 1000)
    with contextlib.ExitStack() as ends:
        for _ in range(count):
            with contextlib.suppress(ConnectionError):
                ends.enter_context(socket.create_connection(job.address, timeout=5))
        return job.pace(seconds)


def told_once(log):
    lines = collections.Counter(line.split(" ", 3)[-1] for line in log.read_text(errors="replace").splitlines()
                                if "refused" in line or "closed" in line)
    assert lines and max(lines.values()) == 1, lines.most_common(3)


def attacked(job, group, seconds):
    job.wait_for_clock(20)
    quiet = job.pace(seconds)
    shares = {attack.__name__: attack(job, seconds) / quiet for attack in (among_strangers, among_connections)}
    kills = control_group.kills_for_memory(group)
    print(f"pace {shares}; server 0 at most {job.memory() >> 20} MiB; {kills} kills for memory", flush=True)
    job.stop()
    assert kills == 0
    told_once(job.folder / "server-0.log")
    assert min(shares.values()) >= PACE_MIN, "the job was slowed down"


def main(tls, seconds):
    with (control_group.group_of("memory", MEMORY_BYTES) as group,
          tempfile.TemporaryDirectory(prefix="leeway-small-") as name):
        if group is None:
            print("SKIPPED: no control group can be made that bounds memory")
            sys.exit(SKIPPED)
        with strangers_test.Job(pathlib.Path(name), 20, tls, control_group.inside(group)) as job:
            attacked(job, group, seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tls", action="store_true", help="servers prove who they are, and strangers speak TLS")
    parser.add_argument("--seconds", type=float, default=8, help="of each attack")
    options = parser.parse_args()
    main(options.tls, options.seconds)
