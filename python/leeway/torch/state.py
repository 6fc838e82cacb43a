"""What a torch worker keeps between clocks, as tensors: the local optimizer's state and the model's own buffers.

It is a safetensors file, never a pickle. Its tensors are `optimizer/PARAMETER/KEY` and `buffer/NAME`; its metadata have
`format`, the optimizer's `class` and, as JSON, the numbers of its param groups."""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional

import numpy as np
import torch
from torch import nn

from .. import safetensors
from ..errors import InvalidArgument

FORMAT = "leeway.torch state 1"


def _numbers(group: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in group.items()
            if key != "params" and isinstance(value, (bool, int, float, str, list, tuple, type(None)))}


def save(optimizer: Optional[torch.optim.Optimizer], names: Mapping[int, str], buffers: Mapping[str, torch.Tensor]) -> bytes:
    """`names` of the parameters, by id; no optimizer where it has no state. Values that are neither tensors nor numbers
    are refused by name."""
    tensors: dict[str, np.ndarray] = {f"buffer/{name}": buffer.detach().numpy() for name, buffer in buffers.items()}
    for parameter, state in optimizer.state.items() if optimizer is not None else ():
        name = names.get(id(parameter))
        if name is None:
            continue
        for key, value in state.items():
            if value is None:
                continue
            if not isinstance(value, (torch.Tensor, int, float)):
                raise InvalidArgument(f"the optimizer's state of {name} has {key} of the type {type(value).__name__}; "
                                      "checkpoints hold tensors and numbers")
            tensors[f"optimizer/{name}/{key}"] = (value.detach().numpy() if isinstance(value, torch.Tensor)
                                                  else np.asarray(value))
    groups = [_numbers(group) for group in optimizer.param_groups] if optimizer is not None else []
    metadata = {"format": FORMAT, "class": type(optimizer).__name__, "groups": json.dumps(groups)}
    return safetensors.dumps(tensors, metadata)


def load(data: bytes, optimizer: Optional[torch.optim.Optimizer], parameters: Mapping[str, nn.Parameter],
         buffers: Mapping[str, torch.Tensor]) -> None:
    """Raises InvalidArgument if the state is another optimizer's or model's."""
    tensors, metadata = safetensors.loads(data)
    if metadata.get("format") != FORMAT or metadata.get("class") != type(optimizer).__name__:
        raise InvalidArgument(f"the checkpoint's state is of the optimizer {metadata.get('class')!r}, and this is "
                              f"{type(optimizer).__name__}")
    for name, value in tensors.items():
        kind, _, rest = name.partition("/")
        if kind == "buffer":
            _load_buffer(rest, value, buffers)
        else:
            owner, _, key = rest.rpartition("/")
            _load_slot(owner, key, value, optimizer, parameters)
    groups = json.loads(metadata.get("groups", "[]"))
    for group, numbers in zip(optimizer.param_groups if optimizer is not None else (), groups):
        group.update({key: tuple(v) if isinstance(v, list) else v for key, v in numbers.items() if key in group})


def _load_buffer(name: str, value: np.ndarray, buffers: Mapping[str, torch.Tensor]) -> None:
    buffer = buffers.get(name)
    if buffer is None or tuple(buffer.shape) != value.shape:
        raise InvalidArgument(f"the checkpoint's state has a buffer {name} of the shape {value.shape}; the model does not")
    with torch.no_grad():
        buffer.copy_(torch.from_numpy(value))


def _load_slot(name: str, key: str, value: np.ndarray, optimizer: Optional[torch.optim.Optimizer],
               parameters: Mapping[str, nn.Parameter]) -> None:
    parameter = parameters.get(name)
    if optimizer is None or parameter is None or (value.ndim and value.shape != tuple(parameter.shape)):
        raise InvalidArgument(f"the checkpoint's state has {key} of {name} with the shape {value.shape}; the model does "
                              "not")
    is_number = value.ndim == 0 and value.dtype != np.float32
    optimizer.state[parameter][key] = value.item() if is_number else torch.from_numpy(value)
