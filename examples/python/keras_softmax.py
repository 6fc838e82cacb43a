"""Softmax regression in Keras 3 on TensorFlow or PyTorch, in a train loop of one's own. Not run by Leeway's own tests
where keras is not installed.

    leeway train numpy_softmax.yaml -- python3 keras_softmax.py --data FOLDER"""

import argparse
import pathlib

import keras
import leeway
import numpy as np

options = argparse.ArgumentParser()
options.add_argument("--data", type=pathlib.Path, default="data")
options = options.parse_args()
rows = np.loadtxt(options.data / "optdigits/optdigits.tra", delimiter=",", dtype=np.float32)
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(10)])
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
variables = {variable.path: variable for variable in model.trainable_variables}


def gradients_of(x, y):
    """Loss and gradients by name, by whichever backend computes."""
    if keras.backend.backend() == "torch":
        model.zero_grad()
        loss = loss_of(y, model(x))
        loss.backward()
        return float(loss), {name: variable.value.grad.numpy() for name, variable in variables.items()}
    import tensorflow
    with tensorflow.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    found = tape.gradient(loss, [variable.value for variable in variables.values()])
    return float(loss), {name: gradient.numpy() for name, gradient in zip(variables, found)}


job = leeway.join(schema={name: tuple(variable.shape) for name, variable in variables.items()},
                  initial={name: keras.ops.convert_to_numpy(variable) for name, variable in variables.items()},
                  update={"type": "sgd", "learning_rate": 0.5}, alone=leeway.Alone(clocks=600))
for x, y in job.batches((rows[:, :-1] / 16, rows[:, -1].astype(int))):
    for name, variable in variables.items():
        variable.assign(job.weights[name])
    loss, gradients = gradients_of(x, y)
    job.push_pull(gradients, loss=loss)
print(f"rank {job.rank}: loss {loss:.4f}")
