#!/usr/bin/env python3
"""Power cuts: the run folder is on a loop-mounted ext4. While checkpoints are being written it is shut down without
flushing its journal, and all processes die with it. After the mount's recovery the newest complete checkpoint is at
least the newest one that was announced, and it loads. The job that goes on from it ends with the bits of an undisturbed
one.

    tests/chaos/power_cut.py CASE                 as ctest runs them; as root
"""

import fcntl
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "training"))
import references  # noqa: E402
import runs  # noqa: E402

# _IOR('X', 125, __u32), and its flag EXT4_GOING_FLAGS_NOLOGFLUSH: as if the power were gone.
EXT4_IOC_SHUTDOWN = (2 << 30) | (4 << 16) | (ord("X") << 8) | 125
NO_LOG_FLUSH = 2
DISK_BYTES = 192 << 20
# 140,000 parameters with momentum: a checkpoint is written in some milliseconds, so there are many.
SETS = ["servers.count=2", "workers.count=2", "checkpoint={every: {clocks: 20}}",
        "update={type: sgd, learning_rate: 0.02, momentum: 0.9}", "consistency={mode: sync}", "evaluation={}",
        "model.layers=[{flatten: {}}, {dense: {units: 1800}}, {relu: {}}, {dropout: {rate: 0.2}}, "
        "{dense: {units: 10}}]"]
# The job until the power is cut, which is rarely at a clock beyond CLOCKS.
SLOWLY, ENDLESS = "workers.emulate={step_milliseconds: 3}", "stop={epochs: 3000}"
CLOCKS = 600
NO_FSYNC = runs.BIN / "libleeway_no_fsync.so"


class Disk:
    """A file with an ext4 of its own. A context: it is unmounted and removed afterwards."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="leeway-disk-"))
        self.image, self.path = self.folder / "image", self.folder / "mounted"

    def skip(self, why):
        print(f"SKIPPED: {why}")
        sys.exit(runs.SKIPPED)

    def __enter__(self):
        if os.geteuid() != 0:
            self.skip("mounting a file system needs root")
        self.path.mkdir()
        with open(self.image, "wb") as file:
            file.truncate(DISK_BYTES)
        made = subprocess.run(["mkfs.ext4", "-q", self.image], check=False)
        if made.returncode != 0 or not self.mount():
            self.skip("no ext4 can be made and mounted here")
        return self

    def mount(self):
        return subprocess.run(["mount", "-o", "loop", self.image, self.path], check=False).returncode == 0

    def cut(self):
        folder = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        except OSError as error:
            self.skip(f"this kernel does not shut an ext4 down: {error}")
        finally:
            os.close(folder)

    def remount(self):
        subprocess.run(["umount", self.path], check=True)
        runs.check(self.mount(), "  the file system is mounted again")

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.path], check=False, stderr=subprocess.DEVNULL)
        for file in (self.image, self.path):
            file.unlink() if file.is_file() else file.rmdir()
        self.folder.rmdir()


def clocks_below(run):
    """Returns {clock: has a manifest} of the checkpoint folders."""
    found = {}
    for folder in (run.dir / "checkpoints").glob("clock-*"):
        if clock := re.fullmatch(r"clock-(\d+)", folder.name):
            found[int(clock.group(1))] = (folder / "MANIFEST.json").exists()
    return found


def being_written(run):
    return not all(clocks_below(run).values())


def announced(run):
    return max((e["clock"] for e in run.events("checkpoint")), default=0)


def job(disk, name):
    run = runs.Run("quickstart.yaml", SETS, runs.data_with("optdigits/optdigits.tra"), name)
    run.dir = disk.path / name
    return run


def cut_off(disk, seed):
    """Runs a job until the power cut. Returns the newest checkpoint that was announced before."""
    draw = random.Random(seed)
    run = job(disk, f"run-{seed}")
    run.start(more=[SLOWLY, ENDLESS])
    at = draw.randrange(20, 500)
    run.wait_for(lambda r: announced(r) >= at)
    if draw.random() < 0.7:
        run.wait_for(being_written)
    time.sleep(0.004 * draw.random())
    told = announced(run)
    disk.cut()
    newest = max(clocks_below(run), default=0)
    # As with a power cut, no process can do anything more.
    run.kill()
    print(f"  seed {seed}: cut when clock {told} had been announced, newest folder {newest}", flush=True)
    return run, told


def newest_complete(run):
    """Returns the newest complete checkpoint as `leeway export`, which verifies it, finds it."""
    out = run.parent / "exported"
    done = subprocess.run([str(runs.BIN / "leeway"), "export", str(run.dir), "-o", str(out)], check=False,
                          capture_output=True, text=True)
    found = re.search(r"clock-(\d+)", done.stdout)
    if done.returncode != 0 or not found:
        raise runs.Failed(f"no checkpoint: {done.stdout}{done.stderr}")
    return int(found.group(1))


def undisturbed(clocks):
    """Returns the digest of an undisturbed job's weights."""
    sets = [*SETS, f"stop={{clocks: {clocks}}}"]
    return references.undisturbed("quickstart.yaml", sets, runs.data_with("optdigits/optdigits.tra"))["weights_sha256"]


def cuts(*seeds):
    with Disk() as disk:
        for seed in seeds:
            run, told = cut_off(disk, seed)
            disk.remount()
            run.power_was_cut()
            newest = newest_complete(run)
            runs.check(newest >= told, f"  announced {told}, there is {newest}")
            clocks = max(CLOCKS, newest + 20)
            summary = run.train(resume=True, more=[f"stop={{clocks: {clocks}}}"])
            wanted = undisturbed(clocks)
            runs.check(summary["weights_sha256"] == wanted, f"  the same bits as undisturbed ({wanted[:16]})")
            run.clean()
            subprocess.run(["rm", "-rf", str(run.dir)], check=True)


def without_fsync():
    """A deliberate fault: programs that make nothing durable. The test must find that announced checkpoints are
    missing."""
    with Disk() as disk:
        # Set in the environment, because the launcher hands it on to the servers. It is set for them alone: umount,
        # mount and the export afterwards must not skip their own fsync, even when the run fails.
        os.environ["LD_PRELOAD"] = runs.preloadable(NO_FSYNC)
        try:
            run, told = cut_off(disk, 1)
        finally:
            del os.environ["LD_PRELOAD"]
        disk.remount()
        try:
            newest = newest_complete(run)
        except runs.Failed as failure:
            print(f"  {failure}")
            newest = 0
        runs.check(newest < told, f"without fsync {told} was announced and {newest} is there: it is found")
        run.clean()


CASES = {"resumed": lambda: cuts(1, 2, 3, 4, 5), "without-fsync": without_fsync}


def alone():
    """Continues in a mount namespace of its own: a process that copied the mount would keep the dead file system
    alive."""
    if os.geteuid() == 0 and "LEEWAY_OWN_MOUNTS" not in os.environ:
        os.environ["LEEWAY_OWN_MOUNTS"] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])


if __name__ == "__main__":
    alone()
    runs.main(CASES)
