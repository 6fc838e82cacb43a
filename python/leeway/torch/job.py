"""A torch model as a worker: the object that leeway.torch.join returns inside a job."""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping, Optional, Union

import numpy as np
import torch
from torch import nn

from .. import safetensors
from ..session import Session
from .gate import Hook
from .kept import Kept
from .layout import Layout
from .measures import unwatch, watch
from .optimizers import Translation, Untranslatable
from .steps import Steps

Evaluate = Callable[[nn.Module], Mapping[str, float]]
#: The computation that runs while a gradient is exchanged: nothing, backward(), or backward() and the next forward
#: pass.
OVERLAPS = ("none", "backward", "forward")


class TorchJob(Steps):
    """A worker in a job. The trained parameters are views of the vector of weights. One thread uses the object."""

    def __init__(self, model: nn.Module, optimizers: list[torch.optim.Optimizer], session: Session, layout: Layout, *,
                 translation: Optional[Translation] = None, refusal: Optional[Untranslatable] = None,
                 overlap: str = "backward", evaluate: Optional[Evaluate] = None, apart: bool = False) -> None:
        super().__init__(model, optimizers, session, layout, translation, refusal, overlap, apart)
        self._state_hooks = [module._register_state_dict_hook(Hook(lambda *_: self.wait())) for module in model.modules()]
        if evaluate is not None:
            self._clocks.evaluate = lambda: self._evaluate(evaluate)
        self._kept = Kept(model, optimizers, layout, session.info.rank, self._local)
        self._schedulers = self._kept.schedulers
        self._clocks.state, self._clocks.load, self._clocks.go_back = self._kept.save, self._kept.load, self._kept.go_back
        saved = session.load_state()
        self._has_state = bool(saved)
        self._kept.load(saved)
        watch(self._measures)

    def _evaluate(self, evaluate: Evaluate) -> Mapping[str, float]:
        self._gate.refresh()
        training = [module for module in self._model.modules() if module.training]
        self._model.eval()
        try:
            with torch.no_grad():
                found = evaluate(self._model)
        finally:
            for module in training:
                module.training = True
        self._check()  # The evaluation may have written other weights.
        return found

    def _weights_of_clock(self) -> torch.Tensor:
        self._gate.arrive_all()
        return self._weights.vector.clone()

    def _begin_again(self, weights: torch.Tensor) -> None:
        """Begins the open clock again, with these weights and the state that the worker had when the clock began."""
        self._weights.put_back(weights)
        self._gate.refresh()
        self._weights.accept()
        self._kept.undo_clock()
        self._kept.begin_clock()

    def keep(self, scheduler: Any) -> Any:
        """Saves the scheduler's state in the job's checkpoints, and restores it from them. Returns the scheduler. Keep
        the schedulers in the same order each time the script starts."""
        self._schedulers.keep(scheduler)
        return scheduler

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes model.state_dict() to a safetensors file. Only rank 0 writes. Call it between two steps or at the
        end."""
        if self.rank != 0:
            return
        save_model(path, self._model)

    def shares(self, model: nn.Module) -> bool:
        """Returns whether the model has parameters of this job."""
        own = {id(parameter) for parameter in self._layout.parameters.values()}
        return any(id(parameter) in own for parameter in model.parameters())

    def let_go(self) -> None:
        """Removes all hooks, after the job's end. The script may then pass the model and the optimizers to another
        join."""
        for optimizer, own_step in zip(self._optimizers, self._own_steps):
            optimizer.step = own_step  # type: ignore[method-assign]
        self._held.let_go()
        for hook in self._state_hooks:
            hook.remove()
        if self._gradients is not None:
            self._gradients.remove()
        self._gate.remove()
        self._weights.close()
        unwatch(self._measures)


def save_model(path: Union[str, "os.PathLike[str]"], model: nn.Module) -> None:
    tensors = {name: np.array(value.detach().cpu().numpy()) for name, value in model.state_dict().items()}
    safetensors.save(path, tensors, {"format": "pt"})
