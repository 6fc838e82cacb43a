"""A numpy worker for tests: numpy_worker.py DATA FOLDER [named]. Softmax regression on digits. `named`: it brings no
schema and takes the job's."""

import hashlib
import os
import pathlib
import sys
import time

import numpy as np

import leeway

W, B = ("dense_1/weight", "dense_1/bias") if sys.argv[3:] == ["named"] else ("w", "b")


def read(name):
    rows = np.loadtxt(pathlib.Path(sys.argv[1]) / "optdigits" / name, delimiter=",", dtype=np.float32)
    return rows[:, :-1] / 16, rows[:, -1].astype(int)


def gradients(weights, x, y):
    scores = np.exp(x @ weights[W] + weights[B])
    error = (scores / scores.sum(axis=1, keepdims=True) - np.eye(10, dtype=np.float32)[y]) / len(y)
    return {W: x.T @ error, B: error.sum(axis=0)}


def main():
    if W == "w":
        job = leeway.join({"w": (64, 10), "b": 10}, update={"type": "sgd", "learning_rate": 0.5})
    else:
        job = leeway.join()
    seen = open(pathlib.Path(sys.argv[2]) / f"seen-{job.rank}.txt", "a", encoding="utf-8")
    slow = float(os.environ.get("SLOW_SECONDS", "0"))
    for x, y in job.batches(read("optdigits.tra")):
        flat = np.concatenate([job.weights[name].ravel() for name in job.weights])
        print(job.clock, hashlib.sha256(flat.tobytes()).hexdigest()[:16], file=seen, flush=True)
        job.push_pull(gradients(job.weights, x, y), loss=1.0)
        time.sleep(slow)
    x, y = read("optdigits.tes")
    accuracy = float(((x @ job.weights[W] + job.weights[B]).argmax(axis=1) == y).mean())
    print("ended", job.ended, "accuracy", accuracy, flush=True)
    job.save(pathlib.Path(sys.argv[2]) / "saved.safetensors")


if __name__ == "__main__":
    main()
