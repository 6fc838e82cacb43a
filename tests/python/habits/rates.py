"""Learning rates that change while a script trains, by schedulers or by the scripts themselves."""

import itertools

import torch
from torch.nn import functional as F
from torch.optim import lr_scheduler as schedulers

from .table import STEPS, network, row, sgd, train, trained, validated, weights


def scheduled(run, make, groups=lambda model: model.parameters(), kind=sgd, **options):
    """A script with a scheduler that steps after each step of its optimizer."""
    model = network()
    optimizer = kind(groups(model), **options)
    job = run.join(model, optimizer)
    scheduler = job.keep(make(optimizer))
    rates = []
    train(model, optimizer, job.over(run.batches()),
          lambda: (scheduler.step(), rates.append([group["lr"] for group in optimizer.param_groups])))
    return {**weights(model), "rates": torch.tensor(rates)}


@row(two=True)
@row("delta")
def a_rate_by_steps(run):
    return scheduled(run, lambda optimizer: schedulers.StepLR(optimizer, 3, 0.3))


@row(two=True)
@row("delta")
def warm_restarts(run):
    return scheduled(run, lambda optimizer: schedulers.CosineAnnealingWarmRestarts(optimizer, 3, 2))


@row("delta")
def warm_restarts_of_adamw(run):
    return scheduled(run, lambda optimizer: schedulers.CosineAnnealingWarmRestarts(optimizer, 3, 2), kind=torch.optim.AdamW,
                     lr=0.01)


@row(two=True)
@row("delta")
def one_cycle(run):
    return scheduled(run, lambda optimizer: schedulers.OneCycleLR(optimizer, 0.3, STEPS + 1, cycle_momentum=False))


@row(refused="momentum of param group 0 is 0.95, but was 0.9.*cycle_momentum=False.*delta")
@row("delta")
def one_cycle_of_momentum(run):
    return scheduled(run, lambda optimizer: schedulers.OneCycleLR(optimizer, 0.3, STEPS + 1))


@row(two=True)
def triangles(run):
    return scheduled(run, lambda optimizer: schedulers.CyclicLR(optimizer, 0.01, 0.2, 2, cycle_momentum=False))


@row(two=True)
def warm_up_and_decay(run):
    return scheduled(run, lambda optimizer: schedulers.SequentialLR(optimizer, [
        schedulers.LinearLR(optimizer, 0.1, total_iters=4), schedulers.ExponentialLR(optimizer, 0.8)], [4]), nesterov=True)


@row(two=True)
def a_rate_for_each_layer(run):
    """The first layer waits, and then has a curve of its own. Neither curve is a multiple of the other."""
    return scheduled(run, lambda optimizer: schedulers.LambdaLR(optimizer, [lambda step: step > 4, lambda step: 0.9 ** step]),
                     lambda model: [{"params": model[0].parameters(), "lr": 0.05}, {"params": model[2].parameters()}],
                     weight_decay=0.01)


@row(two=True)
@row("delta")
def a_scheduler_from_before_join(run):
    """The first rate of the scheduler is 0."""
    model = network()
    optimizer = sgd(model.parameters())
    scheduler = schedulers.LambdaLR(optimizer, lambda step: min(1, step / 5))
    job = run.join(model, optimizer)
    job.keep(scheduler)
    train(model, optimizer, job.over(run.batches()), scheduler.step)
    return weights(model)


@row(two=True)
@row("delta")
def a_rate_that_follows_the_loss(run):
    model = network()
    optimizer = sgd(model.parameters(), lr=0.5)
    x, y = run.held_out()
    job = run.join(model, optimizer)
    scheduler = job.keep(schedulers.ReduceLROnPlateau(optimizer, patience=0, factor=0.5))
    train(model, optimizer, job.over(run.batches()), lambda: scheduler.step(float(validated(model, x, y))))
    return {**weights(model), "rate": torch.tensor(optimizer.param_groups[0]["lr"])}


@row(two=True)
@row("delta")
def a_rate_of_the_scripts_own(run):
    """The script sets the rate before each forward pass, as nanoGPT does."""
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for number, (x, y) in enumerate(job.over(run.batches())):
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * min(1, (number + 1) / 4) * 0.9 ** number
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return weights(model)


@row(two=True)
def a_rate_set_before_the_step(run):
    """The script sets the rate between backward() and step()."""
    model, numbers = network(), itertools.count(2)
    optimizer = sgd(model.parameters())
    return trained(run, model, optimizer, between=lambda: optimizer.param_groups[0].update(lr=0.1 / next(numbers)))


@row(refused="a scheduler sets the rate of SGD.*job.keep")
@row("delta", refused="a scheduler sets the rate of SGD.*job.keep")
def a_scheduler_that_nobody_keeps(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    scheduler = schedulers.StepLR(optimizer, 3, 0.3)
    train(model, optimizer, job.over(run.batches()), scheduler.step)


@row(refused="a ReduceLROnPlateau sets the rate of SGD.*job.keep")
@row("delta", refused="a ReduceLROnPlateau sets the rate of SGD.*job.keep")
def a_plateau_that_nobody_keeps(run):
    model = network()
    optimizer = sgd(model.parameters())
    scheduler = schedulers.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
    job = run.join(model, optimizer)
    train(model, optimizer, job.over(run.batches()), lambda: scheduler.step(1.0))
