#!/usr/bin/python3
"""Runs the blocks of docs/python.md and docs/client.md, and a line of docs/data.md, as they stand, in a copy of the
tree that shares this build: pages_test.py CASE. PRELUDES has what a page leaves to the reader, such as a model."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

from jobs import BIN, PACKAGE, SOURCE, check, main, need_torch

TORCH = """
import sys
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(1)
model = nn.Linear(20, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(640, 20)
loader = DataLoader(TensorDataset(x, x[:, :5].argmax(1)), batch_size=32, shuffle=True)
"""
NUMPY = """
import numpy as np
first = {"w": np.zeros((64, 10), np.float32), "b": np.zeros(10, np.float32)}
loss = 1.0
def data(clock, rank):
    return clock, rank
def gradients(weights, clock, rank):
    return {"w": np.ones((64, 10)), "b": np.ones(10)}
"""
SMALL = ["data.examples=640", "stop={epochs: 2}", "evaluation.every={epochs: 1}"]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (SOURCE / "docs" / page).read_text(encoding="utf-8"), re.S | re.M)


def block(page, language, text):
    found = [each for each in blocks(page, language) if text in each]
    check(len(found) == 1, f"{page} has one block of {language} with {text!r}")
    return found[0]


def run(*command, folder, **environment):
    bare = {name: value for name, value in os.environ.items() if not name.startswith("LEEWAY_") or name == "LEEWAY_LIBRARY"}
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, timeout=250, check=False,
                          env={**bare, "PYTHONPATH": PACKAGE, "OMP_NUM_THREADS": "1", **environment})
    check(done.returncode == 0, f"{command[-1]}: status {done.returncode}" + (
        "" if done.returncode == 0 else f"\n{done.stdout[-3000:]}{done.stderr[-3000:]}"))
    return done.stdout + done.stderr


def trained(folder, script, yaml, *sets):
    (folder / "job.yaml").write_text(yaml, encoding="utf-8")
    return run(BIN / "leeway", "train", "job.yaml", *(word for each in sets for word in ("--set", each)), "--run-dir",
               folder / "run", "--", sys.executable, script, folder=folder)


def four_lines():
    """The script alone, and in the page's job, with the page's evaluation."""
    need_torch()
    lines, evaluation = (block("python.md", "python", text) for text in ("for epoch in job.epochs(5):", "def evaluate(model)"))
    lines = lines.replace("...\n", TORCH)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        evaluation = re.sub(r"return \{.*\}", 'return {"loss": 1.0, "accuracy": 0.5}', evaluation)
        joins = "job = leeway.join(model, optimizer)              # 2\n"
        check(joins in lines, "and the line that joins")
        for script, text in (("lines.py", lines), ("evaluates.py", lines.replace(joins, evaluation))):
            (folder / script).write_text(text, encoding="utf-8")
            check("trains alone" in run(sys.executable, script, folder=folder), f"{script} trains alone")
        yaml = blocks("python.md", "yaml")[0]
        said = trained(folder, "evaluates.py", yaml, *SMALL)
        check("test accuracy 50.00 %" in said or "50.00" in said, f"the page's job trains the page's script\n{said[-600:]}")
        losses = re.findall(r'"train_loss":([\d.e-]+|null)', (folder / "run/metrics.jsonl").read_text())
        check(losses and all(loss != "null" and float(loss) > 0 for loss in losses), f"each step tells its loss: {losses[:3]}")


def numpy():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "loop.py").write_text(NUMPY + block("python.md", "python", "for clock, weights in job:"), encoding="utf-8")
        check("trains alone" in run(sys.executable, "loop.py", folder=folder), "the loop of numpy trains alone")
        yaml = blocks("python.md", "yaml")[0]
        trained(folder, "loop.py", yaml, *SMALL)


def client():
    """The commands for a clone: the C program trains."""
    (commands,) = [block for block in blocks("client.md", "") if block.startswith("cc ")]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "examples").symlink_to(SOURCE / "examples")
        (folder / "build").mkdir()
        (folder / "build/release").symlink_to(BIN.parent)
        run("bash", "-e", "-c", commands, folder=folder)


def data():
    """docs/data.md's check of files in the data folder, from beside the folder. A missing file is not blamed on a
    flag."""
    line = re.search(r"^\$ leeway (data .*)$", (SOURCE / "docs/data.md").read_text(encoding="utf-8"), re.M).group(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "data").symlink_to(SOURCE / "data")
        said = run(BIN / "leeway", *line.split(), folder=folder)
        check(f"--data {folder}/data" in said or f"--data {SOURCE}/data" in said, f"it says which data folder it is:\n{said}")
        done = subprocess.run([BIN / "leeway", "data", "none.csv"], cwd=folder, capture_output=True, text=True, check=False)
        check(done.returncode == 2 or done.returncode == 1, f"a file that is nowhere: status {done.returncode}")
        check("none.csv: not found, in the current folder or in" in done.stderr and "given by" not in done.stderr, done.stderr.strip())


CASES = {"page-four-lines": four_lines, "page-numpy": numpy, "page-client": client, "page-data": data}

if __name__ == "__main__":
    main(CASES)
