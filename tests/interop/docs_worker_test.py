#!/usr/bin/python3
"""Runs the commands of docs/protocol.md as they stand: stubs, and docs/python_worker.py beside a C++ worker.

    docs_worker_test.py

Environment: LEEWAY_BIN (programs), LEEWAY_STUBS (which servers.py wants; the recipe makes its own)."""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile

import servers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "training"))
import runs  # noqa: E402


def recipe():
    """Returns the commands of docs/protocol.md's section on stubs, as they stand."""
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
        # The packages are for the distribution's Python, which must be used even if PATH has another one first.
        (folder / "python").mkdir()
        (folder / "python/python3").symlink_to(sys.executable)
        commands = recipe().replace("127.0.0.1:7000", f"127.0.0.1:{free_port()}")
        # In a session of its own, of which nothing is left if a command fails.
        run = subprocess.Popen(["bash", "-e", "-c", commands], cwd=folder, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, start_new_session=True,
                               env={**os.environ, "PATH": f"{servers.BIN}:{folder}/python:{os.environ['PATH']}"})
        try:
            code = run.wait(150)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
        said = run.stdout.read()
        print(said)
        assert code == 0, code
        check_outcome(folder / "runs/python")
    trained = re.search(r"rank 1: 400 clocks; accuracy on its training data (0\.\d+)", said)
    assert trained and float(trained.group(1)) > 0.93, said


def check_outcome(run_dir):
    """Only server 0 is there to write these files."""
    summary = json.loads((run_dir / "summary.json").read_text())
    assert summary["state"] == "finished" and summary["clock"] == 400, summary
    # The steps of both workers, although only one of them has reported its steps.
    assert summary["steps"] == 800 and summary["worker_steps"] == [400, 400], summary
    model = runs.read_safetensors(run_dir / "model.safetensors")
    assert len(model["dense_1/weight"]) == 640, {k: len(v) for k, v in model.items()}


if __name__ == "__main__":
    main()
