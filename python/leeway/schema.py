"""The tensors of a model, as names and shapes. Converts them to the structs of leeway/client.h and back."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from typing import Callable, Mapping, Sequence, Union

from . import _library as native
from .errors import InvalidArgument
from .handle import Handle

KINDS = {"weight": 0, "bias": 1, "norm": 2, "embedding": 3}


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor of the model, float32. If `averaged`, no gradient moves the tensor, and the servers average the workers'
    values. The factors multiply the job's learning rate and weight decay. If `begins_block`, the tensor is exchanged
    apart from the tensors before it."""

    shape: tuple[int, ...]
    kind: str = "weight"
    averaged: bool = False
    momentum: float = 1.0
    learning_rate_factor: float = 1.0
    weight_decay_factor: float = 1.0
    begins_block: bool = False

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def offsets_of(schema: Mapping[str, Tensor]) -> dict[str, tuple[int, int]]:
    """Returns the first element and the number of elements of each tensor in the flat vector."""
    places, first = {}, 0
    for name, tensor in schema.items():
        places[name] = (first, tensor.size)
        first += tensor.size
    return places


def check_schema(schema: Mapping[str, Union[Tensor, Sequence[int], int]]) -> dict[str, Tensor]:
    """Returns the schema with a Tensor for each name. Trained tensors come first, which is the order of the vector."""
    if not isinstance(schema, Mapping) or not schema:
        raise InvalidArgument("schema: must be a mapping of names to shapes that is not empty, such as "
                              "{\"w\": (784, 10)}")
    tensors = {}
    for name, given in schema.items():
        if not isinstance(given, Tensor):
            given = Tensor((given,) if isinstance(given, int) else tuple(given))
        shape = tuple(int(side) for side in given.shape)
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"schema: {name!r} is not a name; a name is a string that is not empty")
        if any(side < 1 for side in shape):
            raise InvalidArgument(f"schema: {name} has the shape {shape}; every dimension must be 1 or more")
        tensors[name] = dataclasses.replace(given, shape=shape)
    return {**{n: t for n, t in tensors.items() if not t.averaged}, **{n: t for n, t in tensors.items() if t.averaged}}


def native_tensors(schema: Mapping[str, Tensor]) -> "ctypes.Array":
    """Returns the tensors as structs for the library. In `schema` trained tensors must come before averaged ones."""
    tensors = (native.Tensor * len(schema))()
    for place, (name, tensor) in zip(tensors, schema.items()):
        if tensor.kind not in KINDS:
            raise InvalidArgument(f"tensor {name}: kind is {tensor.kind!r}; it must be one of {', '.join(KINDS)}")
        place.name = name.encode()
        place.shape = (ctypes.c_uint64 * max(1, len(tensor.shape)))(*tensor.shape)
        place.dimensions = len(tensor.shape)
        place.kind = KINDS[tensor.kind]
        place.averaged = int(tensor.averaged)
        place.momentum = tensor.momentum
        place.learning_rate_factor = tensor.learning_rate_factor
        place.weight_decay_factor = tensor.weight_decay_factor
    return tensors


def tensors_of(handle: Handle, tensor_of: Callable[..., int]) -> dict[str, Tensor]:
    """Reads the tensors with the library's function for tensor number i of the handle, in the order of the vector."""
    found: dict[str, Tensor] = {}
    tensor = native.Tensor()
    names = {number: name for name, number in KINDS.items()}
    while True:
        code = handle.call(tensor_of, len(found), ctypes.byref(tensor), expected=native.NOT_FOUND)
        if code == native.NOT_FOUND:
            return found
        found[tensor.name.decode()] = Tensor(tuple(tensor.shape[:tensor.dimensions]), names[tensor.kind],
                                             bool(tensor.averaged), tensor.momentum or 1.0,
                                             tensor.learning_rate_factor, tensor.weight_decay_factor)
