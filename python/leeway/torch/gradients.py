"""Copies gradients into the contribution: a hook runs when a gradient is finished, copies it and lets its block leave.

The contribution is each parameter's `.grad` at step(), after any number of backward() calls. A block may leave before
step() only if nothing changes its gradients afterwards. So the first step holds all blocks back, counts how often each
gradient is finished, and checks whether the script changes one after that, for example by a clip. If it does, later
steps hold all blocks back, too. Otherwise a gradient leaves when it has been finished that number of times, and step()
compares the copy that has left with `.grad`. If the two differ, step() raises an error, so the sum is never silently
wrong."""

from __future__ import annotations

import ctypes
import functools
from typing import Callable, Container, Optional

import torch
from torch import nn

from ..errors import Misuse
from .layout import Layout, Place


MISSING = ("parameter {}: it has no gradient in this step. PyTorch leaves such a parameter alone, but the servers' "
           "rule would move it by momentum or decay. If it is never used, freeze it before join "
           "(requires_grad_(False)). If it is used in some steps, give join the optimizer as a list, [optimizer], "
           "whose steps leave such parameters out; or, if that is meant, give it zeros "
           "(parameter.grad = torch.zeros_like(parameter))")


_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


class _Gradient:
    """The gradient of one trained parameter."""

    __slots__ = ("place", "parameter", "may_miss", "fired", "expected", "stamp", "gone")

    def __init__(self, place: Place, parameter: nn.Parameter, may_miss: bool) -> None:
        self.place, self.parameter = place, parameter
        #: True if zeros may replace a missing gradient. They may if the servers' rule then does not change the
        #: parameter, as in PyTorch.
        self.may_miss = may_miss
        #: `fired` is how often the gradient was finished in this clock. The gradient leaves when `fired` reaches
        #: `expected`. If `expected` is 0, it does not leave before step().
        self.fired, self.expected = 0, 0
        #: The address and the version that the gradient had when it was finished. If they are different later, the
        #: script has changed or replaced the gradient.
        self.stamp = (0, -1)
        self.gone = False

    def is_changed(self, copy: torch.Tensor) -> bool:
        """Returns whether the gradient was changed since it was finished and copied to `copy`. The values are compared
        as well, because the stamp does not show a change through `.grad.data` or numpy."""
        grad = self.parameter.grad
        return grad is None or _stamp(grad) != self.stamp or not _same_bits(copy, _dense(grad))


def _stamp(grad: torch.Tensor) -> tuple[int, int]:
    return grad.data_ptr() if grad.layout == torch.strided else 0, grad._version


def _dense(grad: torch.Tensor) -> torch.Tensor:
    grad = grad.detach()  # With create_graph the gradient has a graph.
    return grad if grad.layout == torch.strided else grad.to_dense()


def put(view: torch.Tensor, grad: Optional[torch.Tensor]) -> None:
    """Copies a gradient into its part of the contribution. A missing one becomes zeros."""
    if grad is None:
        view.zero_()
    else:
        view.copy_(_dense(grad))


def on_gradient(parameter: torch.Tensor, finished: Callable[[], None]) -> Callable[[], None]:
    """Calls `finished` whenever backward() has added to the parameter's gradient. Returns a function that stops
    this."""
    if hasattr(parameter, "register_post_accumulate_grad_hook"):
        return parameter.register_post_accumulate_grad_hook(lambda _: finished()).remove
    accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    handle = accumulator.register_hook(lambda *_: finished())
    # The lambda keeps a reference to the accumulator, because autograd would otherwise drop the accumulator with its
    # hooks.
    return lambda _held=accumulator: handle.remove()


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Returns whether two float32 tensors have the same bits. Bits are compared because a NaN must equal itself here.
    memcmp takes a sixth of the time of torch.equal."""
    if other.is_contiguous():
        return _memcmp(one.data_ptr(), other.data_ptr(), 4 * other.numel()) == 0
    return torch.equal(one.view(torch.int32), other.view(torch.int32))


class Gradients:
    """Fills the contribution of a worker whose optimizers step together.

    contribution: returns the clock's contribution, as a tensor.
    opening: is called with a parameter's name before its gradient is copied.
    final: is called with the first element and the count of a range that is complete.
    indifferent: the names of the parameters that the servers' rule leaves alone if their gradient is zero.
    The hooks run on autograd's thread. On a CPU they run one at a time."""

    def __init__(self, layout: Layout, early: bool, indifferent: Container[str], contribution: Callable[[], torch.Tensor],
                 opening: Callable[[str], None], final: Callable[[int, int], None]) -> None:
        self._contribution, self._opening, self._final = contribution, opening, final
        self._gradients = [_Gradient(layout.places[name], p, name in indifferent) for name, p in layout.trained.items()]
        self._early = early
        #: True while the first step is under way.
        self.learning = True
        #: True within no_send(), which holds blocks back.
        self.held = False
        self._views: dict[int, dict[int, torch.Tensor]] = {}
        self._current: Optional[dict[int, torch.Tensor]] = None
        self._handles = [on_gradient(each.parameter, functools.partial(self._finished, each)) for each in self._gradients]

    def remove(self) -> None:
        """Removes the hooks."""
        for remove in self._handles:
            remove()
        self._handles.clear()

    def _finished(self, gradient: _Gradient) -> None:
        if gradient.gone:
            raise Misuse(
                f"parameter {gradient.place.name}: its gradient had already left when another backward() added to "
                f"it: before, a step() had {gradient.expected} backward(). Put all but the last backward() of a step "
                "into `with job.no_send():`, or join with overlap=\"none\"")
        self._opening(gradient.place.name)
        gradient.fired += 1
        grad = gradient.parameter.grad
        gradient.stamp = _stamp(grad)
        if self.learning:
            put(self._memory()[gradient.place.first], grad)
        elif gradient.fired == gradient.expected and not self.held:
            put(self._memory()[gradient.place.first], grad)
            gradient.gone = True
            self._final(gradient.place.first, gradient.place.count)

    def _memory(self) -> dict[int, torch.Tensor]:
        """Returns the views of the clock's contribution, by the first element of their places. Views are kept by the
        address of the contribution, which alternates between a few addresses."""
        if self._current is not None:
            return self._current
        flat = self._contribution()
        address = flat.data_ptr()
        views = self._views.get(address)
        if views is None:
            views = self._views[address] = {each.place.first: each.place.of(flat) for each in self._gradients}
        self._current = views
        return views

    def keep_back(self) -> None:
        """Holds all blocks back until step(), in all later steps. Called in the first step."""
        self._early = False

    def collect(self) -> None:
        """Copies all gradients that have not left into the contribution, at step()."""
        if not self.some:
            raise Misuse("step() without backward(): no parameter has a new gradient. Call backward() first; to leave a "
                         "batch out, call job.skip() instead of both")
        memory = self._memory()
        for gradient in self._gradients:
            view, grad = memory[gradient.place.first], gradient.parameter.grad
            if gradient.gone:
                if gradient.is_changed(view):
                    raise Misuse(
                        f"parameter {gradient.place.name}: its gradient was changed after it had left; in the first "
                        "step no gradient was changed: join with overlap=\"none\" to change gradients between "
                        "backward() and step()")
                continue
            if grad is None and not gradient.may_miss:
                raise Misuse(MISSING.format(gradient.place.name))
            if self.learning and gradient.fired and gradient.is_changed(view):
                self.keep_back()
            put(view, grad)
        if self.learning:
            self._learn()
        self.forget()

    def _learn(self) -> None:
        """Ends the first step: sets how often each gradient is finished before it leaves."""
        self.learning = False
        for gradient in self._gradients:
            grad = gradient.parameter.grad
            may_leave = self._early and grad is not None and grad.layout == torch.strided
            gradient.expected = gradient.fired if may_leave else 0

    def forget(self) -> None:
        """Resets the state of the clock that is over."""
        self._current = None
        for gradient in self._gradients:
            gradient.fired, gradient.gone = 0, False

    def zero(self) -> None:
        """Zeroes the contribution. Raises Misuse if a gradient has left already, because the servers have it then."""
        for gradient in self._gradients:
            if gradient.gone:
                raise Misuse(f"parameter {gradient.place.name}: its gradient has left, and job.skip() cannot call it back: skip before "
                             "backward(), or join with overlap=\"none\"")
        for view in self._memory().values():
            view.zero_()
        self.forget()

    @property
    def some(self) -> bool:
        """Whether backward() has finished a gradient in this clock."""
        return any(gradient.fired for gradient in self._gradients)
