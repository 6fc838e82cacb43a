"""Habits of PyTorch scripts, each as a short script that trains alone or as a worker: the rows of habits_test.py.

A script gets a `run`: `run.join` is leeway.torch.join, or does nothing; `run.batches()` are this worker's. The script
returns the tensors that it would report."""

from . import weights_read, weights_written, networks, tensors, gradients, rates, models  # The order of the rows.
from .table import ROWS, STEPS
