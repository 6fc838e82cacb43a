"""Starts the programs of a job by hand, without the launcher."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ["LEEWAY_BIN"])
sys.path[:0] = [os.environ["LEEWAY_STUBS"], str(SOURCE / "tests/interop")]

import grpc  # noqa: E402
import numpy as np  # noqa: E402

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


def start_server(folder, index, *more):
    """Returns the process and its address."""
    read, write = os.pipe()
    command = [str(BIN / "leeway-server"), "--index", str(index), "--listen", "127.0.0.1:0",
               "--ready-fd", str(write), "--log-file", str(folder / f"server-{index}.log"), *more]
    process = subprocess.Popen(command, pass_fds=[write])
    os.close(write)
    with os.fdopen(read) as ready:
        return process, ready.readline().strip()


class Job:
    """Two servers and the C++ worker of rank 0."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = {}

    @property
    def run_dir(self):
        return self.folder / "run"

    def start(self):
        self.processes["server 0"], self.coordinator = start_server(
            self.folder, 0, "--job", str(self.folder / "job.yaml"), "--run-dir", str(self.run_dir))
        self.start_second()
        self.processes["worker 0"] = subprocess.Popen(
            [str(BIN / "leeway-worker"), "--coordinator", self.coordinator, "--rank", "0", "--data",
             str(SOURCE / "data"), "--log-file", str(self.folder / "worker-0.log")])

    def start_second(self):
        self.processes["server 1"], _ = start_server(self.folder, 1, "--coordinator", self.coordinator)

    def kill_second(self):
        """Kills it with SIGKILL. Another server takes its index, at another address."""
        self.processes["server 1"].kill()
        self.processes["server 1"].wait()
        self.start_second()

    def events(self):
        """Returns the names of the events so far."""
        text = (self.run_dir / "metrics.jsonl").read_text()
        return [json.loads(line)["event"] for line in text.splitlines() if line.endswith("}")]


@contextlib.contextmanager
def job_with_one_worker(replicas=1, step=0):
    """Yields the Job. A step of the C++ worker takes this number of milliseconds. Afterwards all processes must have
    ended by themselves, with status 0."""
    with tempfile.TemporaryDirectory(prefix="leeway-interop-") as name:
        job = Job(pathlib.Path(name))
        (job.folder / "job.yaml").write_text(JOB.replace("REPLICAS", str(replicas)).replace("STEP", str(step)))
        job.start()
        try:
            yield job
            codes = {name: p.wait(60) for name, p in job.processes.items()}
        except BaseException:
            for log in sorted(job.folder.glob("*.log")):
                print(f"--- {log.name}\n{log.read_text()[-1500:]}")
            raise
        finally:
            for process in job.processes.values():
                process.kill()
        assert set(codes.values()) == {0}, codes


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
