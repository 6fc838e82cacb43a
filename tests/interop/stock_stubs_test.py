#!/usr/bin/python3
"""Trains one model with a C++ worker and a Python worker made of stock stubs, over two servers.

Environment: LEEWAY_BIN (programs), LEEWAY_STUBS (folder of the generated *_pb2.py)."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ["LEEWAY_BIN"])
sys.path[:0] = [os.environ["LEEWAY_STUBS"], str(SOURCE / "tests/interop")]

import numpy as np  # noqa: E402

from python_worker import PythonWorker, tensors  # noqa: E402

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
servers: {count: 2, block_bytes: 1024}
workers: {count: 2}
stop: {clocks: 400}
"""


def start_server(folder, index, *more):
    read, write = os.pipe()
    command = [str(BIN / "leeway-server"), "--index", str(index), "--listen", "127.0.0.1:0",
               "--ready-fd", str(write), "--log-file", str(folder / f"server-{index}.log"), *more]
    process = subprocess.Popen(command, pass_fds=[write])
    os.close(write)
    with os.fdopen(read) as ready:
        return process, ready.readline().strip()


def load(name):
    rows = np.loadtxt(SOURCE / "data/optdigits" / name, delimiter=",", dtype=np.float32)
    return rows[:, :-1] / 16, rows[:, -1].astype(int)


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leeway-interop-"))
    (folder / "job.yaml").write_text(JOB)
    run_dir = folder / "run"
    first, coordinator = start_server(folder, 0, "--job", str(folder / "job.yaml"), "--run-dir",
                                      str(run_dir))
    second, _ = start_server(folder, 1, "--coordinator", coordinator)
    worker = subprocess.Popen([str(BIN / "leeway-worker"), "--coordinator", coordinator, "--rank", "0",
                               "--data", str(SOURCE / "data"), "--log-file", str(folder / "w0.log")])
    processes = [first, second, worker]
    try:
        python = PythonWorker(coordinator, rank=1)
        features, labels = load("optdigits.tra")
        weights = python.train(features, labels, 64)
        codes = [p.wait(60) for p in processes]
    finally:
        for process in processes:
            process.kill()
    print((folder / "w0.log").read_text()[-2000:])
    assert codes == [0, 0, 0], codes
    assert python.failure is None, python.failure
    check_model(python, weights)
    check_metrics(run_dir)


def check_model(python, weights):
    features, labels = load("optdigits.tes")
    named = tensors(python.job.schema, weights)
    scores = features @ named["dense_1/weight"] + named["dense_1/bias"]
    accuracy = float((scores.argmax(axis=1) == labels).mean())
    print(f"test accuracy of the model trained by a C++ and a Python worker: {accuracy:.4f}")
    assert accuracy > 0.93, accuracy


def check_metrics(run_dir):
    events = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    finished = [e for e in events if e["event"] == "job_finished"]
    assert len(finished) == 1, [e["event"] for e in events]
    assert list((run_dir / "checkpoints").glob("*/MANIFEST.json")), "no last checkpoint"


if __name__ == "__main__":
    main()
