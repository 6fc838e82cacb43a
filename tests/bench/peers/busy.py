"""Other work on the machine: processes that compute until the comparison is over."""

import contextlib
import subprocess

from commands import PYTHON

# Ends with its parent, even if the parent was killed.
SPIN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100_000))"


@contextlib.contextmanager
def busy(processes):
    running = []
    try:
        for _ in range(processes):
            running.append(subprocess.Popen([PYTHON, "-c", SPIN]))
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()
