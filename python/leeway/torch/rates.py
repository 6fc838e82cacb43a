"""The learning rates of a gradient exchange. The servers have the rates from join, and each step sends the factors by
which they multiply these rates."""

from __future__ import annotations

import itertools
import math
from typing import Any, Callable, Container, Iterable, Optional, Sequence

import torch

from ..errors import InvalidArgument, Misuse
from ..session import Parts
from .layout import Layout
from .optimizers import COMMON, ELSEWHERE, NOTED, Translation, Untranslatable, groups_of
from .schedulers import CONSTANT, state_of

Factors = tuple[float, ...]

#: The keys of a group that a script and its schedulers may change. They affect weights only through the learning
#: rate.
FREE = COMMON - {"lr", "weight_decay", "maximize"} | NOTED

RATES_ONLY = f"Schedulers may change lr only (OneCycleLR and CyclicLR with cycle_momentum=False); {ELSEWHERE}"


def _shown(value: Any) -> str:
    return "another object" if value is CONSTANT else str(value)


def why_fixed(has_schedule: bool, refusal: Optional[Untranslatable]) -> Optional[str]:
    """Returns why only the job's `update` sets the rate, with what to do, or None if the script sets the rate."""
    if refusal is not None:
        return ("The job's `update` sets the rate: change it with `update.schedule`. The script's optimizer does not "
                f"set it: {refusal}")
    if has_schedule:
        return ("The job's `update` sets the rate: remove its `schedule`, so that the script's optimizer and "
                "schedulers set it")
    return None


def _merged(parts: Iterable[tuple[int, Optional[float]]]) -> Parts:
    """Joins adjacent parts that have the same factor into one part."""
    runs = itertools.groupby(parts, lambda part: part[1])
    return [(max(end for end, _ in run), factor) for factor, run in runs]


class Rates:
    """The rates of one rank's optimizers. `fixed` is the result of why_fixed."""

    def __init__(self, rank: int, optimizers: Sequence[torch.optim.Optimizer], translation: Optional[Translation],
                 fixed: Optional[str], layout: Layout) -> None:
        self._rank, self._optimizers = rank, optimizers
        self._why_fixed, self._known = fixed, translation.rates if translation and not fixed else None
        number = {id(parameter): number for number, group in enumerate(groups_of(optimizers))
                  for parameter in group["params"]}
        #: For each trained tensor: its name, the end of its elements, and its group's number.
        self._ends = [(name, layout.places[name].first + layout.places[name].count, number[id(parameter)])
                      for name, parameter in layout.trained.items()]
        self._first = self._fixed()
        self.begin()

    def begin(self) -> None:
        """Resets the rates of the last clock when a clock has begun."""
        #: The factors at the time when the clock's first gradient was finished, and the factors that were sent to the
        #: servers.
        self._seen: Optional[Factors] = None
        self._told: Optional[Factors] = None

    def _fixed(self) -> list[dict]:
        """Returns the settings of each group that may not change after join."""
        free = FREE if self._known is None else FREE | {"lr"}
        return [{key: state_of(value) for key, value in group.items() if key not in free}
                for group in groups_of(self._optimizers)]

    def _check_fixed(self) -> None:
        """Raises InvalidArgument if a setting has changed that the servers got at join, and that no step can send."""
        for number, (old, new) in enumerate(zip(self._first, self._fixed())):
            if old == new:
                continue
            for name in {**old, **new}:
                before, now = old.get(name), new.get(name)
                if before == now or not before and not now:  # None means the same as a setting that is off.
                    continue
                remedy = self._why_fixed if name == "lr" else RATES_ONLY
                raise InvalidArgument(f"rank {self._rank}: the optimizer has changed since join: {name} of param group {number} is "
                                      f"{_shown(now)}, but was {_shown(before)}. In a gradient exchange the servers "
                                      f"update the weights. {remedy}")

    def _now(self) -> Factors:
        if self._known is None:
            return ()
        for number, group in enumerate(groups_of(self._optimizers)):
            if not 0 <= float(group["lr"]) < math.inf:
                raise InvalidArgument(f"rank {self._rank}: lr of param group {number} is {float(group['lr'])}; set a finite "
                                      "value of at least 0")
        return tuple(float(group["lr"]) / known for group, known in zip(groups_of(self._optimizers), self._known))

    def see(self) -> None:
        """Notes the rates before a gradient of the first step is copied."""
        self._seen = self._seen or self._now()

    def settles_late(self) -> bool:
        """Returns whether the script has changed the rate between backward() and step(). Called at the first step()."""
        return self._seen is not None and self._seen != self._now()

    def check(self) -> None:
        """Raises an error if the step cannot use the settings of the groups. Called at step()."""
        self._check_fixed()
        if self._told is not None and self._told != self._now():
            raise Misuse(f"rank {self._rank}: the learning rate has changed since backward(). In the first step it was set "
                         "before backward(), so blocks have left with the old rate. Set it before backward(), or join with "
                         "overlap=\"none\"")

    def tell(self, rates: Callable[[Parts], None]) -> None:
        """Sends the factors by calling `rates`. Called before the clock's first block leaves."""
        if self._told is not None:
            return
        self._told = self._now()
        if any(factor != 1 for factor in self._told):
            rates(self._parts(self._told))

    def tell_part(self, rates: Callable[[Parts], None], updated: Container[str]) -> None:
        """Sends which tensors a step of one of several optimizers updates, and with which rate. Called before the
        elements of that optimizer leave. `updated` has the names of these tensors."""
        now = self._now()
        rates(_merged((end, (now[number] if now else 1.0) if name in updated else None) for name, end, number in self._ends))

    def _parts(self, factors: Factors) -> Parts:
        return _merged((end, factors[number]) for _, end, number in self._ends)
