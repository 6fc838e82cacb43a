#!/usr/bin/python3
"""The results of undisturbed jobs. Most tests of trouble compare with one, and many with the same one: it is trained
once, and its summary is kept in the build folder as long as the programs are the same. In sync mode that is safe,
because the same job has the same bits each time (tests/training/identity.py).

    references.py self-test      that a value is made once for all who ask at once, and anew for other programs
"""

import fcntl
import hashlib
import json
import multiprocessing
import os
import pathlib
import re
import shutil
import tempfile

import runs

PROGRAMS = ("leeway", "leeway-server", "leeway-worker")
# These settings change how long a job takes and what it survives, but no bit of a sync job. (servers.shards is not
# among them: it cuts a small model finer, which changes what codecs round.)
CHANGES_NOTHING = re.compile(r"servers\.replicas=|limits\.|workers\.emulate=|checkpoint[.=]")


def digest_of(*parts):
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def state_of(path):
    """The state is different after each change of the file."""
    if not path.exists():
        return None
    state = path.stat()
    return [state.st_size, state.st_mtime_ns]


def place(programs):
    """Returns the folder of these programs' results, and removes the folders of programs that are gone."""
    parent = programs.parent / "references"
    folder = parent / digest_of(str(programs), [state_of(programs / name) for name in PROGRAMS])
    with open(programs.parent / "references.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(parent, ignore_errors=True)
            folder.mkdir(parents=True)
    return folder


def kept(key, make, programs=runs.BIN):
    """Returns what make() returns, a JSON value. Of all tests that want it, even at the same time, only the first one
    makes it."""
    folder = place(programs)
    path = folder / f"{key}.json"
    with open(folder / f"{key}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            # The file is whole or absent, even if the test is killed meanwhile.
            fresh = folder / f"{key}.{os.getpid()}"
            fresh.write_text(json.dumps(make()), encoding="utf-8")
            fresh.rename(path)
        return json.loads(path.read_text(encoding="utf-8"))


def files_of(words, data):
    """Returns the states of the data files that the words name."""
    names = sorted({name for word in words for name in re.findall(r"[\w./-]+", word) if (data / name).is_file()})
    return [[name, state_of(data / name)] for name in names]


def undisturbed(job, sets, data, learns=True, programs=runs.BIN):
    """Returns the summary of `leeway train` with this job. Its bits mean something only if it is a sync job."""
    sets = [one for one in sets if not CHANGES_NOTHING.match(one)]
    text = (runs.JOBS / job if isinstance(job, str) else job).read_text(encoding="utf-8")

    def train():
        run = runs.Run(job, sets, data, "undisturbed", programs=programs)
        run.learns = learns
        summary = run.train()
        run.clean()
        return summary
    return kept(digest_of(text, sets, files_of([text, *sets], pathlib.Path(data))), train, programs)


def round_up(clocks, step=200):
    """Rounds up to the clock at which a disturbed job ends, so that others of its kind end there, too."""
    return -(-clocks // step) * step


# ---- self-test

def ask(folder, key, value):
    """Makes the value, and records that in a file of its own."""
    def make():
        with tempfile.NamedTemporaryFile(dir=folder / "made", delete=False):
            return value
    return kept(key, make, folder / "bin")


def self_test():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "made").mkdir()
        (folder / "bin").mkdir()
        made = lambda: len(list((folder / "made").iterdir()))
        (folder / "bin/leeway").write_text("one")
        askers = [multiprocessing.Process(target=ask, args=(folder, "a", 1)) for _ in range(8)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        runs.check([asker.exitcode for asker in askers] == [0] * 8 and made() == 1, "eight ask at once: it is made once")
        runs.check(ask(folder, "a", 2) == 1 and ask(folder, "b", 3) == 3 and made() == 2, "another key is another value")
        (folder / "bin/leeway").write_text("two!")
        runs.check(ask(folder, "a", 4) == 4 and made() == 3, "other programs: it is made anew")
        left = list((folder / "references").iterdir())
        runs.check(len(left) == 1, f"what the old ones made is gone: {left}")
        sets = ["servers.replicas=2", "update={type: sgd}", "servers.shards=12", "limits.lease_seconds=1", "checkpoint={every: {clocks: 1}}"]
        runs.check([s for s in sets if not CHANGES_NOTHING.match(s)] == sets[1:3], "what changes no bit is left out")
        runs.check([round_up(n) for n in (1, 200, 201)] == [200, 200, 400], "ends are rounded up")


if __name__ == "__main__":
    runs.main({"self-test": self_test})
