"""The state that a torch worker keeps between clocks: the local optimizers' states and the model's own buffers.

It is a safetensors file, never a pickle. The names of its tensors are `optimizer/PARAMETER/KEY`, `buffer/NAME` and, for
the elements of lists, `list/PARAMETER/KEY/INDEX`. The metadata are `format`, the `class` of the optimizers, separated
by commas, and as JSON the numbers of their param groups (`groups`), the states of the schedulers (`schedulers`) and the
lengths of the lists (`lists`)."""

from __future__ import annotations

import json
from typing import Any, Mapping, Sequence

import numpy as np
import torch
from torch import nn

from .. import safetensors
from ..errors import InvalidArgument
from .optimizers import groups_of

FORMAT = "leeway.torch state 1"
ANOTHER = "Resume with the model and the optimizers that the checkpoint was made with, or start a new run"


def _numbers(group: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in group.items()
            if key != "params" and isinstance(value, (bool, int, float, str, list, tuple, type(None)))}


def _class_of(optimizers: Sequence[torch.optim.Optimizer]) -> str:
    return ",".join(type(optimizer).__name__ for optimizer in optimizers)


def _array(name: str, key: str, value: Any) -> np.ndarray:
    if not isinstance(value, (torch.Tensor, int, float)):
        raise InvalidArgument(f"the optimizer's state of {name} has {key} of the type {type(value).__name__}; checkpoints hold "
                              "tensors, numbers and lists of them")
    return value.detach().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)


def save(optimizers: Sequence[torch.optim.Optimizer], names: Mapping[int, str],
         buffers: Mapping[str, torch.Tensor], schedulers: Sequence[dict] = ()) -> bytes:
    """Returns the state as the bytes of a safetensors file. `names` has the names of the parameters, by id. Raises
    InvalidArgument for a value that is not a tensor, a number or a list of these."""
    tensors: dict[str, np.ndarray] = {f"buffer/{name}": buffer.detach().numpy() for name, buffer in buffers.items()}
    lengths: dict[str, int] = {}
    for parameter, state in (item for optimizer in optimizers for item in optimizer.state.items()):
        name = names.get(id(parameter))
        for key, value in state.items() if name is not None else ():
            if isinstance(value, list):
                lengths[f"{name}/{key}"] = len(value)
                tensors.update({f"list/{name}/{key}/{index}": _array(name, key, element)
                                for index, element in enumerate(value) if element is not None})
            elif value is not None:
                tensors[f"optimizer/{name}/{key}"] = _array(name, key, value)
    groups = [_numbers(group) for group in groups_of(optimizers)]
    metadata = {"format": FORMAT, "class": _class_of(optimizers), "groups": json.dumps(groups), "lists": json.dumps(lengths),
                "schedulers": json.dumps(list(schedulers))}
    return safetensors.dumps(tensors, metadata)


def load(data: bytes, optimizers: Sequence[torch.optim.Optimizer], parameters: Mapping[str, nn.Parameter],
         buffers: Mapping[str, torch.Tensor], local: bool = True) -> list:
    """Loads the state into the optimizers and buffers, and returns the states of the schedulers. Raises InvalidArgument
    if the state belongs to another optimizer or model.

    local: whether the optimizers step in this worker, and so have states."""
    tensors, metadata = safetensors.loads(data)
    if metadata.get("format") != FORMAT or metadata.get("class") not in ("", _class_of(optimizers)):
        raise InvalidArgument(f"the checkpoint's state is of the optimizer {metadata.get('class')!r}, but this is "
                              f"{_class_of(optimizers)}. {ANOTHER}")
    for optimizer in optimizers if local else ():
        optimizer.state.clear()
    owners = {id(parameter): optimizer for optimizer in optimizers for group in optimizer.param_groups
              for parameter in group["params"]}
    for place, length in json.loads(metadata.get("lists", "{}")).items() if local else ():
        owner, _, key = place.rpartition("/")
        _owner(owner, owners, parameters).state[parameters[owner]][key] = [None] * length
    for name, value in tensors.items():
        kind, _, rest = name.partition("/")
        if kind == "buffer":
            _load_buffer(rest, value, buffers)
        elif not local:
            continue
        elif kind == "list":
            place, _, index = rest.rpartition("/")
            owner, _, key = place.rpartition("/")
            _owner(owner, owners, parameters).state[parameters[owner]][key][int(index)] = _value(value)
        else:
            owner, _, key = rest.rpartition("/")
            _load_slot(owner, key, value, owners, parameters)
    groups = json.loads(metadata.get("groups", "[]"))
    for group, numbers in zip(groups_of(optimizers), groups):
        group.update({key: tuple(v) if isinstance(v, list) else v for key, v in numbers.items() if key in group})
    return json.loads(metadata.get("schedulers", "[]"))


def _load_buffer(name: str, value: np.ndarray, buffers: Mapping[str, torch.Tensor]) -> None:
    buffer = buffers.get(name)
    if buffer is None or tuple(buffer.shape) != value.shape:
        raise InvalidArgument(f"the checkpoint's state has a buffer {name} of the shape {value.shape}, but the model "
                              f"has no such buffer. {ANOTHER}")
    with torch.no_grad():
        buffer.copy_(torch.from_numpy(value))


def _owner(name: str, owners: Mapping[int, torch.optim.Optimizer],
           parameters: Mapping[str, nn.Parameter]) -> torch.optim.Optimizer:
    optimizer = owners.get(id(parameters.get(name)))
    if optimizer is None:
        raise InvalidArgument(f"the checkpoint has state of parameter {name}, which no optimizer has. {ANOTHER}")
    return optimizer


def _value(value: np.ndarray) -> Any:
    return value.item() if value.ndim == 0 and value.dtype != np.float32 else torch.from_numpy(value)


def _load_slot(name: str, key: str, value: np.ndarray, owners: Mapping[int, torch.optim.Optimizer],
               parameters: Mapping[str, nn.Parameter]) -> None:
    optimizer, parameter = _owner(name, owners, parameters), parameters[name]
    if value.ndim and value.shape != tuple(parameter.shape) and not isinstance(optimizer, torch.optim.LBFGS):
        raise InvalidArgument(f"the checkpoint's state has {key} of {name} with the shape {value.shape}, but the "
                              f"parameter has another shape. {ANOTHER}")
    optimizer.state[parameter][key] = _value(value)
