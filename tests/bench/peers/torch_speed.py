#!/usr/bin/python3
"""Training steps of one process beside PyTorch's: forward, backward, SGD with momentum, on a batch in memory.

Usage: torch_speed.py --programs build/release/bin [--models lenet ...] [--batch 64; of gpt a quarter] [--threads 1] [--rounds 5]

Leeway and both of PyTorch's layouts take turns. Printed are medians of samples a second, and the median of the rounds'
ratios to PyTorch's faster layout. PyTorch on the reference BLAS is refused.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess

import torch_blas
from commands import PYTHON, run

HERE = pathlib.Path(__file__).resolve().parent
# The name in PyTorch, and that in training_bench.
MODELS = {"mlp": "mlp-512", "cnn": "cnn-128", "lenet": "lenet", "resnet20": "resnet20", "mobilenet_v2": "mobilenet_v2",
          "gpt": "gpt"}
LAYOUTS = ("nchw", "nhwc")
# PyTorch allocates its tensors anew in each step. Without these settings glibc returns their pages to the system each
# time. Where page faults are slow, as on virtual machines, little else would be measured.
KEEP_PAGES = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
              "MALLOC_TOP_PAD_": str(64 << 20)}


class Torch:
    """A process that keeps its models, so that PyTorch's start is not measured."""

    def __init__(self, threads):
        number = str(threads)
        environment = dict(os.environ, OMP_NUM_THREADS=number, OPENBLAS_NUM_THREADS=number, **KEEP_PAGES)
        self.process = subprocess.Popen([PYTHON, HERE / "torch_steps.py", number], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment)

    def rate(self, model, batch, layout, seconds):
        self.process.stdin.write(f"{model} {batch} {layout} {seconds}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def leeway(options, model):
    out = run([options.programs / "training_bench", "--update", "--model", MODELS[model], "--batch", batch_of(options, model),
               "--threads", options.threads, "--rounds", 1, "--seconds", options.seconds, "--json"])
    return json.loads(out)["models"][0]["samples_per_second"]


def batch_of(options, model):
    """The batch of the model: an example of gpt has 64 characters."""
    return options.batch // 4 if model == "gpt" else options.batch


def measure(options, torch, model):
    rates = {name: [] for name in ("leeway", *LAYOUTS)}
    # The first round warms up.
    for turn in range(options.rounds + 1):
        order = list(rates)
        for name in order if turn % 2 else order[::-1]:
            rate = (leeway(options, model) if name == "leeway" else
                    torch.rate(model, batch_of(options, model), name, options.seconds))
            if turn > 0:
                rates[name].append(rate)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    faster = max(LAYOUTS, key=medians.get)
    ratio = statistics.median(ours / theirs for ours, theirs in zip(rates["leeway"], rates[faster]))
    return medians, faster, ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each subject in each round")
    options = parser.parse_args()
    print(f"PyTorch's BLAS: {torch_blas.installed_torch()}; batch {options.batch}, {options.threads} thread(s)")
    print(f"{'samples/s':14}{'Leeway':>10}{'NCHW':>10}{'NHWC':>10}{'ratio':>8}")
    torch = Torch(options.threads)
    for model in options.models:
        medians, faster, ratio = measure(options, torch, model)
        print(f"{model:14}{medians['leeway']:10.0f}{medians['nchw']:10.0f}{medians['nhwc']:10.0f}{ratio:8.2f}"
              f"  of PyTorch in {faster.upper()}", flush=True)
    torch.stop()


if __name__ == "__main__":
    main()
