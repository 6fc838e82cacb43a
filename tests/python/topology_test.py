#!/usr/bin/python3
"""Programs whose workers hold the blocks (topology.type: all_reduce): the same bits as with servers, the bytes of the
formula, and deaths. The programs have no line for it."""

import collections
import re
import shutil
import subprocess

from jobs import BIN, check, job_of, job_yaml, main, skip

ALL_REDUCE = "topology: {type: all_reduce}"
# Waits at two clocks, until a file says go on. Writes the digest of its last weights.
PROGRAM = """
import hashlib, pathlib, sys, time
import numpy as np
import leeway
elements, pauses = int(sys.argv[1]), [int(clock) for clock in sys.argv[2:]]
job = leeway.join({"w": elements}, update={"type": "sgd", "learning_rate": 0.5, "momentum": 0.9})
for clock, weights in job:
    if clock in pauses:
        pathlib.Path(f"at-{clock}-{job.rank}").touch()
        while not pathlib.Path(f"go-{clock}").exists():
            time.sleep(0.01)
    draw = np.random.default_rng([clock, job.rank])
    job.push_pull({"w": weights["w"] - draw.standard_normal(elements, dtype=np.float32)}, examples=32)
print("digest", hashlib.sha256(job.weights["w"].tobytes()).hexdigest()[:16], flush=True)
"""


def job(workers, clocks, more="", start=True):
    return job_of(job_yaml(workers=workers, servers=1, stop=f"{{clocks: {clocks}}}", more=more), servers=1, start=start)


def start(job, workers, *arguments):
    for rank in range(workers):
        job.start_worker(rank, PROGRAM, *arguments)


def paused(job, workers, clock):
    """Waits until all workers wait at the clock."""
    job.wait_until(lambda: all((job.folder / f"at-{clock}-{rank}").exists() for rank in range(workers)),
                   f"all workers to reach clock {clock}")


def go_on(job, clock):
    (job.folder / f"go-{clock}").touch()


def digests(job, workers):
    job.wait()
    found = {re.search("digest (\\w+)", job.said(rank))[1] for rank in range(workers)}
    check(len(found) == 1, f"all workers end with the same weights: {found}")
    return found.pop()


def bits():
    for workers in 1, 2, 4:
        found = []
        for more in "", ALL_REDUCE:
            with job(workers, 20, more) as each:
                start(each, workers, 5000)
                found.append(digests(each, workers))
        check(found[0] == found[1], f"{workers} workers: the bits of servers and of all_reduce: {found}")


def sent_by(pids):
    """Returns the bytes that each of these processes has sent to the others over TCP."""
    said = subprocess.run(["ss", "-tinpH", "state", "established"], capture_output=True, text=True, check=True).stdout
    # By port, because all are on one host, in two spellings.
    owners, sent = {}, []
    for head, facts in re.findall(r"^(\S.*)\n\s+(.*)", said, re.MULTILINE):
        words = head.split()
        pid = re.search(r"pid=(\d+)", head)
        if not pid:
            continue
        owners[words[2].rpartition(":")[2]] = int(pid[1])
        acked = re.search(r"bytes_acked:(\d+)", facts)
        sent.append((int(pid[1]), words[3].rpartition(":")[2], int(acked[1]) if acked else 0))
    total = collections.Counter()
    for pid, peer, count in sent:
        if pid in pids and owners.get(peer) in pids and owners[peer] != pid:
            total[pid] += count
    return [total[pid] for pid in pids]


def bytes_sent():
    """2 (n - 1) / n of the model a clock, and at most 2 % more."""
    if not shutil.which("ss"):
        skip("ss is not installed (iproute2)")
    elements, first, last = 400000, 3, 23
    for workers in 2, 3, 4, 8:
        with job(workers, last + 1, ALL_REDUCE + "\ntransport: {type: tcp}") as each:
            start(each, workers, elements, first, last)
            counts = []
            for clock in first, last:
                paused(each, workers, clock)
                counts.append(sent_by([each.workers[rank].pid for rank in range(workers)]))
                go_on(each, clock)
            each.wait()
        wanted = 2 * (workers - 1) / workers * 4 * elements * (last - first)
        shares = [(after - before) / wanted for before, after in zip(*counts)]
        check(all(0.98 <= share <= 1.02 for share in shares),
              f"{workers} workers: {min(shares):.4f} to {max(shares):.4f} of 2 (n - 1) / n N")


def killed():
    """A worker dies in the middle of the job, with a third of the blocks: the same bits."""
    found = []
    for victim in None, 1:
        with job(3, 40, ALL_REDUCE) as each:
            start(each, 3, 5000, 10)
            paused(each, 3, 10)
            if victim is not None:
                each.kill_worker(victim)
                each.start_worker(victim, PROGRAM, 5000)
            go_on(each, 10)
            found.append(digests(each, 3))
    check(found[0] == found[1], f"the same bits with a worker killed: {found}")


def leeway(*arguments):
    done = subprocess.run([str(BIN / "leeway"), *map(str, arguments)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def refused():
    """Without a rank, and in pods."""
    with job(2, 5, ALL_REDUCE) as each:
        each.start_worker(0, PROGRAM, 500, LEEWAY_RANK="")
        each.workers[0].wait(60)
        check("set LEEWAY_RANK" in each.said(0), "a program without a rank hears that it needs one")
        each.servers[0].kill()
        code, said = leeway("kubernetes", each.folder / "job.yaml", "--image", "x:1", "--", "python3", "train.py")
        check(code != 0 and "topology.type: all_reduce does not run in pods" in said, f"leeway kubernetes: {said.strip()[:200]}")


def secure():
    """With mutual TLS a worker needs a peer's certificate, and has the bits of a job without it."""
    found = []
    for keys in False, True:
        with job(2, 20, ALL_REDUCE, start=False) as each:
            if keys:
                leeway("certificates", each.folder / "keys")
            each.start_server(0, *(["--tls-dir", each.folder / "keys/server"] if keys else []))
            if keys:
                each.start_worker(0, PROGRAM, 500, LEEWAY_TLS_DIR=str(each.folder / "keys/worker"))
                each.workers[0].wait(60)
                check("needs a peer's ('leeway certificates DIR' makes DIR/peer)" in each.said(0), "a worker's certificate is refused")
            for rank in range(2):
                each.start_worker(rank, PROGRAM, 500, **({"LEEWAY_TLS_DIR": str(each.folder / "keys/peer")} if keys else {}))
            found.append(digests(each, 2))
    check(found[0] == found[1], f"the bits without and with mutual TLS: {found}")


if __name__ == "__main__":
    main({"bits": bits, "bytes": bytes_sent, "killed": killed, "refused": refused, "secure": secure})
