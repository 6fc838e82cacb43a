#!/usr/bin/env python3
"""A Leeway worker in Python: softmax regression on comma-separated digits, 64 features and a label a line.
docs/protocol.md explains each step, and how to make the stubs that this imports.

    PYTHONPATH=stubs docs/python_worker.py HOST:PORT data/optdigits/optdigits.tra"""
import os, sys, threading, time
import grpc, numpy as np
from leeway.v1 import coordinator_pb2 as control, coordinator_pb2_grpc, parameter_server_pb2 as data, parameter_server_pb2_grpc

AGAIN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED)

def call(method, request, begun=None):
    """The same message again is always right: it is applied once. `begun`: a call of it that is under way."""
    while True:
        try:
            return begun.result() if begun else method(request, timeout=20)
        except grpc.RpcError as error:
            if error.code() not in AGAIN:
                raise
        begun = time.sleep(0.1)

def tensors(schema, vector):
    """Name -> a view into the flat vector: row-major, from its offset on."""
    return {t.name: vector[t.offset:t.offset + int(np.prod(t.shape))].reshape(t.shape) for t in schema.tensors}

def gradient(schema, weights, x, y):
    """Of the mean cross-entropy of softmax(x W + b), laid out as the weights are."""
    flat, model = np.zeros(schema.total, "<f4"), tensors(schema, weights)
    scores = np.exp(x @ model["dense_1/weight"] + model["dense_1/bias"])
    error = (scores / scores.sum(axis=1, keepdims=True) - np.eye(scores.shape[1])[y]) / len(y)
    out = tensors(schema, flat)
    out["dense_1/weight"][...], out["dense_1/bias"][...] = x.T @ error, error.sum(axis=0)
    return flat

def train(address, path, batch=64):
    coordinator = coordinator_pb2_grpc.CoordinatorStub(grpc.insecure_channel(address))
    job = call(coordinator.RegisterWorker, control.RegisterWorkerRequest(  # 1. Register
        build=control.Build(protocol=2, version="0.2.0"), host=os.uname().nodename, pid=os.getpid()))
    me = {"job": job.job_id, "rank": job.rank, "incarnation": job.incarnation, "generation": job.generation}
    servers = [parameter_server_pb2_grpc.ParameterServerStub(grpc.insecure_channel(s)) for s in job.servers]
    blocks = range(-(-job.schema.total // job.block_elements))  # 2. Blocks
    part = lambda vector, block: vector[block * job.block_elements:][:job.block_elements]
    header = lambda block, clock, examples=0: data.ExchangeHeader(clock=clock, block=block, examples=examples, **me)
    clock = min(call(s.Attach, data.AttachRequest(**me)).clock for s in servers)  # 3. Attach
    def beat():  # 4. Heartbeats
        while True:
            call(coordinator.Heartbeat, control.HeartbeatRequest(clock=clock, **me))
            time.sleep(job.job.limits.lease_seconds / 4)
    threading.Thread(target=beat, daemon=True).start()
    weights = np.concatenate([np.frombuffer(call(  # 5. Pull
        servers[b % len(servers)].Pull, data.PullRequest(header=header(b, clock))).payload, "<f4") for b in blocks])
    rows = np.loadtxt(path, delimiter=",", dtype="<f4")
    x, y = rows[:, :-1] / 16, rows[:, -1].astype(int)
    while clock < job.length.clocks:  # 6. PushPull, every block of a clock at once
        some = np.arange(clock * batch, (clock + 1) * batch) % len(x)
        step = gradient(job.schema, weights, x[some], y[some])
        asked = [data.PushRequest(header=header(b, clock, batch), payload=part(step, b).tobytes()) for b in blocks]
        sent = [servers[b % len(servers)].PushPull.future(asked[b], timeout=20) for b in blocks]
        replies = [call(servers[b % len(servers)].PushPull, asked[b], sent[b]) for b in blocks]
        weights, clock = np.concatenate([np.frombuffer(r.payload, "<f4") for r in replies]), clock + 1
    call(coordinator.Leave, control.LeaveRequest(clock=clock, reason=control.LEAVE_FINISHED, **me))  # 7. Leave
    model = tensors(job.schema, weights)
    right = (x @ model["dense_1/weight"] + model["dense_1/bias"]).argmax(axis=1) == y
    print(f"rank {job.rank}: {clock} clocks; accuracy on its training data {right.mean():.4f}")

if __name__ == "__main__":
    train(*sys.argv[1:])
