"""Describes a torch model as a schema of the tensors that the servers hold. Raises an error for models that Leeway does
not train."""

from __future__ import annotations

import dataclasses
from typing import Iterator, Mapping, Optional, Sequence

import torch
from torch import nn

from ..errors import InvalidArgument
from ..schema import Tensor, offsets_of

NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm)
EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)
#: The class names of wrappers that move or hide parameters, and what to do instead of using each.
REFUSED = {
    "DataParallel": "start a worker for each device instead: workers.count",
    "DistributedDataParallel": "give the module itself: the exchange takes the place of all-reduce",
    "FullyShardedDataParallel": "give the module itself: the servers hold the model in parts already",
    "OptimizedModule": "give the module itself: hooks do not run in compiled ones",
    "ScriptModule": "give the module itself: hooks do not run in scripted ones",
    "RecursiveScriptModule": "give the module itself: hooks do not run in scripted ones",
}


@dataclasses.dataclass
class Place:
    """The range of a parameter or buffer in the vector of weights."""

    name: str
    first: int
    count: int
    shape: tuple[int, ...]

    def of(self, vector: torch.Tensor) -> torch.Tensor:
        """Returns this range of the vector, as a view in the tensor's shape."""
        return vector[self.first:self.first + self.count].view(self.shape)


@dataclasses.dataclass
class Layout:
    schema: dict[str, Tensor]
    #: The trained parameters and all other ones, by name.
    trained: dict[str, nn.Parameter]
    frozen: dict[str, nn.Parameter]
    #: Running statistics and other floating-point buffers. The servers average them.
    buffers: dict[str, torch.Tensor]
    places: dict[str, Place]

    @property
    def parameters(self) -> dict[str, nn.Parameter]:
        return {**self.trained, **self.frozen}

    @property
    def averaged(self) -> dict[str, torch.Tensor]:
        return {**self.frozen, **self.buffers}


def _refuse(text: str) -> None:
    raise InvalidArgument(f"leeway.torch.join: {text}")


def check_model(model: nn.Module) -> None:
    if not isinstance(model, nn.Module):
        _refuse(f"the model is a {type(model).__name__}; it must be a torch.nn.Module")
    for name, module in model.named_modules():
        remedy = REFUSED.get(type(module).__name__)
        if remedy:
            _refuse(f"{name or 'the model'} is a {type(module).__name__}: {remedy}")
    for name, parameter in model.named_parameters():
        if isinstance(parameter, nn.parameter.UninitializedParameter):
            _refuse(f"parameter {name} has no shape yet (a lazy module): run one batch through the model before join")
        if parameter.dtype != torch.float32:
            _refuse(f"parameter {name} is {parameter.dtype}; Leeway trains float32: call model.float() before join, "
                    "and use torch.autocast for the arithmetic")
        if parameter.device.type != "cpu":
            _refuse(f"parameter {name} is on {parameter.device}; leeway.torch trains on the CPU: call model.cpu() "
                    "before join")
        if parameter.layout != torch.strided or parameter.numel() == 0:
            _refuse(f"parameter {name} has the layout {parameter.layout} and {parameter.numel()} elements; it must "
                    "be dense and have at least one element")


def _kinds(model: nn.Module) -> dict[int, str]:
    """Returns the kind of each parameter, by its id. The factors in the job's `update` are set by kind."""
    kinds: dict[int, str] = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is None or id(parameter) in kinds:
                continue
            if isinstance(module, NORMS):
                kinds[id(parameter)] = "norm"
            elif isinstance(module, EMBEDDINGS):
                kinds[id(parameter)] = "embedding"
            else:
                kinds[id(parameter)] = "bias" if "bias" in name else "weight"
    return kinds


def persistent_buffers(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    seen = set()
    for prefix, module in model.named_modules():
        for name, buffer in module._buffers.items():
            if buffer is None or id(buffer) in seen or name in module._non_persistent_buffers_set:
                continue
            seen.add(id(buffer))
            if buffer.is_floating_point() and buffer.numel():
                yield f"{prefix}.{name}" if prefix else name, buffer


def _optimized(optimizers: Sequence[torch.optim.Optimizer], known: set[int]) -> set[int]:
    """Returns the ids of the parameters of all optimizers. Raises InvalidArgument if a parameter is not the model's, or
    if two optimizers have it. `known` has the ids of the model's parameters."""
    found: dict[int, int] = {}
    for which, optimizer in enumerate(optimizers):
        for number, group in enumerate(optimizer.param_groups):
            for place, parameter in enumerate(group["params"]):
                what = f"parameter {place} of the optimizer's group {number}, of the shape {tuple(parameter.shape)},"
                if id(parameter) not in known:
                    _refuse(f"{what} does not belong to the model: make the optimizer from model.parameters()")
                if found.setdefault(id(parameter), which) != which:
                    _refuse(f"{what} also belongs to another optimizer: give each parameter to one optimizer")
    return set(found)


def owned(trained: Mapping[str, nn.Parameter], optimizers: Sequence[torch.optim.Optimizer]) -> list[list[str]]:
    """Returns the names of these parameters by optimizer, each list in their order."""
    ids = [{id(parameter) for group in optimizer.param_groups for parameter in group["params"]} for optimizer in optimizers]
    return [[name for name, parameter in trained.items() if id(parameter) in own] for own in ids]


def plan(model: nn.Module, optimizers: Sequence[torch.optim.Optimizer],
         factors: Optional[Mapping[int, tuple[float, float]]] = None) -> Layout:
    """Returns the layout: the trained parameters by optimizer, in the order of named_parameters(), then all other
    tensors.

    factors: the factors of learning rate and weight decay, by the parameter's id.
    A parameter that has no optimizer, or needs no gradient, is averaged, so it keeps its value."""
    check_model(model)
    named = dict(model.named_parameters())
    known = {id(parameter) for parameter in named.values()}
    optimized = _optimized(optimizers, known)
    parts = owned({n: p for n, p in named.items() if p.requires_grad and id(p) in optimized}, optimizers)
    trained = {name: named[name] for names in parts for name in names}
    frozen = {n: p for n, p in named.items() if n not in trained}
    buffers = dict(persistent_buffers(model))
    if not trained:
        _refuse("no parameter is trained: each is frozen, or no optimizer has it. Give the optimizer at "
                "least one parameter of the model that needs a gradient")
    kinds = _kinds(model)
    schema = {}
    for name, parameter in trained.items():
        rate, decay = (factors or {}).get(id(parameter), (1.0, 1.0))
        schema[name] = Tensor(tuple(parameter.shape), kinds[id(parameter)], learning_rate_factor=rate,
                              weight_decay_factor=decay)
    for name, value in {**frozen, **buffers}.items():
        schema[name] = Tensor(tuple(value.shape), kinds.get(id(value), "norm"), averaged=True)
    if len(optimizers) > 1:
        # A block with parameters of two optimizers could leave only at the later step(), so optimizers do not share
        # blocks.
        for names in (*parts, [*frozen, *buffers]):
            if names:
                schema[names[0]] = dataclasses.replace(schema[names[0]], begins_block=True)
    places = {name: Place(name, first, count, schema[name].shape)
              for name, (first, count) in offsets_of(schema).items()}
    return Layout(schema, trained, frozen, buffers, places)
