#!/usr/bin/python3
"""Accuracies on real data, each reached by a job that ships in config/jobs."""

import runs

MLP = ["servers.count=2", "workers.count=3"]


def reaches(job, accuracy, data, sets=()):
    run = runs.Run(job, sets, runs.data_with(data))
    summary = run.train()
    runs.check(summary["state"] == "finished", f"{job}: finished")
    runs.check(summary["test_accuracy"] >= accuracy,
               f"{job} {' '.join(sets)}: test accuracy {summary['test_accuracy']:.4f}, wanted {accuracy}; "
               f"{summary['seconds']:.1f} s, {summary['samples_per_second']:.0f} samples/s, "
               f"staleness at most {summary['max_staleness']}")
    run.clean()
    return summary


MNIST = "mnist/train-images-idx3-ubyte.gz"

CASES = {
    "mnist-sync": lambda: reaches("mnist-sync.yaml", 0.975, MNIST, [*MLP, "stop.epochs=5"]),
    "mnist-sync-momentum": lambda: reaches("mnist-sync.yaml", 0.98, MNIST, [*MLP, "stop.epochs=10"]),
    "mnist-bounded": lambda: reaches(
        "mnist-bounded.yaml", 0.975, MNIST,
        [*MLP, "stop.epochs=5", "consistency={mode: bounded, staleness: 3}"]),
    "mnist-async": lambda: reaches("mnist-async.yaml", 0.975, MNIST, [*MLP, "stop.epochs=5"]),
    "mnist-cnn": lambda: reaches("mnist-cnn.yaml", 0.988, MNIST, ["stop.epochs=3"]),
    "mnist-easgd": lambda: reaches("mnist-easgd.yaml", 0.975, MNIST),
    "mnist-local-sgd": lambda: reaches("mnist-local-sgd.yaml", 0.975, MNIST),
    "mnist-fedavg-skewed": lambda: reaches("mnist-fedavg-skewed.yaml", 0.96, MNIST),
    "quickstart": lambda: reaches("quickstart.yaml", 0.95, "optdigits/optdigits.tra"),
    "a9a-logistic": lambda: reaches("a9a-logistic.yaml", 0.84, "libsvm/a9a.gz"),
    "heart-federated": lambda: reaches("heart-federated.yaml", 0.75,
                                       "heart-disease/processed.cleveland.data"),
    "cifar10-cnn": lambda: reaches("cifar10-cnn.yaml", 0.40,
                                   "cifar10/data_batch_1.first4000.bin.gz"),
}

if __name__ == "__main__":
    runs.main(CASES)
