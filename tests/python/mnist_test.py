#!/usr/bin/python3
"""examples/python on MNIST, five passes with two workers, in every mode, compared with the same script without servers
on as many samples: mnist_test.py [MODE...]. Each mode is within half a point of it, and sync is within 0.3."""

import pathlib
import re
import subprocess
import sys
import tempfile

from jobs import BIN, SHARED, SOURCE, check, main, need_torch, skip

EXAMPLES = SOURCE / "examples/python"
EPOCHS = 5
# By mode: the script, its job's settings, and how many points its accuracy may differ from torch's. In async and
# bounded mode an update is made of one worker's batch, so the batch is as large as torch's own.
MODES = {
    "sync": ("torch_mnist", [], 0.3),
    "bounded": ("torch_mnist", ["consistency={mode: bounded, staleness: 3}", "data.batch_size=64"], 0.5),
    "async": ("torch_mnist", ["consistency.mode=async", "data.batch_size=64"], 0.5),
    "elastic": ("torch_mnist", ["exchange={type: elastic, every: 4}", "data.batch_size=64"], 0.5),
    "delta": ("torch_local_sgd", [], 0.5),
}


def accuracy_of(said):
    return 100 * float(re.findall(r"test accuracy ([\d.]+), loss", said)[-1])


def alone(script):
    done = subprocess.run([sys.executable, str(EXAMPLES / f"{script}.py"), "--data", str(SHARED), "--epochs", str(EPOCHS)],
                          capture_output=True, text=True, check=True)
    return accuracy_of(done.stdout)


def trained(script, sets):
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        command = [str(BIN / "leeway"), "train", str(EXAMPLES / f"{script}.yaml"), "--run-dir", str(run)]
        for each in [f"stop={{epochs: {EPOCHS}}}", *sets]:
            command += ["--set", each]
        done = subprocess.run([*command, "--", sys.executable, str(EXAMPLES / f"{script}.py"), "--data", str(SHARED),
                               "--epochs", str(EPOCHS)], capture_output=True, text=True, check=False)
        check(done.returncode == 0, f"{script} {sets} has trained" if done.returncode == 0 else done.stdout + done.stderr)
        return accuracy_of((run / "logs/worker-0.log").read_text())


def compare():
    need_torch()
    if not (SHARED / "mnist").is_dir():
        skip("there is no MNIST in ../shared/data")
    torch_alone = {}
    for mode in sys.argv[2:] or MODES:
        script, sets, points = MODES[mode]
        if script not in torch_alone:
            torch_alone[script] = alone(script)
        found = trained(script, sets)
        check(found >= torch_alone[script] - points,
              f"{mode}: {found:.2f} %; torch alone {torch_alone[script]:.2f} %; it may be {points} points below")


if __name__ == "__main__":
    main({"accuracy": compare})
