"""A worker's part in a job, clock by clock: the functions of leeway/client.h as one object, over the library.

Job and TorchJob stand on it. Waits are cut into slices of SLICE seconds, so that Ctrl-C interrupts them."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import sys
import time
import weakref
from typing import Mapping, Optional, Protocol, Sequence, Union

import numpy as np

from . import _library as native
from .errors import (BY_CODE, EXIT_PERMANENT, FORKED, Error, FailedPrecondition, ForkedError, InternalError,
                     InvalidArgument)

SLICE = 0.1
#: A wait that is longer says on stderr, once, what it is for.
TELL_AFTER = 30.0
KINDS = {"weight": 0, "bias": 1, "norm": 2, "embedding": 3}
EXCHANGES = {native.GRADIENT: "gradient", native.DELTA: "delta", native.ELASTIC: "elastic"}


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor of the model, float32. `averaged`: no gradient moves it, and the servers average the workers' values.
    The factors multiply the job's learning rate and weight decay."""

    shape: tuple[int, ...]
    kind: str = "weight"
    averaged: bool = False
    momentum: float = 1.0
    learning_rate_factor: float = 1.0
    weight_decay_factor: float = 1.0

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class Info:
    """What the job says to its worker. `exchange` is "gradient", "delta" or "elastic". The defaults are those of one worker
    without a job."""

    rank: int = 0
    workers: int = 1
    exchange: str = "gradient"
    total: int = 0
    trained: int = 0
    clocks: int = 0
    steps_per_clock: int = 1
    steps_per_epoch: int = 0
    seed: int = 0
    batch_size: int = 1
    examples: int = 0
    evaluate_every: int = 0
    has_update: bool = False


@dataclasses.dataclass
class Report:
    """What the steps of one clock have measured."""

    steps: int = 0
    examples: int = 0
    loss_sum: float = 0.0
    learning_rate: float = 0.0
    data_seconds: float = 0.0
    forward_seconds: float = 0.0
    backward_seconds: float = 0.0


#: What ended the clocks: begin() gives it in place of a number.
FINISHED, STOPPED = "finished", "stopped"
REASONS = {FINISHED: native.FINISHED, STOPPED: native.STOPPED}


class Session(Protocol):
    """One thread drives it; final() may be called by others between begin() and end()."""

    info: Info
    next_clock: int

    def weights(self) -> np.ndarray: ...
    def contribution(self) -> np.ndarray: ...
    def begin(self) -> Union[int, str]: ...
    def wait(self, first: int, count: int) -> None: ...
    def examples(self, count: int) -> None: ...
    def final(self, first: int, count: int) -> None: ...
    def end(self, report: Report) -> None: ...
    def settle(self) -> None: ...
    def evaluated(self, loss: float, accuracy: Optional[float], examples: int) -> None: ...
    def state_wanted(self) -> bool: ...
    def save_state(self, state: bytes) -> None: ...
    def load_state(self) -> Optional[bytes]: ...
    def leave(self, reason: str) -> bool: ...
    def fail(self, message: str, seconds: float) -> None: ...
    def free(self) -> None: ...


_live: "weakref.WeakSet[LibrarySession]" = weakref.WeakSet()


def free_all() -> None:
    """At exit, before the library's own threads would meet the interpreter's end."""
    for session in list(_live):
        session.free()


def native_tensors(schema: Mapping[str, Tensor]) -> "ctypes.Array":
    """Trained tensors must come before averaged ones."""
    tensors = (native.Tensor * len(schema))()
    for place, (name, tensor) in zip(tensors, schema.items()):
        if tensor.kind not in KINDS:
            raise InvalidArgument(f"tensor {name}: kind is {tensor.kind!r}; it is one of {', '.join(KINDS)}")
        place.name = name.encode()
        place.shape = (ctypes.c_uint64 * max(1, len(tensor.shape)))(*tensor.shape)
        place.dimensions = len(tensor.shape)
        place.kind = KINDS[tensor.kind]
        place.averaged = int(tensor.averaged)
        place.momentum = tensor.momentum
        place.learning_rate_factor = tensor.learning_rate_factor
        place.weight_decay_factor = tensor.weight_decay_factor
    return tensors


class LibrarySession:
    """A Session over libleeway-client.so. Arrays that it gives keep it alive."""

    def __init__(self, schema: Mapping[str, Tensor], initial: Optional[np.ndarray], update: Optional[str] = None,
                 coordinator: Optional[str] = None, rank: Optional[int] = None, start_seconds: float = 0.0) -> None:
        self._library = native.load()
        self._handle = ctypes.c_void_p()
        self._arrays: dict[int, np.ndarray] = {}
        #: Where the job stands as begin() gives no clock.
        self.next_clock = -1
        options = native.JoinOptions(size=ctypes.sizeof(native.JoinOptions), rank=-1 if rank is None else rank,
                                     tensor_count=len(schema), start_seconds=start_seconds)
        options.coordinator = coordinator.encode() if coordinator else None
        options.update = update.encode() if update else None
        tensors = native_tensors(schema)
        options.tensors = tensors
        if initial is not None:
            options.initial = initial.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        self._check(self._library.leeway_join(ctypes.byref(options), ctypes.byref(self._handle)))
        _live.add(self)
        try:
            self._until(self._library.leeway_joined)
            self.info = self._read_info()
        except BaseException as error:
            if isinstance(error, Error) and error.exit_code == EXIT_PERMANENT:
                self.fail(f"{type(error).__name__}: {error}", SLICE)
            self.free()
            raise
        self._final = self._library.leeway_final
        self._wait = self._library.leeway_wait

    # ---- errors and waits

    def _check(self, code: int) -> None:
        if code != native.OK:
            self._fail(code)

    def _fail(self, code: int) -> None:
        if code == native.FORKED:
            raise ForkedError(FORKED)
        text = (self._library.leeway_error() or b"").decode(errors="replace")
        raise BY_CODE.get(code, InternalError)(text or f"the library gave code {code} and no text")

    def _until(self, function, *arguments) -> int:
        """Calls `function`, whose last argument is the timeout, until it gives something else than AGAIN. Returns
        the code if it is no error."""
        begun = time.monotonic()
        while True:
            code = function(self._handle, *arguments, SLICE)
            if code != native.AGAIN:
                break
            if begun is not None and time.monotonic() - begun > TELL_AFTER:
                begun = None
                print(f"leeway: still waiting: {self.waiting()}", file=sys.stderr, flush=True)
        if code not in (native.OK, native.FINISHED, native.STOPPED):
            self._fail(code)
        return code

    def waiting(self) -> str:
        """What the worker waits for, in words."""
        text = ctypes.create_string_buffer(1000)
        self._library.leeway_waiting(self._handle, text, len(text))
        return text.value.decode(errors="replace")

    # ---- what the job is

    def _read_info(self) -> Info:
        info = native.Info(size=ctypes.sizeof(native.Info))
        self._check(self._library.leeway_info_of(self._handle, ctypes.byref(info)))
        numbers = {name: getattr(info, name) for name, _ in native.Info._fields_ if name != "size"}
        return Info(**{**numbers, "exchange": EXCHANGES[info.exchange], "has_update": bool(info.has_update)})

    def schema(self) -> dict[str, Tensor]:
        """The tensors that the job has, in the order of the vector."""
        found: dict[str, Tensor] = {}
        tensor = native.Tensor()
        names = {number: name for name, number in KINDS.items()}
        while True:
            code = self._library.leeway_tensor_of(self._handle, len(found), ctypes.byref(tensor))
            if code == native.NOT_FOUND:
                return found
            self._check(code)
            found[tensor.name.decode()] = Tensor(tuple(tensor.shape[:tensor.dimensions]), names[tensor.kind],
                                                 bool(tensor.averaged), tensor.momentum or 1.0,
                                                 tensor.learning_rate_factor, tensor.weight_decay_factor)

    def _array(self, address: Optional[int]) -> np.ndarray:
        if not address:
            self._read_info()  # Raises if nothing can be done with the job here, as in a fork.
            raise InternalError("the library has no vector here")
        array = self._arrays.get(address)
        if array is None:
            memory = (ctypes.c_float * self.info.total).from_address(address)
            # The arrays that we keep do not keep us alive; those that we give do.
            array = self._arrays[address] = np.ctypeslib.as_array(memory)
        return array

    def _given(self, array: np.ndarray) -> np.ndarray:
        memory = (ctypes.c_float * array.size).from_address(array.ctypes.data)
        memory.session = self
        return np.ctypeslib.as_array(memory)

    def weights(self) -> np.ndarray:
        return self._given(self._array(self._library.leeway_weights(self._handle)))

    def contribution(self) -> np.ndarray:
        """The same object for the same memory."""
        return self._array(self._library.leeway_contribution(self._handle))

    # ---- a clock

    def begin(self) -> Union[int, str]:
        clock = ctypes.c_uint64()
        code = self._until(lambda job, timeout: self._library.leeway_begin(job, timeout, ctypes.byref(clock)))
        if code == native.OK:
            return clock.value
        self.next_clock = clock.value
        return FINISHED if code == native.FINISHED else STOPPED

    def wait(self, first: int, count: int) -> None:
        code = self._wait(self._handle, first, count, SLICE)
        if code == native.AGAIN:
            self._until(self._wait, first, count)
        elif code:
            self._fail(code)

    def examples(self, count: int) -> None:
        self._check(self._library.leeway_examples(self._handle, count))

    def final(self, first: int, count: int) -> None:
        code = self._final(self._handle, first, count)
        if code:
            self._fail(code)

    def end(self, report: Report) -> None:
        native_report = native.Report(ctypes.sizeof(native.Report), report.steps, report.examples, report.loss_sum,
                                      report.learning_rate, report.data_seconds, report.forward_seconds,
                                      report.backward_seconds)
        self._until(self._library.leeway_end, ctypes.byref(native_report))

    def settle(self) -> None:
        self._until(self._library.leeway_settle)

    # ---- between clocks

    def evaluated(self, loss: float, accuracy: Optional[float], examples: int) -> None:
        evaluation = native.Evaluation(ctypes.sizeof(native.Evaluation), loss, -1.0 if accuracy is None else accuracy,
                                       examples)
        self._check(self._library.leeway_evaluated(self._handle, ctypes.byref(evaluation)))

    def state_wanted(self) -> bool:
        wanted = ctypes.c_int()
        self._check(self._library.leeway_state_wanted(self._handle, ctypes.byref(wanted)))
        return bool(wanted.value)

    def save_state(self, state: bytes) -> None:
        self._check(self._library.leeway_save_state(self._handle, state, len(state)))

    def load_state(self) -> Optional[bytes]:
        """None: nothing was handed in."""
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        code = self._library.leeway_load_state(self._handle, ctypes.byref(data), ctypes.byref(size))
        if code == native.NOT_FOUND:
            return None
        self._check(code)
        return ctypes.string_at(data, size.value) if size.value else b""

    # ---- the end

    def leave(self, reason: str) -> bool:
        """True if the job is sealed; False if it has gone back to a checkpoint and needs this worker: begin()."""
        try:
            self._until(self._library.leeway_leave, REASONS[reason], b"")
        except FailedPrecondition:
            return False
        return True

    def fail(self, message: str, seconds: float) -> None:
        """Says that this worker cannot go on, for at most so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self._library.leeway_leave(self._handle, native.FAILED, message.encode(), SLICE) != native.AGAIN:
                return

    def free(self) -> None:
        handle, self._handle = self._handle, ctypes.c_void_p()
        _live.discard(self)
        if handle:
            self._library.leeway_free(handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.free()


def offsets_of(schema: Mapping[str, Tensor]) -> dict[str, tuple[int, int]]:
    """First element and number of elements of each tensor in the flat vector."""
    places, first = {}, 0
    for name, tensor in schema.items():
        places[name] = (first, tensor.size)
        first += tensor.size
    return places


def check_schema(schema: Mapping[str, Union[Tensor, Sequence[int], int]]) -> dict[str, Tensor]:
    """All as Tensors, trained ones first, which is the order of the vector."""
    if not isinstance(schema, Mapping) or not schema:
        raise InvalidArgument("schema: it is a mapping of names to shapes, such as {\"w\": (784, 10)}, and not empty")
    tensors = {}
    for name, given in schema.items():
        if not isinstance(given, Tensor):
            given = Tensor((given,) if isinstance(given, int) else tuple(given))
        shape = tuple(int(side) for side in given.shape)
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"schema: {name!r} is no name; it is a text that is not empty")
        if any(side < 1 for side in shape):
            raise InvalidArgument(f"schema: {name} has the shape {shape}; every side is 1 or more")
        tensors[name] = dataclasses.replace(given, shape=shape)
    return {**{n: t for n, t in tensors.items() if not t.averaged}, **{n: t for n, t in tensors.items() if t.averaged}}
