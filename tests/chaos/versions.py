#!/usr/bin/python3
"""Processes of two versions in one job: one protocol is enough, and a job can go from one version to the other while it
trains (docs/operations.md). The other programs are those of LEEWAY_OTHER_BIN, a folder of another build. Without it
they are copies of these programs that report another version. That shows that no process is refused for its version,
but nothing about older code."""

import contextlib
import os
import pathlib
import re
import subprocess
import tempfile
import time

from cluster import Cluster, digits_job  # puts the folder of runs.py on the path
import references
import runs

DATA = "optdigits/optdigits.tra"
PROGRAMS = ("leeway", "leeway-server", "leeway-worker")
CLOCKS = 600


def version_of(folder):
    """Returns the version and the protocol of the programs in the folder."""
    said = subprocess.run([str(folder / "leeway"), "--version"], capture_output=True, text=True, check=True).stdout
    return re.fullmatch(r"leeway (.*), protocol (\d+)\n", said).groups()


def relabel(folder):
    """Makes copies of the programs that report another version of the same length."""
    own = version_of(runs.BIN)[0].encode()
    other = own[:-1] + (b"9" if own[-1:] != b"9" else b"8")
    for name in PROGRAMS:
        (folder / name).write_bytes((runs.BIN / name).read_bytes().replace(own, other))
        (folder / name).chmod(0o755)


@contextlib.contextmanager
def others():
    """Returns the folder with programs of another version and the same protocol."""
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(os.environ.get("LEEWAY_OTHER_BIN", made))
        if str(folder) == made:
            relabel(folder)
        (own, protocol), (other, spoken) = version_of(runs.BIN), version_of(folder)
        runs.check(protocol == spoken and (own != other or str(folder) != made),
                   f"versions {own} and {other} speak protocol {protocol} and {spoken}")
        yield folder


def of_other(command, folder):
    """Returns the same command for the other program."""
    return [str(folder / pathlib.Path(word).name) if pathlib.Path(word).name in PROGRAMS[1:] else word for word in command]


def cluster():
    return Cluster(digits_job("versions", CLOCKS, step_milliseconds=15),
                   worker=[str(runs.BIN / "leeway-worker"), "--data", str(runs.data_with(DATA))])


def half_of_other(folder):
    """Returns a cluster in which server 1 and worker 1 are the other programs."""
    run = cluster()
    own = {role: getattr(run, f"{role}_command") for role in ("server", "worker")}
    for role in own:
        setattr(run, f"{role}_command", lambda number, role=role: of_other(own[role](number), folder) if number == 1
                else own[role](number))
    return run


def bits():
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name, "job.yaml")
        path.write_text(digits_job("versions", CLOCKS), encoding="utf-8")
        return references.undisturbed(path, [], runs.data_with(DATA))["weights_sha256"]


def train_on(run):
    run.wait_for(lambda r, at=run.max_clock() + 50: r.max_clock() >= at, "the job to train", 60)


def has_come_back(run, since):
    return any(e["time"] > since for e in run.events("server_registered")) and run.whole(since)


def mixed():
    """Half of the processes have the other version and come back with it: the bits are those of one version."""
    with others() as folder, half_of_other(folder) as run:
        for victim in ("worker", 1), ("server", 1):
            train_on(run)
            run.kill(victim)
        runs.check(run.finish()["weights_sha256"] == bits(), "two versions: the bits of one")


def rolled():
    """Each process in turn gets SIGTERM and comes back with the other version, server 0 last. The next one follows once
    the job trains and each server holds its blocks again. The job never goes back, and its bits are those of one
    version."""
    with others() as folder, cluster() as run:
        for place in ("worker", 0), ("worker", 1), ("server", 1), ("server", 0):
            train_on(run)
            since, program = time.time(), run.find(*place)
            program.command = of_other(program.command, folder)
            run.terminate(*place)
            run.wait_for(lambda r, p=program: p.lives == 2, f"{program} to be started again")
            if program.role == "server":
                run.wait_for(lambda r, at=since: has_come_back(r, at), f"{program} to hold its blocks again")
        runs.check(run.finish()["weights_sha256"] == bits(), "from one version to the other: the bits of one")
        runs.check(all(p.lives == 2 for p in run.programs), f"lives: {[p.lives for p in run.programs]}")
        runs.check(not run.events("went_back"), "nothing went back")


CASES = {"mixed": mixed, "rolled": rolled}

if __name__ == "__main__":
    runs.main(CASES)
