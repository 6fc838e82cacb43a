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


def compressed(job, plain, bytes_share, accuracy_loss, data, seeds):
    """`job` against `plain`, which differs in compression only: bytes at most so many times, accuracy at most so
    much lower, seed by seed."""
    for seed in seeds:
        runs_of = [runs.Run(name, [f"metadata.seed={seed}"], runs.data_with(data)) for name in (job, plain)]
        small, full = (run.train() for run in runs_of)
        moved = [s["bytes_sent"] + s["bytes_received"] for s in (small, full)]
        share, lost = moved[0] / moved[1], full["test_accuracy"] - small["test_accuracy"]
        text = (f"{job}, seed {seed}: {share:.4f} of the bytes ({small['bytes_sent'] / full['bytes_sent']:.4f} up, "
                f"{small['bytes_received'] / full['bytes_received']:.4f} down), accuracy "
                f"{small['test_accuracy']:.4f} against {full['test_accuracy']:.4f}")
        runs.check(share <= bytes_share and lost <= accuracy_loss, text)
        for run in runs_of:
            run.clean()


MNIST = "mnist/train-images-idx3-ubyte.gz"

CASES = {
    "mnist-sync": lambda: reaches("mnist-sync.yaml", 0.975, MNIST, [*MLP, "stop.epochs=5"]),
    "mnist-sync-momentum": lambda: reaches("mnist-sync.yaml", 0.98, MNIST, [*MLP, "stop.epochs=10"]),
    "mnist-bounded": lambda: reaches(
        "mnist-bounded.yaml", 0.975, MNIST,
        [*MLP, "stop.epochs=5", "consistency={mode: bounded, staleness: 3}"]),
    "mnist-async": lambda: reaches("mnist-async.yaml", 0.975, MNIST, [*MLP, "stop.epochs=5"]),
    "mnist-leased": lambda: reaches("mnist-async.yaml", 0.97, MNIST,
                                    [*MLP, "stop.epochs=3", "data.assignment=leased"]),
    "mnist-cnn": lambda: reaches("mnist-cnn.yaml", 0.988, MNIST, ["stop.epochs=3"]),
    "mnist-cnn-int8": lambda: compressed("mnist-cnn-int8.yaml", "mnist-cnn.yaml", 0.27, 0.003, MNIST, [42]),
    "mnist-cnn-top-k": lambda: compressed("mnist-cnn-top-k.yaml", "mnist-cnn.yaml", 0.03, 0.003, MNIST, [42, 43]),
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
