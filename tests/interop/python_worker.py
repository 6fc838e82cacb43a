"""A worker in Python, from stock gRPC stubs and docs/protocol.md alone: softmax regression on the
optdigits data, trained beside C++ workers."""

import math
import os
import threading
import time

import grpc
import numpy as np

from leeway.v1 import coordinator_pb2, coordinator_pb2_grpc
from leeway.v1 import parameter_server_pb2 as data_plane
from leeway.v1 import parameter_server_pb2_grpc as data_plane_grpc

CLOCK_NONE = 2**64 - 1


def retried(call, request, seconds=60):
    """UNAVAILABLE means: send the same again."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return call(request, timeout=20)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


class PythonWorker:
    def __init__(self, coordinator, rank):
        self.coordinator = coordinator_pb2_grpc.CoordinatorStub(grpc.insecure_channel(coordinator))
        build = coordinator_pb2.Build(protocol=1, version="0.1.0")
        self.job = retried(self.coordinator.RegisterWorker, coordinator_pb2.RegisterWorkerRequest(
            build=build, rank=rank, host="python", pid=os.getpid()))
        self.servers = [data_plane_grpc.ParameterServerStub(grpc.insecure_channel(address))
                        for address in self.job.servers]
        self.total = self.job.schema.total
        self.block = self.job.block_elements
        self.clock = 0
        self.running = True
        self.failure = None

    def header(self, block, clock, examples=0):
        return data_plane.ExchangeHeader(
            job=self.job.job_id, rank=self.job.rank, incarnation=self.job.incarnation, clock=clock,
            block=block, examples=examples)

    def blocks(self):
        for block in range(math.ceil(self.total / self.block)):
            yield block, self.servers[block % len(self.servers)]

    def attach(self):
        request = data_plane.AttachRequest(job=self.job.job_id, rank=self.job.rank,
                                           incarnation=self.job.incarnation)
        replies = [retried(server.Attach, request) for server in self.servers]
        self.clock = min(reply.clock for reply in replies)
        assert self.clock != CLOCK_NONE

    def pull(self):
        weights = np.empty(self.total, np.float32)
        for block, server in self.blocks():
            reply = retried(server.Pull, data_plane.PullRequest(header=self.header(block, self.clock)))
            weights[block * self.block:][:self.block] = np.frombuffer(reply.payload, "<f4")
        return weights

    def push_pull(self, contribution, examples):
        """Every block goes out before any reply is awaited: in sync mode a reply waits for the others."""
        calls = []
        for block, server in self.blocks():
            part = contribution[block * self.block:][:self.block]
            request = data_plane.PushRequest(header=self.header(block, self.clock, examples),
                                             payload=part.astype("<f4").tobytes())
            calls.append((block, server, request, server.PushPull.future(request, timeout=20)))
        weights = np.empty(self.total, np.float32)
        for block, server, request, future in calls:
            try:
                reply = future.result()
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE:
                    raise
                reply = retried(server.PushPull, request)
            weights[block * self.block:][:self.block] = np.frombuffer(reply.payload, "<f4")
        self.clock += 1
        return weights

    def heartbeats(self):
        while self.running:
            try:
                self.coordinator.Heartbeat(coordinator_pb2.HeartbeatRequest(
                    job=self.job.job_id, rank=self.job.rank, incarnation=self.job.incarnation,
                    clock=self.clock), timeout=5)
            except grpc.RpcError as error:
                self.failure = error
            time.sleep(0.2)

    def train(self, features, labels, batch_size):
        """Gradient of the mean softmax cross-entropy of x W + b, computed in numpy."""
        self.attach()
        beat = threading.Thread(target=self.heartbeats)
        beat.start()
        try:
            weights = self.pull()
            while self.clock < self.job.length.clocks:
                start = self.clock * batch_size % len(features)
                x, y = features[start:start + batch_size], labels[start:start + batch_size]
                weights = self.push_pull(gradient(self.job.schema, weights, x, y), len(x))
        finally:
            self.running = False
            beat.join()
        retried(self.coordinator.Leave, coordinator_pb2.LeaveRequest(
            job=self.job.job_id, rank=self.job.rank, incarnation=self.job.incarnation,
            clock=self.clock, reason=coordinator_pb2.LEAVE_FINISHED))
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
