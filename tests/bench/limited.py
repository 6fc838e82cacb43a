"""What a measurement on a borrowed machine needs: a budget of time, programs that end within it, and a journal that
survives when the machine is taken away. Used by scripts/gpu-check and peers/gpu_speed.py."""

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
# The exit codes of a script, except 0: something failed, or nothing failed but something could not run.
EXIT_FAILED, EXIT_NOT_RUN = 1, 77
# How long a process that is asked to end may take before it is killed.
GRACE_SECONDS = 2

# A `code` of None: the program did not end in time. `text` is all that it printed.
Ended = collections.namedtuple("Ended", "code text seconds")


class CutOff(BaseException):
    """The script was asked to end, which is not a failure."""


class CutOffs:
    """Turns the signals that ask to end into CutOff. They wait while a program is started or ended, so that no program
    is left behind."""

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
    """A budget of seconds, by the given clock. A share is taken of what is left, so that an early end leaves more to
    the rest."""

    def __init__(self, seconds, clock=time.monotonic):
        self.clock = clock
        self.end = clock() + seconds

    def left(self):
        return max(self.end - self.clock(), 0.0)

    def share(self, fraction, at_least=0.0):
        """A fraction of what is left, but at least at_least; 0 if even that is more than what is left."""
        left = self.left()
        return min(max(left * fraction, at_least), left) if left >= at_least else 0.0

    def part(self, fraction):
        """The budget of a part, which ends with its share."""
        return Budget(self.share(fraction), self.clock)


class Journal:
    """Writes one JSON object a line, to the disk before the next part begins. Without a path it only remembers them."""

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
    """Workers look for CUDA's libraries in the environment of the activated Python. This Python may not be
    activated."""
    if sys.prefix != sys.base_prefix:
        os.environ.setdefault("VIRTUAL_ENV", sys.prefix)


def exit_code(states):
    states = list(states)
    if FAILED in states:
        return EXIT_FAILED
    return EXIT_NOT_RUN if NOT_RUN in states or not states else 0


def state_of(code):
    """Returns the state of a part that was run by another script."""
    return {0: PASSED, EXIT_NOT_RUN: NOT_RUN}.get(code, FAILED)


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"


def end_group(process, grace=GRACE_SECONDS):
    """Ends a program and everything that it started."""
    for signal_number in [signal.SIGTERM, signal.SIGKILL]:
        try:
            os.killpg(process.pid, signal_number)
            process.wait(timeout=grace)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


@contextlib.contextmanager
def started(command, log, env=None, grace=GRACE_SECONDS):
    """Starts a program that prints into the file log. At the end of the block the program and everything that it
    started are ended."""
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
    """Returns the process's exit code; None if it did not end in time."""
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None


def run(command, log, seconds, env=None, grace=GRACE_SECONDS):
    """Runs a program to its end. A program that does not start has code 127, as in a shell."""
    began = time.monotonic()
    log = pathlib.Path(log)
    try:
        with started(command, log, env, grace) as process:
            code = code_within(process, seconds)
    except OSError as error:
        log.write_text(f"{error}\n")
        code = 127
    return Ended(code, log.read_text(errors="replace"), time.monotonic() - began)
