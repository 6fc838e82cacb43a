#!/usr/bin/python3
"""The installed files suffice to embed the client: README's ten lines are built against the installed tree, by
find_package(leeway), and take part in a job of the installed leeway-server.

Usage: embed_test.py BUILD_FOLDER"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
README = HERE.parents[1] / "README.md"
JOB = """apiVersion: leeway/v1
kind: TrainingJob
metadata: {name: embed}
model: {layers: [{dense: {units: 2}}], loss: softmax_cross_entropy}
data: {train: {type: generator, examples: 2, shape: [1]}, batch_size: 1}
exchange: {type: gradient}
consistency: {mode: sync}
update: {type: sgd, learning_rate: 0.5}
workers: {count: 1}
stop: {clocks: 40}
"""


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        sys.exit(f"FAILED: {' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-6000:]}")
    return done.stdout


def readme_loop():
    """Returns the only C++ block of README.md."""
    blocks = re.findall(r"```cpp\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    if len(blocks) != 1:
        sys.exit(f"FAILED: {len(blocks)} C++ blocks in README.md, not one")
    return blocks[0]


def start_server(prefix, folder):
    (folder / "job.yaml").write_text(JOB, encoding="utf-8")
    command = [prefix / "bin/leeway-server", "--index", "0", "--job", folder / "job.yaml", "--listen", "127.0.0.1:0",
               "--run-dir", folder / "run"]
    log = open(folder / "server.log", "w", encoding="utf-8")
    return subprocess.Popen([str(word) for word in command], stdout=log, stderr=log)


def coordinator_of(server, folder):
    """Returns the address that the server was given, from its log."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and server.poll() is None:
        said = re.search(r"listening on (\S+)", (folder / "server.log").read_text(encoding="utf-8"))
        if said:
            return said.group(1)
        time.sleep(0.02)
    sys.exit(f"FAILED: the server does not listen\n{(folder / 'server.log').read_text(encoding='utf-8')}")


def main():
    with tempfile.TemporaryDirectory(prefix="leeway-embed-") as name:
        folder = pathlib.Path(name)
        prefix = folder / "installed"
        run("cmake", "--install", sys.argv[1], "--prefix", prefix)
        (folder / "readme_loop.h").write_text(readme_loop(), encoding="utf-8")
        run("cmake", "-S", HERE / "embed", "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DREADME_FOLDER={folder}", f"-DCMAKE_CXX_FLAGS=-O1 {os.environ.get('LEEWAY_FLAGS', '')}")
        run("cmake", "--build", folder / "build")
        server = start_server(prefix, folder)
        try:
            said = run(folder / "build/embed", coordinator_of(server, folder))
            distance = float(re.search(r"^distance (\S+)$", said, re.M).group(1))
            if not distance < 1e-6 or server.wait(30) != 0:
                sys.exit(f"FAILED: {said} and the server's status {server.returncode}")
        finally:
            server.kill()
        print(f"README's loop has brought every weight to its target, within {distance}")


if __name__ == "__main__":
    main()
