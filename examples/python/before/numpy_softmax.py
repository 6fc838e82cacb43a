"""Softmax regression on 8 x 8 digits, in numpy.

    python3 numpy_softmax.py --data FOLDER     which holds optdigits/optdigits.tra and optdigits.tes"""

import argparse
import pathlib

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
x, y = read(options.data, "optdigits.tra")
weights = {"w": np.zeros((64, 10), np.float32), "b": np.zeros(10, np.float32)}
draws = np.random.default_rng(1)
for clock in range(600):
    rows = draws.integers(len(x), size=64)
    step = gradients_of(weights, x[rows], y[rows])
    weights = {name: weights[name] - 0.5 * step[name] for name in weights}
print("test accuracy {accuracy:.4f}, loss {loss:.4f}".format(**evaluate(weights)))
