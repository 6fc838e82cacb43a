"""Checks whether the model and its optimizers still have the tensors that they had at join.

The hooks, the vector of weights and the servers have only these tensors. Without the check, a new head, a pruned layer
or a parameter that is added to an optimizer later would silently train in this worker alone."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import torch
from torch import nn

from .layout import Layout, persistent_buffers
from .optimizers import groups_of

STAGES = ("A job trains the tensors that it has at join. To train other tensors, join another job after this job has "
          "ended (docs/python.md, Stages)")


def _places(model: nn.Module) -> tuple[list[tuple[dict, int]], list[tuple[dict, str, Any]]]:
    """Returns each dict in which a module keeps tensors or children, with its size, and the entries of all these dicts.
    The entries do not have integer tensors, because some modules replace their counters in each pass."""
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
        return [[id(parameter) for parameter in group["params"]] for group in groups_of(self._optimizers)]

    def change(self) -> Optional[str]:
        """Returns an error text that says what has changed since join and what to do, or None if nothing has
        changed."""
        if self._groups != self._grouped():
            return ("the optimizer has other parameters than at join (by add_param_group, for example), and the "
                    "servers do not train them. "
                    + STAGES)
        counts, held = self._places
        if any(len(place) != count for place, count in counts) or any(place.get(name) is not value
                                                                      for place, name, value in held):
            return self._other_tensors() or self._moved()
        return self._moved()

    def _other_tensors(self) -> Optional[str]:
        """Returns an error text if a tensor of the job was replaced, removed or added since join, or None. Other
        changes of the modules are allowed."""
        now = {**dict(self._model.named_parameters()), **dict(persistent_buffers(self._model))}
        before = {**self._layout.parameters, **self._layout.buffers}
        for name, tensor in before.items():
            if now.get(name) is not tensor:
                what = "no longer there" if name not in now else "not the same tensor as at join"
                return f"parameter or buffer {name}: it is {what}. " + STAGES
        for name in now:
            if name not in before:
                return f"parameter or buffer {name}: it is new since join. " + STAGES
        self._places = _places(self._model)
        return None

    def _moved(self) -> Optional[str]:
        for name, parameter, address in self._addresses:
            if parameter.data_ptr() != address or parameter.dtype != torch.float32:
                return (f"parameter {name}: it no longer uses the memory that join assigned (it is {parameter.dtype} on "
                        f"{parameter.device}): call model.to() or .half(), or assign to `.data`, before join")
        for name, parameter in self._still:
            if parameter.requires_grad:
                return f"parameter {name}: it was frozen at join and needs gradients now. " + STAGES
        return None
