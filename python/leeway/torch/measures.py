"""What a step has measured: its loss, and where its time went."""

from __future__ import annotations

import functools
import time
import weakref
from typing import Any, Callable, Optional

import torch

from ..session import Report


class Measures:
    """Of one job. The loss of a step is what job.loss() said; else what a closure gave; else the sum of the scalars that
    backward() began from. Time goes on batches, on waits for the servers, and between a batch and its step() on compute."""

    def __init__(self, has_clock: Optional[Callable[[], bool]]) -> None:
        #: Whether a backward() may be this job's, where no hook of a gradient says so.
        self._has_clock = has_clock
        #: Set by such a hook.
        self.touched = False
        #: As job.loss() said it.
        self.told: Any = None
        self._roots: Optional[float] = None
        self._data = self._compute = self._backward = self._waited = 0.0
        #: When the compute began that is under way, and what had been waited for before.
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
        """Gives a batch. The compute of the one before is over."""
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
        """A step is over."""
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
#: Torch's function, and the one in its place.
_own: Optional[Callable[..., Any]] = None
_wrapper: Optional[Callable[..., Any]] = None


def _root_of(tensors: Any, grad_tensors: Any) -> Optional[float]:
    """The loss, if it is one scalar that gradients are taken of as it is."""
    if not isinstance(tensors, torch.Tensor):
        tensors = tensors[0] if isinstance(tensors, (list, tuple)) and len(tensors) == 1 else None
    given = [grad_tensors] if isinstance(grad_tensors, torch.Tensor) else list(grad_tensors or ())
    if tensors is None or tensors.numel() != 1 or tensors.is_complex() or any(each is not None for each in given):
        return None
    return float(tensors.detach())


def watch(measures: Measures) -> None:
    """torch.autograd.backward, by which Tensor.backward goes, too, tells these measures until unwatch()."""
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
    """After the last one torch has its own function back, unless somebody has wrapped it once more."""
    global _own, _wrapper
    _watching.discard(measures)
    if not _watching and _own is not None and torch.autograd.backward is _wrapper:
        torch.autograd.backward, _own, _wrapper = _own, None, None
