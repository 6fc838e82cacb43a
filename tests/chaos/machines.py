#!/usr/bin/env python3
"""Machines and file systems that lack a system call or are short of a resource. The job still trains and says what is
missing, or it ends within a minute with an error that names the cause.

    tests/chaos/machines.py CASE                  as ctest runs them
"""

import contextlib
import ctypes
import errno
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time

from cluster import runs

import control_group  # a module beside runs

LEEWAY = str(runs.BIN / "leeway")
ODD_CALLS = runs.BIN / "libleeway_odd_calls.so"
CIFS, EXT4 = 0xFF534D42, 0xEF53
NOBODY = 65534


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(runs.SKIPPED)


def train(folder, *sets, before=None, within=(), environment=None, stdout=subprocess.PIPE, cwd=None, **odd):
    """Returns (exit code, output and logs) of a short job with cuts, which must end within a minute."""
    run_dir = folder.dir
    command = [*within, LEEWAY, "train", str(runs.JOBS / "quickstart.yaml"), "--data", str(runs.SOURCE / "data"), "--run-dir",
               str(run_dir), "--set", "stop.epochs=1", "--set", "checkpoint.every.clocks=20", *sets]
    places = {f"LEEWAY_ODD_{name.upper()}": str(value) for name, value in odd.items()}
    if odd:
        places["LD_PRELOAD"] = runs.preloadable(ODD_CALLS)
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120, check=False, cwd=cwd,
                          preexec_fn=before, env={**(os.environ if environment is None else environment), **places})
    logs = "".join(path.read_text(errors="replace") for path in sorted(run_dir.glob("**/*.log")))
    return done.returncode, (done.stdout or "") + done.stderr + logs


def trains(what, *sets, words=(), **machine):
    folder = runs.RunFolder()
    code, said = train(folder, *sets, **machine)
    missing = [word for word in words if word not in said]
    trained = code == 0 and (folder.dir / "model.safetensors").exists()
    runs.check(trained and not missing, f"{what}: trains{', and says so' if words else ''}" if trained and not missing
               else f"{what}: exit code {code}, not said: {missing}\n{said[-2000:]}")
    folder.clean()


def refuses(what, words, code=runs.TEMPORARY, **machine):
    folder = runs.RunFolder()
    ended, said = train(folder, **machine)
    missing = [word for word in words if word not in said]
    runs.check(ended == code and not missing, f"{what}: {said.strip().splitlines()[0]}" if ended == code and not missing
               else f"{what}: exit code {ended}, not said: {missing}\n{said[-2000:]}")
    folder.clean()


def folder_sync():
    """fsync of a folder fails: with EINVAL on any file system, or with EIO although the disk is healthy."""
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
    """A process that may write into a folder may be unable to read it."""
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


# ---- a resource is short

@contextlib.contextmanager
def process_group(most):
    """Returns the command that puts a process into a control group of at most this number of processes."""
    with control_group.group_of("processes", most) as folder:
        if folder is None:
            skip("no control group can be made that bounds processes")
        yield lambda: control_group.enter(folder)


def limited(kind, most):
    return lambda: resource.setrlimit(kind, (most, most))


def few_processes():
    for most in (20, 40):
        with process_group(most) as enter:
            refuses(f"{most} processes and threads", ["the job does not fit here", f"pids.max is {most}"], before=enter)
    with process_group(200) as enter:
        trains("200 processes and threads", before=enter)


def few_files():
    refuses("24 open files", ["the limit of open files (ulimit -n) is 24"], before=limited(resource.RLIMIT_NOFILE, 24))
    trains("64 open files", before=limited(resource.RLIMIT_NOFILE, 64))


def little_address_space():
    for megabytes in (98, 150, 200, 293):
        refuses(f"{megabytes} MB of address space", ["leeway: ", f"ulimit -v is {megabytes << 10}"],
                before=limited(resource.RLIMIT_AS, megabytes << 20))
    trains("1 GB of address space", before=limited(resource.RLIMIT_AS, 1 << 30))


def by_hand_with_little():
    """A server and a worker that are started by hand report it, too."""
    folder = runs.RunFolder()
    server = [str(runs.BIN / "leeway-server"), "--job", str(runs.JOBS / "quickstart.yaml"), "--run-dir", str(folder.dir)]
    worker = [str(runs.BIN / "leeway-worker"), "--coordinator", "127.0.0.1:1", "--rank", "0"]
    for command in (server, worker):
        for before, words in ((limited(resource.RLIMIT_NOFILE, 12), "ulimit -n) is 12"),
                              (limited(resource.RLIMIT_AS, 150 << 20), f"ulimit -v is {150 << 10}")):
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, preexec_fn=before)
            runs.check(done.returncode == runs.TEMPORARY and words in done.stderr,
                       f"{os.path.basename(command[0])}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    folder.clean()


# ---- something is missing

def refuse_call(number, error):
    """Makes the kernel refuse a system call from now on, as a container's filter does."""
    def before():
        libc = ctypes.CDLL(None, use_errno=True)
        load, equals, answer = 0x20, 0x15, 0x06
        program = b"".join(struct.pack("HBBI", *line) for line in (
            (load, 0, 0, 0), (equals, 0, 1, number), (answer, 0, 0, 0x50000 | error), (answer, 0, 0, 0x7fff0000)))
        lines = ctypes.create_string_buffer(program)
        head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(lines)))
        no_new_privileges, set_filter = 38, 22
        if libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0 or libc.prctl(set_filter, 2, head, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "seccomp")
    return before


def no_pidfd():
    for error in (errno.EPERM, errno.ENOSYS):
        trains(f"pidfd_open: {errno.errorcode[error]}", words=["pidfd_open: ", "a thread waits for each process"],
               before=refuse_call(434, error))


def no_ipv4():
    if os.geteuid() != 0:
        skip("needs root, to make a network")
    network = ["unshare", "-n", "sh", "-c", 'ip link set lo up && ip addr del 127.0.0.1/8 dev lo && exec "$@"', "sh"]
    if subprocess.run([*network, "true"], capture_output=True, check=False).returncode != 0:
        skip("no network without IPv4 can be made")
    trains("a machine without IPv4", words=["coordinator at [::1]:"], within=network)


def bare():
    """Runs without HOME and a terminal's language, and without standard input, output or error."""
    trains("no HOME, no locale", environment={"PATH": os.environ["PATH"]})
    trains("a locale with decimal commas", environment={**os.environ, "LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR.UTF-8"})
    for closed in ("0<&-", "2>&-", "0<&- 2>&-"):
        trains(f"started with {closed}", within=["sh", "-c", f'exec "$@" {closed}', "sh"])


def closed():
    """Without a standard output a job ends with its own code, and so do the programs by hand, whose sockets and files
    have other numbers."""
    for none in ("1>&-", "0<&- 1>&- 2>&-"):
        trains(f"started with {none}", within=["sh", "-c", f'exec "$@" {none}', "sh"])
    folder = runs.RunFolder()
    folder.parent.mkdir(exist_ok=True)
    command = [runs.BIN / "leeway-server", "--job", runs.JOBS / "quickstart.yaml", "--run-dir", folder.dir, "--listen",
               "127.0.0.1:0", "--log-file", folder.parent / "log"]
    server = subprocess.Popen(["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh", *command])
    try:
        wait_until(lambda: (folder.parent / "log").exists() and "listening on" in (folder.parent / "log").read_text())
        places = [os.readlink(f"/proc/{server.pid}/fd/{number}") for number in range(3)]
        runs.check(places == ["/dev/null"] * 3, f"a server's standard files are {places}")
    finally:
        server.kill()
        server.wait()
    folder.clean()


def no_loopback():
    """Where nothing reaches this machine's own address it is said at the start, and nothing waits."""
    if os.geteuid() != 0:
        skip("needs root, to make a network")
    network = ["unshare", "-n"]
    if subprocess.run([*network, "true"], capture_output=True, check=False).returncode != 0:
        skip("no network can be made")
    words = ["cannot reach each other at 127.0.0.1: ", "ip link set lo up"]
    began = time.monotonic()
    refuses("leeway train", words, within=network)
    folder = runs.RunFolder()
    job = ["--job", str(runs.JOBS / "quickstart.yaml"), "--run-dir", str(folder.dir)]
    for name, *arguments in (("leeway-server", *job), ("leeway-server", *job, "--listen", "localhost:7100"),
                             ("leeway-server", "--index", "1", "--coordinator", "127.0.0.1:7100"),
                             ("leeway-worker", "--coordinator", "127.0.0.1:7100", "--rank", "0")):
        done = subprocess.run([*network, str(runs.BIN / name), *arguments], capture_output=True, text=True, timeout=60,
                              check=False)
        named = "cannot reach each other at " in done.stderr and words[1] in done.stderr
        runs.check(done.returncode == runs.TEMPORARY and named, f"{name}: exit code {done.returncode}: {done.stderr.strip()}")
    runs.check(time.monotonic() - began < 30, "each at once")
    folder.clean()


def wait_until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise runs.Failed(f"waited {seconds} s in vain")
        time.sleep(0.02)


def keys_on_disk():
    """Where no memory takes the run's keys they lie on a disk: said, private, and gone after any end."""
    if os.geteuid() != 0:
        skip("needs root, to make a machine without /dev/shm")
    on_memory = subprocess.run(["stat", "-f", "-c", "%T", tempfile.gettempdir()], capture_output=True, text=True, check=True)
    if on_memory.stdout.strip() in ("tmpfs", "ramfs"):
        skip("temporary files lie in memory here")
    for shm in ("mount -t tmpfs -o ro none /dev/shm", "mount -t tmpfs -o nr_inodes=1 none /dev/shm",
                "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/urandom c 1 9"):
        with tempfile.TemporaryDirectory() as place:
            within = ["unshare", "-m", "sh", "-c", f'{shm} && umask 0277 && exec "$@"', "sh"]
            trains(shm.split(" &&")[0], "--tls", "mtls", words=["keys of this run are on disk, in " + place],
                   within=within, environment={**os.environ, "TMPDIR": place})
            runs.check(not os.listdir(place), "nothing is left of them")
    with tempfile.TemporaryDirectory() as place:
        folder = runs.RunFolder()
        command = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o ro none /dev/shm && exec "$@"', "sh", LEEWAY, "train",
                   str(runs.JOBS / "quickstart.yaml"), "--data", str(runs.SOURCE / "data"), "--run-dir", str(folder.dir),
                   "--set", "stop.epochs=9999", "--tls", "mtls"]
        launcher = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": place})
        try:
            wait_until(lambda: folder.events("step"))
            modes = {oct(os.stat(os.path.join(place, name)).st_mode & 0o777) for name in os.listdir(place)}
            runs.check(modes == {"0o700"}, f"only their owner enters: {modes}")
        finally:
            launcher.kill()
            launcher.wait()
        wait_until(lambda: not os.listdir(place))
        print("killed: nothing is left of them")
        folder.clean()


def deleted_folder():
    """The current folder was deleted."""
    with tempfile.TemporaryDirectory() as name:
        gone = ["sh", "-c", 'mkdir "$0/gone" && cd "$0/gone" && rmdir "$0/gone" && exec "$@"', name]
        trains("a current folder that is gone", within=gone)
        done = subprocess.run([*gone, LEEWAY, "certificates", "keys"], capture_output=True, text=True, check=False)
        runs.check(done.returncode == runs.TEMPORARY and "the current folder: No such file" in done.stderr,
                   f"certificates there: exit code {done.returncode}: {done.stderr.strip()}")


def not_utf8():
    folder = runs.RunFolder(name="run-\udce9")
    code, said = train(folder)
    runs.check(code == runs.USAGE and "run-\\xe9' is not UTF-8" in said, f"exit code {code}: {said.strip()}")
    folder.clean()


def full():
    """The output has no room, and new files have none."""
    with open("/dev/full", "w", encoding="utf-8") as nowhere:
        refuses("standard output on a full disk", ["standard output cannot be written"], stdout=nowhere)
        done = subprocess.run([LEEWAY, "version"], stdout=nowhere, stderr=subprocess.PIPE, text=True, check=False)
        runs.check(done.returncode == runs.TEMPORARY, f"leeway version: exit code {done.returncode}: {done.stderr.strip()}")
    if os.geteuid() != 0:
        skip("needs root, to make a file system with few inodes")
    for inodes in (8, 12, 16, 20):
        folder = runs.RunFolder()
        folder.parent.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"nr_inodes={inodes}", "none", folder.parent], check=True)
        try:
            # How long writing the job's record may wait for room.
            code, said = train(folder, "--set", "limits.start_seconds=10")
            whole = code == 0 and (folder.dir / "summary.json").exists() and (folder.dir / "model.safetensors").exists()
            runs.check(whole or (code != 0 and "No space left on device" in said),
                       f"{inodes} inodes: exit code {code}: {said.strip().splitlines()[-1:]}")
        finally:
            subprocess.run(["umount", folder.parent], check=True)
        folder.clean()


CASES = {"folder-sync": folder_sync, "no-locks": no_locks, "unreadable-parent": unreadable_parent,
         "few-processes": few_processes, "few-files": few_files, "little-address-space": little_address_space,
         "by-hand-with-little": by_hand_with_little, "no-pidfd": no_pidfd, "no-ipv4": no_ipv4, "bare": bare,
         "closed": closed, "no-loopback": no_loopback, "keys-on-disk": keys_on_disk,
         "deleted-folder": deleted_folder, "not-utf8": not_utf8, "full": full}

if __name__ == "__main__":
    runs.main(CASES)
