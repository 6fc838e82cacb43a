"""Training without a job: one process, no servers. The numpy interface has only SGD here."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Mapping, Optional, Union

import numpy as np

from .errors import InvalidArgument
from .notes import note
from .schema import Tensor, offsets_of
from .session import FINISHED, Info, Parts, Report


@dataclasses.dataclass(frozen=True)
class Alone:
    """The length, batch size and seed of a training without a coordinator."""

    clocks: int = 100
    batch_size: int = 64
    seed: int = 0


def _servers_of_tensorflow(text: str) -> bool:
    try:
        return bool(json.loads(text)["cluster"]["ps"])
    except (ValueError, KeyError, TypeError):
        return False


def has_coordinator(environment: Mapping[str, str] = os.environ) -> bool:
    """True if the environment names a coordinator (docs/operations.md, Places from the environment). Raises
    InvalidArgument if the environment sets a worker's rank or role but no coordinator, because several such processes would
    each train alone."""
    if environment.get("LEEWAY_COORDINATOR") or _servers_of_tensorflow(environment.get("TF_CONFIG", "")):
        return True
    if environment.get("LEEWAY_RANK"):
        raise InvalidArgument("LEEWAY_RANK is set, but LEEWAY_COORDINATOR is not: set it to HOST:PORT of server 0")
    if environment.get("WORLD_SIZE", "1") not in ("", "1"):
        raise InvalidArgument(f"WORLD_SIZE is {environment['WORLD_SIZE']}, but LEEWAY_COORDINATOR is not set: the "
                              "processes would each train alone. Set it to HOST:PORT of server 0")
    if environment.get("DMLC_ROLE"):
        raise InvalidArgument("DMLC_ROLE is set, but LEEWAY_COORDINATOR is not: Leeway does not read DMLC's variables. "
                              "Set it to HOST:PORT of server 0")
    return False


def say_so(what: str) -> None:
    note(f"no coordinator in the environment (LEEWAY_COORDINATOR): this process trains alone, {what}")


def _rule(update: Union[None, str, Mapping]) -> dict:
    """Returns the parameters of {type: sgd}. Raises InvalidArgument for any other rule or key."""
    if not isinstance(update, Mapping):
        raise InvalidArgument("update: without a job it must be a mapping, such as "
                              "{\"type\": \"sgd\", \"learning_rate\": 0.1}")
    known = {"type": "sgd", "learning_rate": None, "momentum": 0.0, "nesterov": False, "weight_decay": 0.0}
    for key in update:
        if key not in known:
            raise InvalidArgument(f"update: without a job, the key {key!r} is unknown; the keys are {', '.join(known)}")
    rule = {**known, **update}
    if rule["type"] != "sgd":
        raise InvalidArgument(f"update: without a job only sgd is possible, not {rule['type']!r}. Start a job for it: "
                              "leeway train job.yaml -- python3 SCRIPT")
    if rule["learning_rate"] is None:
        raise InvalidArgument("update: learning_rate is missing")
    return rule


class AloneSession:
    """A Session that applies SGD by itself, as the servers of a job would."""

    def __init__(self, schema: Mapping[str, Tensor], initial: Optional[np.ndarray],
                 update: Union[None, str, Mapping], alone: Alone) -> None:
        self._schema, self._places = schema, offsets_of(schema)
        self._rule = _rule(update)
        total = sum(tensor.size for tensor in schema.values())
        self._weights = np.zeros(total, np.float32) if initial is None else np.array(initial, np.float32)
        self._contribution = np.zeros(total, np.float32)
        self._momentum = np.zeros(total, np.float32)
        self._rates: Parts = []
        self._clock: Optional[int] = None
        self.next_clock = -1
        trained = sum(t.size for t in schema.values() if not t.averaged)
        self.info = Info(total=total, trained=trained, clocks=alone.clocks, seed=alone.seed, batch_size=alone.batch_size)

    def weights(self) -> np.ndarray:
        return self._weights

    def contribution(self) -> np.ndarray:
        return self._contribution

    def begin(self) -> Union[int, str]:
        following = 0 if self._clock is None else self._clock + 1
        if following >= self.info.clocks:
            return FINISHED
        self._clock, self._rates = following, []
        return following

    def wait(self, first: int, count: int) -> None: ...
    def examples(self, count: int) -> None: ...
    def rates(self, parts: Parts) -> None:
        self._rates = list(parts)

    def final(self, first: int, count: int) -> None: ...
    def settle(self) -> None: ...
    def evaluated(self, loss: float, accuracy: Optional[float], examples: int) -> None: ...
    def save_state(self, state: bytes) -> None: ...
    def free(self) -> None: ...

    def end(self, report: Report) -> None:
        if report.examples == 0:
            return
        for name in self._schema:
            self._apply(name)

    def _apply(self, name: str) -> None:
        tensor, (first, count) = self._schema[name], self._places[name]
        part = slice(first, first + count)
        if tensor.averaged:
            self._weights[part] += np.float32(tensor.momentum) * (self._contribution[part] - self._weights[part])
            return
        factor = next((factor for end, factor in self._rates if first < end), 1.0)
        if factor is not None:
            self._step(part, tensor, factor)

    def _step(self, part: slice, tensor: Tensor, factor: float) -> None:
        x, g, v = self._weights[part], self._contribution[part], self._momentum[part]
        rate = np.float32(self._rule["learning_rate"] * tensor.learning_rate_factor * factor)
        decay = np.float32(self._rule["weight_decay"] * tensor.weight_decay_factor)
        if decay:
            g = g + decay * x
        if self._rule["momentum"]:
            v *= np.float32(self._rule["momentum"])
            v += g
            g = g + np.float32(self._rule["momentum"]) * v if self._rule["nesterov"] else v
        x -= rate * g

    def state_wanted(self) -> bool:
        return False

    def load_state(self) -> Optional[bytes]:
        return None

    def leave(self, reason: str) -> bool:
        return True

    def fail(self, message: str, seconds: float) -> None: ...
