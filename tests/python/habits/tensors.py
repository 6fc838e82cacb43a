"""Tensors that change after join, and parameters without a gradient."""

import functools

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import prune

from .table import network, row, sgd, train, trained, weights


# ---- tensors other than at join

STAGES = "Stages"


def changed(run, model, change, optimizer=None):
    """Changes the model after five steps."""
    optimizer = optimizer or sgd(model.parameters())
    job = run.join(model, optimizer)
    for step, batch in enumerate(job.over(run.batches())):
        if step == 5:
            change(optimizer)
        train(model, optimizer, [batch])
    return weights(model)


@row(refused=f"0.weight: it was frozen at join.*{STAGES}")
@row("delta", refused=f"0.weight: it was frozen at join.*{STAGES}")
def unfrozen_while_training(run):
    model = network()
    model[0].requires_grad_(False)
    return changed(run, model, lambda _: model[0].requires_grad_(True))


@row(refused=f"other parameters than at join.*{STAGES}")
@row("delta", refused=f"other parameters than at join.*{STAGES}")
def a_group_more(run):
    model = network()
    return changed(run, model, lambda optimizer: optimizer.add_param_group({"params": model[0].parameters()}),
                   sgd(model[2].parameters()))


@row(refused=f"2.weight: it is not the same tensor.*{STAGES}")
@row("delta", refused=f"2.weight: it is not the same tensor.*{STAGES}")
def a_new_head(run):
    model = network()
    return changed(run, model, lambda _: model.__setitem__(2, nn.Linear(8, 3)))


@row(refused=f"0.weight: it is no longer there.*{STAGES}")
@row("delta", refused=f"0.weight: it is no longer there.*{STAGES}")
def pruned_while_training(run):
    model = network()
    return changed(run, model, lambda _: prune.l1_unstructured(model[0], "weight", 0.5))


@row(two=True)
@row("delta")
def pruned_before(run):
    model = network()
    prune.l1_unstructured(model[0], "weight", 0.5)
    return trained(run, model)


@row(stages=2)
@row("delta", stages=2)
def fine_tuning_in_two_stages(run):
    """Trains a new head on a frozen body, and then the whole model at a smaller rate."""
    body = network(widths=(6, 8, 8))
    body.requires_grad_(False)
    model = nn.Sequential(body, nn.Linear(8, 3))
    batches = run.batches()
    optimizer = sgd(model[1].parameters())
    train(model, optimizer, run.join(model, optimizer).over(batches[:6]))
    body.requires_grad_(True)
    optimizer = sgd(model.parameters(), lr=0.01)
    train(model, optimizer, run.join(model, optimizer).over(batches[6:]))
    return weights(model)


@row(stages=2)
def another_head_for_another_task(run):
    torch.manual_seed(1)
    body, batches = network(widths=(6, 8, 8)), run.batches()
    for head, part in ((nn.Linear(8, 3), batches[:6]), (nn.Linear(8, 3), batches[6:])):
        model = nn.Sequential(body, head)
        optimizer = sgd(model.parameters())
        train(model, optimizer, run.join(model, optimizer).over(part))
    return weights(model)


@row(two=True)
@row("delta")
def a_head_on_a_frozen_body(run):
    model = network(widths=(6, 8, 8, 3))
    model[:4].requires_grad_(False)
    return trained(run, model, sgd((p for p in model.parameters() if p.requires_grad), weight_decay=0.01))


@row(two=True)
@row("delta")
def a_head_on_a_body_that_no_optimizer_has(run):
    model = network(widths=(6, 8, 8, 3))
    return trained(run, model, sgd(model[4].parameters(), weight_decay=0.01))


# ---- parameters without a gradient

class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.body, self.heads = nn.Linear(6, 8), nn.ModuleList(nn.Linear(8, 3) for _ in range(2))

    def forward(self, x, which):
        return self.heads[which](self.body(x).tanh())


def alternate(run, as_list=False, kind=sgd, **options):
    model = Branches()
    optimizer = kind(model.parameters(), **options)
    job = run.join(model, [optimizer] if as_list else optimizer)
    for step, (x, y) in enumerate(job.over(run.batches())):
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x, step % 2), y).backward()
        optimizer.step()
    return weights(model)


@row(refused="heads.1.weight: it has no gradient.*as a list")
@row("delta")
def two_tasks_in_turn(run):
    return alternate(run)


@row(two=True)
def two_tasks_in_turn_by_a_list(run):
    return alternate(run, as_list=True, weight_decay=0.1)


@row(two=True)
def two_tasks_in_turn_by_a_list_of_adam(run):
    return alternate(run, as_list=True, kind=torch.optim.Adam, lr=0.01, weight_decay=0.1)


@row(two=True)
def two_tasks_in_turn_without_momentum(run):
    return alternate(run, momentum=0)


@row(refused="heads.1.weight: it has no gradient.*freeze it before join")
@row("delta")
def a_layer_that_is_never_used(run):
    model = Branches()
    optimizer = sgd(model.parameters(), momentum=0, weight_decay=0.1)
    job = run.join(model, optimizer)
    train(functools.partial(model, which=0), optimizer, job.over(run.batches()))
    return weights(model)
