#!/usr/bin/python3
"""leeway.watch: a process that takes no part in a running job reads the job's weights."""

import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from jobs import BIN, SOURCE, Failed, check, job_of, job_yaml, main

import numpy as np

import leeway

# Every update subtracts 1 from every element of `w`; `mean` is what the workers put there.
WORKER = """
import sys, time, leeway
job = leeway.join({"w": (3, 1000), "b": 7, "mean": leeway.Tensor((5,), averaged=True)},
                  {"w": [[0.0] * 1000] * 3, "b": [0.0] * 7, "mean": [0.5] * 5}, update={"type": "sgd", "learning_rate": 1})
for clock, weights in job:
    job.push_pull({"w": [[1.0] * 1000] * 3, "b": [1.0] * 7, "mean": [clock + 1.0] * 5}, examples=1)
    time.sleep(float(sys.argv[1]))
"""
TOKEN = "a-token-of-many-letters-for-this-test"
MORE = "checkpoint: {every: {clocks: 20}}"


class Reader:
    """Reads as fast as possible, and checks everything that it sees."""

    def __init__(self, watch, blocks):
        self.watch, self.blocks = watch, blocks
        self.borders = set()

    def read_until(self, version):
        """Returns the versions that it has seen."""
        seen = []
        while not seen or seen[-1] < version:
            weights = self.watch.weights()
            flat = np.concatenate([weights["w"].ravel(), weights["b"]])
            # Each block is the result of one update: values change at blocks' borders, and nowhere else.
            self.borders |= set(np.flatnonzero(np.diff(flat)))
            if len(self.borders) >= self.blocks:
                raise Failed(f"the values change at {sorted(self.borders)}: there are {self.blocks} blocks")
            if self.watch.version != -flat.max():
                raise Failed(f"version {self.watch.version}: the blocks are of updates {set(-flat)}")
            seen.append(self.watch.version)
        return seen

    def read_during(self, work):
        """Reads while another thread does `work`. Returns the result of `work`."""
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            doing, reads = pool.submit(work), 0
            while not doing.done():
                reads += len(self.read_until(0))
        print(f"{reads} reads, to version {self.watch.version}; borders: {sorted(self.borders)}", flush=True)
        return doing.result()


def reads():
    with job_of(job_yaml(workers=3, stop="{clocks: 1000}", more=MORE)) as job:
        with leeway.watch(job.coordinator) as watch:
            # It waits for the workers, as they do for each other.
            for rank in range(3):
                job.start_worker(rank, WORKER, 0.002)
            seen = Reader(watch, 3).read_until(250)
            check(seen == sorted(seen) and len(set(seen)) > 50, "in order")
            check({name: tensor.shape for name, tensor in watch.schema.items()} ==
                  {"w": (3, 1000), "b": (7,), "mean": (5,)}, "names and shapes are the job's")
            check(watch.schema["mean"].averaged and not watch.schema["w"].averaged, "and what is averaged")
            kept = watch.weights()
            before = {name: array.copy() for name, array in kept.items()}
            weights = watch.weights()
            check(all((kept[name] == before[name]).all() for name in kept), "arrays are the reader's own")
            check((weights["mean"] == weights["mean"][0]).all() and weights["mean"][0] > 1, "averaged values are there, too")
            status = subprocess.run([BIN / "leeway", "status", job.coordinator], capture_output=True, text=True, check=True)
            check(sorted(re.findall(r"^ +(\d)  running", status.stdout, re.M)) == ["0", "1", "2"], f"workers:\n{status.stdout}")
            ended = None
            while ended is None:
                try:
                    Reader(watch, 3).read_until(0)
                except (leeway.Finished, leeway.Unavailable) as error:
                    ended = error
            check(isinstance(ended, leeway.Finished), f"who has read the last update knows the end: {ended!r}")
            job.wait()


def servers_come_and_go():
    """A server is killed and comes back elsewhere with a checkpoint's weights. Then the job gets a third server, which
    leaves again."""
    with job_of(job_yaml(servers="2, shards: 4", stop="{clocks: 100000}", more=MORE)) as job:
        reader = Reader(leeway.watch(job.coordinator), 4)
        for rank in range(2):
            job.start_worker(rank, WORKER, 0.002)
        seen = reader.read_until(50)

        def more():
            job.start_server(2)
            return subprocess.run([BIN / "leeway", "resize", job.coordinator, "--servers", "3"], capture_output=True, text=True,
                                  timeout=60)

        def drained():
            job.servers[2].terminate()
            return job.servers[2].wait(60)

        reader.read_during(lambda: job.restart_server(1))
        reader.read_until(seen[-1] + 50)
        check("went_back" in job.logs(), "the watch goes on with a job that has gone back to a checkpoint")
        resized = reader.read_during(more)
        check(resized.returncode == 0, f"a third server: {resized.stdout}{resized.stderr}")
        reader.read_until(reader.watch.version + 50)
        check(reader.read_during(drained) == 143, "it hands its shards over, and the watch follows them")
        reader.read_until(reader.watch.version + 50)
        reader.watch.close()


MODES = {
    "sync": "{type: gradient}", "bounded, staleness: 2": "{type: gradient}", "async": "{type: gradient}",
    "sync ": "{type: delta, local_steps: 2}", "async ": "{type: elastic, every: 2, alpha: 0.1}"}
LOCAL = """
import sys, time, leeway
job = leeway.join({"w": 3000}, {"w": [0.0] * 3000}, update=dict(type="sgd", learning_rate=1) if sys.argv[1] == "gradient" else None)
watch = leeway.watch()
for clock, weights in job:
    if job.info.exchange != "gradient":
        weights["w"] -= 1
    job.push_pull({"w": [1.0] * 3000} if job.info.exchange == "gradient" else None, examples=1)
    watch.weights()
    time.sleep(0.01)
print("ended", job.ended)
"""


def modes():
    """In every mode each worker reads beside its own steps. Another process reads up to the last update, that of the
    final model."""
    for mode, exchange in MODES.items():
        more = "update: {type: sgd, learning_rate: 1}" if "delta" in exchange else ""
        with job_of(job_yaml(workers=3, exchange=exchange, consistency=f"{{mode: {mode}}}", stop="{clocks: 60}", more=more)) as job:
            for rank in range(3):
                job.start_worker(rank, LOCAL, "gradient" if "gradient" in exchange else "local")
            weights, ended = None, None
            with leeway.watch(job.coordinator) as watch:
                while ended is None:
                    try:
                        weights = watch.weights()["w"]
                    except (leeway.Finished, leeway.Unavailable) as error:
                        ended = error
            check(isinstance(ended, leeway.Finished), f"{exchange}, {mode}: {ended!r} after version {watch.version}")
            job.wait()
            check(all("ended finished" in job.said(rank) for rank in range(3)), "and the workers have finished")
            exported = job.folder / "exported.safetensors"
            subprocess.run([BIN / "leeway", "export", job.run_dir, "--output", exported], check=True, capture_output=True)
            check((leeway.safetensors.load(exported)["w"] == weights).all(), f"it was the final model, {weights[0]} to {weights[-1]}")


def roles():
    """With mutual TLS a worker's certificate may read, and no other certificate may."""
    with tempfile.TemporaryDirectory() as keys:
        subprocess.run([BIN / "leeway", "certificates", keys], check=True, capture_output=True)
        os.environ["LEEWAY_TOKEN_FILE"] = f"{keys}/token"
        try:
            with job_of(job_yaml(workers=1, stop="{clocks: 100000}"), start=False) as job:
                job.start_servers("--tls-dir", f"{keys}/server")
                job.start_worker(0, WORKER, 0.002, LEEWAY_TLS_DIR=f"{keys}/worker")
                for role in "worker", "status", "launcher", "server":
                    said, status = read_by(job, LEEWAY_TLS_DIR=f"{keys}/{role}")
                    expected = "read" if role == "worker" else f"InvalidArgument.*is for the role worker or peer; the caller's role is {role}"
                    check(re.search(expected, said) and status == (0 if role == "worker" else 3), f"{role}: {status}, {said[-200:]}")
        finally:
            del os.environ["LEEWAY_TOKEN_FILE"]


def read_by(job, **environment):
    """Returns the output of a process that reads once, and its exit status."""
    script = "import sys, leeway\nwith leeway.watch(sys.argv[1], 20) as w:\n  w.weights()\n  print('read', w.version, flush=True)\n"
    reader = subprocess.run([sys.executable, "-c", script, job.coordinator], capture_output=True, text=True, timeout=60,
                            env={**os.environ, "PYTHONPATH": str(SOURCE / "python"), **environment})
    return reader.stdout + reader.stderr, reader.returncode


def refusals():
    """No server; no weights yet; a wrong token; after the end; in a fork; and Ctrl-C."""
    watch = leeway.watch("127.0.0.1:1", start_seconds=0.5)
    began = time.monotonic()
    bad = ["", "x", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:-1", "http://127.0.0.1:1", "127.0.0.1:1\0", b"127.0.0.1:1"]
    for call, kind in ((watch.weights, leeway.Unavailable),
                       *((lambda where=where: leeway.watch(where), leeway.InvalidArgument) for where in bad)):
        try:
            call()
            check(False, f"{kind.__name__} was expected")
        except kind as error:
            check(True, f"{kind.__name__}: {error}")
    watch.close()
    watch.close()
    check(time.monotonic() - began < 3, "nothing of it takes long")
    try:
        watch.weights()
        check(False, "it is closed")
    except leeway.Misuse as error:
        check("closed" in str(error), f"closed: {error}")
    with job_of(job_yaml()) as job:
        early = leeway.watch(job.coordinator, start_seconds=0.5)
        try:
            early.weights()
            check(False, "there are no weights yet")
        except leeway.Unavailable as error:
            check("waiting for workers 0, 1" in str(error), f"before the start: {error}")
        for what in early.weights, lambda: leeway.watch(job.coordinator), lambda: leeway.join({"w": 3}, coordinator=job.coordinator):
            child = os.fork()
            if child == 0:
                try:
                    what()
                except leeway.ForkedError:
                    os._exit(0)
                finally:
                    os._exit(9)
            check(os.waitpid(child, 0)[1] == 0, "in a fork of a process with a watch: ForkedError")
        endless = leeway.watch(job.coordinator, float("inf"))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            reading = pool.submit(endless.weights)
            while not endless._reading.locked():
                time.sleep(0.01)
            try:
                endless.weights()
                check(False, "two threads at once")
            except leeway.Misuse as error:
                check("another thread" in str(error), f"{error}")
            began = time.monotonic()
            endless.close()
            check("closed" in str(reading.exception(10)), f"closed during a read: {reading.exception()}")
            check(time.monotonic() - began < 2, f"within {time.monotonic() - began:.2f} s")
        threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        try:
            with leeway.watch("127.0.0.1:1") as nobody:
                nobody.weights()
            check(False, "it waits for two minutes")
        except KeyboardInterrupt:
            check(time.monotonic() - began < 2.5, f"Ctrl-C ends the wait, and the watch: {time.monotonic() - began:.2f} s")


def token():
    """A process without the token cannot read."""
    os.environ["LEEWAY_TOKEN"] = TOKEN
    try:
        with job_of(job_yaml(workers=1, stop="{clocks: 100000}")) as job:
            job.start_worker(0, WORKER, 0.002)
            for own, expected, code in ((TOKEN, "read", 0), (TOKEN[::-1], "InvalidArgument.*token is not this job's", 3)):
                said, status = read_by(job, LEEWAY_TOKEN=own)
                check(re.search(expected, said) and status == code, f"{own}: {status}, {said[-300:]}")
    finally:
        del os.environ["LEEWAY_TOKEN"]


if __name__ == "__main__":
    main({case.__name__.replace("_", "-"): case for case in (reads, modes, servers_come_and_go, refusals, roles, token)})
