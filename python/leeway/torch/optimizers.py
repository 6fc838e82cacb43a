"""Translates a torch optimizer into the job's `update`, for gradient exchanges, in which the servers update.

Torch and the servers use the same formulas (docs/algorithms.md, Update rules). An optimizer or a setting without a
formula on the servers is an error that names it."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Iterable, Sequence

import torch

from ..errors import InvalidArgument

ELSEWHERE = "train with `exchange: {type: delta}` or elastic, where any torch optimizer runs in the worker"


class Untranslatable(InvalidArgument):
    """The servers have no rule for the script's optimizers."""


@dataclasses.dataclass
class Translation:
    update: dict[str, Any]
    #: By the parameter's id: the factors of learning rate and weight decay.
    factors: dict[int, tuple[float, float]]
    #: The learning rate that the servers use for each group. A step may set another rate (rates.py).
    rates: list[float]

    @property
    def has_state(self) -> bool:
        """Whether the servers keep more than the weights."""
        return self.update["type"] != "sgd" or bool(self.update.get("momentum"))

    def ignores_zeros(self, parameter: torch.Tensor) -> bool:
        """Returns whether a gradient of zeros changes neither the parameter nor the state that the rule keeps for
        it."""
        keeps = self.update["type"] in ("adam", "adamw") or self.update.get("momentum")
        decays = self.update["weight_decay"] * self.factors[id(parameter)][1]
        return not keeps and not decays


def _sgd(group: dict) -> dict[str, Any]:
    if group["dampening"]:
        raise Untranslatable(f"SGD with dampening {group['dampening']} has no counterpart on the servers: use "
                             f"dampening=0, or {ELSEWHERE}")
    if not group["momentum"]:
        return {"type": "sgd"}
    return {"type": "sgd", "momentum": float(group["momentum"]), "nesterov": bool(group["nesterov"])}


def _adagrad(group: dict) -> dict[str, Any]:
    if group["lr_decay"]:
        raise Untranslatable(f"Adagrad with lr_decay {group['lr_decay']} has no counterpart on the servers: use "
                             f"lr_decay=0 and keep a LambdaLR of 1 / (1 + lr_decay * step), or {ELSEWHERE}")
    return {"type": "adagrad", "epsilon": float(group["eps"]),
            "initial_sum": float(group.get("initial_accumulator_value", 0))}


def _adam(group: dict) -> dict[str, Any]:
    if group["amsgrad"]:
        raise Untranslatable(f"amsgrad has no counterpart on the servers: use amsgrad=False, or {ELSEWHERE}")
    # Torch 2.7 and later have this setting. If it is true, Adam computes what AdamW computes.
    kind = "adamw" if group.get("decoupled_weight_decay") else "adam"
    return {"type": kind, "beta1": float(group["betas"][0]), "beta2": float(group["betas"][1]),
            "epsilon": float(group["eps"])}


def _adamw(group: dict) -> dict[str, Any]:
    return {**_adam(group), "type": "adamw"}


#: For each class of optimizer, the settings of a group that its rule reads.
READ = {
    torch.optim.SGD: {"dampening", "momentum", "nesterov"},
    torch.optim.Adagrad: {"lr_decay", "eps", "initial_accumulator_value"},
    torch.optim.Adam: {"amsgrad", "betas", "eps", "decoupled_weight_decay"},
    torch.optim.AdamW: {"amsgrad", "betas", "eps", "decoupled_weight_decay"},
}
#: The key that marks the groups of an optimizer whose state is on the servers (held.py).
MARK = "leeway_state"
#: The keys that a group of any optimizer may have: settings that translate() reads, names, and settings that only
#: concern how torch computes.
COMMON = {"params", "lr", "weight_decay", "maximize", "name", "param_names", "foreach", "fused", "capturable",
          "differentiable", MARK}
#: The keys that schedulers add to groups for their own use.
NOTED = {"initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum"}

RULES: dict[type, Callable[[dict], dict[str, Any]]] = {
    torch.optim.SGD: _sgd,
    torch.optim.Adagrad: _adagrad,
    torch.optim.Adam: _adam,
    torch.optim.AdamW: _adamw,
}


def _name(optimizer: torch.optim.Optimizer) -> str:
    return f"{type(optimizer).__module__}.{type(optimizer).__qualname__}"


def groups_of(optimizers: Iterable[torch.optim.Optimizer]) -> list[dict[str, Any]]:
    """Returns the param groups of all these optimizers. Read them anew each time, because load_state_dict replaces
    them."""
    return [group for optimizer in optimizers for group in optimizer.param_groups]


def as_list(given: Any) -> list[torch.optim.Optimizer]:
    """Returns one optimizer or several as a list. Raises InvalidArgument for anything else."""
    optimizers = list(given) if isinstance(given, (list, tuple)) else [given]
    for optimizer in optimizers:
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise InvalidArgument(f"leeway.torch.join: the optimizer is a {type(optimizer).__name__}; it must be a "
                                  "torch.optim.Optimizer, or a list of them")
    if len({id(optimizer) for optimizer in optimizers}) < max(1, len(optimizers)):
        raise InvalidArgument("leeway.torch.join: the list of optimizers is empty, or has an optimizer twice")
    return optimizers


def translate(optimizers: Sequence[torch.optim.Optimizer], apart: bool = False) -> Translation:
    """Returns the job's `update` for these optimizers. Raises Untranslatable, with what to do, if the servers
    have no such rule.

    apart: whether the optimizers step separately, each with its own tensors."""
    updates = [update for optimizer in optimizers for update in _updates(optimizer)]
    groups = groups_of(optimizers)
    owners = [(which, number) for which, optimizer in enumerate(optimizers) for number in range(len(optimizer.param_groups))]
    for (which, number), update in zip(owners, updates):
        differ = [key for key in {**update, **updates[0]} if update.get(key) != updates[0].get(key)]
        if differ:
            what = f"param group {number} differs from group 0" if len(optimizers) == 1 else \
                f"group {number} of optimizer {which} ({type(optimizers[which]).__name__}) differs from optimizer 0 " \
                f"({type(optimizers[0]).__name__})"
            raise Untranslatable(f"{what} in {', '.join(differ)}: the servers have one rule, in which groups and "
                                 f"optimizers may differ in lr and weight_decay only. Make them equal, or {ELSEWHERE}")
    rates = _rates(optimizers, groups)
    decay = max(float(group["weight_decay"]) for group in groups)
    update = {**updates[0], "learning_rate": max(rates), "weight_decay": decay}
    if apart and update["type"] in ("adam", "adamw"):
        update["steps_by_element"] = True
    return Translation(update, _factors(groups, rates, decay), rates)


def _rates(optimizers: Sequence[torch.optim.Optimizer], groups: list[dict]) -> list[float]:
    """Returns the learning rate of each group, all above 0. If a scheduler from before join has changed a rate, this is
    the initial rate, and the first step sets the changed one."""
    rates = [float(group.get("initial_lr", group["lr"])) for group in groups]
    if max(rates) <= 0:
        names = ", ".join(map(_name, optimizers))
        raise Untranslatable(f"the learning rate of {names} is {max(rates)}: it must be above 0 in at least one "
                             "group. To begin at 0, give the optimizer the later rate and let a scheduler, such as "
                             "LambdaLR, lower it")
    return [each or max(rates) for each in rates]


def _updates(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """Returns the rule of each group, without lr and weight decay."""
    groups = optimizer.param_groups
    rule = RULES.get(type(optimizer))
    if rule is None:
        raise Untranslatable(f"the servers have no rule for {_name(optimizer)}: they have "
                             f"{', '.join(kind.__name__ for kind in RULES)} of torch.optim. Use one of those, or "
                             f"{ELSEWHERE}")
    if any(group.get("maximize") for group in groups):
        raise Untranslatable(f"maximize has no counterpart on the servers: negate the loss, or {ELSEWHERE}")
    for number, group in enumerate(groups):
        # A setting that is off changes nothing, so an unknown setting of a newer torch is accepted if it is off.
        unknown = [key for key, value in group.items()
                   if key not in COMMON | NOTED | READ[type(optimizer)] and value is not None and value is not False]
        if unknown:
            raise Untranslatable(f"param group {number} of {_name(optimizer)} has {', '.join(unknown)}, which the servers "
                                 f"do not know: leave it out, or {ELSEWHERE}")
    return [rule(group) for group in groups]


def _factors(groups: list[dict], rates: list[float], decay: float) -> dict[int, tuple[float, float]]:
    return {id(parameter): (rate / max(rates), float(group["weight_decay"]) / decay if decay else 1.0)
            for group, rate in zip(groups, rates) for parameter in group["params"]}
