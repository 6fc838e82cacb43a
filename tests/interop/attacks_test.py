#!/usr/bin/python3
"""A job with mutual TLS, a token and certificates of one rank, on two servers, is attacked while it trains. The
attackers have no certificate, one of another authority, an expired one, the wrong role, no token, or another job's
token. Some are another rank, or another user of the machine; others use plaintext, slow handshakes and thousands of
connections. Each is refused with its reason, and the servers' logs name each reason once. The servers' memory stays
within bounds, and the weights at the end are the bits of an undisturbed run.

    attacks_test.py [--connections 10000]

Environment as in stock_stubs_test.py."""

import argparse
import collections
import contextlib
import os
import pathlib
import re
import resource
import socket
import subprocess
import tempfile
import time

import servers  # puts the stubs on the path
from servers import leeway
import grpc

from leeway.v1 import coordinator_pb2 as control
from leeway.v1 import coordinator_pb2_grpc as control_grpc
from leeway.v1 import options_pb2 as contract
from leeway.v1 import parameter_server_pb2 as data

JOB = servers.ENDLESS + """
exchange: {type: delta, local_steps: 2, optimizer: {type: sgd, learning_rate: 0.1, momentum: 0.9}}
update: {type: sgd, learning_rate: 1}
servers: {count: 2, block_bytes: 1024}
limits: {lease_seconds: 20}
"""
FILES = {"Coordinator": control.DESCRIPTOR, "ShardControl": control.DESCRIPTOR, "ParameterServer": data.DESCRIPTOR}
ROLES = {"server": 1, "worker": 2, "launcher": 3, "status": 4}
HANDSHAKE_SECONDS = 20  # common/rpc/channel.cc
MEMORY_MAX = 1400 << 20
# Room for strangers, and for a job of two workers and two servers (common/rpc/connection_table.h).
CONNECTIONS_MOST = 1024 + 2 * (2 * (2 * 2 + 2) + 4 * 2)
ESTABLISHED = "01"  # /proc/net/tcp
DENIED, UNAUTHENTICATED = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED
NO_WAY = grpc.StatusCode.UNAVAILABLE

refused = collections.Counter()


def expired(folder, keys):
    """Makes a worker's certificate of the job's authority that expired yesterday."""
    folder.mkdir()
    subject = ["-subj", "/CN=leeway worker", "-addext", "subjectAltName=URI:spiffe://leeway/leeway/worker"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    run = lambda *words: subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
    run("req", *curve, "-keyout", folder / "tls.key", "-out", folder / "csr", *subject)
    run("x509", "-req", "-in", folder / "csr", "-CA", keys / "ca.crt", "-CAkey", keys / "ca.key", "-CAcreateserial",
        "-copy_extensions", "copy", "-days", "-1", "-out", folder / "tls.crt")
    (folder / "ca.crt").write_bytes((keys / "ca.crt").read_bytes())


class Job(servers.Programs):
    """A job that is started by hand, as on a cluster."""

    def __init__(self, folder, keys):
        super().__init__(folder, JOB.replace("STEP", "100"))
        self.keys = keys
        for index in 0, 1:
            self.start_server(index, *self.secrets("server"))
        for rank in 0, 1:
            self.start_worker(rank, *self.secrets(f"worker-{rank}"))

    def secrets(self, name):
        return ["--tls-dir", str(self.keys / name), "--token-file", str(self.keys / "token")]

    def log(self, index):
        return (self.folder / f"server-{index}.log").read_text(errors="replace")


def credentials(folder, own=True):
    read = lambda name: (folder / name).read_bytes()
    return grpc.ssl_channel_credentials(read("ca.crt"), *((read("tls.key"), read("tls.crt")) if own else ()))


def methods():
    """Returns (full name, descriptor, roles that may call it) of every method in the contract."""
    for service, file in FILES.items():
        for method in file.services_by_name[service].methods:
            yield f"/leeway.v1.{service}/{method.name}", method, set(method.GetOptions().Extensions[contract.callers])


class Attacker:
    def __init__(self, address, secret, token=None):
        self.channel = grpc.secure_channel(address, secret) if secret else grpc.insecure_channel(address)
        self.metadata = [("authorization", f"Bearer {token}")] if token else []

    def call(self, path, method, request=b""):
        way = f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"
        call = getattr(self.channel, way)(path)
        try:
            answer = call(iter([request]) if method.client_streaming else request, timeout=10, metadata=self.metadata)
            if method.server_streaming:
                for _ in answer:
                    pass
            return grpc.StatusCode.OK, ""
        except grpc.RpcError as error:
            return error.code(), error.details()

    def expect(self, what, code, text, path, method, request=b""):
        got, details = self.call(path, method, request)
        assert (got, text in details) == (code, True), f"{what}: {got} {details}, not {code} {text}"
        refused[what.split(":")[0]] += 1

    def close(self):
        self.channel.close()


STATUS = next(m for m in methods() if m[1].name == "GetJobStatus")[:2]


def strangers(job, token, folder):
    """Attackers without a certificate of the job's authority."""
    leeway("certificates", folder / "foreign")
    expired(folder / "expired", job.keys)
    mixed = folder / "mixed"
    mixed.mkdir()
    for name, source in ("ca.crt", job.keys), ("tls.crt", folder / "foreign/server"), ("tls.key", folder / "foreign/server"):
        (mixed / name).write_bytes((source / name).read_bytes())
    for index, address in job.addresses.items():
        for who, secret in (("no certificate", credentials(job.keys / "server", own=False)),
                            ("another authority's certificate", credentials(mixed)),
                            ("a certificate of yesterday", credentials(folder / "expired")),
                            ("plaintext at a TLS port", None)):
            attacker = Attacker(address, secret, token)
            attacker.expect(f"{who}: server {index}", NO_WAY, "", *STATUS)
            attacker.close()
    # The other direction: a server of another authority is refused.
    attacker = Attacker(job.addresses[0], credentials(folder / "foreign/worker"), token)
    attacker.expect("a server of another authority", NO_WAY, "", *STATUS)
    attacker.close()


def roles(job, token):
    """Calls every method in every role that may not call it, and in those that may, but without the right token."""
    for index, address in job.addresses.items():
        served = [m for m in methods() if index == 0 or "Coordinator" not in m[0]]
        for role, number in ROLES.items():
            secret = credentials(job.keys / role)
            own, none, other = (Attacker(address, secret, t) for t in (token, None, "another-jobs-token-0123456789"))
            for path, method, callers in served:
                if number not in callers:
                    own.expect(f"a wrong role: {role} {path}", DENIED, f"the caller's role is {role}", path, method)
                else:
                    none.expect(f"no token: {role} {path}", UNAUTHENTICATED, "has no token", path, method)
                    other.expect(f"another job's token: {role} {path}", UNAUTHENTICATED, "is not this job's", path, method)
            for attacker in own, none, other:
                attacker.close()


def ranks(job, token):
    """The holder of rank 0's certificate cannot act as another rank, and the shared certificate cannot load another
    rank's state by its number."""
    bound = Attacker(job.addresses[0], credentials(job.keys / "worker-0"), token)
    shared = Attacker(job.addresses[0], credentials(job.keys / "worker"), token)
    stub = control_grpc.CoordinatorStub(Attacker(job.addresses[0], credentials(job.keys / "launcher"), token).channel)
    status = stub.GetJobStatus(control.GetJobStatusRequest(), metadata=bound.metadata)
    life = status.workers[1].incarnation
    known = dict(job=status.job_id, rank=1, generation=status.generation)
    header = data.ExchangeHeader(incarnation=life, clock=1, **known)
    frame = data.RequestFrame(requests=[data.StreamRequest(id=1, method=data.EXCHANGE_METHOD_PULL, header=header)])
    build = control.Build(protocol=2, version="0")
    requests = {
        "RegisterWorker": control.RegisterWorkerRequest(rank=1, build=build),
        "Heartbeat": control.HeartbeatRequest(incarnation=life, **known),
        "StopAt": control.StopAtRequest(incarnation=life, **known),
        "Leave": control.LeaveRequest(incarnation=life, **known),
        "LeaseData": control.LeaseDataRequest(incarnation=life, **known),
        "SaveWorkerState": control.WorkerStateChunk(incarnation=life, clock=1, **known),
        "LoadWorkerState": control.LoadWorkerStateRequest(job=status.job_id, rank=1, incarnation=life),
        "Attach": data.AttachRequest(incarnation=life, **known),
        "Initialize": data.PushRequest(header=header), "Push": data.PushRequest(header=header),
        "PushPull": data.PushRequest(header=header), "Pull": data.PullRequest(header=header), "Exchange": frame}
    for path, method, callers in methods():
        if callers & {ROLES["worker"]} and method.name not in ("ProbeLink", "GetJobStatus"):
            bound.expect(f"another rank: {path}", DENIED, "is for rank 0, not 1", path, method,
                         requests[method.name].SerializeToString())
    load = next(m for m in methods() if m[1].name == "LoadWorkerState")[:2]
    for incarnation in 0, life - 1, life + 1, 2**64 - 1:
        request = control.LoadWorkerStateRequest(job=status.job_id, rank=1, incarnation=incarnation)
        code, details = shared.call(*load, request.SerializeToString())
        assert code in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.ABORTED), (incarnation, code, details)
        refused["another life's state"] += 1
    blocks = data.RequestFrame(requests=[data.StreamRequest(
        id=1, method=data.EXCHANGE_METHOD_REPLICATE, header=data.ExchangeHeader(job=status.job_id))])
    exchange = next(m for m in methods() if m[1].name == "Exchange")[:2]
    shared.expect("replicas by a worker", DENIED, "only servers replicate", *exchange, blocks.SerializeToString())
    for method in data.EXCHANGE_METHOD_FETCH, data.EXCHANGE_METHOD_MEET:
        asks = data.RequestFrame(requests=[data.StreamRequest(id=1, method=method, header=header)]).SerializeToString()
        bound.expect("another rank among workers", DENIED, "is for rank 0, not 1", *exchange, asks)
        server = Attacker(job.addresses[1], credentials(job.keys / "server"), token)
        server.expect("a server among workers", DENIED, "only workers fetch", *exchange, asks)
        server.close()
    # A peer holds blocks in jobs of other topologies only.
    peer = Attacker(job.addresses[0], credentials(job.keys / "peer"), token)
    peer.expect("replicas by a peer", DENIED, "only servers replicate", *exchange, blocks.SerializeToString())
    register = next(m for m in methods() if m[1].name == "RegisterServer")[:2]
    for index in 0, 1:
        peer.expect("a peer in a server's place", DENIED, "does not belong to a worker", *register,
                    control.RegisterServerRequest(index=index, build=build, address="127.0.0.1:1").SerializeToString())
    return status


def servers_own(job, token, status):
    """An attacker with a server's certificate, and absurd requests."""
    server = Attacker(job.addresses[1], credentials(job.keys / "server"), token)
    configure = next(m for m in methods() if m[1].name == "Configure")[:2]
    bad = {
        "run folder elsewhere": control.ConfigureRequest(run_dir="/tmp/elsewhere"),
        "block bomb": control.ConfigureRequest(run_dir=str(job.run_dir), block_elements=256),
        "escape sequences": control.ConfigureRequest(run_dir="\x1b[2J\x1b]0;owned\x07"),
    }
    for what, request in bad.items():
        request.job, request.generation = status.job_id, status.generation + 1
        size = 2**40 if what == "block bomb" else 10
        request.schema.tensors.add(name="\x1b[2Jw" if what == "escape sequences" else "w", shape=[size])
        request.schema.total = request.schema.trained = size
        code, details = server.call(*configure, request.SerializeToString())
        # The blocks of the model are checked before paths are; control_messages_test has each check alone.
        assert code in (grpc.StatusCode.INVALID_ARGUMENT, DENIED), (what, code, details)
        assert what != "block bomb" or "makes the model larger" in details, details
        assert "\x1b" not in details, repr(details)
        refused[what] += 1
    worker = Attacker(job.addresses[1], credentials(job.keys / "worker"), token)
    attach = next(m for m in methods() if m[1].name == "Attach")[:2]
    request = data.AttachRequest(job=status.job_id, generation=status.generation, rank=0, incarnation=2**64 - 1)
    worker.expect("incarnation 2^64 - 1", NO_WAY, "incarnation", *attach, request.SerializeToString())


def other_user(job):
    """Another user who connects to the servers' unix sockets is cut off at once."""
    if os.geteuid() != 0:
        print("SKIPPED: only root can become another user")
        return
    pids = {job.processes[f"server {i}"].pid for i in (0, 1)}
    inodes = set()
    for pid in pids:
        for file in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                inodes |= set(re.findall(r"socket:\[(\d+)\]", os.readlink(file)))
    listening = [line.split() for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]]
    names = [words[7] for words in listening if len(words) > 7 and words[6] in inodes and words[5] == "01"]
    assert names, "the servers have no unix sockets"
    os.seteuid(65534)
    try:
        for name in set(names):
            with socket.socket(socket.AF_UNIX) as end:
                end.settimeout(5)
                end.connect("\0" + name[1:])
                assert end.recv(1) == b"", "another user was let in"
            refused["another user"] += 1
    finally:
        os.seteuid(0)


def address_of(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def slow_handshakes(job):
    """A client sends one byte of a handshake and then nothing: the server hangs up by itself."""
    ends = [socket.create_connection(address_of(a)) for a in job.addresses.values() for _ in range(20)]
    for end in ends:
        end.send(b"\x16")
        end.settimeout(HANDSHAKE_SECONDS + 15)
    begun = time.monotonic()
    for end in ends:
        with contextlib.suppress(ConnectionError):
            while end.recv(4096):
                pass
        refused["a slow handshake"] += 1
        end.close()
    assert time.monotonic() - begun < HANDSHAKE_SECONDS + 10, "slow handshakes are not given up"


def connections(job):
    """Returns server 0's ends of the open connections."""
    port = address_of(job.addresses[0])[1]
    tables = [pathlib.Path(f"/proc/{job.processes['server 0'].pid}/net/{name}") for name in ("tcp", "tcp6")]
    lines = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return sum(int(words[1].rsplit(":", 1)[1], 16) == port and words[3] == ESTABLISHED for words in lines)


def crowd(job, count):
    """Thousands of connections, half of which send nothing and half nonsense. Meanwhile others are served, and only a
    limited number is kept."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(count, hard - 1000)
    ends = []
    for number in range(count):
        with contextlib.suppress(OSError):
            end = socket.create_connection(address_of(job.addresses[0]), timeout=5)
            ends.append(end)
            if number % 2:
                end.send(b"GET / HTTP/1.1\r\n\r\n")
        if number % 2000 == 1999:
            leeway("status", job.addresses[0], *job.secrets("status"))
    refused["connections"] += len(ends)
    assert len(ends) == count, f"{len(ends)} of {count} connections"
    kept = connections(job)
    if count > CONNECTIONS_MOST:
        assert kept <= CONNECTIONS_MOST, f"{kept} connections are kept"
        assert "connections a second without an admitted call" in job.log(0), "the log does not say so"
    leeway("status", job.addresses[0], *job.secrets("status"))
    for end in ends:
        end.close()


def lines_once(job):
    """Checks that each reason is in the log, once for each host."""
    text = job.log(0)
    for reason in ("has no token", "is not this job's", "the caller's role is worker", "is for rank 0, not 1",
                   "certificate verify failed", "peer did not return a certificate"):
        assert reason in text, f"the log does not say: {reason}"
    lines = collections.Counter(line.split(" ", 3)[-1] for line in text.splitlines() if "refused" in line or "grpc:" in line)
    assert lines and max(lines.values()) == 1, lines.most_common(3)


def main(connections, patient=True):
    with tempfile.TemporaryDirectory(prefix="leeway-attacks-") as name:
        folder = pathlib.Path(name)
        keys = folder / "keys"
        leeway("certificates", keys, "--ranks", "2")
        token = (keys / "token").read_text().strip()
        with Job(folder, keys) as job:
            time.sleep(1)
            strangers(job, token, folder)
            status = ranks(job, token)
            roles(job, token)
            servers_own(job, token, status)
            other_user(job)
            if patient:
                slow_handshakes(job)
            crowd(job, connections)
            memory = max(job.memory(index) for index in (0, 1))
            clock, attacked = job.stop()
            lines_once(job)
        assert job.undisturbed(clock) == attacked, "the attacks have changed the weights"
        assert memory < MEMORY_MAX, memory
        print(f"{clock} clocks, the bits of an undisturbed run; memory at most {memory >> 20} MiB")
        print("refused: " + ", ".join(f"{what} {count}" for what, count in refused.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=10000)
    parser.add_argument("--quick", action="store_true", help="4000 connections, and no handshake that is waited for")
    options = parser.parse_args()
    main(4000 if options.quick else options.connections, patient=not options.quick)
