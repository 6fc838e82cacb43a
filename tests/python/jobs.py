"""Starts jobs whose workers are Python programs, with servers started by hand, and checks what they leave behind."""

import atexit
import contextlib
import multiprocessing
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
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
data: {{type: external, batch_size: {batch_size}, examples: {examples}, assignment: {assignment}}}
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
             stop="{clocks: 50}", assignment="static", more=""):
    return JOB.format(**locals())


class Forked(multiprocessing.get_context("fork").Process):
    """A program of this process's interpreter, with the interface of subprocess.Popen that the tests need. It has the
    imports of this process: a script that needs torch starts in 0.1 s and not in 3 s."""

    def wait(self, timeout=None):
        self.join(timeout)
        if self.exitcode is None:
            raise subprocess.TimeoutExpired(self.name, timeout)
        return self.exitcode

    def send_signal(self, number):
        os.kill(self.pid, number)


def become(arguments, output, folder, environment):
    """In a fork: runs a script as `python3 ARGUMENTS` would, and exits with the status that this would have."""
    for target in (1, 2):
        os.dup2(output, target)
    os.chdir(folder)
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    atexit._clear()  # The parent's, which would remove its temporary folders.
    text, name = (arguments[1], "-c") if arguments[0] == "-c" else (pathlib.Path(arguments[0]).read_text(), arguments[0])
    sys.argv[:] = arguments[1:] if name == "-c" else arguments
    main_module = sys.modules["__main__"] = types.ModuleType("__main__")
    if name != "-c":
        main_module.__file__ = name  # Processes that it spawns read it, too.
    try:
        exec(compile(text, name, "exec"), main_module.__dict__)
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        try:
            sys.excepthook(*sys.exc_info())
            code = 1
        except SystemExit as end:
            code = end.code
    atexit._run_exitfuncs()
    sys.exit(code)


class Job:
    """A job's servers, and its workers as programs. Everything that it starts ends with it."""

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
        with self._output(rank) as output:
            self.workers[rank] = subprocess.Popen(
                [sys.executable, *self._command(script, arguments)], stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                cwd=self.folder, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
                env={**os.environ, **self._place(rank), **environment})
        return self.workers[rank]

    def fork_worker(self, rank, script, *arguments, **environment):
        """Starts a worker in the same way, without the time that imports take."""
        with self._output(rank) as output:
            sys.stdout.flush()
            self.workers[rank] = Forked(target=become, args=(self._command(script, arguments), output.fileno(), self.folder,
                                                             {**self._place(rank), **environment}))
            self.workers[rank].start()
        return self.workers[rank]

    @staticmethod
    def _command(script, arguments):
        return [*(["-c", script] if "\n" in str(script) else [str(script)]), *map(str, arguments)]

    def _output(self, rank):
        self.outputs[rank] = self.folder / f"worker-{rank}.txt"
        return open(self.outputs[rank], "a", encoding="utf-8")

    def _place(self, rank):
        return {"LEEWAY_COORDINATOR": self.coordinator, "LEEWAY_RANK": str(rank), "PYTHONPATH": f"{HERE}:{PACKAGE}"}

    def start_cpp_worker(self, rank, data):
        command = [BIN / "leeway-worker", "--coordinator", self.coordinator, "--rank", rank, "--data", data, "--log-file",
                   self.folder / f"worker-{rank}.txt"]
        self.workers[rank] = subprocess.Popen([str(word) for word in command])
        self.outputs[rank] = self.folder / f"worker-{rank}.txt"

    def said(self, rank):
        return self.outputs[rank].read_text(encoding="utf-8", errors="replace")

    def wait(self, codes=(0,), timeout=120, servers=True):
        """Waits until all workers have exited with one of these codes, and then the servers with 0."""
        deadline = time.monotonic() + timeout
        everybody = {**self.workers, **({f"server {i}": s for i, s in self.servers.items()} if servers else {})}
        for name, process in everybody.items():
            try:
                code = process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise Failed(f"{name} has not ended after {timeout} s") from None
            if code not in (codes if isinstance(name, int) else (0,)):
                raise Failed(f"{name} ended by {code}, not by {codes}")

    def kill_worker(self, rank):
        self.workers[rank].kill()
        self.workers[rank].wait()

    def restart_server(self, index):
        """Kills a server with SIGKILL, and starts its next life."""
        self.servers[index].kill()
        self.servers[index].wait()
        self.start_server(index)

    def stop(self, timeout=60):
        """Sends SIGINT to server 0. All workers, whose loops report how they ended, stop in order, and then the
        servers."""
        self.servers[0].send_signal(signal.SIGINT)
        self.wait(timeout=timeout, servers=False)
        for rank in self.workers:
            check("ended stopped" in self.said(rank), f"rank {rank} was stopped in order")
        for server in self.servers.values():
            server.wait(timeout)

    def resume(self):
        """Starts the servers of a job that was stopped."""
        for index in range(self.count):
            self.start_server(index, *(["--resume"] if index == 0 else []))

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


def main(cases):
    try:
        cases[sys.argv[1]]()
    except Failed as failure:
        print(f"FAILED: {failure}")
        sys.exit(1)
