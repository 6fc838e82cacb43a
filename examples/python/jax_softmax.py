"""Softmax regression in JAX as a worker. Not run by Leeway's own tests where jax is not installed.

    leeway train numpy_softmax.yaml -- python3 jax_softmax.py --data FOLDER"""

import argparse
import pathlib

import jax
import jax.numpy as jnp
import leeway
import numpy as np


def loss_of(weights, x, y):
    scores = jax.nn.log_softmax(x @ weights["w"] + weights["b"])
    return -scores[jnp.arange(len(y)), y].mean()


options = argparse.ArgumentParser()
options.add_argument("--data", type=pathlib.Path, default="data")
options = options.parse_args()
rows = np.loadtxt(options.data / "optdigits/optdigits.tra", delimiter=",", dtype=np.float32)
step = jax.jit(jax.value_and_grad(loss_of))
job = leeway.join(schema={"w": (64, 10), "b": 10}, update={"type": "sgd", "learning_rate": 0.5},
                  alone=leeway.Alone(clocks=600))
for x, y in job.batches((rows[:, :-1] / 16, rows[:, -1].astype(int))):
    weights = {name: jnp.array(value) for name, value in job.weights.items()}  # Copies: the views change at each clock.
    loss, gradients = step(weights, x, y)
    job.push_pull(gradients, loss=float(loss))
print(f"rank {job.rank}: loss {float(loss):.4f}")
