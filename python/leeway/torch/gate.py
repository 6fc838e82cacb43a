"""Opens a clock with the forward pass, and waits for weights that are still on their way: a module's own before its forward.

By default nothing is on its way then (TorchJob, overlap). Else answers of the servers are written into the parameters while
the pass before them is computed. Autograd does not see such writes, so a parameter may be used only after its module was
called in the same clock."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Mapping

import torch
from torch import nn

from .layout import Layout


class Hook:
    """A hook of a module that has joined. A copy of the module, by deepcopy or pickle, has not: there its place is taken by a
    function of Python's own that does nothing, so that whoever reads the file needs no Leeway."""

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function

    def __call__(self, *arguments: object) -> None:
        self._function(*arguments)

    def __reduce__(self) -> tuple:
        return getattr, (contextlib.nullcontext(), "__exit__")


class _Module:
    """A module's own parts of the vector, and the last round in which they were waited for."""

    __slots__ = ("round", "ranges", "buffers", "names")

    def __init__(self, ranges: list[tuple[int, int]], buffers: list[tuple[torch.Tensor, torch.Tensor]],
                 names: list[str]) -> None:
        self.round = -1
        self.ranges, self.buffers, self.names = ranges, buffers, names


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Neighbours as one: a wait less."""
    merged: list[tuple[int, int]] = []
    for first, count in sorted(ranges):
        if merged and merged[-1][0] + merged[-1][1] == first:
            merged[-1] = (merged[-1][0], merged[-1][1] + count)
        else:
            merged.append((first, count))
    return merged


class Gate:
    """`ready(training)` opens a clock, or settles; `wait` waits for a part of the vector. Buffers are copied from the
    weights when their module's have arrived: the forward pass changes its own values, not the servers'."""

    def __init__(self, model: nn.Module, layout: Layout, weights: torch.Tensor, ready: Callable[[bool], None],
                 wait: Callable[[int, int], None]) -> None:
        self._ready, self._wait, self._weights, self._layout = ready, wait, weights, layout
        self.round = 0
        #: A forward pass has no clock to open; and nothing is on its way.
        self._is_open, self.is_settled = False, False
        self._handles: list[Any] = []
        self._modules: list[_Module] = []
        self._of_parameter: dict[str, list[_Module]] = {}
        # What no call of its module precedes, such as parameters that a parent reads: waited for at once.
        self._strays = self._entry(set())
        names: Mapping[int, str] = {id(t): n for n, t in {**layout.parameters, **layout.buffers}.items()}
        for module in model.modules():
            own = [*module._parameters.values(), *module._buffers.values()]
            here = {names[id(tensor)] for tensor in own if tensor is not None and id(tensor) in names}
            if here or module is model:
                self._watch(module, self._entry(here))

    def _entry(self, names: set[str]) -> _Module:
        places = [place for name, place in self._layout.places.items() if name in names]
        buffers = [(self._layout.buffers[p.name], self._weights[p.first:p.first + p.count].view(p.shape))
                   for p in places if p.name in self._layout.buffers]
        return _Module(_merged([(p.first, p.count) for p in places]), buffers, [p.name for p in places])

    def _watch(self, module: nn.Module, entry: _Module) -> None:
        def before_forward(called: nn.Module, _inputs: object) -> None:
            if entry.round != self.round or not self._is_open:
                self._ready(called.training and torch.is_grad_enabled())
                if entry.round != self.round:
                    self._arrive(entry)

        self._modules.append(entry)
        for name in entry.names:
            self._of_parameter.setdefault(name, []).append(entry)
        handle = module.register_forward_pre_hook(Hook(before_forward))
        # Before others, such as weight_norm's, which read parameters.
        module._forward_pre_hooks.move_to_end(handle.id, last=False)
        self._handles.append(handle)

    def _arrive(self, entry: _Module) -> None:
        for first, count in entry.ranges:
            self._wait(first, count)
        if entry.buffers:
            self._copy_buffers(entry)
        entry.round = self.round

    def _copy_buffers(self, entry: _Module) -> None:
        with torch.no_grad():
            for buffer, weights in entry.buffers:
                buffer.copy_(weights)

    def open(self) -> None:
        """A clock has begun: nothing has arrived."""
        self.round += 1
        self._is_open, self.is_settled = True, False
        self._arrive(self._strays)

    def close(self) -> None:
        """A clock has ended: the next forward opens another one."""
        self.round += 1
        self._is_open = self.is_settled = False

    def pause(self) -> None:
        """The clock has what it needs: the next forward asks again."""
        self._is_open = False

    def finish(self) -> None:
        """The job is over, and the final weights are there: a forward pass asks for nothing any more."""
        self.refresh()
        self._is_open = True

    def remove(self) -> None:
        """The hooks."""
        for handle in self._handles:
            handle.remove()

    def arrive_all(self) -> None:
        """Waits for what was not waited for in this round."""
        for entry in self._modules:
            if entry.round != self.round:
                self._arrive(entry)
        self.is_settled = True

    def refresh(self) -> None:
        """All weights are there: buffers take theirs."""
        for entry in (*self._modules, self._strays):
            self._copy_buffers(entry)
            entry.round = self.round
        self.is_settled = True

    def has_arrived(self, name: str) -> bool:
        """Whether the parameter was waited for in this round."""
        for entry in self._of_parameter[name]:
            if entry.round == self.round:
                return True
        return name in self._strays.names

    def adopt(self, names: set[str]) -> None:
        """From now on these are waited for when a clock begins."""
        self._strays = self._entry({*self._strays.names, *names})
