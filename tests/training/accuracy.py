#!/usr/bin/python3
"""Accuracies on real data, each reached by a job from config/jobs."""

import promised
import runs

MLP = ["servers.count=2", "workers.count=3"]


def reaches(job, accuracy, data, sets=()):
    """`accuracy`: the one to reach with settings other than the job's own; None: what docs/guide.md promises."""
    accuracy = promised.least(job.removesuffix(".yaml")) if accuracy is None else accuracy
    run = runs.Run(job, sets, runs.data_with(data))
    summary = run.train()
    runs.check(summary["state"] == "finished" and summary["learned"], f"{job}: finished, and has learned")
    runs.check(summary["test_accuracy"] >= accuracy,
               f"{job} {' '.join(sets)}: test accuracy {summary['test_accuracy']:.4f}, wanted {accuracy}; "
               f"{summary['seconds']:.1f} s, {summary['samples_per_second']:.0f} samples/s, "
               f"staleness at most {summary['max_staleness']}")
    run.clean()
    return summary


def cnn(seed, job="mnist-cnn.yaml"):
    run = runs.Run(job, [f"metadata.seed={seed}"], runs.data_with(MNIST))
    summary = run.train()
    run.clean()
    return summary


def compressed(seed, shares):
    """Compares the plain CNN with jobs that differ from it in compression only. `shares` is {job: the largest share of
    its bytes}. docs/guide.md says how much lower their accuracy may be."""
    full = cnn(seed)
    runs.check(full["test_accuracy"] >= promised.least("mnist-cnn"),
               f"mnist-cnn, seed {seed}: test accuracy {full['test_accuracy']:.4f}")
    for name, bytes_share in shares.items():
        _, accuracy_loss = promised.LESS[name]
        small = cnn(seed, f"{name}.yaml")
        moved = [s["bytes_sent"] + s["bytes_received"] for s in (small, full)]
        share, lost = moved[0] / moved[1], full["test_accuracy"] - small["test_accuracy"]
        text = (f"{name}, seed {seed}: {share:.4f} of the bytes ({small['bytes_sent'] / full['bytes_sent']:.4f} up, "
                f"{small['bytes_received'] / full['bytes_received']:.4f} down), accuracy "
                f"{small['test_accuracy']:.4f} against {full['test_accuracy']:.4f}")
        runs.check(share <= bytes_share and lost <= accuracy_loss, text)


def learns_nothing(job, sets, why, data):
    """A run that has learned nothing says so: on the terminal, in summary.json and in the report."""
    run = runs.Run(job, sets, runs.data_with(data))
    run.learns = False
    summary = run.train()
    runs.check(summary["state"] == "finished" and summary["learned"] is False,
               f"{job} {' '.join(sets)}: finished, and has learned nothing")
    runs.check(why in summary["why_not_learned"], summary["why_not_learned"])
    runs.check(f"WARNING: {summary['why_not_learned']}" in run.said(), "it is the terminal's warning")
    runs.check("has learned nothing" in (run.dir / "report.html").read_text(), "and in the report")
    run.clean()


# Weights decay by three quarters a step, so that the network gives the same answer for every example.
DECAYED = ["update.momentum=0", "update.weight_decay=50", "stop.epochs=1"]

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
    "mnist-cnn": lambda: compressed(42, {"mnist-cnn-int8": 0.27, "mnist-cnn-top-k": 0.03}),
    "mnist-cnn-top-k": lambda: compressed(43, {"mnist-cnn-top-k": 0.03}),
    "mnist-easgd": lambda: reaches("mnist-easgd.yaml", None, MNIST),
    "mnist-local-sgd": lambda: reaches("mnist-local-sgd.yaml", None, MNIST),
    "mnist-fedavg-skewed": lambda: reaches("mnist-fedavg-skewed.yaml", None, MNIST),
    "quickstart": lambda: reaches("quickstart.yaml", None, "optdigits/optdigits.tra"),
    "a9a-logistic": lambda: reaches("a9a-logistic.yaml", None, "libsvm/a9a.gz"),
    "heart-federated": lambda: reaches("heart-federated.yaml", None,
                                       "heart-disease/processed.cleveland.data"),
    "learns-nothing": lambda: learns_nothing("quickstart.yaml", DECAYED, "is not above chance", "optdigits/optdigits.tra"),
    "mnist-lenet": lambda: reaches("mnist-lenet.yaml", None, MNIST),
    "cifar10-resnet20": lambda: reaches("cifar10-resnet20.yaml", None,
                                        "cifar10/data_batch_1.first4000.bin.gz"),
    "cifar10-mobilenet-v2": lambda: reaches("cifar10-mobilenet-v2.yaml", None,
                                            "cifar10/data_batch_1.first4000.bin.gz"),
    "cifar10-resnet18": lambda: reaches("cifar10-resnet18.yaml", None,
                                        "cifar10/data_batch_1.first4000.bin.gz"),
    "shakespeare-gpt": lambda: reaches("shakespeare-gpt.yaml", None, "tinyshakespeare/input.txt"),
    "cifar10-cnn": lambda: reaches("cifar10-cnn.yaml", None,
                                   "cifar10/data_batch_1.first4000.bin.gz"),
}

if __name__ == "__main__":
    runs.main(CASES)
