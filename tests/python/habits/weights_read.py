"""Weights that a script reads while it trains."""

import copy

import torch
from torch import nn

from .table import network, row, sgd, train, validated, weights


@row(two=True)
@row("delta")
def moving_average(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    average = copy.deepcopy(model)

    def update():
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow.data.mul_(0.8).add_(fast.data, alpha=0.2)
    train(model, optimizer, job.over(run.batches()), update)
    return {**weights(model), **{f"average.{name}": value for name, value in weights(average).items()}}


@row(two=True)
def stochastic_weight_averaging(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    averaged = torch.optim.swa_utils.AveragedModel(model)
    for step, batch in enumerate(job.over(run.batches())):
        train(model, optimizer, [batch])
        if step >= 6:
            averaged.update_parameters(model)
    return weights(averaged)


@row()
def averaging_with_batch_norm(run):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = sgd(model.parameters())
    batches = run.batches()
    job = run.join(model, optimizer)
    averaged = torch.optim.swa_utils.AveragedModel(model)
    train(model, optimizer, job.over(batches), lambda: averaged.update_parameters(model))
    torch.optim.swa_utils.update_bn(batches, averaged)
    return {**weights(averaged), **{f"own.{name}": value for name, value in weights(model).items()}}


@row(two=True)
@row("delta")
def curves_of_weights(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    norms, histograms, ranges = [], [], []

    def log():
        norms.append(torch.stack([parameter.data.norm() for parameter in model.parameters()]))
        histograms.append(torch.nn.utils.parameters_to_vector(model.parameters()).detach().quantile(torch.linspace(0, 1, 5)))
        ranges.append(torch.tensor([float(p.max() - p.min()) for p in model.parameters()]))
    train(model, optimizer, job.over(run.batches()), log)
    return {"norms": torch.stack(norms), "histograms": torch.stack(histograms), "ranges": torch.stack(ranges)}


@row(two=True)
@row("delta")
def the_best_weights_so_far(run):
    model = network()
    optimizer = sgd(model.parameters())
    x, y = run.held_out()
    job = run.join(model, optimizer)
    best, losses = {}, []

    def keep():
        losses.append(validated(model, x, y))
        if losses[-1] == min(losses):
            best.update(weights(model))
    train(model, optimizer, job.over(run.batches()), keep)
    model.load_state_dict(best)
    return {**weights(model), "losses": torch.stack(losses)}


@row(two=True)
def an_evaluation_with_averaged_weights(run):
    """Replaces the weights by averaged ones, and restores them."""
    model = network()
    optimizer = sgd(model.parameters())
    x, y = run.held_out()
    job = run.join(model, optimizer)
    average, losses = [parameter.detach().clone() for parameter in model.parameters()], []

    def evaluate():
        for slow, fast in zip(average, model.parameters()):
            slow.lerp_(fast.detach(), 0.3)
        kept = [parameter.detach().clone() for parameter in model.parameters()]
        for parameter, value in zip(model.parameters(), average):
            parameter.data.copy_(value)
        losses.append(validated(model, x, y))
        for parameter, value in zip(model.parameters(), kept):
            parameter.data.copy_(value)
    train(model, optimizer, job.over(run.batches()), evaluate)
    return {**weights(model), "losses": torch.stack(losses)}


@row(two=True)
def checkpoints_and_copies(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    halves, kept = [], []

    def save():
        halves.append(copy.deepcopy(model).half().float()[0].weight.detach())
        kept.append({name: value.clone() for name, value in model.state_dict().items()})
    train(model, optimizer, job.over(run.batches()), save)
    return {"halves": torch.stack(halves), "kept": torch.stack([state["0.weight"] for state in kept])}
