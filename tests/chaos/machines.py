#!/usr/bin/env python3
"""Machines and file systems that lack a call: a job trains without it and says so, or ends with an error that names it.

    tests/chaos/machines.py CASE                  as ctest runs them
"""

import errno
import os
import subprocess
import sys

from cluster import runs

LEEWAY = str(runs.BIN / "leeway")
ODD_CALLS = runs.BIN / "libleeway_odd_calls.so"
CIFS, EXT4 = 0xFF534D42, 0xEF53
NOBODY = 65534


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(runs.SKIPPED)


def train(folder, *sets, before=None, **odd):
    """(exit code, what was said and logged) of a short job with cuts."""
    run_dir = folder.dir
    command = [LEEWAY, "train", str(runs.JOBS / "quickstart.yaml"), "--data", str(runs.SOURCE / "data"), "--run-dir",
               str(run_dir), "--set", "stop.epochs=1", "--set", "checkpoint.every.clocks=20", *sets]
    places = {f"LEEWAY_ODD_{name.upper()}": str(value) for name, value in odd.items()}
    if odd:
        places["LD_PRELOAD"] = runs.preloadable(ODD_CALLS)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, preexec_fn=before,
                          env={**os.environ, **places})
    logs = "".join(path.read_text(errors="replace") for path in sorted(run_dir.glob("logs/*")))
    return done.returncode, done.stdout + done.stderr + logs


def folder_sync():
    """fsync of a folder: EINVAL anywhere, EIO where no disk is at fault."""
    for error, kind in ((errno.EINVAL, EXT4), (errno.EOPNOTSUPP, EXT4), (errno.EIO, CIFS)):
        folder = runs.RunFolder()
        code, said = train(folder, sync=error, type=kind)
        runs.check(code == 0 and (folder.dir / "model.safetensors").exists(), f"{errno.errorcode[error]}: exit code {code}")
        runs.check("fsync of folder" in said and "power cut" in said, "it is said")
        folder.clean()
    folder = runs.RunFolder()
    code, said = train(folder, sync=errno.EIO, type=EXT4)
    runs.check(code != 0 and "syncing folder" in said and "Input/output error" in said, f"EIO of a disk: exit code {code}")
    folder.clean()


def no_locks():
    folder = runs.RunFolder()
    code, said = train(folder, lock=errno.ENOLCK)
    runs.check(code == 0 and "flock of" in said and "No locks available" in said, f"ENOLCK: exit code {code}")
    folder.clean()
    folder = runs.RunFolder()
    code, said = train(folder, lock=errno.EBADF)
    runs.check(code != 0 and "flock of" in said and "another launcher" not in said, f"EBADF is named: exit code {code}")
    folder.clean()


def unreadable_parent():
    """Who may write into a folder need not be able to read it."""
    folder = runs.RunFolder()
    if os.geteuid() != 0:
        skip("needs root, to become a user who cannot read a folder")

    def leave_root():
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    reachable = subprocess.run([LEEWAY, "version"], capture_output=True, check=False, preexec_fn=leave_root)
    if reachable.returncode != 0:
        skip("the clone lies where other users cannot read it")
    folder.parent.chmod(0o733)
    code, said = train(folder, before=leave_root)
    runs.check(code == 0 and (folder.dir / "model.safetensors").exists(), f"exit code {code}: {said[-300:]}")
    folder.clean()


CASES = {"folder-sync": folder_sync, "no-locks": no_locks, "unreadable-parent": unreadable_parent}

if __name__ == "__main__":
    runs.main(CASES)
