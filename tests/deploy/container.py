#!/usr/bin/python3
"""Runs one container of a fake pod: in the pod's network namespace, as process 1 of its own PID namespace, and as the
pod's user without privileges. Its file system has what the image and the pod's volumes have, and is otherwise
read-only.

    container.py SPECIFICATION                    JSON, of kubelet.py; the first line out is the process's number
"""

import ctypes
import json
import os
import pathlib
import signal
import sys

NEWNS, NEWUTS, NEWIPC, NEWPID = 0x00020000, 0x04000000, 0x08000000, 0x20000000
RDONLY, NOSUID, NODEV, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
SET_PDEATHSIG, SET_NO_NEW_PRIVS = 1, 38
DEVICES = ("null", "zero", "random", "urandom", "full")
# The size that a cluster gives a container's /dev/shm.
SHARED_MEMORY = "size=64m,mode=1777"

libc = ctypes.CDLL(None, use_errno=True)


def must(result, what):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source, target, kind=None, flags=0, data=None):
    encode = lambda text: None if text is None else str(text).encode()
    must(libc.mount(encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), encode(data)),
         f"mounting {source} on {target}")


def bind(source, target, writable=False):
    source, target = pathlib.Path(source), pathlib.Path(target)
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount(source, target, flags=BIND | REC)
    if not writable:
        mount(None, target, flags=BIND | REMOUNT | RDONLY | NOSUID)


def build(root, spec):
    """Builds the image (libraries, programs and samples), and then what kubelet mounts."""
    mount("none", root, "tmpfs", NOSUID, "mode=755")
    for name in ("lib", "lib32", "lib64"):
        if os.path.islink(f"/{name}"):
            os.symlink(os.readlink(f"/{name}"), root / name)
        elif os.path.isdir(f"/{name}"):
            bind(f"/{name}", root / name)
        if os.path.isdir(f"/usr/{name}"):
            bind(f"/usr/{name}", root / "usr" / name)
    for source, target in spec["image"]:
        bind(source, root / target.lstrip("/"))
    for name in DEVICES:
        bind(f"/dev/{name}", root / "dev" / name, writable=True)
    for name in ("proc", "dev/shm", "tmp"):
        (root / name).mkdir(exist_ok=True)
    mount("proc", root / "proc", "proc", NOSUID | NODEV)
    mount("shm", root / "dev/shm", "tmpfs", NOSUID | NODEV, SHARED_MEMORY)
    for volume in spec["mounts"]:
        bind(volume["source"], root / volume["target"].lstrip("/"), not volume["readOnly"])
    mount(None, root, flags=REMOUNT | RDONLY | NOSUID)


def become(spec):
    os.setgroups([spec["fsGroup"]])
    os.setgid(spec["group"])
    os.setuid(spec["user"])
    must(libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")


def begin(spec):
    """Runs in the child, which is process 1 of its namespace."""
    must(libc.prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "ending with the parent")
    os.setsid()
    must(libc.sethostname(spec["hostname"].encode(), len(spec["hostname"])), "the host name")
    mount(None, "/", flags=REC | PRIVATE)
    # Only this mount namespace sees these mounts.
    root = pathlib.Path(spec["root"])
    build(root, spec)
    os.chroot(root)
    os.chdir(spec["folder"])
    become(spec)
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    # The program does not inherit it.
    os.dup2(os.dup(1), 100, inheritable=False)
    os.dup2(2, 1)
    os.execvpe(spec["command"][0], spec["command"], spec["environment"])


def main():
    spec = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    must(libc.prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "ending with the parent")
    with open(f"/run/netns/{spec['namespace']}", "rb") as namespace:
        must(libc.setns(namespace.fileno(), 0), "entering the network namespace")
    must(libc.unshare(NEWNS | NEWUTS | NEWIPC | NEWPID), "unshare")
    child = os.fork()
    if child == 0:
        try:
            begin(spec)
        except OSError as error:
            print(f"the container cannot be made: {error}", file=sys.stderr, flush=True)
        os._exit(128)
    print(child, flush=True)
    # The child's copy closes when the child becomes the program, so the reader knows that moment.
    os.close(1)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    # The exit code as a container runtime reports it.
    sys.exit(128 - code if code < 0 else code)


if __name__ == "__main__":
    main()
