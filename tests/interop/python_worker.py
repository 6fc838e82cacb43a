"""A worker in Python, written from stock gRPC stubs and docs/protocol.md alone: softmax regression on the optdigits
data, trained beside C++ workers. It survives what they survive: servers that are killed, blocks that move, and a job
that goes back. It does not support an orderly stop."""

import math
import os
import random
import threading
import time

import grpc
import numpy as np

from leeway.v1 import coordinator_pb2, coordinator_pb2_grpc
from leeway.v1 import parameter_server_pb2 as data_plane
from leeway.v1 import parameter_server_pb2_grpc as data_plane_grpc

CLOCK_NONE = 2**64 - 1


# After these errors the same call may be repeated, whether or not it was carried out.
AGAIN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED,
         grpc.StatusCode.RESOURCE_EXHAUSTED)


class GoneBack(Exception):
    """This registration is over: register again, and continue where the servers say."""


class PythonWorker:
    def __init__(self, coordinator, rank):
        self.coordinator = coordinator_pb2_grpc.CoordinatorStub(self.channel(coordinator))
        self.rank = rank
        self.nonce = random.getrandbits(63) + 1
        self.failure = None
        self.registrations = 0
        self.register()

    def channel(self, address):
        return grpc.insecure_channel(address)

    # ---- the job

    def introduction(self):
        """Returns what the worker reports about itself, its model and its data."""
        return coordinator_pb2.RegisterWorkerRequest(build=coordinator_pb2.Build(protocol=2, version="0.2.0"),
                                                     rank=self.rank, host="python", pid=os.getpid(), nonce=self.nonce)

    def register(self):
        self.failure = None
        self.job = self.retried(lambda: self.coordinator.RegisterWorker, self.introduction())
        self.registrations += 1
        self.reach(self.job.servers, self.job.epoch)
        self.total = self.job.schema.total
        self.block = self.job.block_elements
        self.clock = 0
        self.running = True

    def reach(self, addresses, epoch):
        """Connects to the servers by shard, in an epoch of the placement."""
        self.epoch = epoch
        self.servers = [data_plane_grpc.ParameterServerStub(self.channel(a)) for a in addresses]

    def identity(self):
        return {"job": self.job.job_id, "rank": self.job.rank, "incarnation": self.job.incarnation,
                "generation": self.job.generation}

    def retried(self, method, request, seconds=60, begun=None):
        """`method()` is looked up again for each attempt, because blocks may have moved. `begun`: the first attempt,
        which is under way."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return begun.result() if begun else method()(request, timeout=20)
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.FAILED_PRECONDITION:
                    raise GoneBack(error.details()) from error
                if error.code() not in AGAIN or time.monotonic() > deadline:
                    raise
            # Servers that are gone cannot report that the job has gone back, but the coordinator can.
            if isinstance(self.failure, grpc.RpcError):
                raise GoneBack(self.failure.details())
            begun = None
            time.sleep(0.05)

    # ---- the data plane

    def header(self, block, clock, examples=0):
        return data_plane.ExchangeHeader(clock=clock, block=block, examples=examples, **self.identity())

    def blocks(self):
        return range(math.ceil(self.total / self.block))

    def server(self, block):
        return self.servers[block % len(self.servers)]

    def attach(self):
        request = data_plane.AttachRequest(**self.identity())
        replies = [self.retried(lambda s=shard: self.servers[s].Attach, request)
                   for shard in range(len(self.servers))]
        self.clock = min(reply.clock for reply in replies)
        assert self.clock != CLOCK_NONE

    def pull(self):
        weights = np.empty(self.total, np.float32)
        for block in self.blocks():
            reply = self.retried(lambda b=block: self.server(b).Pull,
                                 data_plane.PullRequest(header=self.header(block, self.clock)))
            weights[block * self.block:][:self.block] = np.frombuffer(reply.payload, "<f4")
        return weights

    def push_pull(self, contribution, examples):
        """Sends every block before any reply is awaited: in sync mode a reply waits for the other workers."""
        calls = []
        for block in self.blocks():
            part = contribution[block * self.block:][:self.block]
            request = data_plane.PushRequest(header=self.header(block, self.clock, examples),
                                             payload=part.astype("<f4").tobytes())
            calls.append((block, request, self.server(block).PushPull.future(request, timeout=20)))
        weights = np.empty(self.total, np.float32)
        for block, request, future in calls:
            reply = self.retried(lambda b=block: self.server(b).PushPull, request, begun=future)
            weights[block * self.block:][:self.block] = np.frombuffer(reply.payload, "<f4")
        self.clock += 1
        return weights

    # ---- the control plane

    def heartbeats(self):
        while self.running:
            try:
                reply = self.coordinator.Heartbeat(coordinator_pb2.HeartbeatRequest(
                    clock=self.clock, epoch=self.epoch, **self.identity()), timeout=5)
                if reply.epoch > self.epoch:
                    self.reach(reply.servers, reply.epoch)
            except grpc.RpcError as error:
                if error.code() not in AGAIN:
                    self.failure = error
                    return
            time.sleep(0.2)

    def leave(self):
        """Until the job is sealed it may still go back and need this worker."""
        request = coordinator_pb2.LeaveRequest(clock=self.clock, reason=coordinator_pb2.LEAVE_FINISHED, waits=True,
                                               **self.identity())
        while not self.retried(lambda: self.coordinator.Leave, request).sealed:
            time.sleep(0.1)

    # ---- training

    def train(self, features, labels, batch_size):
        """Computes the gradient of the mean softmax cross-entropy of x W + b, in numpy."""
        while True:
            beat = threading.Thread(target=self.heartbeats)
            beat.start()
            try:
                weights = self.run_clocks(features, labels, batch_size)
                self.leave()
                return weights
            except GoneBack as why:
                print(f"registers again: {why}")
            finally:
                self.running = False
                beat.join()
            self.register()

    def run_clocks(self, features, labels, batch_size):
        self.attach()
        weights = self.pull()
        while self.clock < self.job.length.clocks:
            start = self.clock * batch_size % len(features)
            x, y = features[start:start + batch_size], labels[start:start + batch_size]
            weights = self.push_pull(gradient(self.job.schema, weights, x, y), len(x))
        return weights


def tensors(schema, flat):
    return {t.name: flat[t.offset:t.offset + int(np.prod(t.shape))].reshape(t.shape)
            for t in schema.tensors}


def gradient(schema, weights, x, y):
    named = tensors(schema, weights)
    weight = next(v for k, v in named.items() if k.endswith("/weight"))
    bias = next(v for k, v in named.items() if k.endswith("/bias"))
    scores = x @ weight + bias
    scores -= scores.max(axis=1, keepdims=True)
    probabilities = np.exp(scores)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    probabilities[np.arange(len(y)), y] -= 1
    probabilities /= len(y)
    flat = np.zeros(schema.total, np.float32)
    out = tensors(schema, flat)
    for name, target in out.items():
        target[...] = x.T @ probabilities if name.endswith("/weight") else probabilities.sum(axis=0)
    return flat
