#!/usr/bin/python3
"""Messages that are wrong in every way are refused by name. No server dies, nothing is half applied, and the job then
trains to its end. Environment as in stock_stubs_test.py."""

import servers
import grpc
import numpy as np

from leeway.v1 import coordinator_pb2
from leeway.v1 import parameter_server_pb2 as data_plane
from python_worker import PythonWorker, tensors

BAD, PRECONDITION, ABORTED = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION,
                              grpc.StatusCode.ABORTED)


class Attacker:
    """As rank 1, sends what a worker must never send."""

    def __init__(self, worker):
        self.worker = worker
        self.refused = 0

    def header(self, block=0, **changes):
        header = self.worker.header(block, self.worker.clock, 64)
        for field, value in changes.items():
            setattr(header, field, value)
        return header

    def payload(self, block=0, **values):
        size = min(self.worker.block, self.worker.total - block * self.worker.block)
        floats = np.zeros(size, "<f4")
        for index, value in values.items():
            floats[int(index[1:])] = value
        return floats.tobytes()

    def expect(self, code, text, call, request):
        try:
            call(request, timeout=20)
        except grpc.RpcError as error:
            assert error.code() == code, (error.code(), error.details(), text)
            assert text in error.details(), (error.details(), text)
            self.refused += 1
            return
        raise AssertionError(f"accepted, although {text}")

    def raw(self, method):
        channel = grpc.insecure_channel(self.worker.job.servers[0])
        return channel.unary_unary(f"/leeway.v1.ParameterServer/{method}")


def data_plane_attacks(attacker):
    push = attacker.worker.servers[0].PushPull
    message = lambda header, payload: data_plane.PushRequest(header=header, payload=payload)  # noqa: E731
    whole = attacker.payload()
    for code, text, header, payload in [
            (PRECONDITION, "header.job", attacker.header(job=77), whole),
            (BAD, "header.rank", attacker.header(rank=9), whole),
            (BAD, "header.block: the block does not exist: the model has 3 blocks", attacker.header(block=99), whole),
            (grpc.StatusCode.UNAVAILABLE, "does not own shard 1", attacker.header(block=1), whole),
            (ABORTED, "header.incarnation", attacker.header(incarnation=0), whole),
            (PRECONDITION, "header.clock", attacker.header(clock=12), whole),
            (PRECONDITION, "header.clock", attacker.header(clock=2**63), whole),
            (BAD, "payload: 0 values, but the block has 256", attacker.header(), b""),
            (BAD, "payload: 255 values", attacker.header(), whole[4:]),
            (BAD, "payload: 257 values", attacker.header(), whole + b"\0\0\0\0"),
            (BAD, "payload: 1023 bytes are not a whole number of float32 values", attacker.header(), whole[1:]),
            (BAD, "value 0 (dense_1/weight[0] of the model) is not finite", attacker.header(),
             attacker.payload(i0=np.nan)),
            (BAD, "value 255 (dense_1/weight[255] of the model) is not finite", attacker.header(),
             attacker.payload(i255=np.inf)),
            (BAD, "header.examples", attacker.header(examples=2**60), whole),
    ]:
        attacker.expect(code, text, push, message(header, payload))
    pull = attacker.worker.servers[0].Pull
    attacker.expect(PRECONDITION, "header.clock", pull,
                    data_plane.PullRequest(header=attacker.header(clock=5)))
    attacker.expect(BAD, "header.block", pull, data_plane.PullRequest(header=attacker.header(block=99)))
    for garbage in (b"\xff", b"\x0a\xff\xff\xff\xff\x0f", bytes(range(256)) * 9, b"\x12\x03abc"):
        attacker.expect(BAD, "", attacker.raw("PushPull"), garbage)
        attacker.expect(BAD, "", attacker.raw("Initialize"), garbage)
    attacker.expect(BAD, "", attacker.raw("Pull"), b"\x0a\xff\xff")


def control_plane_attacks(attacker):
    stub, job = attacker.worker.coordinator, attacker.worker.job
    beat = coordinator_pb2.HeartbeatRequest(job=job.job_id, rank=1, incarnation=job.incarnation)
    wrong_job = coordinator_pb2.HeartbeatRequest(job=1, rank=1, incarnation=job.incarnation)
    attacker.expect(PRECONDITION, "job", stub.Heartbeat, wrong_job)
    beat.rank = 9
    attacker.expect(BAD, "9", stub.Heartbeat, beat)
    beat.rank, beat.clock = 1, 10**9
    attacker.expect(BAD, "clock", stub.Heartbeat, beat)
    old = coordinator_pb2.Build(protocol=99, version="9.9")
    attacker.expect(PRECONDITION, "protocol 99", stub.RegisterWorker,
                    coordinator_pb2.RegisterWorkerRequest(build=old, rank=1))
    new = coordinator_pb2.Build(protocol=2, version="0.2.0")
    attacker.expect(BAD, "7", stub.RegisterWorker,
                    coordinator_pb2.RegisterWorkerRequest(build=new, rank=7))
    attacker.expect(PRECONDITION, "job", stub.RegisterWorker,
                    coordinator_pb2.RegisterWorkerRequest(build=new, rank=1, job_sha256="0" * 64))
    attacker.expect(BAD, "cut", stub.ShardSaved,
                    coordinator_pb2.ShardSavedRequest(job=job.job_id, index=0, clock=3))


def main():
    with servers.job_with_one_worker() as job:
        python = PythonWorker(job.coordinator, rank=1)
        python.attach()
        python.pull()
        attacker = Attacker(python)
        data_plane_attacks(attacker)
        control_plane_attacks(attacker)
        weights = python.train(*servers.digits("optdigits.tra"), 64)
    share = servers.accuracy(tensors(python.job.schema, weights))
    print(f"{attacker.refused} wrong messages refused; then trained to {share:.4f}")
    assert share > 0.93, share


if __name__ == "__main__":
    main()
