"""The learning rates of a gradient exchange. The servers have those of join; each step says what they are multiplied by."""

from __future__ import annotations

import itertools
import math
from typing import Callable, Optional, Sequence

import torch

from ..errors import InvalidArgument, Misuse
from .layout import Layout
from .optimizers import ELSEWHERE

Factors = tuple[float, ...]


class Rates:
    """Of optimizers, whose groups have the rates `known` on the servers. None: the script has no say in those."""

    def __init__(self, optimizers: Sequence[torch.optim.Optimizer], known: Optional[Sequence[float]], layout: Layout) -> None:
        self._groups, self._known = [group for optimizer in optimizers for group in optimizer.param_groups], known
        number = {id(parameter): number for number, group in enumerate(self._groups) for parameter in group["params"]}
        #: The trained elements: the ends of what is of one group, and which.
        self._ends = [(layout.places[name].first + layout.places[name].count, number[id(parameter)])
                      for name, parameter in layout.trained.items()]
        self._first = self._fixed()
        self.begin()

    def begin(self) -> None:
        """A clock has begun."""
        #: As the first gradient found them, and as the servers were told.
        self._seen: Optional[Factors] = None
        self._told: Optional[Factors] = None

    def _fixed(self) -> list[dict]:
        names = ("weight_decay", "momentum", "betas") + (() if self._known else ("lr",))
        return [{name: group.get(name) for name in names} for group in self._groups]

    def _check(self) -> None:
        """What the servers were told at join, and what no step can say."""
        for number, (old, new) in enumerate(zip(self._first, self._fixed())):
            for name, before in old.items():
                if before == new[name]:
                    continue
                remedy = ("The job's `update` says the rate: remove its `schedule`, so that the script's optimizer and schedulers do"
                          if name == "lr" else
                          f"Schedulers may move lr only (OneCycleLR and CyclicLR with cycle_momentum=False); {ELSEWHERE}")
                raise InvalidArgument(f"the optimizer has changed since join: {name} of param group {number} is {new[name]}, and "
                                      f"was {before}. In a gradient exchange the servers update. {remedy}")

    def _now(self) -> Factors:
        if self._known is None:
            return ()
        for number, group in enumerate(self._groups):
            if not 0 <= float(group["lr"]) < math.inf:
                raise InvalidArgument(f"lr of param group {number} is {float(group['lr'])}: it is finite and at least 0")
        return tuple(float(group["lr"]) / known for group, known in zip(self._groups, self._known))

    def see(self) -> None:
        """Before a gradient of the first step."""
        self._seen = self._seen or self._now()

    def settles_late(self) -> bool:
        """At the first step: whether the script sets the rate between backward() and step()."""
        return self._seen is not None and self._seen != self._now()

    def check(self) -> None:
        """At step(): the numbers of the groups can be the step's."""
        self._check()
        if self._told is not None and self._told != self._now():
            raise Misuse("the learning rate has changed since backward(), and in the first step it did not so: blocks have left "
                         "with the one before. Set it before backward(), or join with overlap=\"none\"")

    def tell(self, rates: Callable[[Sequence[tuple[int, float]]], None]) -> None:
        """Before the clock's first block leaves."""
        if self._told is not None:
            return
        self._told = self._now()
        if any(factor != 1 for factor in self._told):
            rates(self._parts(self._told))

    def _parts(self, factors: Factors) -> list[tuple[int, float]]:
        runs = itertools.groupby(((end, factors[number]) for end, number in self._ends), lambda part: part[1])
        return [(max(end for end, _ in run), factor) for factor, run in runs]
