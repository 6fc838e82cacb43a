"""Guards the optimizers of a gradient exchange. The servers hold an optimizer's state, so changes to the state in the
worker would be lost."""

from __future__ import annotations

import collections
import types
import warnings
from typing import Any, Iterable

import torch

from ..errors import Misuse
from .optimizers import ELSEWHERE, MARK, groups_of

HELD = (f"the optimizer's state is on the servers, so a change by the script has no effect. To reset, read or load a "
        f"moment during training, {ELSEWHERE}. A stopped job continues with its own state (leeway train --resume)")

SAVED = ("leeway: the optimizer's state is on the servers and not in its state_dict. leeway train --resume goes on with it; a new run "
         "that loads this state_dict is refused")
LOST = ("the optimizer was loaded or copied from an optimizer of a gradient exchange, whose state was on the "
        "servers, so it has no moments. Continue that run (leeway train --resume). To begin with new moments, make "
        "the optimizer without load_state_dict, and load only the model")


def has_left(optimizers: Iterable[torch.optim.Optimizer]) -> bool:
    """Returns whether the state of at least one of these optimizers was left on the servers of a job."""
    return any(MARK in group for group in groups_of(optimizers))


class _State(collections.defaultdict):
    """Replaces `optimizer.state`. It stays empty, and reading or writing an entry raises Misuse. A copy is a plain
    empty defaultdict."""

    def __init__(self) -> None:
        super().__init__(dict)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise Misuse(HELD)

    __missing__ = __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = get = _refuse

    def __reduce__(self) -> tuple:
        return collections.defaultdict, (dict,)

    def __copy__(self) -> collections.defaultdict:
        return collections.defaultdict(dict)

    copy = __copy__


class Held:
    """Holds the optimizers of a job whose servers step, until let_go().

    has_state: whether the servers' rule keeps a state. If so, the param groups get MARK, so that all copies,
        pickles and state_dicts of the optimizers have it, too."""

    def __init__(self, rank: int, optimizers: Iterable[torch.optim.Optimizer], has_state: bool) -> None:
        self._rank, self._has_told = rank, not has_state
        #: Each optimizer, its own state from before join, and the empty state that replaces that state.
        self._held = [(optimizer, optimizer.state, _State()) for optimizer in optimizers]
        for optimizer, _, empty in self._held:
            optimizer.state = empty
            optimizer.load_state_dict = types.MethodType(self._refuse, optimizer)  # type: ignore[method-assign]
            optimizer.state_dict = types.MethodType(self._save, optimizer)  # type: ignore[method-assign]
            for group in optimizer.param_groups if has_state else ():
                group[MARK] = "on servers"

    def _refuse(self, optimizer: torch.optim.Optimizer, *_: Any, **__: Any) -> None:
        raise Misuse(f"rank {self._rank}: {type(optimizer).__name__}.load_state_dict after join: {HELD}")

    def _save(self, optimizer: torch.optim.Optimizer, *given: Any, **named: Any) -> dict:
        if not self._has_told:
            self._has_told = True
            warnings.warn(SAVED, stacklevel=2)
        return type(optimizer).state_dict(optimizer, *given, **named)

    def check(self) -> None:
        """Raises Misuse if the script has replaced an optimizer's state. Called before a clock begins and at step()."""
        for optimizer, _, empty in self._held:
            if optimizer.state is not empty:
                raise Misuse(f"rank {self._rank}: {type(optimizer).__name__}.state is not the same object as at "
                             f"join: {HELD}")

    def let_go(self) -> None:
        for optimizer, own, _ in self._held:
            optimizer.state = own
            for name in ("load_state_dict", "state_dict"):
                vars(optimizer).pop(name, None)
