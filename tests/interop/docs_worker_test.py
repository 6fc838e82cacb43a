#!/usr/bin/python3
"""docs/python_worker.py as it stands, a process of its own beside a C++ worker, over two servers.

    docs_worker_test.py

Environment: LEEWAY_BIN (programs), LEEWAY_STUBS (folder of the generated *_pb2.py)."""

import json
import os
import pathlib
import re
import subprocess
import sys

import servers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "training"))
import runs  # noqa: E402


def main():
    script = servers.SOURCE / "docs/python_worker.py"
    lines = [line for line in script.read_text().splitlines() if line.strip()]
    assert len(lines) <= 70, f"{len(lines)} lines are no example of about 60"
    with servers.job_with_one_worker() as job:
        run = subprocess.run([sys.executable, script, job.coordinator,
                              servers.SOURCE / "data/optdigits/optdigits.tra"], capture_output=True, text=True,
                             timeout=150, check=False, env={**os.environ, "PYTHONPATH": os.environ["LEEWAY_STUBS"]})
        print(run.stdout, run.stderr)
        assert run.returncode == 0, run.returncode
        for process in job.processes.values():
            process.wait(60)
        check_outcome(job.run_dir)
    said = re.search(r"rank 1: 400 clocks; accuracy on its training data (0\.\d+)", run.stdout)
    assert said and float(said.group(1)) > 0.93, run.stdout


def check_outcome(run_dir):
    """Nobody but server 0 is there to write them."""
    summary = json.loads((run_dir / "summary.json").read_text())
    assert summary["state"] == "finished" and summary["clock"] == 400, summary
    # Of both workers, though only one of them has told of its steps.
    assert summary["steps"] == 800 and summary["worker_steps"] == [400, 400], summary
    model = runs.read_safetensors(run_dir / "model.safetensors")
    assert len(model["dense_1/weight"]) == 640, {k: len(v) for k, v in model.items()}


if __name__ == "__main__":
    main()
