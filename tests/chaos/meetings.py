#!/usr/bin/env python3
"""How the programs of a job find each other: ports that are taken, a server 0 that comes late, addresses that lead
nowhere, a wall clock that was set back. The programs wait for what may pass. They refuse at once what will not pass,
and the message says what to do.

    tests/chaos/meetings.py CASE                  as ctest runs them
"""

import socket
import subprocess
import time

import ledger
from cluster import Cluster, free_address, runs
from network import Network

PORT = 7000
USAGE, PERMANENT = 2, 3
SET_BACK = runs.BIN / "libleeway_set_back.so"


def with_ledger(**more):
    return ledger.cluster("sync", **more)


def lives(run):
    return [(e["rank"], e["incarnation"]) for e in run.events("worker_registered")]


def end_of(command, timeout=30):
    """Returns the exit status and output of a program that must end by itself."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as goes_on:
        raise runs.Failed(f"{' '.join(command[-6:])} does not end") from goes_on
    return done.returncode, done.stdout + done.stderr


def refused(command, code, *words):
    status, said = end_of(command)
    runs.check(status == code, f"ends with {status}: {said.strip().splitlines()[-1] if said else ''}")
    for word in words:
        runs.check(word in said, f"says '{word}'")


def taken_port():
    """Server 0 is killed, and another process has its port when it comes back."""
    with with_ledger() as run:
        run.wait_for(lambda r: r.max_clock() >= 50, "the job to train")
        server = run.find("server", 0)
        host, port = run.address(0).split(":")
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            run.kill(("server", 0))
            server.process.wait()
            taken.bind((host, int(port)))
            taken.listen()
            until = time.monotonic() + 4
            run.wait_for(lambda r: time.monotonic() > until, "the port to be free")
        ledger.hasten(run)
        run.finish()
        runs.check(server.lives == 2, f"server 0 had {server.lives} lives: it waited for its port")


def late_server():
    """Workers that find no server 0 exit with the code for temporary failures, and the job trains once server 0 is
    there."""
    data = runs.data_with("optdigits/optdigits.tra")
    text = (runs.SOURCE / "tests/whole/digits.yaml").read_text(encoding="utf-8")
    worker = [str(runs.BIN / "leeway-worker"), "--data", str(data), "--start-seconds", "1"]
    with Cluster(text, servers=2, workers=3, worker=worker) as run:
        server = run.find("server", 0)
        run.kill(("server", 0))
        server.process.wait()
        # While it is marked as done it is not started again.
        server.done = True
        run.wait_for(lambda r: all(p.lives >= 2 for p in r.programs if p.role == "worker"), "workers to try again")
        server.done = False
        run.finish()


def set_back():
    """Server 0 is killed twice and comes back the second time with its clock a day behind. Still each life of a worker
    has a higher incarnation than the previous one."""
    with with_ledger() as run:
        server = run.find("server", 0)
        for life, environment in ((1, []), (2, ["env", f"LD_PRELOAD={runs.preloadable(SET_BACK)}"])):
            reached = run.max_clock()
            run.wait_for(lambda r, at=reached + 50: r.max_clock() >= at, "the job to train")
            server.command = [*environment, *server.command]
            run.kill(("server", 0))
            run.wait_for(lambda r, n=2 * life + 2: len(lives(r)) >= n, "workers to register again")
        ledger.hasten(run)
        run.finish()
        for rank in range(2):
            mine = [incarnation for number, incarnation in lives(run) if number == rank]
            runs.check(len(mine) >= 3 and mine == sorted(set(mine)), f"worker {rank}: incarnations {mine}")


def two_hosts():
    """Server 1 listens on every address of its host and is given none to announce: others are told the one of its route
    to server 0."""
    with Network(["a", "b"]) as network:
        at = network.addresses
        host = {0: "a", 1: "b"}
        job = with_ledger(clocks=200, step=3)
        job.within = lambda role, number: network.within(host[number])
        job.reached = lambda number: ["--listen", f"{at['a'] if number == 0 else '0.0.0.0'}:{PORT}"]
        job.coordinator = lambda role, number: f"{at['a']}:{PORT}"
        with job as run:
            run.finish()
            told = {e["server"]: e["message"] for e in run.events("server_registered")}
            runs.check(told[1] == f"{at['b']}:{PORT}", f"server 1 is known at {told[1]}")


def loopback_apart():
    """A program that would be told of a server that it cannot reach is refused, with the option that helps."""
    with Network(["a", "b"]) as network:
        at = network.addresses
        coordinator = f"{at['a']}:{PORT}"
        server = [str(runs.BIN / "leeway-server"), "--index", "1", "--coordinator", coordinator]
        job = Cluster(ledger.job("sync"), servers=1, workers=0)
        job.within = lambda role, number: network.within("a")
        job.reached = lambda number: ["--listen", coordinator]
        with job:
            # It listens on 127.0.0.1, the default.
            refused([*network.within("b"), *server], USAGE, "127.0.0.1", "--listen HOST:PORT")
            here = subprocess.Popen([*network.within("a"), *server], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
            try:
                job.wait_for(lambda r: r.events("server_registered"), "server 1 to register")
                job.wait_for(lambda r: any(e["server"] == 1 for e in r.events("server_registered")), "server 1")
                worker = [str(runs.BIN / "leeway-worker"), "--coordinator", coordinator, "--rank", "0"]
                refused([*network.within("b"), *worker], PERMANENT, "server 1", "127.0.0.1", "--listen HOST:PORT")
            finally:
                here.kill()
                here.wait()


def wildcard():
    """A server 0 that would be announced as 0.0.0.0 is refused before it does anything."""
    run = Cluster(ledger.job("sync"))
    server = [str(runs.BIN / "leeway-server"), "--job", str(run.parent / "job.yaml"), "--run-dir", str(run.dir)]
    for where in ("0.0.0.0:0", "[::]:0"):
        refused([*server, "--listen", where], USAGE, where, "--tls mtls", "--insecure")
        refused([*server, "--listen", where, "--insecure"], USAGE, where, "--advertise HOST:PORT")
    refused([*server, "--advertise", "0.0.0.0:7000"], USAGE, "--advertise 0.0.0.0:7000")
    refused([str(runs.BIN / "leeway-server"), "--index", "1", "--coordinator", free_address(), "--advertise", "[::]:1"],
            USAGE, "--advertise [::]:1")
    runs.check(not run.dir.exists(), "no run folder was made")
    run.clean()


CASES = {"taken-port": taken_port, "late-server": late_server, "set-back": set_back, "two-hosts": two_hosts,
         "loopback-apart": loopback_apart, "wildcard": wildcard}

if __name__ == "__main__":
    runs.main(CASES)
