"""Builds dmlc/ps-lite from a copy of its sources in a temporary folder, and runs one round of transfers through it."""

import contextlib
import pathlib
import re
import shutil
import subprocess
import sys
import time

from commands import ONE_THREAD, run, skip
from rendezvous import free_port

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
# Each program or header, and the package that has it.
TOOLS = {"g++": "g++", "protoc": "protobuf-compiler", "git": "git"}
HEADERS = {"zmq.h": "libzmq3-dev", "google/protobuf/message_lite.h": "libprotobuf-dev"}
# ps-lite waits without a limit. A start takes a second; none of 451 hung on a machine with other work.
HUNG_AFTER_S = 30
ATTEMPTS = 3


def missing_packages():
    def compiles(header):
        return subprocess.run(["g++", "-fsyntax-only", "-x", "c++", "-include", header, "/dev/null"],
                              capture_output=True).returncode == 0

    missing = [package for tool, package in TOOLS.items() if not shutil.which(tool)]
    return missing or [package for header, package in HEADERS.items() if not compiles(header)]


def can_be_measured(sources):
    """Whether the sources and all that they need are here; if not, prints what is missing."""
    if sources is None:
        skip("ps-lite", "no --pslite DIR, a checkout or git directory of github.com/dmlc/ps-lite")
    elif missing := missing_packages():
        skip("ps-lite", f"not installed: {' '.join(missing)}")
    else:
        return True
    return False


def architecture(programs):
    """The -march that the programs were built with: that of their build folder, else the project's default."""
    cache = programs.parent / "CMakeCache.txt"
    if cache.exists() and (set_to := re.search(r"^LEEWAY_ARCH:\w+=(\S+)$", cache.read_text(), re.M)):
        return set_to.group(1)
    return re.search(r'set\(LEEWAY_ARCH "(\S+)"', (ROOT / "cmake/LeewayBuild.cmake").read_text()).group(1)


def copy_sources(sources, folder):
    """Returns the commit, "unknown" for a folder without one."""
    if (sources / "include/ps/ps.h").exists():
        for name in ("include", "src"):
            shutil.copytree(sources / name, folder / name)
        git = sources / ".git"
    else:
        git = sources
        archive = subprocess.run(["git", f"--git-dir={git}", "archive", "HEAD", "include", "src"], capture_output=True)
        if archive.returncode != 0:
            sys.exit(f"--pslite {sources}: neither a checkout of dmlc/ps-lite nor its git directory\n"
                     f"{archive.stderr.decode()}")
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    commit = subprocess.run(["git", f"--git-dir={git}", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return commit.stdout.strip() or "unknown"


class PsLite:
    """One worker, one server and a scheduler over TCP loopback."""

    def __init__(self, sources, programs, folder):
        self.hangs = 0
        self.program = folder / "pslite_bench"
        tree = folder / "ps-lite"
        tree.mkdir()
        self.commit = copy_sources(sources, tree)
        self.march = architecture(programs)
        run(["protoc", "--cpp_out=src", "-Isrc", "src/meta.proto"], cwd=tree)
        parts = ["src/customer.cc", "src/postoffice.cc", "src/van.cc", "src/meta.pb.cc", HERE / "pslite_bench.cc"]
        # The flags of cmake/LeewayBuild.cmake, without warnings: ps-lite's code is not ours.
        run(["g++", "-std=c++20", "-O3", "-DNDEBUG", f"-march={self.march}", "-mtune=generic", "-w", "-Iinclude", "-Isrc",
             f"-I{ROOT}", *parts, "-o", self.program, "-lzmq", "-lprotobuf", "-pthread"], cwd=tree)

    def gigabytes_per_second(self, method, block_bytes, blocks, in_flight, seconds):
        """Returns the GB/s of payload, both directions added."""
        arguments = [method, block_bytes, blocks, in_flight, seconds]
        limit = HUNG_AFTER_S + 4 * seconds
        for _ in range(ATTEMPTS):
            if printed := self.attempt(arguments, limit):
                messages, took = printed.split()
                return int(messages) * block_bytes * (2 if method == "push_pull" else 1) / float(took) / 1e9
            self.hangs += 1
            print(f"  ps-lite hung for {limit:.0f} s and is started again", flush=True)
        sys.exit(f"ps-lite hung {ATTEMPTS} times: {' '.join(map(str, arguments))}")

    def attempt(self, arguments, limit):
        """Returns what the worker printed; "" if it hung before. A hang after the output does not change the
        measurement."""
        port = free_port()
        processes = {role: self.start(role, arguments, port) for role in ("worker", "server", "scheduler")}
        deadline = time.monotonic() + limit
        for process in processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, deadline - time.monotonic()))
        died = [role for role, process in processes.items() if process.poll()]
        for process in processes.values():
            process.kill()
        printed = {role: process.communicate() for role, process in processes.items()}
        for role in died:
            sys.exit(f"ps-lite's {role}: exit code {processes[role].returncode}\n{''.join(printed[role])}")
        return printed["worker"][0]

    def start(self, role, arguments, port):
        # Removes the settings of any other ps-lite job on this machine.
        own = {k: v for k, v in ONE_THREAD.items() if k != "PORT" and not k.startswith(("DMLC_", "PS_"))}
        own |= {"DMLC_ROLE": role, "DMLC_NUM_WORKER": "1", "DMLC_NUM_SERVER": "1", "DMLC_NODE_HOST": "127.0.0.1",
                "DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": str(port)}
        return subprocess.Popen([str(a) for a in (self.program, *arguments)], env=own, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
