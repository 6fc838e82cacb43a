"""Gradients on their way into the contribution: a hook on each finished gradient copies it, and its block leaves.

What is handed in at step() is each parameter's `.grad` as step() finds it, however many backward() calls made it. A block
may leave before that only if nothing changes the gradient afterwards. So the first step holds all blocks back, and
counts: how often each gradient is finished, and whether something (a clip, say) touches one after that. If so, all blocks
are held back in later steps, too. Otherwise they leave with the last count, and step() compares what has left with
`.grad`. If they differ, it is a typed error, never a wrong sum."""

from __future__ import annotations

import ctypes
import functools
from typing import Callable, Container, Optional

import torch
from torch import nn

from ..errors import Misuse
from .layout import Layout, Place


MISSING = ("parameter {}: it has no gradient in this step. PyTorch leaves such a parameter alone; the servers' rule would move it "
           "by momentum or decay it. If it is never used, freeze it before join (requires_grad_(False)). If it is used in some "
           "steps, give join the optimizer as a list, [optimizer], whose steps leave such parameters out; or give it zeros "
           "(parameter.grad = torch.zeros_like(parameter)), where that is meant")


_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


class _Gradient:
    """Of one trained parameter."""

    __slots__ = ("place", "parameter", "may_miss", "fired", "expected", "stamp", "gone")

    def __init__(self, place: Place, parameter: nn.Parameter, may_miss: bool) -> None:
        self.place, self.parameter = place, parameter
        #: Zeros do what PyTorch does with a parameter that has no gradient: nothing.
        self.may_miss = may_miss
        #: How often it was finished in this clock, and how often it is before it leaves; 0: it does not leave early.
        self.fired, self.expected = 0, 0
        #: What tells a gradient that was changed or replaced since it was finished.
        self.stamp = (0, -1)
        self.gone = False

    def is_changed(self, copy: torch.Tensor) -> bool:
        """Since it was finished, and copied there. A change through `.grad.data` or numpy shows in the values only."""
        grad = self.parameter.grad
        return grad is None or _stamp(grad) != self.stamp or not _same_bits(copy, dense(grad))


def _stamp(grad: torch.Tensor) -> tuple[int, int]:
    return grad.data_ptr() if grad.layout == torch.strided else 0, grad._version


def dense(grad: torch.Tensor) -> torch.Tensor:
    grad = grad.detach()  # It may be made with create_graph.
    return grad if grad.layout == torch.strided else grad.to_dense()


def on_gradient(parameter: torch.Tensor, finished: Callable[[], None]) -> Callable[[], None]:
    """Calls `finished` whenever backward() has added to the parameter's gradient. Gives what ends that."""
    if hasattr(parameter, "register_post_accumulate_grad_hook"):
        return parameter.register_post_accumulate_grad_hook(lambda _: finished()).remove
    accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    handle = accumulator.register_hook(lambda *_: finished())
    # Autograd forgets an accumulator that nobody holds, and its hooks with it.
    return lambda _held=accumulator: handle.remove()


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Of float32. Bits, for NaN equals itself here. memcmp takes a sixth of the time of torch.equal."""
    if other.is_contiguous():
        return _memcmp(one.data_ptr(), other.data_ptr(), 4 * other.numel()) == 0
    return torch.equal(one.view(torch.int32), other.view(torch.int32))


class Gradients:
    """`contribution` gives the clock's memory, as a tensor; `opening` is called before a gradient is taken, `final` when
    a range is complete. `indifferent`: names of parameters that the servers' rule leaves alone for a gradient of zeros.
    Hooks run on the thread of autograd, one at a time on a CPU."""

    def __init__(self, layout: Layout, early: bool, indifferent: Container[str], contribution: Callable[[], torch.Tensor],
                 opening: Callable[[str], None], final: Callable[[int, int], None]) -> None:
        self._contribution, self._opening, self._final = contribution, opening, final
        self._gradients = [_Gradient(layout.places[name], p, name in indifferent) for name, p in layout.trained.items()]
        self._early = early
        #: In the first step.
        self.learning = True
        #: Set within no_send().
        self.held = False
        self._views: dict[int, dict[int, torch.Tensor]] = {}
        self._current: Optional[dict[int, torch.Tensor]] = None
        self._handles = [on_gradient(each.parameter, functools.partial(self._finished, each)) for each in self._gradients]

    def remove(self) -> None:
        """The hooks."""
        for remove in self._handles:
            remove()
        self._handles.clear()

    def _finished(self, gradient: _Gradient) -> None:
        if gradient.gone:
            raise Misuse(
                f"parameter {gradient.place.name}: its gradient had left when another backward() added to it: until now "
                f"{gradient.expected} backward() made a step(). Put all but the last backward() of a step into `with "
                "job.no_send():`, or join with overlap=\"none\"")
        self._opening(gradient.place.name)
        gradient.fired += 1
        grad = gradient.parameter.grad
        gradient.stamp = _stamp(grad)
        if self.learning:
            self._copy(self._memory()[gradient.place.first], grad)
        elif gradient.fired == gradient.expected and not self.held:
            self._copy(self._memory()[gradient.place.first], grad)
            gradient.gone = True
            self._final(gradient.place.first, gradient.place.count)

    def _memory(self) -> dict[int, torch.Tensor]:
        """Views of the clock's contribution by the place's first element; it alternates between few addresses."""
        if self._current is not None:
            return self._current
        flat = self._contribution()
        address = flat.data_ptr()
        views = self._views.get(address)
        if views is None:
            views = self._views[address] = {
                g.place.first: flat[g.place.first:g.place.first + g.place.count].view(g.place.shape)
                for g in self._gradients}
        self._current = views
        return views

    @staticmethod
    def _copy(view: torch.Tensor, grad: Optional[torch.Tensor]) -> None:
        if grad is None:
            view.zero_()
        else:
            view.copy_(dense(grad))

    def keep_back(self) -> None:
        """At the first step: nothing leaves before step()."""
        self._early = False

    def collect(self) -> None:
        """At step(): everything that has not left goes into the contribution as it is."""
        if not self.some:
            raise Misuse("step() without backward(): no parameter has a new gradient")
        memory = self._memory()
        for gradient in self._gradients:
            view, grad = memory[gradient.place.first], gradient.parameter.grad
            if gradient.gone:
                if gradient.is_changed(view):
                    raise Misuse(
                        f"parameter {gradient.place.name}: its gradient was changed after it had left, and none was in "
                        "the first step: join with overlap=\"none\" to change gradients between backward() and step()")
                continue
            if grad is None and not gradient.may_miss:
                raise Misuse(MISSING.format(gradient.place.name))
            if self.learning and gradient.fired and gradient.is_changed(view):
                self.keep_back()
            self._copy(view, grad)
        if self.learning:
            self._learn()
        self.forget()

    def _learn(self) -> None:
        """How many backward() calls a step has."""
        self.learning = False
        for gradient in self._gradients:
            grad = gradient.parameter.grad
            may_leave = self._early and grad is not None and grad.layout == torch.strided
            gradient.expected = gradient.fired if may_leave else 0

    def forget(self) -> None:
        """Of the clock that is over."""
        self._current = None
        for gradient in self._gradients:
            gradient.fired, gradient.gone = 0, False

    def zero(self) -> None:
        """A contribution of nothing. What has left is on the servers."""
        for gradient in self._gradients:
            if gradient.gone:
                raise Misuse(f"parameter {gradient.place.name}: its gradient has left, and job.skip() cannot call it back: skip before "
                             "backward(), or join with overlap=\"none\"")
        for view in self._memory().values():
            view.zero_()
        self.forget()

    @property
    def some(self) -> bool:
        """Whether a gradient was finished in this clock."""
        return any(gradient.fired for gradient in self._gradients)
