#!/usr/bin/python3
"""Trains one model with a C++ worker and a Python worker made of stock stubs, over two servers.

    stock_stubs_test.py undisturbed | going-back | replicas

With going-back a server is killed, and the job returns to its newest checkpoint; with replicas it is killed too, and
nothing goes back. Environment: LEEWAY_BIN (programs), LEEWAY_STUBS (folder of the generated *_pb2.py)."""

import sys
import threading
import time

import servers
from python_worker import PythonWorker, tensors


class KillAt:
    """Kills server 1 once the worker has reached a clock and the job can continue without the server."""

    def __init__(self, job, worker, clock, event):
        self.job, self.worker, self.clock, self.event = job, worker, clock, event
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while self.worker.clock < self.clock or self.event not in self.job.events():
            time.sleep(0.005)
        self.job.kill_second()
        print(f"killed server 1 at clock {self.worker.clock}")


def main(case):
    needed = {"going-back": "checkpoint", "replicas": "replicas_synced"}
    # Slow enough that the event comes long before the job's end.
    step = 20 if case in needed else 0
    with servers.job_with_one_worker(replicas=2 if case == "replicas" else 1, step=step) as job:
        python = PythonWorker(job.coordinator, rank=1)
        blow = KillAt(job, python, 150, needed[case]) if case in needed else None
        weights = python.train(*servers.digits("optdigits.tra"), 64)
        if blow:
            blow.thread.join()
        events = job.events()
    assert python.failure is None, python.failure
    registrations = 2 if case == "going-back" else 1
    assert python.registrations == registrations, python.registrations
    assert ("went_back" in events) == (case == "going-back"), events
    assert ("placement_changed" in events) == (case == "replicas"), events
    share = servers.accuracy(tensors(python.job.schema, weights))
    print(f"test accuracy of the model that a C++ and a Python worker trained: {share:.4f}")
    assert share > 0.93, share


if __name__ == "__main__":
    main(sys.argv[1])
