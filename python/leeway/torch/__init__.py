"""Four added lines make a PyTorch script a worker of a Leeway job (docs/python.md).

    import leeway.torch as leeway
    job = leeway.join(model, optimizer)
    loader = job.batches(loader)
    for epoch in job.epochs(5):

The calls of zero_grad(), backward() and step() do not change. Without a job the script trains alone, as if these lines
were absent."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import numpy as np
import torch
from torch import nn

from .. import ending, safetensors
from ..alone import Alone, has_coordinator, say_so
from ..errors import (DeadlineExceeded, Error, FailedPrecondition, Finished, ForkedError, InternalError, InvalidArgument,
                      LibraryNotFound, Misuse, NoMemory, NotFinite, NotFound, Replaced, Unavailable)
from ..job import update_text
from ..notes import note
from ..session import LibrarySession
from .alone import AloneJob
from .held import LOST, has_left
from .job import OVERLAPS, TorchJob
from .layout import Layout, plan
from .optimizers import Translation, Untranslatable, as_list, translate

__all__ = ["Alone", "AloneJob", "DeadlineExceeded", "Error", "FailedPrecondition", "Finished", "ForkedError",
           "InternalError", "InvalidArgument", "LibraryNotFound", "Misuse", "NoMemory", "NotFinite", "NotFound",
           "Replaced", "TorchJob", "Unavailable", "join", "load", "safetensors"]

_jobs: "weakref.WeakSet[TorchJob]" = weakref.WeakSet()


def load(path: Any) -> dict[str, torch.Tensor]:
    """Returns the tensors of a safetensors file, by name, for load_state_dict."""
    return {name: torch.from_numpy(array) for name, array in safetensors.load(path).items()}


def first_weights(layout: Layout) -> np.ndarray:
    """Returns the model's own values at join as one vector, in the order of the layout."""
    flat = np.empty(sum(place.count for place in layout.places.values()), np.float32)
    with torch.no_grad():
        for name, tensor in {**layout.parameters, **layout.buffers}.items():
            layout.places[name].of(torch.from_numpy(flat)).copy_(tensor)
    return flat


def _check_unjoined(model: nn.Module) -> None:
    """Raises Misuse if a job that is not over has tensors of this model. A model whose job is over may join another
    job."""
    for job in [job for job in _jobs if job.shares(model)]:
        if job.ended is None:
            raise Misuse("leeway.torch.join: this model, or a part of it, has already joined a job that is not over: "
                         "join once, with all optimizers as a list")
        job.let_go()
        _jobs.discard(job)


def _open(layout: Layout, translation: Optional[Translation], refusal: Optional[Untranslatable], coordinator: Optional[str],
          rank: Optional[int], start_seconds: float) -> LibrarySession:
    try:
        session = LibrarySession(layout.schema, first_weights(layout),
                                 update_text(translation.update) if translation else None, coordinator, rank,
                                 start_seconds)
    except InvalidArgument as error:
        # The job has no `update` and needs this program's optimizer, but the optimizer cannot be translated.
        if refusal is None or "which optimizer it has" not in str(error):
            raise
        raise refusal from error
    return session


def join(model: nn.Module, optimizer: Union[torch.optim.Optimizer, Sequence[torch.optim.Optimizer]], *,
         evaluate: Optional[Callable[[nn.Module], Mapping[str, float]]] = None, overlap: str = "backward",
         coordinator: Optional[str] = None, rank: Optional[int] = None, alone: Optional[Alone] = None,
         start_seconds: float = 0.0) -> Union[TorchJob, AloneJob]:
    """Joins a job as a worker, and returns when all workers have joined. The parameters then have the servers' values.

    evaluate: a function that rank 0 calls with the model, in eval mode and without gradients, as often as the job
        specifies and at the end. It returns a mapping with loss and, optionally, accuracy. Without a job it is not
        called.
    optimizer: one optimizer, or a list of optimizers that step separately, each with its own parameters. An optimizer
        from a list leaves parameters without a gradient alone, as in PyTorch, and its gradients leave at step()
        (docs/python.md, Several optimizers).
    overlap: what runs while gradients are exchanged. With "backward", blocks leave as backward() finishes them, and
        step() returns when the new weights have arrived. With "forward", step() does not wait for the new weights: the
        forward of each module waits for the module's weights, and state_dict() waits for all weights. A script that
        reads weights in another way calls job.wait() first. With "none", everything leaves at step().
    coordinator, rank: the coordinator's address and this worker's rank, by default from the environment. Without a
        coordinator the script trains alone, and join returns an AloneJob."""
    ending.install()
    optimizers, apart = as_list(optimizer), isinstance(optimizer, (list, tuple))
    if overlap not in OVERLAPS:
        raise InvalidArgument(f"leeway.torch.join: overlap is {overlap!r}; it must be one of {', '.join(OVERLAPS)}")
    _check_unjoined(model)
    if coordinator is None and not has_coordinator():
        if has_left(optimizers):
            raise InvalidArgument(f"leeway.torch.join: {LOST}")
        say_so("as plain PyTorch")
        return AloneJob(model, alone or Alone())
    translation, refusal = None, None
    try:
        translation = translate(optimizers, apart)
    except Untranslatable as error:
        refusal = error
    layout = plan(model, optimizers, translation.factors if translation else None)
    session = _open(layout, translation, refusal, coordinator, rank, start_seconds)
    try:
        if session.info.exchange == "gradient":
            _check_for_gradients(optimizers, refusal)
        job = TorchJob(model, optimizers, session, layout, translation=translation, refusal=refusal, overlap=overlap,
                       evaluate=evaluate, apart=apart)
    except Error as error:
        session.fail(f"{type(error).__name__}: {error}", ending.FAREWELL_SECONDS)
        raise
    _jobs.add(job)
    return job


def _has_stepped(slots: Mapping[str, Any]) -> bool:
    """Returns whether the parameter with these slots has stepped. Adagrad makes its slots before the first step."""
    if slots.get("step") is not None:
        return float(slots["step"]) > 0
    return any(value is not None for value in slots.values())


def _check_for_gradients(optimizers: list[torch.optim.Optimizer], refusal: Optional[Untranslatable]) -> None:
    if refusal is not None and (len(optimizers) > 1 or isinstance(optimizers[0], torch.optim.LBFGS)):
        raise refusal
    for optimizer in optimizers:
        if any(map(_has_stepped, optimizer.state.values())):
            raise InvalidArgument(f"the optimizer {type(optimizer).__name__} already has a state, but the servers "
                                  "begin without a state: resume the job itself (leeway train --resume), or train "
                                  "with `exchange: {type: delta}`")
    if refusal is not None:
        note(f"the job's update is the servers' rule; {type(optimizers[0]).__name__} does not step ({refusal})")
