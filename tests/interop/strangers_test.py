#!/usr/bin/python3
"""A stranger without the token at the ports of a job with two holders of each block: server 0's own port and its health
port, with everything that HTTP/2 lets one send. The job never goes back, has the bits of an undisturbed run, and server 0
stays within 256 MiB.

    strangers_test.py [--quick | --seconds 30] [--tls]

Environment as in stock_stubs_test.py."""

import argparse
import contextlib
import json
import os
import pathlib
import re
import socket
import ssl
import struct
import tempfile
import threading
import time

import servers

JOB = servers.ENDLESS + """
exchange: {type: gradient}
update: {type: sgd, learning_rate: 0.1, momentum: 0.9}
servers: {count: 2, block_bytes: 1024, replicas: 2}
limits: {lease_seconds: 5}
"""
MEMORY_MAX = 256 << 20
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PING, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS = 1, 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


CALL = b"\x83\x86" + literal(b":path", b"/leeway.v1.ParameterServer/Push") + literal(b":authority", b"a") + literal(
    b"content-type", b"application/grpc") + literal(b"te", b"trailers")
GREETING = PREFACE + frame(SETTINGS, 0, 0)
JUNK = b"x" * 16384


def once(head, more):
    """Yields the head, and then the same bytes without end."""
    yield head
    while True:
        yield more


def calls(after):
    """Yields calls without end, each with `after` behind its headers."""
    yield GREETING
    for stream in range(1, 2**31, 2):
        yield frame(HEADERS, END_HEADERS, stream, CALL) + after(stream)


# A literal whose value claims to have 2 GiB.
ENDLESS = b"\0\1a\x7f\x80\xff\xff\xff\x07"
# What each kind of stranger sends. None in place of bytes: it waits.
KINDS = {
    "a header that does not end": lambda: once(GREETING + frame(HEADERS, 0, 1, ENDLESS), frame(CONTINUATION, 0, 1, JUNK)),
    "headers that do not end": lambda: once(GREETING + frame(HEADERS, 0, 1, literal(b"a", b"b")),
                                            frame(CONTINUATION, 0, 1, literal(b"a", b"b" * 100) * 150)),
    "settings": lambda: once(PREFACE, frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535)) * 500),
    "pings": lambda: once(GREETING, frame(PING, 0, 0, b"12345678") * 500),
    "resets": lambda: calls(lambda stream: frame(RST, 0, stream, struct.pack(">I", 8))),
    "idle": lambda: once(b"", None),
    "slow": lambda: (GREETING[i:i + 1] if i < len(GREETING) else None for i in range(10**9)),
    "half a message": lambda: once(GREETING + frame(HEADERS, END_HEADERS, 1, CALL) + frame(
        DATA, 0, 1, b"\0" + struct.pack(">I", 70 << 20) + JUNK[:16379]), None),
    "messages of 70 MiB": lambda: once(GREETING + frame(HEADERS, END_HEADERS, 1, CALL) + frame(
        WINDOW, 0, 0, struct.pack(">I", 2**30)) + frame(DATA, 0, 1, b"\0" + struct.pack(">I", 70 << 20) + JUNK[:16379]),
        frame(DATA, 0, 1, JUNK)),
    "garbage": lambda: (os.urandom(16384) for _ in iter(int, 1)),
    "connects": lambda: (),
}


class Crowd:
    """Keeps this number of strangers connected. A stranger that is sent away comes again."""

    def __init__(self, address, kind, size, tls=None):
        self.address, self.kind, self.tls, self.over = address, kind, tls, threading.Event()
        # A flood of connects runs as fast as possible.
        self.pause = 0 if kind == "connects" else 0.01
        self.came = self.sent = 0
        self.threads = [threading.Thread(target=self.run) for _ in range(size)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.over.wait(self.pause):
            with contextlib.suppress(OSError), self.connect() as end:
                self.came += 1
                end.settimeout(5)
                for piece in KINDS[self.kind]():
                    if self.over.is_set():
                        break
                    if piece:
                        end.sendall(piece)
                        self.sent += len(piece)
                    if piece is None and not self.listen(end):
                        break

    def connect(self):
        end = socket.create_connection(self.address, timeout=1)
        return self.tls.wrap_socket(end) if self.tls and self.kind != "connects" else end

    @staticmethod
    def listen(end):
        """Returns False if the other end has hung up."""
        end.settimeout(0.1)
        try:
            return bool(end.recv(4096))
        except TimeoutError:
            return True

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


def believing_all():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    return context


class Job(servers.Programs):
    def __init__(self, folder, step, tls, around=contextlib.nullcontext()):
        """`around`: the context in which server 0 is started."""
        super().__init__(folder, JOB.replace("STEP", str(step)))
        self.tls = believing_all() if tls else None
        servers.leeway("certificates", folder / "keys")
        server, worker = (["--token-file", str(folder / "keys/token")] + (
            ["--tls", "tls", "--tls-dir", str(folder / "keys" / role)] if tls else []) for role in ("server", "worker"))
        with socket.socket() as end:
            end.bind(("127.0.0.1", 0))
            self.health = end.getsockname()
        with around:
            self.start_server(0, "--health", f"127.0.0.1:{self.health[1]}", *server)
        self.start_server(1, *server)
        for rank in 0, 1:
            self.start_worker(rank, *worker)
        host, port = self.coordinator.rsplit(":", 1)
        self.address = host, int(port)

    def clock(self):
        """Returns the clock, as far as the log shows it."""
        found = re.findall(r'"event": ?"step".*?"clock": ?(\d+)', (self.run_dir / "metrics.jsonl").read_text())
        return int(found[-1]) if found else 0

    def wait_for_clock(self, clock, limit=120):
        until = time.monotonic() + limit
        while self.clock() < clock:
            assert time.monotonic() < until, f"clock {self.clock()}, not {clock}, after {limit} s"
            time.sleep(0.05)

    def pace(self, seconds):
        before, begun = self.clock(), time.monotonic()
        time.sleep(seconds)
        return (self.clock() - before) / (time.monotonic() - begun)

    def events(self):
        lines = (self.run_dir / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line)["event"] for line in lines if line.endswith("}")]


def attack(job, kind, port, size, seconds, quiet):
    before = job.clock()
    crowd = Crowd(job.address, kind, size, job.tls) if port == "main" else Crowd(job.health, kind, size)
    try:
        pace = job.pace(seconds)
    finally:
        crowd.end()
    share = pace / quiet
    print(f"{kind}, {port} port, {size} at a time: {crowd.came} connections, {crowd.sent >> 20} MiB; pace {share:.2f}; "
          f"server 0 at most {job.memory() >> 20} MiB", flush=True)
    job.wait_for_clock(before + 5)
    assert "going_back" not in job.events(), f"{kind}: the job went back"
    assert job.memory() <= MEMORY_MAX, f"{kind}: server 0 had {job.memory() >> 20} MiB"
    return share


def main(seconds, quick, tls):
    with tempfile.TemporaryDirectory(prefix="leeway-strangers-") as name:
        shares = {}
        with Job(pathlib.Path(name), 20, tls) as job:
            job.wait_for_clock(20)
            quiet = job.pace(3 if quick else 10)
            attacks = [(kind, port, size) for kind in KINDS for port in ("main", "health") for size in (1, 8)]
            if quick:
                attacks = [("a header that does not end", "main", 1), ("messages of 70 MiB", "main", 8), ("idle", "health", 8)]
            for each in attacks:
                shares[each] = attack(job, *each, seconds, quiet)
            clock, attacked = job.stop()
        assert job.undisturbed(clock) == attacked, "the attacks have changed the weights"
        worst = min(shares, key=shares.get)
        print(f"{len(shares)} attacks, {clock} clocks: never back, the bits of an undisturbed run; the least pace "
              f"{shares[worst]:.2f} ({', '.join(map(str, worst))})")
        assert quick or shares[worst] >= 0.5, "the job was slowed down"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three of the attacks, for two seconds each")
    parser.add_argument("--seconds", type=float, default=30, help="of each attack")
    parser.add_argument("--tls", action="store_true", help="servers prove who they are, and strangers speak TLS")
    options = parser.parse_args()
    main(2 if options.quick else options.seconds, options.quick, options.tls)
