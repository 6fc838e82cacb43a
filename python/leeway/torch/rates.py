"""The learning rates of a gradient exchange. The servers have those of join; each step says what they are multiplied by."""

from __future__ import annotations

import itertools
import math
from typing import Any, Callable, Container, Iterable, Optional, Sequence

import torch

from ..errors import InvalidArgument, Misuse
from ..session import Parts
from .layout import Layout
from .optimizers import COMMON, ELSEWHERE, NOTED, Translation, Untranslatable
from .schedulers import CONSTANT, state_of

Factors = tuple[float, ...]

#: What a script and its schedulers may change in a group: it moves no weight but by the rate.
FREE = COMMON - {"lr", "weight_decay", "maximize"} | NOTED

RATES_ONLY = f"Schedulers may move lr only (OneCycleLR and CyclicLR with cycle_momentum=False); {ELSEWHERE}"


def _shown(value: Any) -> str:
    return "another object" if value is CONSTANT else str(value)


def why_fixed(has_schedule: bool, refusal: Optional[Untranslatable]) -> Optional[str]:
    """Why the job's `update` alone says the rate, and what to do about it. None: the script says the rate."""
    if refusal is not None:
        return f"The job's `update` says the rate: move it by `update.schedule`. The script's optimizer has no say: {refusal}"
    if has_schedule:
        return "The job's `update` says the rate: remove its `schedule`, so that the script's optimizer and schedulers do"
    return None


def _merged(parts: Iterable[tuple[int, Optional[float]]]) -> Parts:
    """Neighbours with the same factor as one part."""
    runs = itertools.groupby(parts, lambda part: part[1])
    return [(max(end for end, _ in run), factor) for factor, run in runs]


class Rates:
    """The rates of one rank's optimizers. `fixed` is what why_fixed gives."""

    def __init__(self, rank: int, optimizers: Sequence[torch.optim.Optimizer], translation: Optional[Translation],
                 fixed: Optional[str], layout: Layout) -> None:
        self._rank, self._optimizers = rank, optimizers
        self._why_fixed, self._known = fixed, translation.rates if translation and not fixed else None
        number = {id(parameter): number for number, group in enumerate(self._groups) for parameter in group["params"]}
        #: For each trained tensor: its name, where its elements end, and its group.
        self._ends = [(name, layout.places[name].first + layout.places[name].count, number[id(parameter)])
                      for name, parameter in layout.trained.items()]
        self._first = self._fixed()
        self.begin()

    def begin(self) -> None:
        """A clock has begun."""
        #: What the rates were when the first gradient came, and what the servers were told.
        self._seen: Optional[Factors] = None
        self._told: Optional[Factors] = None

    @property
    def _groups(self) -> list[dict]:
        return [group for optimizer in self._optimizers for group in optimizer.param_groups]

    def _fixed(self) -> list[dict]:
        """All that a rule could read."""
        free = FREE if self._known is None else FREE | {"lr"}
        return [{key: state_of(value) for key, value in group.items() if key not in free} for group in self._groups]

    def _check_fixed(self) -> None:
        """What the servers were told at join, and what no step can say."""
        for number, (old, new) in enumerate(zip(self._first, self._fixed())):
            if old == new:
                continue
            for name in {**old, **new}:
                before, now = old.get(name), new.get(name)
                if before == now or not before and not now:  # None is as good as a switch that is off.
                    continue
                remedy = self._why_fixed if name == "lr" else RATES_ONLY
                raise InvalidArgument(f"rank {self._rank}: the optimizer has changed since join: {name} of param group {number} is "
                                      f"{_shown(now)}, and was {_shown(before)}. In a gradient exchange the servers update. "
                                      f"{remedy}")

    def _now(self) -> Factors:
        if self._known is None:
            return ()
        for number, group in enumerate(self._groups):
            if not 0 <= float(group["lr"]) < math.inf:
                raise InvalidArgument(f"rank {self._rank}: lr of param group {number} is {float(group['lr'])}; set a finite "
                                      "value of at least 0")
        return tuple(float(group["lr"]) / known for group, known in zip(self._groups, self._known))

    def see(self) -> None:
        """Before a gradient of the first step."""
        self._seen = self._seen or self._now()

    def settles_late(self) -> bool:
        """At the first step: whether the script sets the rate between backward() and step()."""
        return self._seen is not None and self._seen != self._now()

    def check(self) -> None:
        """At step(): the numbers of the groups can be the step's."""
        self._check_fixed()
        if self._told is not None and self._told != self._now():
            raise Misuse(f"rank {self._rank}: the learning rate has changed since backward(). In the first step it was set "
                         "before backward(), so blocks have left with the old rate. Set it before backward(), or join with "
                         "overlap=\"none\"")

    def tell(self, rates: Callable[[Parts], None]) -> None:
        """Before the clock's first block leaves."""
        if self._told is not None:
            return
        self._told = self._now()
        if any(factor != 1 for factor in self._told):
            rates(self._parts(self._told))

    def tell_part(self, rates: Callable[[Parts], None], updated: Container[str]) -> None:
        """Before the elements of one of several optimizers leave: which tensors its step updates, and by which rate."""
        now = self._now()
        rates(_merged((end, (now[number] if now else 1.0) if name in updated else None) for name, end, number in self._ends))

    def _parts(self, factors: Factors) -> Parts:
        return _merged((end, factors[number]) for _, end, number in self._ends)
