"""Notices what a script writes into parameters that are not the worker's to change.

Torch counts in-place changes of a tensor (`_version`), and those of load_state_dict are such. The client's writes go to the
memory and are not counted. What `.data` gives has a count of its own, and lives for one statement as a rule. So of a
watched parameter `.data` gives the same tensor each time, and its count is looked at, too. Nothing is compared: that would
cost a pass over the memory in each step."""

from __future__ import annotations

import weakref
from typing import Any, Mapping, Optional

import torch
from torch import nn

_DATA = torch._C._TensorBase.data
#: By the parameter's id: it, and what its `.data` gives.
_kept: dict[int, tuple["weakref.ref[nn.Parameter]", torch.Tensor]] = {}


class _Data:
    """In place of nn.Parameter.data, for all parameters: only those in _kept differ."""

    def __get__(self, parameter: Optional[nn.Parameter], owner: Any = None) -> Any:
        if parameter is None:
            return self
        kept = _kept.get(id(parameter))
        return kept[1] if kept is not None and kept[0]() is parameter else _DATA.__get__(parameter)

    def __set__(self, parameter: nn.Parameter, value: torch.Tensor) -> None:
        kept = _kept.get(id(parameter))
        if kept is not None and kept[1] is not value:
            del _kept[id(parameter)]  # It lies elsewhere now.
        _DATA.__set__(parameter, value)


class Writes:
    def __init__(self, parameters: Mapping[str, nn.Parameter]) -> None:
        if not isinstance(vars(nn.Parameter).get("data"), _Data):
            nn.Parameter.data = _Data()  # type: ignore[assignment]
        for parameter in parameters.values():
            _kept[id(parameter)] = (weakref.ref(parameter), _DATA.__get__(parameter))
        self._watched = [(name, parameter, _kept[id(parameter)][1]) for name, parameter in parameters.items()]
        self.accept()

    def _now(self) -> list[tuple[int, int, int]]:
        return [(parameter._version, data._version, parameter.data_ptr()) for _, parameter, data in self._watched]

    def accept(self) -> None:
        """What was written so far is known."""
        self._known = self._now()

    def names(self) -> list[str]:
        """Of the parameters that were written into since then."""
        now = self._now()
        if now == self._known:
            return []
        return [name for (name, _, _), one, other in zip(self._watched, now, self._known) if one != other]

    def close(self) -> None:
        for _, parameter, _ in self._watched:
            _kept.pop(id(parameter), None)
        self._watched = []
