"""Control groups of the system, version 1 or 2."""

import contextlib
import os
import pathlib
import time

# {resource: [(where a group is made, the file of its limit)]}.
PLACES = {
    "processes": [("/sys/fs/cgroup/pids", "pids.max"), ("/sys/fs/cgroup", "pids.max")],
    "memory": [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")],
}


def made(what, most):
    """Returns the folder of a new group with this limit; None: the system permits no group."""
    for place, limit in PLACES[what]:
        folder = pathlib.Path(place, f"leeway-test-{os.getpid()}")
        try:
            folder.mkdir()
            (folder / limit).write_text(str(most))
            return folder
        except OSError:
            with contextlib.suppress(OSError):
                folder.rmdir()
    return None


@contextlib.contextmanager
def group_of(what, most):
    """Yields the folder of a group, or None. Afterwards waits until its processes have ended."""
    folder = made(what, most)
    try:
        yield folder
    finally:
        if folder:
            deadline = time.monotonic() + 20
            while (folder / "cgroup.procs").read_text() and time.monotonic() < deadline:
                time.sleep(0.01)
            folder.rmdir()


def enter(folder):
    """Moves this process into the group; the processes that it starts begin there."""
    (folder / "cgroup.procs").write_text(str(os.getpid()))


@contextlib.contextmanager
def inside(folder):
    """Processes that are started within this context begin in the group."""
    enter(folder)
    try:
        yield
    finally:
        enter(folder.parent)


def kills_for_memory(folder):
    """Returns how many processes of the group the system has killed for memory."""
    told = next(path for path in (folder / "memory.oom_control", folder / "memory.events") if path.exists())
    words = dict(line.split() for line in told.read_text().splitlines())
    return int(words["oom_kill"])
