"""Gradients, and the optimizers that use them."""

import torch
from torch import nn
from torch.nn import functional as F

from .table import network, row, sgd, trained, weights


# ---- gradients

@row(two=True)
@row("delta")
def gradient_penalty(run):
    critic = network(widths=(6, 8, 1))
    optimizer = sgd(critic.parameters(), lr=0.02)
    job = run.join(critic, optimizer)
    for x, _ in job.over(run.batches()):
        mixed = (0.6 * x + 0.4 * x.flip(1)).requires_grad_(True)
        (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        optimizer.zero_grad()
        (critic(x.flip(1)).mean() - critic(x).mean() + 10 * ((slope.norm(dim=1) - 1) ** 2).mean()).backward()
        optimizer.step()
    return weights(critic)


@row()
@row("delta")
def clipped_norm(run):
    model, norms = network(), []
    found = trained(run, model, between=lambda: norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.3)))
    return {**found, "norms": torch.stack(norms)}


@row()
def clipped_values(run):
    model = network()
    return trained(run, model, between=lambda: nn.utils.clip_grad_value_(model.parameters(), 0.05))


@row(steps=6)
def accumulated(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for number, (x, y) in enumerate(job.over(run.batches())):
        (F.cross_entropy(model(x), y) / 2).backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
    return weights(model)


@row()
def gradient_noise(run):
    model, draws = network(), torch.Generator().manual_seed(5)

    def noise():
        for parameter in model.parameters():
            parameter.grad.data.add_(torch.randn(parameter.shape, generator=draws), alpha=0.01)
    return trained(run, model, between=noise)


@row(two=True)
def hooks_on_gradients(run):
    model = network()
    model[0].weight.register_hook(lambda gradient: gradient * 0.5)
    model[2].register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 0.9,))
    return trained(run, model)


@row(two=True)
def two_losses_two_backwards(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        scores = model(x)
        F.cross_entropy(scores, y).backward(retain_graph=True)
        (0.1 * scores.square().mean()).backward()
        optimizer.step()
    return weights(model)


@row(two=True)
@row("delta")
def penalties_in_the_loss(run):
    model = network()

    def loss(scores, y):
        return F.cross_entropy(scores, y, label_smoothing=0.1) + 1e-3 * sum(p.abs().sum() for p in model.parameters())
    return trained(run, model, loss=loss)


@row(two=True)
def meta_learning(run):
    """One inner step, through which the outer gradient flows (MAML, Finn, Abbeel and Levine 2017)."""
    model = nn.Linear(6, 3)
    nn.init.constant_(model.weight, 0.1)
    nn.init.zeros_(model.bias)
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        inner = F.linear(torch.ones(2, 6), model.weight, model.bias).square().mean()
        slopes = torch.autograd.grad(inner, [model.weight, model.bias], create_graph=True)
        weight, bias = model.weight - 0.1 * slopes[0], model.bias - 0.1 * slopes[1]
        F.cross_entropy(F.linear(x, weight, bias), y).backward()
        optimizer.step()
    return weights(model)


# ---- optimizers and their settings

@row(two=True)
@row("delta")
def rates_by_layer(run):
    model = network(widths=(6, 8, 8, 3))
    groups = [{"params": model[number].parameters(), "lr": 0.1 * 0.5 ** number} for number in (0, 2, 4)]
    return trained(run, model, sgd(groups))


@row(two=True)
def no_decay_for_biases(run):
    model = network()
    groups = [{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 0.1},
              {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0}]
    return trained(run, model, sgd(groups, nesterov=True))


@row(refused="LBFGS.*delta")
@row("delta")
def lbfgs(run):
    model = network()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2)
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss
        optimizer.step(closure)
    return weights(model)


@row(refused="maximize has no counterpart.*delta")
@row("delta")
def ascent(run):
    policy = network()
    return trained(run, policy, sgd(policy.parameters(), maximize=True), loss=lambda scores, y: -F.cross_entropy(scores, y))


@row()
@row("delta")
def autocast_and_a_scaler(run):
    """A scaler that is disabled, as on a CPU, calls the optimizer's step itself."""
    model = network()
    optimizer = sgd(model.parameters())
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    return weights(model)
