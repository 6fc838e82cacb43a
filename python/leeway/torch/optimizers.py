"""A torch optimizer as the job's `update`, for gradient exchanges, where the servers update.

The formulas are the same on both sides (docs/algorithms.md, Update rules). What has none there is refused by name."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Sequence

import torch

from ..errors import InvalidArgument

ELSEWHERE = "train with `exchange: {type: delta}` or elastic, where any torch optimizer runs, in the worker"


class Untranslatable(InvalidArgument):
    """The servers have no such rule."""


@dataclasses.dataclass
class Translation:
    update: dict[str, Any]
    #: Factors of learning rate and weight decay, by the parameter's id.
    factors: dict[int, tuple[float, float]]
    #: By group: the rate that the servers have of it. A step may have another one (rates.py).
    rates: list[float]

    @property
    def has_state(self) -> bool:
        """Whether the servers keep more than the weights."""
        return self.update["type"] != "sgd" or bool(self.update.get("momentum"))

    def ignores_zeros(self, parameter: torch.Tensor) -> bool:
        """Whether a gradient of zeros leaves the parameter and what the rule keeps of it as they are."""
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
    # Of torch 2.7 and later; with it Adam is AdamW.
    kind = "adamw" if group.get("decoupled_weight_decay") else "adam"
    return {"type": kind, "beta1": float(group["betas"][0]), "beta2": float(group["betas"][1]),
            "epsilon": float(group["eps"])}


def _adamw(group: dict) -> dict[str, Any]:
    return {**_adam(group), "type": "adamw"}


#: What a rule reads of a group, by optimizer.
READ = {
    torch.optim.SGD: {"dampening", "momentum", "nesterov"},
    torch.optim.Adagrad: {"lr_decay", "eps", "initial_accumulator_value"},
    torch.optim.Adam: {"amsgrad", "betas", "eps", "decoupled_weight_decay"},
    torch.optim.AdamW: {"amsgrad", "betas", "eps", "decoupled_weight_decay"},
}
#: In each group of an optimizer whose state is on servers (held.py).
MARK = "leeway_state"
#: Of each group: what translate() reads, names, and how torch computes, which the servers need not know.
COMMON = {"params", "lr", "weight_decay", "maximize", "name", "param_names", "foreach", "fused", "capturable",
          "differentiable", MARK}
#: What schedulers note there for themselves.
NOTED = {"initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum"}

RULES: dict[type, Callable[[dict], dict[str, Any]]] = {
    torch.optim.SGD: _sgd,
    torch.optim.Adagrad: _adagrad,
    torch.optim.Adam: _adam,
    torch.optim.AdamW: _adamw,
}


def _name(optimizer: torch.optim.Optimizer) -> str:
    return f"{type(optimizer).__module__}.{type(optimizer).__qualname__}"


def as_list(given: Any) -> list[torch.optim.Optimizer]:
    """One optimizer, or several."""
    optimizers = list(given) if isinstance(given, (list, tuple)) else [given]
    for optimizer in optimizers:
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise InvalidArgument(f"leeway.torch.join: the optimizer is a {type(optimizer).__name__}; it is a "
                                  "torch.optim.Optimizer, or a list of such")
    if len({id(optimizer) for optimizer in optimizers}) < max(1, len(optimizers)):
        raise InvalidArgument("leeway.torch.join: the list of optimizers is empty, or has one twice")
    return optimizers


def translate(optimizers: Sequence[torch.optim.Optimizer]) -> Translation:
    """Raises Untranslatable, with what would do."""
    if len(optimizers) > 1:
        raise Untranslatable(f"the servers have one rule, and the script {len(optimizers)} optimizers, each of which steps by "
                             "itself. Where they step together make one with param groups; else " + ELSEWHERE)
    optimizer = optimizers[0]
    groups = optimizer.param_groups
    rule = RULES.get(type(optimizer))
    if rule is None:
        raise Untranslatable(f"the servers have no rule for {_name(optimizer)}: they have "
                             f"{', '.join(kind.__name__ for kind in RULES)} of torch.optim. Use one of those, or "
                             f"{ELSEWHERE}")
    if any(group.get("maximize") for group in groups):
        raise Untranslatable(f"maximize has no counterpart on the servers: negate the loss, or {ELSEWHERE}")
    for number, group in enumerate(groups):
        # A switch that is off is what it was before torch had it.
        unknown = [key for key, value in group.items()
                   if key not in COMMON | NOTED | READ[type(optimizer)] and value is not None and value is not False]
        if unknown:
            raise Untranslatable(f"param group {number} of {_name(optimizer)} has {', '.join(unknown)}, which the servers "
                                 f"do not know: leave it out, or {ELSEWHERE}")
    updates = [rule(group) for group in groups]
    for number, update in enumerate(updates):
        differ = [key for key in update if update.get(key) != updates[0].get(key)]
        if differ or update.keys() != updates[0].keys():
            raise Untranslatable(f"param group {number} differs from group 0 in {', '.join(differ) or 'momentum'}: the "
                                 f"servers' rule differs by group in lr and weight_decay only. Or {ELSEWHERE}")
    # What a scheduler from before join makes of the rate is the first step's.
    rates = [float(group.get("initial_lr", group["lr"])) for group in groups]
    rate = max(rates)
    decay = max(float(group["weight_decay"]) for group in groups)
    if rate <= 0:
        raise Untranslatable(f"the learning rate of {_name(optimizer)} is {rate}: it must be above 0 in one group at "
                             "least. To begin at 0, give the optimizer the later rate and let a scheduler, such as LambdaLR, "
                             "lower it")
    rates = [each or rate for each in rates]
    update = {**updates[0], "learning_rate": rate, "weight_decay": decay}
    return Translation(update, _factors(groups, rates, decay), rates)


def _factors(groups: list[dict], rates: list[float], decay: float) -> dict[int, tuple[float, float]]:
    return {id(parameter): (rate / max(rates), float(group["weight_decay"]) / decay if decay else 1.0)
            for group, rate in zip(groups, rates) for parameter in group["params"]}
