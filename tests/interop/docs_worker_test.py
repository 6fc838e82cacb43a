#!/usr/bin/python3
"""The commands of docs/protocol.md as they stand: stubs, and docs/python_worker.py beside a C++ worker.

    docs_worker_test.py

Environment: LEEWAY_BIN (programs), LEEWAY_STUBS (which servers.py wants; the recipe makes its own)."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

import servers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "training"))
import runs  # noqa: E402


def recipe():
    """The commands of docs/protocol.md's section on stubs, as they stand."""
    text = (servers.SOURCE / "docs/protocol.md").read_text()
    section = text[text.index("## Stubs"):text.index("## Layout of tensors")]
    blocks = re.findall(r"^```\n(.*?)^```\n", section, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2, blocks
    return "".join(blocks)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    lines = [line for line in (servers.SOURCE / "docs/python_worker.py").read_text().splitlines() if line.strip()]
    assert len(lines) <= 70, f"{len(lines)} lines are no example of about 60"
    with tempfile.TemporaryDirectory(prefix="leeway-recipe-") as name:
        folder = pathlib.Path(name)
        for part in ("docs", "proto", "data"):
            (folder / part).symlink_to(servers.SOURCE / part)
        commands = recipe().replace("127.0.0.1:7000", f"127.0.0.1:{free_port()}")
        run = subprocess.run(["bash", "-e", "-c", commands], cwd=folder, capture_output=True, text=True, timeout=150,
                             check=False, env={**os.environ, "PATH": f"{servers.BIN}:{os.environ['PATH']}"})
        print(run.stdout, run.stderr[-3000:])
        assert run.returncode == 0, run.returncode
        check_outcome(folder / "runs/python")
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
