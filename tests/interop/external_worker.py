#!/usr/bin/python3
"""The program of an external job's workers, as `leeway train JOB -- COMMAND` starts it: softmax regression on the
optdigits data, by stock stubs. Its place, the token and the threads come from the environment.

    external_worker.py [--rate-of RANK R] [--die-at CLOCK] [--end-at CLOCK] [--evaluate]"""

import argparse
import os
import pathlib
import signal
import sys

import servers
from leeway.v1 import coordinator_pb2, job_pb2
from leeway.v1 import parameter_server_pb2 as data_plane
from python_worker import GoneBack, PythonWorker, gradient, tensors

import grpc
import numpy as np

SHAPES = {"linear/weight": (64, 10), "linear/bias": (10,)}
BATCH, EXAMPLES = 64, 3823


def schema():
    model = coordinator_pb2.ModelSchema()
    for name, shape in SHAPES.items():
        model.tensors.add(name=name, shape=shape, offset=model.total)
        model.total += int(np.prod(shape))
    model.trained = model.total
    # The bias has no weight decay.
    model.tensors[1].kind = coordinator_pb2.TENSOR_KIND_BIAS
    model.tensors[1].factors.weight_decay = 0
    return model


class ExternalWorker(PythonWorker):
    def __init__(self, options):
        self.options = options
        super().__init__(os.environ["LEEWAY_COORDINATOR"], int(os.environ["LEEWAY_RANK"]))

    def channel(self, address):
        return grpc.intercept_channel(super().channel(address), servers.Bearer(os.environ["LEEWAY_TOKEN"]))

    def introduction(self):
        request = super().introduction()
        request.schema.CopyFrom(schema())
        request.steps_per_epoch = -(-(-(-EXAMPLES // BATCH)) // 2)
        request.update.CopyFrom(job_pb2.Update(
            sgd=job_pb2.Sgd(momentum=0.5, weight_decay=1e-4), learning_rate=self.options.rate_of.get(self.rank, 0.2)))
        return request

    def attach(self):
        request = data_plane.AttachRequest(**self.identity())
        for server in self.servers:
            if not self.retried(lambda s=server: s.Attach, request).needs_initialize:
                continue
            for block in self.blocks():
                size = min(self.block, self.total - block * self.block)
                self.retried(lambda b=block: self.server(b).Initialize, data_plane.PushRequest(
                    header=self.header(block, 0), payload=np.zeros(size, "<f4").tobytes()))
        super().attach()

    def run_clocks(self, features, labels, batch_size):
        self.attach()
        weights = self.pull()
        while self.clock < self.job.length.clocks:
            self.die_if_due()
            at = (self.clock * 2 + self.rank) * batch_size % len(features)
            x, y = features[at:at + batch_size], labels[at:at + batch_size]
            weights = self.push_pull(gradient(self.job.schema, weights, x, y), len(x))
        if self.options.evaluate and self.rank == 0:
            self.evaluate(weights)
        return weights

    def die_if_due(self):
        mark = pathlib.Path(os.environ["LEEWAY_RUN_DIR"]) / "died"
        if self.clock not in (self.options.die_at, self.options.end_at) or self.rank != 1 or mark.exists():
            return
        mark.touch()
        if self.clock == self.options.end_at:
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)

    def evaluate(self, weights):
        named = tensors(self.job.schema, weights)
        share = servers.accuracy({"dense_1/weight": named["linear/weight"], "dense_1/bias": named["linear/bias"]})
        beat = coordinator_pb2.HeartbeatRequest(clock=self.clock, epoch=self.epoch, **self.identity())
        beat.evaluations.add(clock=self.clock, epoch=1, test_loss=0.25, test_accuracy=share, examples=1797)
        self.retried(lambda: self.coordinator.Heartbeat, beat)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate-of", nargs=2, action="append", default=[])
    parser.add_argument("--die-at", type=int)
    parser.add_argument("--end-at", type=int)
    parser.add_argument("--evaluate", action="store_true")
    options = parser.parse_args()
    options.rate_of = {int(rank): float(rate) for rank, rate in options.rate_of}
    print("threads", os.environ["OMP_NUM_THREADS"])
    try:
        worker = ExternalWorker(options)
    except (grpc.RpcError, GoneBack) as error:
        print(error.details() if isinstance(error, grpc.RpcError) else error, file=sys.stderr)
        # Like leeway-worker: what the coordinator refuses stays refused.
        sys.exit(3)
    worker.train(*servers.digits("optdigits.tra"), BATCH)
    print("rate", worker.job.job.update.learning_rate)


if __name__ == "__main__":
    main()
