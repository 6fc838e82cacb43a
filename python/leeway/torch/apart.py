"""The gradient exchange of several optimizers that step separately: each step() exchanges that optimizer's parameters.

Each optimizer has blocks of its own (layout.py), so several exchanges fit into one clock, and a clock is a batch, as in
other jobs. An optimizer's step() hands in its gradients and waits for the new weights, and the next optimizer computes
with these weights. The update leaves out optimizers that have not stepped by the end of the clock, and parameters
without a gradient. PyTorch does the same."""

from __future__ import annotations

from typing import Callable, Sequence

import torch

from ..errors import Misuse
from .gradients import on_gradient, put
from .layout import Layout, owned


class Apart:
    """Replaces Gradients if join got a list of optimizers. Nothing leaves before step()."""

    #: Blocks leave only at step(). So the first step need not find out when they may leave, and no_send() has no block
    #: to hold back.
    learning = held = False

    def __init__(self, layout: Layout, optimizers: Sequence[torch.optim.Optimizer], contribution: Callable[[], torch.Tensor],
                 opening: Callable[[str], None]) -> None:
        self._layout, self._optimizers = layout, optimizers
        self._contribution, self._opening = contribution, opening
        self._names = owned(layout.trained, optimizers)
        #: The names of the parameters that a backward() has reached since the last step of their optimizer.
        self._fresh: set[str] = set()
        self._handles = [on_gradient(parameter, self._hook(name)) for name, parameter in layout.trained.items()]

    def _hook(self, name: str) -> Callable[[], None]:
        def finished() -> None:
            self._opening(name)
            self._fresh.add(name)
        return finished

    def remove(self) -> None:
        """Removes the hooks."""
        for remove in self._handles:
            remove()

    def range_of(self, number: int) -> tuple[int, int]:
        """Returns the range of an optimizer's elements in the vector of weights: the first element and the count."""
        places = [self._layout.places[name] for name in self._names[number]]
        return (places[0].first, sum(place.count for place in places)) if places else (0, 0)

    def parameters_of(self, number: int) -> list[torch.nn.Parameter]:
        return [self._layout.trained[name] for name in self._names[number]]

    def collect(self, number: int) -> set[str]:
        """Copies an optimizer's gradients into the contribution, at its step(). Returns the names of the parameters
        that have a gradient. Raises Misuse if no backward() has reached one of them since the optimizer's last step."""
        names = self._names[number]
        if not self._fresh.intersection(names):
            which = f" of optimizer {number} ({type(self._optimizers[number]).__name__})" if len(self._names) > 1 else ""
            raise Misuse(f"step() without backward(): no parameter{which} has a new gradient. Call backward() first, or leave "
                         "this step() out")
        self._fresh.difference_update(names)
        gradients = {name: self._layout.trained[name].grad for name in names}
        for name, grad in gradients.items():
            put(self._view(name), grad)
        return {name for name, grad in gradients.items() if grad is not None}

    def _view(self, name: str) -> torch.Tensor:
        return self._layout.places[name].of(self._contribution())

    def leave_out(self, stepped: set[int]) -> None:
        """Zeroes the contribution of all optimizers but `stepped`, at the clock's end."""
        for number, names in enumerate(self._names):
            for name in names if number not in stepped else ():
                self._view(name).zero_()

    def zero(self) -> None:
        """Zeroes the contribution of all optimizers."""
        self.leave_out(set())
