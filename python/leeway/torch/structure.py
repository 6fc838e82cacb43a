"""Whether the model and its optimizers still have the tensors that they had at join.

The hooks, the vector of weights and the servers know those, and no others. A new head, a pruned layer or a parameter that
is given to an optimizer later would train in this worker alone, without a word."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import torch
from torch import nn

from .layout import Layout, persistent_buffers

STAGES = ("A job trains the tensors that it has at join: other ones are another job's, which the script joins after this one "
          "has ended (docs/python.md, Stages)")


def _places(model: nn.Module) -> tuple[list[tuple[dict, int]], list[tuple[dict, str, Any]]]:
    """Where modules keep tensors and children: how many, and which. Some modules replace their counters in each pass."""
    kept = [place for module in model.modules() for place in (module._parameters, module._buffers, module._modules)]
    held = [(place, name, value) for place in kept for name, value in place.items()
            if not isinstance(value, torch.Tensor) or value.is_floating_point()]
    return [(place, len(place)) for place in kept], held


class Structure:
    def __init__(self, model: nn.Module, optimizers: Sequence[torch.optim.Optimizer], layout: Layout) -> None:
        self._model, self._optimizers, self._layout = model, optimizers, layout
        self._places = _places(model)
        self._groups = self._grouped()
        self._addresses = [(name, p, p.data_ptr()) for name, p in layout.trained.items()]
        self._still = [(name, p) for name, p in layout.frozen.items() if not p.requires_grad]

    def _grouped(self) -> list[list[int]]:
        return [[id(parameter) for parameter in group["params"]] for optimizer in self._optimizers
                for group in optimizer.param_groups]

    def change(self) -> Optional[str]:
        """What has changed since join, in words, with what to do."""
        if self._groups != self._grouped():
            return ("the optimizer has other parameters than at join (add_param_group, say), and the servers do not train them. "
                    + STAGES)
        counts, held = self._places
        if any(len(place) != count for place, count in counts) or any(place.get(name) is not value
                                                                      for place, name, value in held):
            return self._other_tensors() or self._moved()
        return self._moved()

    def _other_tensors(self) -> Optional[str]:
        """Some module has another thing than at join; that counts if it is a tensor that the job has."""
        now = {**dict(self._model.named_parameters()), **dict(persistent_buffers(self._model))}
        before = {**self._layout.parameters, **self._layout.buffers}
        for name, tensor in before.items():
            if now.get(name) is not tensor:
                what = "no longer there" if name not in now else "another tensor than at join"
                return f"parameter or buffer {name}: it is {what}. " + STAGES
        for name in now:
            if name not in before:
                return f"parameter or buffer {name}: it is new since join. " + STAGES
        self._places = _places(self._model)
        return None

    def _moved(self) -> Optional[str]:
        for name, parameter, address in self._addresses:
            if parameter.data_ptr() != address or parameter.dtype != torch.float32:
                return (f"parameter {name}: it is no longer where join put it (it is {parameter.dtype} on {parameter.device}): "
                        "model.to(), .half() and new tensors in place of `.data` go before join")
        for name, parameter in self._still:
            if parameter.requires_grad:
                return f"parameter {name}: it was frozen at join and needs gradients now. " + STAGES
        return None
