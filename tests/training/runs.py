"""Runs `leeway train` for tests, and reads what it leaves behind."""

import array
import atexit
import hashlib
import json
import math
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

import own_network

SKIPPED = 77  # ctest's SKIP_RETURN_CODE
# common/exit_code.h
TEMPORARY, USAGE, PERMANENT, STOPPED, REPLACED = 1, 2, 3, 4, 5
# The launcher's message about a process that was not killed by a test.
CRASHED = re.compile(r"crashed with signal (?!9\b)\d+")

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("LEEWAY_BIN", SOURCE / "build/release/bin"))
SHARED = SOURCE.parent / "shared/data"
JOBS = SOURCE / "config/jobs"


def heed_interrupts():
    """Runs in the child: a shell without job control makes background processes ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def data_with(name):
    """Returns the data folder that has `name`. Without it the test is skipped and says so."""
    for folder in (SHARED, SOURCE / "data"):
        if (folder / name).exists():
            return folder
    print(f"SKIPPED: {name} is neither in {SHARED} nor in {SOURCE / 'data'}")
    sys.exit(SKIPPED)


class Failed(Exception):
    pass


def is_alive(pid):
    """Whether the process still has files open. A dead process whose status was not collected has no open files, once
    its other threads have ended, too."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return False
    state, threads = fields[0], int(fields[17])
    return state != "Z" or threads > 1


def is_torn(line):
    try:
        return not isinstance(json.loads(line), dict)
    except ValueError:
        return True


def preloadable(library):
    """Returns a path of the library that LD_PRELOAD accepts: LD_PRELOAD ends a path at a space or a colon, and silently
    ignores the rest."""
    if not re.search(r"[\s:]", str(library)):
        return str(library)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leeway-preload-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / library.name).symlink_to(library)
    return str(folder / library.name)


class RunFolder:
    """What a run leaves behind, in a folder of its own below `parent`. The folder is removed if the test passed."""

    def __init__(self, name="run", parent=None):
        self.parent = pathlib.Path(parent or tempfile.mkdtemp(prefix="leeway-test-"))
        self.dir = self.parent / name
        self.read_events, self.read_to = [], 0
        self.torn = False

    def power_was_cut(self):
        """metrics.jsonl, which is not made durable, may be shorter than before and contain damaged lines."""
        self.read_events, self.read_to = [], 0
        self.torn = True

    def summary(self):
        return json.loads((self.dir / "summary.json").read_text())

    def events(self, kind=None):
        """Returns the whole lines of metrics.jsonl, of one kind or all."""
        path = self.dir / "metrics.jsonl"
        if path.exists():
            with open(path, "rb") as file:
                file.seek(self.read_to)
                fresh = file.read()
            fresh = fresh[:fresh.rfind(b"\n") + 1]
            self.read_to += len(fresh)
            self.read_events += [json.loads(line) for line in fresh.splitlines() if not (self.torn and is_torn(line))]
        return [e for e in self.read_events if kind is None or e["event"] == kind]

    def max_clock(self):
        return max((e["clock"] for e in self.events("step")), default=0)

    def clock_of(self, rank):
        """Returns the newest clock of worker `rank`, which reports twice a second."""
        return max((e["clock"] for e in self.events("step") if e["rank"] == rank), default=0)

    def model(self):
        return read_safetensors(self.dir / "model.safetensors")

    def check_whole(self, report=True, learned=True):
        """Checks that a run has left everything that it promises, whatever its exit status: a model of finite numbers
        that matches the summary, a summary without a warning, a report, and metrics without a bad line. A finished run
        must also have learned something."""
        summary = self.summary()
        wrong = [f"the summary warns: {warning}" for warning in summary["warnings"]
                 if not (self.torn and "metrics.jsonl" in warning)]
        files = ["summary.json", *(["report.html", "curves.svg"] if report else [])]
        wrong += [f"no {name}" for name in files if not (self.dir / name).stat().st_size]
        if summary["state"] == "finished" or summary["clock"] is not None:
            wrong += self.wrong_with_model(summary)
        if summary["steps"] != sum(summary["worker_steps"]) and not self.leased():
            wrong.append(f"{summary['steps']} steps are not those of the workers {summary['worker_steps']}")
        if learned and summary["state"] == "finished":
            wrong += self.not_learned(summary)
        if wrong:
            raise Failed(f"{self.dir}: " + "; ".join(wrong))
        return summary

    def leased(self):
        return "assignment: leased" in (self.dir / "job.yaml").read_text()

    def wrong_with_model(self, summary):
        """Checks that the weights' digest is that of the flat vector, and that the tensors in the file have its
        order."""
        blob = (self.dir / "model.safetensors").read_bytes()
        length = struct.unpack("<Q", blob[:8])[0]
        values = blob[8 + length:]
        if len(values) != 4 * summary["parameters"]:
            return [f"the model has {len(values)} bytes, of {summary['parameters']} parameters"]
        if not all(map(math.isfinite, array.array("f", values))):
            return ["the model has numbers that are none"]
        digest = hashlib.sha256(values).hexdigest()
        return [] if digest == summary["weights_sha256"] else ["the model is not the summary's: " + digest]

    def not_learned(self, summary):
        """What tells a trained model from an untrained one. A run with test data says it itself. Without test data the
        loss must be below the first one of the run's first half. Workers report twice a second: a job that ends sooner
        has no such loss."""
        if summary["learned"] is not None:
            return [] if summary["learned"] else [summary["why_not_learned"]]
        told = [(e["clock"], e["train_loss"]) for e in self.events("step")
                if e["train_loss"] is not None and e["examples"] > 0]
        early = [loss for clock, loss in told if 2 * clock <= max(c for c, _ in told)][:3]
        if not early or self.torn:
            return []
        first, late = sum(early) / len(early), [loss for _, loss in told[-3:]]
        last = sum(late) / len(late)
        return [] if last < first else [f"it has learned nothing: the loss went from {first:.4f} to {last:.4f}"]

    def clean(self):
        shutil.rmtree(self.parent, ignore_errors=True)


class Run(RunFolder):
    """One run of `leeway train`, with the programs in a folder."""

    def __init__(self, job, sets=(), data=None, name="run", parent=None, programs=BIN):
        super().__init__(name, parent)
        self.programs = programs
        self.job = JOBS / job if isinstance(job, str) else job
        self.sets = list(sets)
        self.data = data
        self.process = None
        # False if a test trains too little to learn anything.
        self.learns = True

    def command(self, resume=False, more=(), options=()):
        command = [str(self.programs / "leeway"), "train", str(self.job), "--run-dir", str(self.dir)]
        for one in [*self.sets, *more]:
            command += ["--set", one]
        if self.data:
            command += ["--data", str(self.data)]
        return [*command, *options, *(["--resume"] if resume else [])]

    def start(self, resume=False, more=(), options=()):
        self.parent.mkdir(parents=True, exist_ok=True)
        self.output = open(self.parent / f"{self.dir.name}.txt", "a", encoding="utf-8")
        self.process = subprocess.Popen(self.command(resume, more, options), stdout=self.output,
                                        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                        preexec_fn=heed_interrupts)
        # A failing test leaves nothing running; the launcher's children die with it.
        atexit.register(self.process.kill)
        return self

    def wait(self, timeout=600, expect=0, whole=True):
        """Waits for the run's end, and returns the summary. `whole`: the files that it leaves must be whole, which an
        exit status does not tell."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failed(f"no end after {timeout} s\n{self.tail()}")
        if code != expect:
            raise Failed(f"exit status {code}, expected {expect}\n{self.tail()}")
        # A crash is an error even if the job survives it.
        crashes = [line for line in self.said().splitlines() if CRASHED.search(line)]
        if crashes:
            raise Failed("a process has died of itself:\n" + "\n".join(crashes))
        return self.check_whole(learned=self.learns) if whole else self.summary()

    def train(self, timeout=600, resume=False, more=()):
        return self.start(resume, more).wait(timeout)

    def said(self):
        self.output.flush()
        return pathlib.Path(self.output.name).read_text(encoding="utf-8", errors="replace")

    def tail(self):
        return self.said()[-6000:]

    def wait_for(self, condition, timeout=120):
        """Waits until condition(self) is true; the run must go on meanwhile."""
        deadline = time.monotonic() + timeout
        while not condition(self):
            if self.process.poll() is not None:
                raise Failed(f"ended too early, status {self.process.returncode}\n{self.tail()}")
            if time.monotonic() > deadline:
                raise Failed(f"waited {timeout} s in vain\n{self.tail()}")
            time.sleep(0.02)

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def kill(self):
        """Kills the launcher, and with it its children, and waits until all of them are gone."""
        children = [pid for role in ("leeway-server", "leeway-worker") for pid, _ in self.children(role)]
        self.process.kill()
        self.process.wait()
        deadline = time.monotonic() + 30
        while any(map(is_alive, children)) and time.monotonic() < deadline:
            time.sleep(0.01)

    def process_of(self, role, number):
        """Returns the process id of 'server' or 'worker' `number`, once the process is there."""
        option = "--index" if role == "server" else "--rank"
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for pid, command in self.children(f"leeway-{role}"):
                if command[command.index(option) + 1] == str(number):
                    return pid
            time.sleep(0.02)
        raise Failed(f"{role} {number} does not run\n{self.tail()}")

    def children(self, role):
        """Returns the process ids of this run's servers or workers ('leeway-worker'), not necessarily in the order of
        ranks."""
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
    """Returns {name: list of floats}, by the format's definition."""
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


def without_update(job, folder):
    """Makes a copy for an elastic exchange, which brings its own server rule."""
    copy = pathlib.Path(folder) / f"elastic-{job.name}"
    copy.write_text(re.sub(r"^update:\n(  .*\n)+", "", job.read_text(), flags=re.MULTILINE))
    return copy


def check(condition, text):
    if not condition:
        raise Failed(text)
    print(text)


def shows(compare, attempts=3):
    """Runs `compare`, which checks a ratio of two rates, until it holds. Other work on the machine can spoil such a
    ratio in one run, but not in all `attempts`."""
    for attempt in range(attempts):
        try:
            return compare()
        except Failed as failure:
            if attempt == attempts - 1:
                raise
            print(f"not in attempt {attempt + 1}: {failure}", flush=True)


def ends_with(test):
    """Ends the program with what `test()` returns, an exit code or nothing. Its findings are printed."""
    try:
        sys.exit(test())
    except Failed as failure:
        print(f"FAILED: {failure}")
        sys.exit(1)


def main(cases, **with_options):
    """Runs the case named on the command line. One of `with_options` gets the other words there."""
    name = sys.argv[1]
    own_network.enter()

    def test():
        with_options[name](sys.argv[2:]) if name in with_options else cases[name]()
    ends_with(test)
