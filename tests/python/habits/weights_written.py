"""Weights that a script changes."""

import torch
from torch import nn
from torch.nn import functional as F

from .table import network, row, sgd, train, trained, weights


CHANGED = "parameter .*: the script has changed its values"


@row(refused=CHANGED)
@row("delta")
def clamped_critic(run):
    critic = network(widths=(6, 8, 1))
    optimizer = torch.optim.RMSprop(critic.parameters(), lr=0.01) if run.exchange == "delta" else sgd(critic.parameters())
    job = run.join(critic, optimizer)
    for x, _ in job.over(run.batches()):
        optimizer.zero_grad()
        (critic(x.flip(0) * 0.3).mean() - critic(x).mean()).backward()
        optimizer.step()
        for parameter in critic.parameters():
            parameter.data.clamp_(-0.05, 0.05)
    return weights(critic)


@row(refused=CHANGED)
@row("delta")
def loaded_while_training(run):
    model, start = network(), weights(network(7))
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for step, batch in enumerate(job.over(run.batches())):
        train(model, optimizer, [batch])
        if step == 3:
            model.load_state_dict(start)
    return weights(model)


@row(two=True)
@row("delta")
def loaded_before(run):
    model = network()
    model.load_state_dict(weights(network(7)))
    return trained(run, model)


@row(refused=CHANGED)
@row("delta")
def decay_by_hand(run):
    model = network()

    @torch.no_grad()
    def decay():
        for parameter in model.parameters():
            parameter.mul_(0.99)
    return trained(run, model, after=decay)


@row(refused=CHANGED)
@row("delta")
def lookahead(run):
    """Every fifth step goes half of the way back to slow weights (Zhang, Lucas, Hinton and Ba 2019)."""
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    slow = [parameter.detach().clone() for parameter in model.parameters()]
    for step, batch in enumerate(job.over(run.batches())):
        train(model, optimizer, [batch])
        if step % 5 == 4:
            for parameter, anchor in zip(model.parameters(), slow):
                anchor.add_(parameter.data - anchor, alpha=0.5)
                parameter.data.copy_(anchor)
    return weights(model)


@row(refused=CHANGED)
@row("delta")
def sharpness_aware(run):
    """The gradient is computed at the nearby weights with the largest loss (Foret et al. 2021)."""
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        F.cross_entropy(model(x), y).backward()
        with torch.no_grad():
            norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
            moves = [0.05 * p.grad / norm for p in model.parameters()]
            for parameter, move in zip(model.parameters(), moves):
                parameter.add_(move)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        with torch.no_grad():
            for parameter, move in zip(model.parameters(), moves):
                parameter.sub_(move)
        optimizer.step()
        optimizer.zero_grad()
    return weights(model)


@row(refused="no longer uses the memory that join assigned")
@row("delta", refused="no longer uses the memory that join assigned")
def from_a_vector(run):
    model = network()

    def noise():
        vector = nn.utils.parameters_to_vector(model.parameters())
        nn.utils.vector_to_parameters(vector * 0.99, model.parameters())
    return trained(run, model, after=noise)
