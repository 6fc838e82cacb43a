#!/usr/bin/python3
"""Compares ResNet-20 on CIFAR-10 by two workers with one PyTorch process on the same batches: the curves of the test
loss.

PyTorch's process computes what the two workers do: each batch by itself, so that batch norm sees one worker's examples,
and the mean of both gradients weighted by examples. The order of the examples is Leeway's, from the definition of its
draws (common/philox.h), which this file implements a second time."""

import gzip
import pathlib
import tempfile

import numpy
import runs
from torch_models import MODELS, Torch, read_model, torch_module

TRAIN, TEST = "cifar10/data_batch_1.first4000.bin.gz", "cifar10/test_batch.first1000.bin.gz"
MEAN, STD = numpy.float32([0.491, 0.482, 0.445]), numpy.float32([0.247, 0.244, 0.262])
SEED, WORKERS, BATCH, RATE, STEPS, EVERY = 42, 2, 64, 0.01, 100, 10
SETS = [f"metadata.seed={SEED}", f"update={{type: sgd, learning_rate: {RATE}, momentum: 0.9, weight_decay: 0.0001}}",
        f"evaluation={{every: {{clocks: {EVERY}}}}}", "data.augment={flip: false}"]
BESIDE_MAX = 0.02
WORD, WORD64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def mix(z):
    """SplitMix64's finaliser."""
    z = (z + 0x9E3779B97F4A7C15) & WORD64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD64
    return z ^ (z >> 31)


def philox(c, k):
    """Philox4x32-10 (Salmon et al. 2011)."""
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & WORD, (a >> 32) ^ c[3] ^ k[1], a & WORD]
        k = [(k[0] + 0x9E3779B9) & WORD, (k[1] + 0xBB67AE85) & WORD]
    return c


def draws(seed, purpose, *keys):
    stream = mix(purpose)
    for key in keys:
        stream = mix(stream ^ key)
    block = 0
    while True:
        words = philox([block & WORD, block >> 32, stream & WORD, stream >> 32], [seed & WORD, seed >> 32])
        yield words[0] | words[1] << 32
        yield words[2] | words[3] << 32
        block += 1


def shuffled(count, seed, epoch):
    """Returns the order of an epoch: Fisher and Yates, with the purpose 1."""
    order, numbers = list(range(count)), draws(seed, 1, epoch)
    for i in range(count, 1, -1):
        product = next(numbers) * i
        while product & WORD64 < i and product & WORD64 < -i % 2**64 % i:
            product = next(numbers) * i
        j = product >> 64
        order[i - 1], order[j] = order[j], order[i - 1]
    return order


def read(data, file):
    """Returns images [n, 3, 32, 32], normalised, and labels."""
    records = numpy.frombuffer(gzip.decompress((pathlib.Path(data) / file).read_bytes()), numpy.uint8).reshape(-1, 3073)
    images = records[:, 1:].reshape(-1, 3, 32, 32).astype(numpy.float32) / 255
    return (images - MEAN[:, None, None]) / STD[:, None, None], records[:, 0].astype(numpy.int64)


def batches(count):
    """Returns by clock the rows of each worker: the batches of an epoch go to the workers in turn."""
    a_epoch = -(-count // BATCH)
    clocks = -(-a_epoch // WORKERS)
    for step in range(STEPS):
        order = shuffled(count, SEED, step // clocks)
        numbers = [rank + step % clocks * WORKERS for rank in range(WORKERS)]
        yield [order[n * BATCH:(n + 1) * BATCH] for n in numbers if n < a_epoch]


def train(torch, first, data, turn=1):
    """Returns the test loss by clock. With a `turn` of -1 each batch's examples come in reverse: the same sums, rounded
    differently."""
    (images, labels), (test_images, test_labels) = (map(torch.tensor, read(data, file)) for file in (TRAIN, TEST))
    model, forward = Torch(torch, first, torch.float32), MODELS["resnet20-a"][2]
    optimizer = torch.optim.SGD(model.parameters(), RATE, momentum=0.9, weight_decay=0.0001)
    running = [tensor for tensor in model.tensors.values() if not tensor.requires_grad]
    curve = {}
    for step, shares in enumerate(batches(len(images)), 1):
        optimizer.zero_grad()
        before = [tensor.clone() for tensor in running]
        moved = [torch.zeros_like(tensor) for tensor in running]
        for rows in shares:
            share = len(rows) / sum(map(len, shares))
            (torch.nn.functional.cross_entropy(forward(model, images[rows[::turn]]), labels[rows[::turn]])
             * share).backward()
            for tensor, old, move in zip(running, before, moved):
                move.add_(tensor - old, alpha=share)
                tensor.copy_(old)
        for tensor, move in zip(running, moved):
            tensor.add_(move)
        optimizer.step()
        if step % EVERY == 0:
            with torch.no_grad(), model.evaluation():
                curve[step] = torch.nn.functional.cross_entropy(forward(model, test_images), test_labels).item()
    return curve


def curves():
    torch = torch_module()
    data = runs.data_with(TRAIN)
    parent = tempfile.mkdtemp(prefix="leeway-test-")

    def run_of(name, *more):
        run = runs.Run("cifar10-resnet20.yaml", [*SETS, *more], data, name=name, parent=parent)
        run.learns = False
        run.train()
        return run

    # A rate at which no weight changes shows the first weights. Running statistics begin at 0 and 1.
    start = run_of("start", "update.learning_rate=1e-30", "stop={clocks: 1}")
    first = read_model(start.dir / "model.safetensors")
    for name, values in first.items():
        if "running" in name:
            values[...] = 1 if name.endswith("var") else 0
    run = run_of("run", f"stop={{clocks: {STEPS}}}")
    ours = {event["clock"]: event["test_loss"] for event in run.events("evaluation")}
    theirs, again = train(torch, first, data), train(torch, first, data, -1)
    for clock, loss in theirs.items():
        print(f"clock {clock:3}: test loss {ours[clock]:.4f}, PyTorch {loss:.4f}, and {again[clock]:.4f} with each batch "
              "in reverse")

    def apart(one):
        return max(abs(one[clock] / loss - 1) for clock, loss in theirs.items())

    runs.check(apart(ours) <= max(BESIDE_MAX, apart(again)),
               f"at most {100 * apart(ours):.2f} % from PyTorch's curve over {STEPS} steps; PyTorch from itself "
               f"{100 * apart(again):.2f} %")
    run.clean()


if __name__ == "__main__":
    runs.main({"resnet20": curves})
