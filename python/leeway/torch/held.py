"""The optimizer in a gradient exchange: its state is on the servers, and what a script does to it here would be lost."""

from __future__ import annotations

import collections
import types
from typing import Any, Iterable

import torch

from ..errors import Misuse
from .optimizers import ELSEWHERE

HELD = (f"the optimizer's state is on the servers, and what a script does to it counts for nothing. To begin a moment anew, or to "
        f"read or load one while it trains, {ELSEWHERE}; a job that was stopped goes on with its own (leeway train --resume)")


class _State(collections.defaultdict):
    """In place of `optimizer.state`: empty, and it stays so. A copy is a plain one."""

    def __init__(self) -> None:
        super().__init__(dict)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise Misuse(HELD)

    __missing__ = __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple:
        return collections.defaultdict, (dict,)

    def __copy__(self) -> collections.defaultdict:
        return collections.defaultdict(dict)

    copy = __copy__


class Held:
    """The states of the optimizers of a job whose servers step."""

    def __init__(self, rank: int, optimizers: Iterable[torch.optim.Optimizer]) -> None:
        self._rank = rank
        #: Each, with its own state from before join, and the empty one.
        self._held = [(optimizer, optimizer.state, _State()) for optimizer in optimizers]
        for optimizer, _, empty in self._held:
            optimizer.state = empty
            optimizer.load_state_dict = types.MethodType(self._refuse, optimizer)  # type: ignore[method-assign]

    def _refuse(self, optimizer: torch.optim.Optimizer, *_: Any, **__: Any) -> None:
        raise Misuse(f"rank {self._rank}: {type(optimizer).__name__}.load_state_dict after join: {HELD}")

    def check(self) -> None:
        """At step(): no other state is in its place."""
        for optimizer, _, empty in self._held:
            if optimizer.state is not empty:
                raise Misuse(f"rank {self._rank}: {type(optimizer).__name__}.state is another one than at join: {HELD}")

    def let_go(self) -> None:
        for optimizer, own, _ in self._held:
            optimizer.state = own
            vars(optimizer).pop("load_state_dict", None)
