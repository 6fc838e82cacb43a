"""Measures the loss and the times of the steps."""

from __future__ import annotations

import functools
import time
import weakref
from typing import Any, Callable, Optional

import torch

from ..session import Report


class Measures:
    """The measurements of one job. The loss of a step is the value that job.loss() reported. Without such a
    value it is the value that the closure returned, and otherwise the sum of the scalars on which backward() was called.
    The compute time is the time between a batch and its step(), without the time spent on batches and on
    waiting for the servers."""

    def __init__(self, has_clock: Optional[Callable[[], bool]]) -> None:
        #: For jobs without hooks on gradients: returns True if a clock is open, so that a backward() may belong to
        #: this job.
        self._has_clock = has_clock
        #: True if a hook on a gradient has run since the last backward().
        self.touched = False
        #: The loss that job.loss() reported.
        self.told: Any = None
        self._roots: Optional[float] = None
        self._data = self._compute = self._backward = self._waited = 0.0
        #: When the current computation began, and the total time of all waits before it.
        self._began: Optional[tuple[float, float]] = None
        self._loads = self._waits = False

    # ---- time

    def waiting(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if self._waits:
            return function(*arguments)
        began, self._waits = time.perf_counter(), True
        try:
            return function(*arguments)
        finally:
            self._waited += time.perf_counter() - began
            self._waits = False

    def loading(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Returns the batch that the function returns. Ends the compute of the previous batch."""
        self._pause()
        began = time.perf_counter()
        batch = function(*arguments)
        now = time.perf_counter()
        self._data += now - began
        self._began, self._loads = (now, self._waited), True
        return batch

    def _pause(self) -> None:
        if self._began is not None:
            began, waited = self._began
            self._compute += time.perf_counter() - began - (self._waited - waited)
            self._began = None

    # ---- a backward() and a step

    def backward_ended(self, root: Optional[float], seconds: float, others: bool) -> None:
        touched = self.touched if self._has_clock is None else self._has_clock() and not others
        self.touched = False
        if touched:
            self._backward += seconds
            if root is not None:
                self._roots = root + (self._roots or 0.0)

    def count(self, report: Report, closures: Any, examples: int) -> None:
        """Adds the measurements of a step that is over to the report. `closures` is the loss from the step's
        closure."""
        self._pause()
        loss = next((each for each in (self.told, closures, self._roots) if each is not None), 0.0)
        report.loss_sum += float(loss) * examples
        backward = min(self._backward, self._compute)
        report.data_seconds += self._data
        report.backward_seconds += backward
        report.forward_seconds += self._compute - backward
        self.told = self._roots = None
        self._data = self._compute = self._backward = 0.0
        if not self._loads:
            self._began = time.perf_counter(), self._waited


_watching: "weakref.WeakSet[Measures]" = weakref.WeakSet()
#: torch's own torch.autograd.backward, and the function that replaces it.
_own: Optional[Callable[..., Any]] = None
_wrapper: Optional[Callable[..., Any]] = None


def _root_of(tensors: Any, grad_tensors: Any) -> Optional[float]:
    """Returns the loss if backward() is called on one scalar without grad_tensors. Otherwise returns None."""
    if not isinstance(tensors, torch.Tensor):
        tensors = tensors[0] if isinstance(tensors, (list, tuple)) and len(tensors) == 1 else None
    given = [grad_tensors] if isinstance(grad_tensors, torch.Tensor) else list(grad_tensors or ())
    if tensors is None or tensors.numel() != 1 or tensors.is_complex() or any(each is not None for each in given):
        return None
    return float(tensors.detach())


def watch(measures: Measures) -> None:
    """Makes torch.autograd.backward report to these measures until unwatch(). Tensor.backward calls that function,
    too."""
    global _own, _wrapper
    _watching.add(measures)
    if _own is not None:
        return
    own = _own = torch.autograd.backward

    @functools.wraps(own)
    def backward(tensors: Any, grad_tensors: Any = None, *arguments: Any, **options: Any) -> Any:
        root = _root_of(tensors, grad_tensors)
        began = time.perf_counter()
        result = own(tensors, grad_tensors, *arguments, **options)
        seconds = time.perf_counter() - began
        for each in list(_watching):
            each.backward_ended(root, seconds, len(_watching) > 1)
        return result

    torch.autograd.backward = _wrapper = backward


def unwatch(measures: Measures) -> None:
    """Ends watch(). After the last job torch gets its own function back, unless other code has wrapped it again."""
    global _own, _wrapper
    _watching.discard(measures)
    if not _watching and _own is not None and torch.autograd.backward is _wrapper:
        torch.autograd.backward, _own, _wrapper = _own, None, None
