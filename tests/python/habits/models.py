"""Kinds of models."""

import torch
from torch import nn
from torch.nn import functional as F

from .table import network, row, sgd, train, trained, validated, weights


@row(two=True)
@row("delta")
def tied_embeddings(run):
    torch.manual_seed(1)
    table, mix, out = nn.Embedding(10, 6), nn.Linear(6, 6), nn.Linear(6, 10, bias=False)
    out.weight = table.weight
    model = nn.Sequential(table, mix, nn.Tanh(), out)
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        tokens = (x.abs() * 4).long().clamp(max=9)
        F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()
    return weights(model)


@row(two=True)
def one_network_twice(run):
    """A siamese network: triplets go through the same weights."""
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for x, _ in job.over(run.batches()):
        optimizer.zero_grad()
        F.triplet_margin_loss(model(x), model(x * 0.9), model(x.flip(1)), margin=2).backward()
        optimizer.step()
    return weights(model)


@row(two=True)
@row("delta")
def two_modules_one_optimizer(run):
    encoder, decoder = network(1, (6, 4, 2)), network(2, (2, 4, 6))
    optimizer = sgd([*encoder.parameters(), *decoder.parameters()])
    job = run.join(nn.ModuleList([encoder, decoder]), optimizer)
    for x, _ in job.over(run.batches()):
        optimizer.zero_grad()
        F.mse_loss(decoder(encoder(x)), x).backward()
        optimizer.step()
    return {**weights(encoder), **{f"decoder.{name}": value for name, value in weights(decoder).items()}}


@row(two=True)
def a_learned_temperature(run):
    """One parameter that no module's forward reads, and one that belongs to a loss."""
    model = nn.ModuleDict({"body": network()})
    model.register_parameter("temperature", nn.Parameter(torch.tensor([0.7])))
    optimizer = sgd(model.parameters(), lr=0.05)
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        F.cross_entropy(model["body"](x) / model.temperature.exp(), y).backward()
        optimizer.step()
    return weights(model)


@row(two=True)
def recurrent(run):
    torch.manual_seed(1)
    model = nn.ModuleDict({"cells": nn.LSTM(3, 5, num_layers=2, batch_first=True), "out": nn.Linear(5, 3)})
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        states, _ = model["cells"](x.view(-1, 2, 3))
        F.cross_entropy(model["out"](states[:, -1]), y).backward()
        optimizer.step()
    return weights(model)


@row(two=True)
def a_transformer(run):
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(6, 2, 12, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.Unflatten(1, (1, 6)), nn.TransformerEncoder(layer, 2), nn.Flatten(), nn.Linear(6, 3))
    return trained(run, model, sgd(model.parameters(), lr=0.02))


@row()
@row("delta")
def dropout_and_batch_norm(run):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
    optimizer = sgd(model.parameters())
    x, y = run.held_out()
    job = run.join(model, optimizer)
    torch.manual_seed(9)
    losses = []
    train(model, optimizer, job.over(run.batches()), lambda: losses.append(validated(model, x, y)))
    return {**weights(model), "losses": torch.stack(losses)}


@row()
def normalized_weights(run):
    torch.manual_seed(1)
    model = nn.Sequential(nn.utils.spectral_norm(nn.Linear(6, 8)), nn.Tanh(), nn.utils.parametrizations.orthogonal(nn.Linear(8, 8)),
                          nn.Tanh(), nn.utils.weight_norm(nn.Linear(8, 3)))
    return trained(run, model)


@row(two=True)
def recomputed_activations(run):
    from torch.utils.checkpoint import checkpoint
    model = network(widths=(6, 8, 8, 3))
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        hidden = checkpoint(model[:4], x.requires_grad_(True))
        F.cross_entropy(model[4](hidden), y).backward()
        optimizer.step()
    return weights(model)


@row(two=True)
def straight_through(run):
    """A custom function whose gradient is another function's."""
    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x.sign()

        @staticmethod
        def backward(context, slope):
            return slope.clamp(-1, 1)
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        F.cross_entropy(model[2](Sign.apply(model[0](x))), y).backward()
        optimizer.step()
    return weights(model)


@row(two=True)
def convolutions_in_channels_last(run):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Unflatten(1, (2, 3, 1)), nn.Conv2d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(),
                          nn.Linear(12, 3)).to(memory_format=torch.channels_last)
    return trained(run, model)


@row(refused="DataParallel: start a worker for each device")
@row("delta", refused="DataParallel: start a worker for each device")
def data_parallel(run):
    model = nn.DataParallel(network())
    return trained(run, model)
