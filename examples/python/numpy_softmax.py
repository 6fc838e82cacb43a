"""Softmax regression on 8 x 8 digits, in numpy, as a worker.

    python3 numpy_softmax.py --data FOLDER     which holds optdigits/optdigits.tra and optdigits.tes"""

import argparse
import pathlib

import leeway
import numpy as np


def read(folder, name):
    """Features in 0..1 and labels."""
    rows = np.loadtxt(folder / "optdigits" / name, delimiter=",", dtype=np.float32)
    return rows[:, :-1] / 16, rows[:, -1].astype(int)


def scores_of(weights, x):
    scores = np.exp(x @ weights["w"] + weights["b"])
    return scores / scores.sum(axis=1, keepdims=True)


def gradients_of(weights, x, y):
    """Of the mean cross-entropy."""
    error = (scores_of(weights, x) - np.eye(10, dtype=np.float32)[y]) / len(y)
    return {"w": x.T @ error, "b": error.sum(axis=0)}


def evaluate(weights):
    x, y = read(options.data, "optdigits.tes")
    scores = scores_of(weights, x)
    return {"loss": -np.log(scores[np.arange(len(y)), y]).mean(), "accuracy": (scores.argmax(axis=1) == y).mean()}


options = argparse.ArgumentParser()
options.add_argument("--data", type=pathlib.Path, default="data")
options = options.parse_args()
job = leeway.join(schema={"w": (64, 10), "b": 10}, update={"type": "sgd", "learning_rate": 0.5}, evaluate=evaluate,
                  alone=leeway.Alone(clocks=600))
for x, y in job.batches(read(options.data, "optdigits.tra")):
    job.push_pull(gradients_of(job.weights, x, y))
print("test accuracy {accuracy:.4f}, loss {loss:.4f}".format(**evaluate(job.weights)))
