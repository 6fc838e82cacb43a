"""The state that a worker keeps from clock to clock. Checkpoints save it, and an undone clock restores it."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import nn

from . import state
from .layout import Layout
from .schedulers import Schedulers


class Kept:
    """The states of kept schedulers, the model's integer buffers and, with local steps, the states of the
    optimizers."""

    def __init__(self, model: nn.Module, optimizers: list[torch.optim.Optimizer], layout: Layout, rank: int,
                 local: bool) -> None:
        self._optimizers, self._layout, self._local = optimizers, layout, local
        self.schedulers = Schedulers(rank, optimizers)
        self._integers = {name: buffer for name, buffer in model.named_buffers()
                          if name not in layout.buffers and not buffer.is_floating_point()}
        #: The integer buffers and the optimizers' states when the clock began.
        self._integers_before: dict[str, torch.Tensor] = {}
        self._slots_before: dict[torch.Tensor, dict[str, Any]] = {}
        self._first = self.save(False)

    def begin_clock(self) -> None:
        """Copies the state when a clock begins, so that undo_clock() can restore it."""
        self._integers_before = {name: buffer.clone() for name, buffer in self._integers.items()}
        self.schedulers.begin_clock()
        if self._local:
            self._slots_before = {parameter: {key: value.clone() if isinstance(value, torch.Tensor) else value
                                              for key, value in slots.items()}
                                  for optimizer in self._optimizers for parameter, slots in optimizer.state.items()}

    def undo_clock(self) -> None:
        for name, buffer in self._integers_before.items():
            self._integers[name].copy_(buffer)
        self.schedulers.undo_clock()
        for optimizer in self._optimizers if self._local else ():
            known = {p for group in optimizer.param_groups for p in group["params"]}
            optimizer.state.clear()
            optimizer.state.update({p: slots for p, slots in self._slots_before.items() if p in known})

    def go_back(self, one: bool) -> None:
        """If `one` is true, restores the state at the beginning of the last clock, and otherwise the state at join."""
        if one:
            self.undo_clock()
        else:
            self.load(self._first)
            self.schedulers.load_first()

    def save(self, before: bool) -> bytes:
        """Returns the state for a checkpoint, empty if there is nothing to keep. If `before` is true, the clock was
        broken off, and its beginning is restored first."""
        if before:
            self.undo_clock()
        if not self._local and not self._integers and not self.schedulers.some:
            return b""
        names = {id(parameter): name for name, parameter in self._layout.trained.items()}
        return state.save(self._optimizers, names, self._integers, self.schedulers.checkpoint())

    def load(self, saved: Optional[bytes]) -> None:
        if saved:
            self.schedulers.load(state.load(saved, self._optimizers, self._layout.trained, self._integers, self._local))
