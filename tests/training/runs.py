"""Runs `leeway train` for tests, and reads what it leaves behind."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

SKIPPED = 77  # ctest's SKIP_RETURN_CODE
# The launcher's words for a process that no test has killed.
CRASHED = re.compile(r"crashed with signal (?!9\b)\d+")

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("LEEWAY_BIN", SOURCE / "build/release/bin"))
SHARED = SOURCE.parent / "shared/data"
JOBS = SOURCE / "config/jobs"


def heed_interrupts():
    """In the child: a shell without job control has what it starts in the background ignore them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def data_with(name):
    """The data folder that has `name`, or the test is skipped aloud."""
    for folder in (SHARED, SOURCE / "data"):
        if (folder / name).exists():
            return folder
    print(f"SKIPPED: {name} is neither in {SHARED} nor in {SOURCE / 'data'}")
    sys.exit(SKIPPED)


class Failed(Exception):
    pass


class RunFolder:
    """What a run leaves behind, in a folder of its own below `parent`, which is removed when it passed."""

    def __init__(self, name="run", parent=None):
        self.parent = pathlib.Path(parent or tempfile.mkdtemp(prefix="leeway-test-"))
        self.dir = self.parent / name
        self.read_events, self.read_to = [], 0

    def summary(self):
        return json.loads((self.dir / "summary.json").read_text())

    def events(self, kind=None):
        """The whole lines of metrics.jsonl, of one kind or all."""
        path = self.dir / "metrics.jsonl"
        if path.exists():
            with open(path, "rb") as file:
                file.seek(self.read_to)
                fresh = file.read()
            fresh = fresh[:fresh.rfind(b"\n") + 1]
            self.read_to += len(fresh)
            self.read_events += [json.loads(line) for line in fresh.splitlines()]
        return [e for e in self.read_events if kind is None or e["event"] == kind]

    def max_clock(self):
        return max((e["clock"] for e in self.events("step")), default=0)

    def clock_of(self, rank):
        """The newest of worker `rank` that it has told of, which it does twice a second."""
        return max((e["clock"] for e in self.events("step") if e["rank"] == rank), default=0)

    def model(self):
        return read_safetensors(self.dir / "model.safetensors")

    def clean(self):
        shutil.rmtree(self.parent, ignore_errors=True)


class Run(RunFolder):
    """One run of `leeway train`."""

    def __init__(self, job, sets=(), data=None, name="run", parent=None):
        super().__init__(name, parent)
        self.job = JOBS / job if isinstance(job, str) else job
        self.sets = list(sets)
        self.data = data
        self.process = None

    def command(self, resume=False, more=()):
        command = [str(BIN / "leeway"), "train", str(self.job), "--run-dir", str(self.dir)]
        for one in [*self.sets, *more]:
            command += ["--set", one]
        if self.data:
            command += ["--data", str(self.data)]
        return command + (["--resume"] if resume else [])

    def start(self, resume=False, more=()):
        self.parent.mkdir(parents=True, exist_ok=True)
        self.output = open(self.parent / f"{self.dir.name}.txt", "a", encoding="utf-8")
        self.process = subprocess.Popen(self.command(resume, more), stdout=self.output,
                                        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                        preexec_fn=heed_interrupts)
        return self

    def wait(self, timeout=600, expect=0):
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failed(f"no end after {timeout} s\n{self.tail()}")
        if code != expect:
            raise Failed(f"exit status {code}, expected {expect}\n{self.tail()}")
        # That the job survives them does not make them good.
        crashes = [line for line in self.said().splitlines() if CRASHED.search(line)]
        if crashes:
            raise Failed("a process has died of itself:\n" + "\n".join(crashes))
        return self.summary()

    def train(self, timeout=600, resume=False, more=()):
        return self.start(resume, more).wait(timeout)

    def said(self):
        self.output.flush()
        return pathlib.Path(self.output.name).read_text(encoding="utf-8", errors="replace")

    def tail(self):
        return self.said()[-6000:]

    def wait_for(self, condition, timeout=120):
        """Until condition(self) is true; the run must go on meanwhile."""
        deadline = time.monotonic() + timeout
        while not condition(self):
            if self.process.poll() is not None:
                raise Failed(f"ended too early, status {self.process.returncode}\n{self.tail()}")
            if time.monotonic() > deadline:
                raise Failed(f"waited {timeout} s in vain\n{self.tail()}")
            time.sleep(0.02)

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def process_of(self, role, number):
        """The process id of 'server' or 'worker' `number`, once it is there."""
        option = "--index" if role == "server" else "--rank"
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for pid, command in self.children(f"leeway-{role}"):
                if command[command.index(option) + 1] == str(number):
                    return pid
            time.sleep(0.02)
        raise Failed(f"{role} {number} does not run\n{self.tail()}")

    def children(self, role):
        """Process ids of this run's servers or workers ('leeway-worker', rank order not promised)."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            if parent == self.process.pid and command[0].endswith(role.encode()):
                found.append((int(entry.name), [c.decode() for c in command]))
        return found


def read_safetensors(path):
    """{name: list of floats}, by the format's definition."""
    blob = path.read_bytes()
    length = struct.unpack("<Q", blob[:8])[0]
    header = json.loads(blob[8:8 + length])
    tensors = {}
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        begin, end = tensor["data_offsets"]
        assert tensor["dtype"] == "F32", tensor
        tensors[name] = struct.unpack(f"<{(end - begin) // 4}f",
                                      blob[8 + length + begin:8 + length + end])
    return tensors


def file_digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check(condition, text):
    if not condition:
        raise Failed(text)
    print(text)


def main(cases):
    """Runs the case named on the command line."""
    name = sys.argv[1]
    try:
        cases[name]()
    except Failed as failure:
        print(f"FAILED: {failure}")
        sys.exit(1)
