#!/usr/bin/env python3
"""A stranger begins calls and breaks each one off at once (HTTP/2 rapid reset). Measures how much memory that costs
server 0, and how long another client then waits for an answer. Uses loopback, and is bounded in calls and time.

    tests/bench/rapid_reset.py [--calls 200000] [--connections 20] [--keep]
"""

import argparse
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("LEEWAY_BIN", SOURCE / "build/release/bin"))
SECONDS = 10  # at most, for each connection
RESIDENT_MIB = 1024


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    return bytes([0, len(name)]) + name + bytes([len(value)]) + value


HEAD = b"".join(literal(*pair) for pair in (
    (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/leeway.v1.Coordinator/GetJobStatus"),
    (b":authority", b"x"), (b"te", b"trailers"), (b"content-type", b"application/grpc")))


def calls_from(first, count, keep):
    return b"".join(frame(1, 4, stream, HEAD) + (b"" if keep else frame(3, 0, stream, struct.pack(">I", 8)))
                    for stream in range(2 * first + 1, 2 * (first + count) + 1, 2))


def flood(address, most, keep):
    """Returns how many calls were begun before the connection was ended, at most `most`."""
    with socket.create_connection(address) as peer:
        peer.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b""))
        peer.settimeout(0.01)
        until = time.monotonic() + SECONDS
        for begun in range(0, most, 500):
            try:
                peer.settimeout(SECONDS)
                peer.sendall(calls_from(begun, 500, keep))
                peer.setblocking(False)
                if not peer.recv(1 << 20):
                    return begun
            except BlockingIOError:
                pass
            except OSError:
                return begun
            if time.monotonic() > until:
                return begun
    return most


def resident(pid):
    """Returns the process's resident MiB: the current and the highest value."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return [int(line.split()[1]) >> 10 for name in ("VmRSS", "VmHWM") for line in lines if line.startswith(name)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=200_000, help="on a connection")
    parser.add_argument("--connections", type=int, default=20, help="one after the other")
    parser.add_argument("--keep", action="store_true", help="do not break the calls off")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="leeway-reset-") as folder:
        read, write = os.pipe()
        server = subprocess.Popen(
            [str(BIN / "leeway-server"), "--index", "0", "--listen", "127.0.0.1:0", "--ready-fd", str(write), "--job",
             str(SOURCE / "config/jobs/quickstart.yaml"), "--run-dir", folder + "/run", "--log-file", folder + "/log"],
            pass_fds=[write])
        os.close(write)
        try:
            with os.fdopen(read) as ready:
                host, port = ready.readline().strip().rsplit(":", 1)
            before = resident(server.pid)[0]
            most = max(flood((host, int(port)), options.calls, options.keep) for _ in range(options.connections))
            began = time.monotonic()
            subprocess.run([str(BIN / "leeway"), "status", f"{host}:{port}"], stdout=subprocess.DEVNULL, check=False,
                           timeout=60)
            waited = time.monotonic() - began
            after, peak = resident(server.pid)
        finally:
            server.kill()
            server.wait()
    print(f"{options.connections} connections, {most} calls at most on one; resident {before} MiB before, {peak} at most, "
          f"{after} after; `leeway status` then took {waited:.2f} s")
    return 0 if peak <= RESIDENT_MIB else 1


if __name__ == "__main__":
    sys.exit(main())
