"""A torch worker for tests, and the same training in plain torch. As a script: torch_worker.py MODEL OPTIMIZER FOLDER."""

import hashlib
import os
import pathlib
import sys
import time

import torch
from torch import nn

from leeway.batches import BatchOrder
from leeway.session import Info

EXAMPLES = 640
torch.set_num_threads(1)


def make_model(name, seed=1):
    torch.manual_seed(seed)
    if name == "mlp":
        return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
    if name == "norm":
        return nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 5))
    raise ValueError(name)


def make_optimizer(name, model):
    parameters, optim = model.parameters(), torch.optim
    decayed = [{"params": [p for p in model.parameters() if p.ndim > 1]},
               {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0, "lr": 0.05}]
    return {"sgd": lambda: optim.SGD(parameters, lr=0.1),
            "momentum": lambda: optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.001),
            "nesterov": lambda: optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True),
            "adagrad": lambda: optim.Adagrad(parameters, lr=0.05, weight_decay=0.001),
            "adam": lambda: optim.Adam(parameters, lr=0.003, weight_decay=0.001),
            "adamw": lambda: optim.AdamW(parameters, lr=0.003, weight_decay=0.05),
            "groups": lambda: optim.SGD(decayed, lr=0.1, momentum=0.9, weight_decay=0.01)}[name]()


def data(examples=EXAMPLES):
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(examples, 20, generator=generator)
    return x, (x @ torch.randn(20, 5, generator=generator)).argmax(1)


def step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def alone(name, optimizer_name, steps, batch_size, seed=3, reseed=None):
    """Trains in plain torch on the batches of a job with these settings and one worker."""
    model = make_model(name)
    optimizer = make_optimizer(optimizer_name, model)
    x, y = data()
    order = BatchOrder(Info(seed=seed, batch_size=batch_size), EXAMPLES)
    for number in range(steps):
        if reseed is not None:
            torch.manual_seed(reseed(number))
        rows = torch.from_numpy(order.rows(number))
        step(model, optimizer, x[rows], y[rows])
    return model


def furthest(one, other):
    """Returns the largest difference of two state dicts, relative to each tensor's largest value."""
    worst = 0.0
    for name, value in one.items():
        scale = float(other[name].abs().max())
        worst = max(worst, float((value - other[name]).abs().max()) / max(scale, 1e-12))
    return worst


def digest(model):
    """Returns a digest of what the servers hold; counters of batches stay in the worker."""
    values = [value for value in model.state_dict().values() if value.is_floating_point()]
    return hashlib.sha256(b"".join(value.detach().numpy().tobytes() for value in values)).hexdigest()


def main():
    import leeway.torch as leeway
    name, optimizer_name, folder = sys.argv[1:4]
    rank = int(os.environ["LEEWAY_RANK"])
    # Each rank has different first weights. The servers' weights replace them.
    model = make_model(name, seed=1 + rank)
    optimizer = make_optimizer(optimizer_name, model)
    job = leeway.join(model, optimizer)
    slow = float(os.environ.get("SLOW_SECONDS", "0"))
    loader = job.batches(data())
    for epoch in job.epochs():
        for x, y in loader:
            step(model, optimizer, x, y)
            print("clock", job.clock, flush=True)
            time.sleep(slow)
        print("epoch", epoch, "done", flush=True)
    torch.save(model.state_dict(), pathlib.Path(folder) / f"rank-{rank}.pt")
    job.save(pathlib.Path(folder) / "saved.safetensors")
    print("ended", job.ended, "digest", digest(model), flush=True)


if __name__ == "__main__":
    main()
