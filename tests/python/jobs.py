"""Starts jobs whose workers are Python programs, with servers by hand, and looks at what they leave."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("LEEWAY_BIN", SOURCE / "build/release/bin"))
SHARED = SOURCE.parent / "shared/data"
# The clone's package, unless the environment names another one.
PACKAGE = os.environ.setdefault("PYTHONPATH", str(SOURCE / "python"))
os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path[:0] = PACKAGE.split(":")
SKIPPED = 77
JOB = """apiVersion: leeway/v1
kind: TrainingJob
metadata: {{name: python, seed: 3}}
model: {{type: external}}
data: {{type: external, batch_size: {batch_size}, examples: {examples}}}
exchange: {exchange}
consistency: {consistency}
servers: {{count: {servers}, block_bytes: 4096}}
workers: {{count: {workers}}}
stop: {stop}
{more}
"""


class Failed(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failed(text)
    print(text, flush=True)


def skip(text):
    print(f"SKIPPED: {text}")
    sys.exit(SKIPPED)


def need_torch():
    try:
        import torch  # noqa: F401
    except ImportError:
        skip("torch is not installed (python3-torch)")


def job_yaml(batch_size=32, examples=640, exchange="{type: gradient}", consistency="{mode: sync}", servers=2, workers=2,
             stop="{clocks: 50}", more=""):
    return JOB.format(**locals())


class Job:
    """Servers, and workers as programs. Everything that it starts ends with it."""

    def __init__(self, yaml, folder, servers=2):
        self.folder, self.count = folder, servers
        self.servers, self.workers, self.outputs = {}, {}, {}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "job.yaml").write_text(yaml, encoding="utf-8")
        self.coordinator = None

    @property
    def run_dir(self):
        return self.folder / "run"

    def start_server(self, index, *more):
        read, write = os.pipe()
        where = (["--job", self.folder / "job.yaml", "--run-dir", self.run_dir] if index == 0
                 else ["--coordinator", self.coordinator])
        command = [BIN / "leeway-server", "--index", index, "--listen", "127.0.0.1:0", "--ready-fd", write, "--log-file",
                   self.folder / f"server-{index}.log", *where, *more]
        self.servers[index] = subprocess.Popen([str(word) for word in command], pass_fds=[write])
        os.close(write)
        with os.fdopen(read) as ready:
            address = ready.readline().strip()
        if index == 0:
            self.coordinator = address
        return self.servers[index]

    def start_servers(self, *more):
        for index in range(self.count):
            self.start_server(index, *more)

    def start_worker(self, rank, script, *arguments, **environment):
        """`script` is Python's text, or a path."""
        run = ["-c", script] if "\n" in str(script) else [str(script)]
        output = open(self.folder / f"worker-{rank}.txt", "a", encoding="utf-8")
        self.outputs[rank] = pathlib.Path(output.name)
        self.workers[rank] = subprocess.Popen(
            [sys.executable, *run, *map(str, arguments)], stdout=output, stderr=output, stdin=subprocess.DEVNULL,
            cwd=self.folder, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            env={**os.environ, "LEEWAY_COORDINATOR": self.coordinator, "LEEWAY_RANK": str(rank), **environment})
        output.close()
        return self.workers[rank]

    def start_cpp_worker(self, rank, data):
        command = [BIN / "leeway-worker", "--coordinator", self.coordinator, "--rank", rank, "--data", data, "--log-file",
                   self.folder / f"worker-{rank}.txt"]
        self.workers[rank] = subprocess.Popen([str(word) for word in command])
        self.outputs[rank] = self.folder / f"worker-{rank}.txt"

    def said(self, rank):
        return self.outputs[rank].read_text(encoding="utf-8", errors="replace")

    def wait(self, codes=(0,), timeout=120, servers=True):
        """All workers end by one of these codes, and then the servers by 0."""
        deadline = time.monotonic() + timeout
        everybody = {**self.workers, **({f"server {i}": s for i, s in self.servers.items()} if servers else {})}
        for name, process in everybody.items():
            try:
                code = process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise Failed(f"{name} has not ended after {timeout} s") from None
            if code not in (codes if isinstance(name, int) else (0,)):
                raise Failed(f"{name} ended by {code}, not by {codes}")

    def wait_until(self, condition, what, timeout=60):
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise Failed(f"waited {timeout} s for {what}")
            time.sleep(0.01)

    def logs(self):
        texts = [path for path in sorted(self.folder.glob("*.txt")) + sorted(self.folder.glob("*.log"))]
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}" for path in texts)

    def end(self):
        for process in [*self.workers.values(), *self.servers.values()]:
            process.kill()
            process.wait()


@contextlib.contextmanager
def job_of(yaml, servers=2, folder=None, start=True):
    own = folder is None
    place = pathlib.Path(tempfile.mkdtemp(prefix="leeway-python-")) if own else folder
    job = Job(yaml, place, servers)
    try:
        if start:
            job.start_servers()
        yield job
    except BaseException:
        print(job.logs())
        raise
    finally:
        job.end()
    if own:
        shutil.rmtree(place, ignore_errors=True)


def trained(script, yaml, workers=2, servers=2, timeout=120, **environment):
    """Runs a job of this script to its end; what its workers said, by rank."""
    with job_of(yaml, servers) as job:
        for rank in range(workers):
            job.start_worker(rank, script, **environment)
        job.wait(timeout=timeout)
        return [job.said(rank) for rank in range(workers)]


def main(cases):
    try:
        cases[sys.argv[1]]()
    except Failed as failure:
        print(f"FAILED: {failure}")
        sys.exit(1)
