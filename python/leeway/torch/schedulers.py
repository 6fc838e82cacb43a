"""Schedulers whose states go into the job's checkpoints.

The saved state of a scheduler is its numbers, as JSON. Other parts of it, such as functions, come from the script,
which makes each scheduler again after a restart."""

from __future__ import annotations

import gc
from typing import Any, Optional, Sequence

import numpy as np
import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

from ..errors import InvalidArgument, Misuse
from .optimizers import groups_of

CONSTANT = object()

#: A scheduler wraps the optimizer's step(), to learn whether the optimizer has stepped. These attributes mark a
#: wrapped step().
STEP_MARKS = ("_with_counter", "_wrapped_by_lr_sched")


def count_step(optimizer: torch.optim.Optimizer) -> None:
    """Marks an optimizer as stepped, because its own step is not called. A scheduler from before join reads one of
    these marks: an older torch reads the first one, a newer torch the second one."""
    if hasattr(optimizer, "_step_count"):
        optimizer._step_count += 1
    optimizer._opt_called = True


def state_of(value: Any) -> Any:
    """Returns the value as JSON can hold it, or CONSTANT if only the script can make it."""
    if isinstance(value, np.generic) or isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        parts = [state_of(part) for part in value]
        return CONSTANT if any(part is CONSTANT for part in parts) else parts
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        parts = {key: state_of(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part is not CONSTANT}
    return CONSTANT


def merged(fresh: Any, saved: Any) -> Any:
    """Returns the saved state with the types of a new scheduler's state, and with the parts that were not saved."""
    if isinstance(fresh, dict) and isinstance(saved, dict):
        return {**fresh, **{key: merged(fresh.get(key), part) for key, part in saved.items()}}
    if isinstance(fresh, (list, tuple)) and isinstance(saved, list) and len(fresh) == len(saved):
        return type(fresh)(merged(*pair) for pair in zip(fresh, saved))
    return saved


class Schedulers:
    """The schedulers that one rank keeps. They set the rates of the rank's optimizers."""

    def __init__(self, rank: int, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        self._rank, self._optimizers = rank, optimizers
        self._kept: list[Any] = []
        #: For the search for a scheduler that the script does not keep: the rates at the last search, and the number
        #: of searches that are left.
        self._looked_at: list[float] = []
        self._looks = 2
        #: At the start of the clock: the states, the groups' numbers, and whether each scheduler had stepped in the
        #: previous clock.
        self._before: list[dict] = []
        self._rates_before: list[dict] = []
        self._stepped: list[bool] = []
        #: If a state was loaded since the clock began: whether each scheduler had stepped in the clock before that
        #: state.
        self._loaded: Optional[list[bool]] = None
        #: The reason why the schedulers cannot have the right state, or None.
        self._lost: Optional[str] = None
        #: The states and the groups' numbers at the time when the script kept the schedulers.
        self._first: list[dict] = []
        self._first_rates: list[dict] = []
        #: For schedulers that the script has not kept yet: their states from a checkpoint, and the groups' numbers in
        #: it.
        self._waiting: list[dict] = []
        self._rates: list[dict] = []

    def keep(self, scheduler: Any) -> None:
        if not hasattr(scheduler, "state_dict") or not hasattr(scheduler, "load_state_dict"):
            raise InvalidArgument(f"job.keep: {type(scheduler).__name__} has no state_dict and load_state_dict: give a scheduler "
                                  "of torch.optim.lr_scheduler")
        self._kept.append(scheduler)
        self._first, self._first_rates = [*self._first, self.save()[-1]], self.rates()
        if self._waiting:
            self._load_one(scheduler, self._waiting.pop(0))

    @property
    def some(self) -> bool:
        return bool(self._kept)

    def begin_late(self, clock: int) -> None:
        """Notes that this worker begins in the middle of the job without a state."""
        self._lost = (f"rank {self._rank} goes on at clock {clock}, and no checkpoint has the state of its scheduler: its rates "
                      "would be those of the first clocks. Give the job `checkpoint: {every: ...}`. Why this "
                      f"worker's previous process ended is further up in its log (logs/worker-{self._rank}.log in the "
                      "run's folder)")

    def check(self) -> None:
        """Raises Misuse if a scheduler is not kept, because it would begin again after a restart. Called at each step.
        All of torch's schedulers except ReduceLROnPlateau leave a mark on the groups. A ReduceLROnPlateau is searched
        for at the first step and after the first change of a rate."""
        if self._kept:
            if self._lost:
                raise InvalidArgument(self._lost)
            return
        if any("initial_lr" in group for group in groups_of(self._optimizers)):
            self._refuse("a scheduler")
        rates = [float(group["lr"]) for group in groups_of(self._optimizers)]
        if self._looks and rates != self._looked_at:
            self._looked_at, self._looks = rates, self._looks - 1
            if any(issubclass(type(each), ReduceLROnPlateau) and each.optimizer in self._optimizers for each in gc.get_objects()):
                self._refuse("a ReduceLROnPlateau")

    def _refuse(self, what: str) -> None:
        raise Misuse(f"rank {self._rank}: {what} sets the rate of {self._names()}, but the job does not keep its "
                     "state: a restarted worker would begin with the first rate. Write `scheduler = job.keep(scheduler)`")

    def begin_clock(self) -> None:
        now = self.save()
        self._stepped, self._loaded = self._have_stepped(now), None
        self._before, self._rates_before = now, self.rates()

    def undo_clock(self) -> None:
        """Restores the states and rates that the schedulers had when the clock began."""
        self._load(self._before, self._stepped, self._rates_before)

    def _have_stepped(self, now: list[dict]) -> list[bool]:
        return [old != new for old, new in zip(self._before, now)] if self._loaded is None else self._loaded

    def step_along(self) -> None:
        """Steps the schedulers that stepped in the previous clock. Called in a clock for which this worker has no batch,
        so that all ranks keep the same rates."""
        for scheduler, stepped in zip(self._kept, self._stepped):
            if stepped and not isinstance(scheduler, ReduceLROnPlateau):
                scheduler.step()

    def _names(self) -> str:
        return ", ".join(type(optimizer).__name__ for optimizer in self._optimizers)

    def save(self) -> list[dict]:
        return [{"class": type(each).__name__, "state": state_of(each.state_dict())} for each in self._kept]

    def checkpoint(self) -> list[dict]:
        """Returns what save() returns, with whether each scheduler stepped in the last clock, which step_along()
        needs."""
        now = self.save()
        stepped = self._have_stepped(now)
        return [{**each, "stepped": number < len(stepped) and stepped[number]} for number, each in enumerate(now)]

    def rates(self) -> list[dict]:
        """Returns all settings of the groups, without the parameters."""
        return [{key: value for key, value in group.items() if key != "params"} for group in groups_of(self._optimizers)]

    def load_first(self) -> None:
        if self._kept:
            self._load(self._first, [False] * len(self._first), self._first_rates)

    def load(self, checkpoint: list[dict]) -> None:
        """Loads the states of a checkpoint. The groups must have the numbers of that checkpoint already."""
        self._load(checkpoint, [each.get("stepped", False) for each in checkpoint], self.rates())

    def _load(self, saved: list[dict], stepped: list[bool], rates: list[dict]) -> None:
        self._loaded, self._rates = stepped, rates
        for group, numbers in zip(groups_of(self._optimizers), self._rates):
            group.update(numbers)
        for scheduler, state in zip(self._kept, saved):
            self._load_one(scheduler, state)
        self._waiting = saved[len(self._kept):]

    def _load_one(self, scheduler: Any, saved: dict) -> None:
        if saved["class"] != type(scheduler).__name__:
            raise InvalidArgument(f"rank {self._rank}: the checkpoint's state is of the scheduler "
                                  f"{saved['class']!r}, but this is {type(scheduler).__name__}: keep the schedulers "
                                  "in the same order as before")
        scheduler.load_state_dict(merged(scheduler.state_dict(), saved["state"]))
        # A new scheduler has set its first rate, so the saved rates are set again.
        for group, rates in zip(groups_of(self._optimizers), self._rates):
            group.update(rates)
