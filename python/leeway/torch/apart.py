"""Gradients of several optimizers that step by themselves. What one of them steps is exchanged at its step(), within the clock.

Each has blocks of the model of its own (layout.py). So the clock is a batch, as everywhere: an optimizer's step() hands in its
gradients, waits for the new weights, and the next one computes with them. Who has not stepped when the clock ends, and a
parameter without a gradient, is left out of the update, as in PyTorch."""

from __future__ import annotations

from typing import Callable, Sequence

import torch

from ..errors import Misuse
from .gradients import dense, on_gradient
from .layout import Layout, owned


class Apart:
    """Takes the place of Gradients where join got a list. Nothing leaves before step()."""

    #: There is no first step that says when blocks may leave; and nothing to hold back within no_send().
    learning = held = False

    def __init__(self, layout: Layout, optimizers: Sequence[torch.optim.Optimizer], contribution: Callable[[], torch.Tensor],
                 opening: Callable[[str], None]) -> None:
        self._layout, self._optimizers = layout, optimizers
        self._contribution, self._opening = contribution, opening
        self._names = owned(layout, optimizers)
        #: Those that a backward() has reached since their optimizer's last step.
        self._fresh: set[str] = set()
        self._handles = [on_gradient(parameter, self._hook(name)) for name, parameter in layout.trained.items()]

    def _hook(self, name: str) -> Callable[[], None]:
        def finished() -> None:
            self._opening(name)
            self._fresh.add(name)
        return finished

    def remove(self) -> None:
        """The hooks."""
        for remove in self._handles:
            remove()

    def range_of(self, number: int) -> tuple[int, int]:
        """The elements of an optimizer: first and count."""
        places = [self._layout.places[name] for name in self._names[number]]
        return (places[0].first, sum(place.count for place in places)) if places else (0, 0)

    def parameters_of(self, number: int) -> list[torch.nn.Parameter]:
        return [self._layout.trained[name] for name in self._names[number]]

    def collect(self, number: int) -> set[str]:
        """At an optimizer's step(): its gradients go into the contribution. Gives the names of the parameters that have one."""
        names = self._names[number]
        if not self._fresh.intersection(names):
            which = f" of optimizer {number} ({type(self._optimizers[number]).__name__})" if len(self._names) > 1 else ""
            raise Misuse(f"step() without backward(): no parameter{which} has a new gradient")
        self._fresh.difference_update(names)
        return {name for name in names if self._copy(name)}

    def _copy(self, name: str) -> bool:
        grad, view = self._layout.trained[name].grad, self._view(name)
        if grad is None:
            view.zero_()
        else:
            view.copy_(dense(grad))
        return grad is not None

    def _view(self, name: str) -> torch.Tensor:
        place = self._layout.places[name]
        return self._contribution()[place.first:place.first + place.count].view(place.shape)

    def leave_out(self, stepped: set[int]) -> None:
        """At the clock's end: the others have not stepped."""
        for number, names in enumerate(self._names):
            for name in names if number not in stepped else ():
                self._view(name).zero_()

    def zero(self) -> None:
        """A contribution of nothing."""
        self.leave_out(set())
