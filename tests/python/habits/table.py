"""The table of habits, and helpers of their scripts."""

import torch
from torch import nn
from torch.nn import functional as F

#: Rows: (script, exchange, the refusal's text or None, whether two workers do what twice the batch does).
ROWS = []
STEPS = 12


def row(exchange="gradient", refused=None, two=False, **options):
    def add(script):
        ROWS.append((script, exchange, refused, two, options))
        return script
    return add


def network(seed=1, widths=(6, 8, 3)):
    torch.manual_seed(seed)
    layers = [part for one, other in zip(widths, widths[1:]) for part in (nn.Linear(one, other), nn.Tanh())]
    return nn.Sequential(*layers[:-1])


def sgd(parameters, **options):
    return torch.optim.SGD(parameters, **{"lr": 0.1, "momentum": 0.9, **options})


def train(model, optimizer, batches, after=lambda: None, loss=F.cross_entropy, between=lambda: None):
    """Trains on the batches. `between` is called between backward() and step()."""
    for x, y in batches:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        between()
        optimizer.step()
        after()


def trained(run, model, optimizer=None, **options):
    """Returns the weights after the worker's batches."""
    optimizer = optimizer or sgd(model.parameters())
    job = run.join(model, optimizer)
    train(model, optimizer, job.over(run.batches()), **options)
    return weights(model)


def validated(model, x, y):
    """Returns the loss on held-out examples."""
    with torch.no_grad():
        loss = F.cross_entropy(model.eval()(x), y)
    model.train()
    return loss


def weights(model):
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
