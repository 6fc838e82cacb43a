"""Starts the programs of a job by hand, without the launcher."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ["LEEWAY_BIN"])
sys.path[:0] = [os.environ["LEEWAY_STUBS"], str(SOURCE / "tests/interop")]

import grpc  # noqa: E402
import numpy as np  # noqa: E402

STOPPED = 4  # common/exit_code.h
JOB = """
apiVersion: leeway/v1
kind: TrainingJob
metadata: {name: interop, seed: 3}
model:
  layers: [{flatten: {}}, {dense: {units: 10, initializer: zeros}}]
  loss: softmax_cross_entropy
data:
  train: {type: csv, files: optdigits/optdigits.tra}
  batch_size: 64
  normalize: {mean: 0, std: 16}
exchange: {type: gradient}
consistency: {mode: sync}
update: {type: sgd, learning_rate: 0.5}
servers: {count: 2, block_bytes: 1024, replicas: REPLICAS}
workers: {count: 2, emulate: {step_milliseconds: STEP}}
stop: {clocks: 400}
checkpoint: {every: {clocks: 50}}
"""
# A job that goes on until it is stopped. A test adds its exchange, update and servers.
ENDLESS = """
apiVersion: leeway/v1
kind: TrainingJob
metadata: {name: attacked, seed: 3}
model:
  layers: [{flatten: {}}, {dense: {units: 32}}, {relu: {}}, {dense: {units: 10}}]
  loss: softmax_cross_entropy
data:
  train: {type: csv, files: optdigits/optdigits.tra}
  batch_size: 32
  normalize: {mean: 0, std: 16}
consistency: {mode: sync}
workers: {count: 2, emulate: {step_milliseconds: STEP}}
stop: {clocks: 1000000}
checkpoint: {every: {clocks: 50}}
"""


def leeway(*arguments):
    subprocess.run([str(BIN / "leeway"), *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def start_server(folder, index, *more):
    """Returns the process and its address."""
    read, write = os.pipe()
    command = [str(BIN / "leeway-server"), "--index", str(index), "--listen", "127.0.0.1:0",
               "--ready-fd", str(write), "--log-file", str(folder / f"server-{index}.log"), *more]
    process = subprocess.Popen(command, pass_fds=[write])
    os.close(write)
    with os.fdopen(read) as ready:
        return process, ready.readline().strip()


class Programs:
    """The servers and C++ workers of a job, which are started by hand. A context: it shows their logs if the test
    fails, and ends those that are left."""

    def __init__(self, folder, job):
        self.folder, self.run_dir = folder, folder / "run"
        self.processes, self.addresses = {}, {}
        (folder / "job.yaml").write_text(job)

    @property
    def coordinator(self):
        return self.addresses[0]

    def start_server(self, index, *more):
        where = (["--job", str(self.folder / "job.yaml"), "--run-dir", str(self.run_dir)] if index == 0
                 else ["--coordinator", self.coordinator])
        self.processes[f"server {index}"], self.addresses[index] = start_server(self.folder, index, *where, *more)

    def start_worker(self, rank, *more):
        self.processes[f"worker {rank}"] = subprocess.Popen(
            [str(BIN / "leeway-worker"), "--coordinator", self.coordinator, "--rank", str(rank), "--data",
             str(SOURCE / "data"), "--log-file", str(self.folder / f"worker-{rank}.log"), *more])

    def end(self, code, seconds=120):
        codes = {name: process.wait(seconds) for name, process in self.processes.items()}
        assert set(codes.values()) == {code}, codes

    def stop(self):
        """Stops the job in order. Returns its clock, and the digest of its weights."""
        self.processes["server 0"].send_signal(signal.SIGINT)
        self.end(STOPPED)
        return outcome(self.run_dir)

    def undisturbed(self, clock):
        """Returns the digest of the weights of a job that nobody disturbs, at this clock."""
        leeway("train", self.folder / "job.yaml", "--run-dir", self.folder / "quiet", "--data", SOURCE / "data", "--set",
               f"stop={{clocks: {clock}}}", "--set", "workers.emulate={}")
        return outcome(self.folder / "quiet")[1]

    def memory(self, index=0):
        """Returns a server's largest memory so far."""
        status = pathlib.Path(f"/proc/{self.processes[f'server {index}'].pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) << 10

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            for log in sorted(self.folder.glob("*.log")):
                print(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}")
        for process in self.processes.values():
            process.kill()


def outcome(run_dir):
    summary = json.loads((run_dir / "summary.json").read_text())
    return summary["clock"], summary["weights_sha256"]


class Job(Programs):
    """Two servers and the C++ worker of rank 0."""

    def start(self):
        self.start_server(0)
        self.start_server(1)
        self.start_worker(0)

    def kill_second(self):
        """Kills it with SIGKILL. Another server takes its index, at another address."""
        self.processes["server 1"].kill()
        self.processes["server 1"].wait()
        self.start_server(1)

    def events(self):
        """Returns the names of the events so far."""
        text = (self.run_dir / "metrics.jsonl").read_text()
        return [json.loads(line)["event"] for line in text.splitlines() if line.endswith("}")]


@contextlib.contextmanager
def job_with_one_worker(replicas=1, step=0):
    """Yields the Job. A step of the C++ worker takes this number of milliseconds. Afterwards all processes must have
    ended by themselves, with status 0."""
    with tempfile.TemporaryDirectory(prefix="leeway-interop-") as name:
        with Job(pathlib.Path(name), JOB.replace("REPLICAS", str(replicas)).replace("STEP", str(step))) as job:
            job.start()
            yield job
            job.end(0, 60)


class Bearer(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor, grpc.StreamUnaryClientInterceptor,
             grpc.StreamStreamClientInterceptor):
    """Adds a job's token to each call."""

    class Details(grpc.ClientCallDetails):
        def __init__(self, details, metadata):
            self.method, self.timeout, self.credentials = details.method, details.timeout, details.credentials
            self.metadata, self.wait_for_ready, self.compression = metadata, None, None

    def __init__(self, token):
        self.metadata = [("authorization", f"Bearer {token}")]

    def bring(self, continuation, details, request):
        return continuation(self.Details(details, [*(details.metadata or []), *self.metadata]), request)

    intercept_unary_unary = intercept_unary_stream = intercept_stream_unary = intercept_stream_stream = bring


def digits(name):
    """Returns the features, scaled to 0..1, and the labels of the optdigits data."""
    rows = np.loadtxt(SOURCE / "data/optdigits" / name, delimiter=",", dtype=np.float32)
    return rows[:, :-1] / 16, rows[:, -1].astype(int)


def accuracy(worker_tensors):
    """Returns the share of right test digits of a softmax regression with these tensors."""
    features, labels = digits("optdigits.tes")
    scores = features @ worker_tensors["dense_1/weight"] + worker_tensors["dense_1/bias"]
    return float((scores.argmax(axis=1) == labels).mean())
