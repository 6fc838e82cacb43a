"""Opens a clock with the forward pass. Before the forward of a module the gate waits for the weights of that module.

By default no weights are on their way when a forward pass begins. With overlap="forward", answers of the servers are
written into the parameters while the forward pass computes the modules in front of them. Autograd does not see such
writes, so a script may use a parameter only after a call of its module in the same clock."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Mapping

import torch
from torch import nn

from .layout import Layout


class Hook:
    """A hook on a module that has joined. A copy of the module, by deepcopy or pickle, has not joined. In the copy, a
    function of Python's standard library replaces the hook and does nothing. So a program without Leeway can read the
    pickle."""

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function

    def __call__(self, *arguments: object) -> None:
        self._function(*arguments)

    def __reduce__(self) -> tuple:
        return getattr, (contextlib.nullcontext(), "__exit__")


class _Module:
    """The ranges of the vector that a module's own tensors have, and the last round in which the gate waited for
    them."""

    __slots__ = ("round", "ranges", "buffers", "names")

    def __init__(self, ranges: list[tuple[int, int]], buffers: list[tuple[torch.Tensor, torch.Tensor]],
                 names: list[str]) -> None:
        self.round = -1
        self.ranges, self.buffers, self.names = ranges, buffers, names


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Joins adjacent ranges into one, because each range costs a wait."""
    merged: list[tuple[int, int]] = []
    for first, count in sorted(ranges):
        if merged and merged[-1][0] + merged[-1][1] == first:
            merged[-1] = (merged[-1][0], merged[-1][1] + count)
        else:
            merged.append((first, count))
    return merged


class Gate:
    """`ready(training)` opens a clock for a training pass, or waits for all weights for another one. `wait(first,
    count)` waits for a range of the vector. Buffers are no views of the vector, because the forward pass changes them.
    The gate copies their values from the vector when the module's ranges have arrived."""

    def __init__(self, model: nn.Module, layout: Layout, weights: torch.Tensor, ready: Callable[[bool], None],
                 wait: Callable[[int, int], None]) -> None:
        self._ready, self._wait, self._weights, self._layout = ready, wait, weights, layout
        self.round = 0
        #: _is_open is True if a forward pass need not call `ready`. is_settled is True if all weights have arrived.
        self._is_open, self.is_settled = False, False
        self._handles: list[Any] = []
        self._modules: list[_Module] = []
        self._of_parameter: dict[str, list[_Module]] = {}
        # Tensors that a program uses without a call of their module, for example in the parent module. open() waits
        # for them at once.
        self._strays = self._entry(set())
        names: Mapping[int, str] = {id(t): n for n, t in {**layout.parameters, **layout.buffers}.items()}
        for module in model.modules():
            own = [*module._parameters.values(), *module._buffers.values()]
            here = {names[id(tensor)] for tensor in own if tensor is not None and id(tensor) in names}
            if here or module is model:
                self._watch(module, self._entry(here))

    def _entry(self, names: set[str]) -> _Module:
        places = [place for name, place in self._layout.places.items() if name in names]
        buffers = [(self._layout.buffers[p.name], p.of(self._weights))
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
        # Makes this hook run before other hooks, because some of them, such as weight_norm's, read parameters.
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
        """Begins a round for a new clock, in which no weights have arrived yet. Waits for the strays."""
        self.round += 1
        self._is_open, self.is_settled = True, False
        self._arrive(self._strays)

    def close(self) -> None:
        """Ends the clock's round. The next forward pass opens another clock."""
        self.round += 1
        self._is_open = self.is_settled = False

    def pause(self) -> None:
        """Makes the next forward pass call `ready` again, because the open clock has all its steps."""
        self._is_open = False

    def finish(self) -> None:
        """Opens the gate for good: the job is over, and the final weights have arrived. Forward passes no longer call
        `ready`."""
        self.refresh()
        self._is_open = True

    def remove(self) -> None:
        """Removes the hooks."""
        for handle in self._handles:
            handle.remove()

    def arrive_all(self) -> None:
        """Waits for the weights of all modules that no forward of this round has waited for."""
        for entry in self._modules:
            if entry.round != self.round:
                self._arrive(entry)
        self.is_settled = True

    def refresh(self) -> None:
        """Copies the values of all buffers from the vector. All weights must have arrived."""
        for entry in (*self._modules, self._strays):
            self._copy_buffers(entry)
            entry.round = self.round
        self.is_settled = True

    def has_arrived(self, name: str) -> bool:
        """Returns whether the gate has waited for the parameter in this round."""
        for entry in self._of_parameter[name]:
            if entry.round == self.round:
                return True
        return name in self._strays.names

    def adopt(self, names: set[str]) -> None:
        """Makes these parameters strays: from now on open() waits for them when a clock begins."""
        self._strays = self._entry({*self._strays.names, *names})
