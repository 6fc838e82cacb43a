#!/usr/bin/python3
"""Trains one model with a C++ worker and a Python worker made of stock stubs, over two servers.

Environment: LEEWAY_BIN (programs), LEEWAY_STUBS (folder of the generated *_pb2.py)."""

import servers
from python_worker import PythonWorker, tensors


def main():
    with servers.job_with_one_worker() as (coordinator, _):
        python = PythonWorker(coordinator, rank=1)
        weights = python.train(*servers.digits("optdigits.tra"), 64)
    assert python.failure is None, python.failure
    share = servers.accuracy(tensors(python.job.schema, weights))
    print(f"test accuracy of the model that a C++ and a Python worker trained: {share:.4f}")
    assert share > 0.93, share


if __name__ == "__main__":
    main()
