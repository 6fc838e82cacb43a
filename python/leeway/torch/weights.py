"""The tensors of a joined model, and the job's vector of weights, which holds their values."""

from __future__ import annotations

from typing import Iterable

import torch
from torch import nn

from ..errors import Misuse
from ..session import Session
from .layout import Layout
from .writes import Writes


class Weights:
    """Trained parameters are views of the vector. Frozen parameters and buffers keep their own memory, and their values
    are copied into each contribution. `local`: whether the worker may change the trained values."""

    def __init__(self, session: Session, layout: Layout, local: bool) -> None:
        self._session, self._layout = session, layout
        self.vector = torch.from_numpy(session.weights())
        self._take()
        self._writes = Writes(layout.frozen if local else layout.parameters)

    def _view(self, name: str) -> torch.Tensor:
        return self._layout.places[name].of(self.vector)

    def _take(self) -> None:
        """Gives every tensor the servers' values, at join."""
        self._session.settle()
        with torch.no_grad():
            for name, parameter in self._layout.trained.items():
                parameter.data = self._view(name)
            for name, tensor in self._layout.averaged.items():
                tensor.copy_(self._view(name))

    def put_back(self, vector: torch.Tensor) -> None:
        """Writes these values into the model, because the open clock begins again with them."""
        self.vector.copy_(vector)
        with torch.no_grad():
            for name, parameter in self._layout.frozen.items():
                parameter.copy_(self._view(name))

    def hand_in_averaged(self, vector: torch.Tensor) -> None:
        with torch.no_grad():
            for name, tensor in self._layout.averaged.items():
                self._layout.places[name].of(vector).copy_(tensor)

    def count_writes(self, parameters: Iterable[nn.Parameter]) -> None:
        """Counts the servers' update of these parameters as a write, like an optimizer's step. So if an older graph
        needs the old values, its backward() raises an error, as in PyTorch."""
        for parameter in parameters:
            parameter.detach().view(-1)[:0].zero_()  # An empty view shares the parameter's count of writes.
        self._writes.accept()

    def accept(self) -> None:
        """Accepts all writes so far, so that check() does not report them."""
        self._writes.accept()

    def check(self, clock_is_open: bool) -> None:
        """Raises Misuse if the script has changed a parameter that it may not change. Values that the script has
        restored, for example after an evaluation with other weights, are no change."""
        written = self._writes.names()
        if written:
            self._check_written(written, clock_is_open)
            self._writes.accept()

    def _check_written(self, names: list[str], clock_is_open: bool) -> None:
        servers, rank = None, self._session.info.rank
        for name in names:
            if name in self._layout.frozen:
                if not torch.equal(self._layout.frozen[name], self._view(name)):
                    raise Misuse(f"rank {rank}, parameter {name}: its values have changed, but no optimizer that was "
                                 "given to join trains it. Give all optimizers to join, as a list. Put tensors that "
                                 "the script itself changes, such as a target network, into a module that is not "
                                 "given to join")
                continue
            if servers is None and not clock_is_open:
                servers = torch.from_numpy(self._session.read_again())
            if servers is None or not torch.equal(self._layout.places[name].of(servers), self._view(name)):
                raise Misuse(f"rank {rank}, parameter {name}: the script has changed its values (by load_state_dict, "
                             "a clamp, or an optimizer that was not given to join, for example), but in a gradient "
                             "exchange the weights belong to the servers. Load weights before join. To change them while "
                             "training, train with `exchange: {type: delta}`, where the weights belong to the worker. "
                             "A script may change values and restore them if the forward passes in between run under "
                             "torch.no_grad()")

    def close(self) -> None:
        self._writes.close()
