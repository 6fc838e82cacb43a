"""What a measurement on a borrowed machine needs: a budget of time, programs that end within it, and a journal that
keeps what was measured when the machine is taken away. For scripts/gpu-check and peers/gpu_speed.py."""

import collections
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

PASSED, FAILED, NOT_RUN = "passed", "FAILED", "NOT RUN"
# What a script exits with, beside 0: something failed, or nothing failed but something could not run.
EXIT_FAILED, EXIT_NOT_RUN = 1, 77
# A process that is asked to end gets so long before it is killed.
GRACE_SECONDS = 2

# code: None if the program did not end in time. text: all that it printed.
Ended = collections.namedtuple("Ended", "code text seconds")


class CutOff(BaseException):
    """Somebody ends this script, which is nobody's failure."""


class CutOffs:
    """Turns the signals that ask to end into CutOff, but not while a program starts or is ended: none is left behind."""

    def __init__(self):
        self.held, self.pending = False, None

    def expect(self):
        for number in [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]:
            signal.signal(number, self.arrive)

    def arrive(self, number, _):
        self.pending = signal.Signals(number).name
        if not self.held:
            self.release()

    def release(self):
        self.held = False
        name, self.pending = self.pending, None
        if name:
            raise CutOff(name)


CUT_OFFS = CutOffs()


class Budget:
    """Seconds from now on; a clock gives them. A share is of what is left, so an early end leaves more to the rest."""

    def __init__(self, seconds, clock=time.monotonic):
        self.clock = clock
        self.end = clock() + seconds

    def left(self):
        return max(self.end - self.clock(), 0.0)

    def share(self, fraction, at_least=0.0):
        """A fraction of what is left, no less than at_least; 0 if not even that is left."""
        left = self.left()
        return min(max(left * fraction, at_least), left) if left >= at_least else 0.0

    def part(self, fraction):
        """The budget of a part: it ends with its share."""
        return Budget(self.share(fraction), self.clock)


class Journal:
    """One JSON object a line, on the disk before the next part begins. Without a path it only remembers."""

    def __init__(self, path=None):
        self.path = path
        self.entries = []

    def add(self, part, state, why="", seconds=0.0, **more):
        entry = {"part": part, "state": state, "why": why, "seconds": round(seconds, 2), **more}
        self.entries.append(entry)
        if self.path:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
                file.flush()
                os.fsync(file.fileno())
        return entry


def lead_to_python_libraries():
    """Workers look for CUDA's libraries in the environment of a Python that is activated. This one may not be."""
    if sys.prefix != sys.base_prefix:
        os.environ.setdefault("VIRTUAL_ENV", sys.prefix)


def exit_code(states):
    states = list(states)
    if FAILED in states:
        return EXIT_FAILED
    return EXIT_NOT_RUN if NOT_RUN in states or not states else 0


def state_of(code):
    """Of a part that a script of its own ran."""
    return {0: PASSED, EXIT_NOT_RUN: NOT_RUN}.get(code, FAILED)


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"


def end_group(process, grace=GRACE_SECONDS):
    """A program and what it started."""
    for signal_number in [signal.SIGTERM, signal.SIGKILL]:
        try:
            os.killpg(process.pid, signal_number)
            process.wait(timeout=grace)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


@contextlib.contextmanager
def started(command, log, env=None, grace=GRACE_SECONDS):
    """A program that prints into the file log. At the end of the block it is ended, with all that it started."""
    CUT_OFFS.held = True
    process = None
    try:
        with open(log, "wb") as out:
            process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT, env={**os.environ, **(env or {})}, start_new_session=True)
        CUT_OFFS.release()
        yield process
    finally:
        CUT_OFFS.held = True
        if process:
            end_group(process, grace)
        CUT_OFFS.release()


def code_within(process, seconds):
    """Its exit code; None: it did not end in time."""
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None


def run(command, log, seconds, env=None, grace=GRACE_SECONDS):
    """A program that does not start has code 127, as in a shell."""
    began = time.monotonic()
    log = pathlib.Path(log)
    try:
        with started(command, log, env, grace) as process:
            code = code_within(process, seconds)
    except OSError as error:
        log.write_text(f"{error}\n")
        code = 127
    return Ended(code, log.read_text(errors="replace"), time.monotonic() - began)
