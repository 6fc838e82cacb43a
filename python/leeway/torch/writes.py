"""Detects a script's writes into parameters that the worker may not change.

Torch counts the in-place changes of a tensor in `_version`, including those by load_state_dict. The client writes into
the memory directly, so torch does not count its writes. The tensor that `.data` returns has a count of its own, and
usually lives for one statement only. So `.data` of a watched parameter returns the same tensor each time, and the count
of that tensor is checked, too. Values are not compared, because a comparison would cost a pass over the memory in each
step."""

from __future__ import annotations

import weakref
from typing import Any, Mapping, Optional

import torch
from torch import nn

_DATA = torch._C._TensorBase.data
#: The watched parameters and the tensors that their `.data` returns, by the parameter's id.
_kept: dict[int, tuple["weakref.ref[nn.Parameter]", torch.Tensor]] = {}


class _Data:
    """Replaces nn.Parameter.data for all parameters. Only the parameters in _kept behave differently."""

    def __get__(self, parameter: Optional[nn.Parameter], owner: Any = None) -> Any:
        if parameter is None:
            return self
        kept = _kept.get(id(parameter))
        return kept[1] if kept is not None and kept[0]() is parameter else _DATA.__get__(parameter)

    def __set__(self, parameter: nn.Parameter, value: torch.Tensor) -> None:
        kept = _kept.get(id(parameter))
        if kept is not None and kept[1] is not value:
            del _kept[id(parameter)]  # The parameter has got other memory since.
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
        """Accepts all writes so far, so that names() does not report them."""
        self._known = self._now()

    def names(self) -> list[str]:
        """Returns the names of the parameters that were written since the last accept()."""
        now = self._now()
        if now == self._known:
            return []
        return [name for (name, _, _), one, other in zip(self._watched, now, self._known) if one != other]

    def close(self) -> None:
        for _, parameter, _ in self._watched:
            _kept.pop(id(parameter), None)
        self._watched = []
