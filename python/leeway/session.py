"""A worker's session in a job, clock by clock: an object with the functions of leeway/client.h, over the library.

Job and TorchJob use it."""

from __future__ import annotations

import ctypes
import dataclasses
import time
import weakref
from typing import Mapping, Optional, Protocol, Sequence, Union

import numpy as np

from . import _library as native
from .errors import EXIT_PERMANENT, Error, FailedPrecondition, InternalError, Misuse
from .handle import SLICE, Handle, c_text
from .schema import Tensor, native_tensors, tensors_of

EXCHANGES = {native.GRADIENT: "gradient", native.DELTA: "delta", native.ELASTIC: "elastic"}


@dataclasses.dataclass(frozen=True)
class Info:
    """What a worker knows of its job. `exchange` is "gradient", "delta" or "elastic". The defaults are for one worker
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
    batches_per_epoch: int = 0
    evaluate_every: int = 0
    has_update: bool = False
    first_clock: int = 0
    first_step: int = 0
    has_schedule: bool = False

    def step_of(self, clock: int) -> int:
        """Returns the step with which the clock begins. Choose batches by the step, so that a run that was resumed with
        another number of workers or batch size goes on at the same place in the epochs."""
        return self.first_step + (clock - self.first_clock) * self.steps_per_clock


@dataclasses.dataclass
class Report:
    """The measurements of the steps of one clock."""

    steps: int = 0
    examples: int = 0
    loss_sum: float = 0.0
    learning_rate: float = 0.0
    data_seconds: float = 0.0
    forward_seconds: float = 0.0
    backward_seconds: float = 0.0


#: The reasons why there is no further clock. begin() returns such a reason in place of a clock's number.
FINISHED, STOPPED = "finished", "stopped"
REASONS = {FINISHED: native.FINISHED, STOPPED: native.STOPPED}


#: The parts of the trained elements, in order, each as (end, factor). The factor multiplies the learning rate. None in
#: place of the factor means that the part is not updated.
Parts = Sequence[tuple[int, Optional[float]]]


class Session(Protocol):
    """One thread drives it. Other threads may call final() between begin() and end()."""

    info: Info
    next_clock: int

    def weights(self) -> np.ndarray: ...
    def contribution(self) -> np.ndarray: ...
    def begin(self) -> Union[int, str]: ...
    def wait(self, first: int, count: int) -> None: ...
    def peek_batch(self) -> Optional[int]: ...
    def next_batch(self) -> Optional[int]: ...
    def upcoming_batches(self, most: int) -> list[int]: ...
    def examples(self, count: int) -> None: ...
    def rates(self, parts: "Parts") -> None: ...
    def final(self, first: int, count: int) -> None: ...
    def end(self, report: Report) -> None: ...
    def settle(self) -> None: ...
    def read_again(self) -> np.ndarray: ...
    def evaluated(self, loss: float, accuracy: Optional[float], examples: int) -> None: ...
    def state_wanted(self) -> bool: ...
    def save_state(self, state: bytes) -> None: ...
    def load_state(self) -> Optional[bytes]: ...
    def leave(self, reason: str) -> bool: ...
    def fail(self, message: str, seconds: float) -> None: ...
    def free(self) -> None: ...


#: The sessions of this process that have not left.
_members: "weakref.WeakSet[LibrarySession]" = weakref.WeakSet()


class LibrarySession(Handle):
    """A Session over libleeway-client.so. The arrays that it returns keep it alive."""

    def __init__(self, schema: Mapping[str, Tensor], initial: Optional[np.ndarray], update: Optional[str] = None,
                 coordinator: Optional[str] = None, rank: Optional[int] = None, start_seconds: float = 0.0) -> None:
        library = native.load()
        super().__init__(library, library.leeway_free)
        self._arrays: dict[int, np.ndarray] = {}
        self._peeked: Optional[int] = None
        #: The job's clock, when begin() has returned a reason in place of a clock.
        self.next_clock = -1
        self._place = coordinator, rank
        for other in list(_members):
            if other._place == self._place:
                raise Misuse(f"this process already takes part in the job, as rank {other.info.rank}: join a job "
                             "only once. To train several models, join them as one, such as "
                             "torch.nn.ModuleList([one, other]); join another job after this job is over")
        options = native.JoinOptions(size=ctypes.sizeof(native.JoinOptions), rank=-1 if rank is None else rank,
                                     tensor_count=len(schema), start_seconds=start_seconds)
        options.coordinator = c_text("coordinator", coordinator)
        options.update = c_text("update", update)
        tensors = native_tensors(schema)
        options.tensors = tensors
        begins = [number for number, tensor in enumerate(schema.values()) if tensor.begins_block]
        options.begins_block, options.begins_block_count = (ctypes.c_size_t * len(begins))(*begins), len(begins)
        if initial is not None:
            options.initial = initial.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        self._open(library.leeway_join, ctypes.byref(options))
        try:
            self._until(self._library.leeway_joined)
            self.info = self._read_info()
        except BaseException as error:
            if isinstance(error, Error) and error.exit_code == EXIT_PERMANENT:
                self.fail(f"{type(error).__name__}: {error}", SLICE)
            self.free()
            raise
        _members.add(self)
        self._final = self._library.leeway_final
        self._wait = self._library.leeway_wait

    def waiting(self) -> str:
        """Returns what the worker waits for."""
        text = ctypes.create_string_buffer(1000)
        self._library.leeway_waiting(self._handle, text, len(text))
        return text.value.decode(errors="replace")

    # ---- what the job is

    def _read_info(self) -> Info:
        info = native.Info(size=ctypes.sizeof(native.Info))
        self._check(self._library.leeway_info_of(self._handle, ctypes.byref(info)))
        numbers = {name: getattr(info, name) for name, _ in native.Info._fields_ if name != "size"}
        return Info(**{**numbers, "exchange": EXCHANGES[info.exchange], "has_update": bool(info.has_update),
                       "has_schedule": bool(info.has_schedule)})

    def schema(self) -> dict[str, Tensor]:
        """Returns the job's tensors, in the order of the vector."""
        return tensors_of(self, self._library.leeway_tensor_of)

    def _array(self, address: Optional[int]) -> np.ndarray:
        if not address:
            self._read_info()  # Raises if this process cannot use the job, for example in a fork.
            raise InternalError("the library returned no vector (weights or contribution)")
        array = self._arrays.get(address)
        if array is None:
            memory = (ctypes.c_float * self.info.total).from_address(address)
            # Arrays in `_arrays` do not keep this object alive. Arrays that `_given` returns keep it alive.
            array = self._arrays[address] = np.ctypeslib.as_array(memory)
        return array

    def _given(self, array: np.ndarray) -> np.ndarray:
        memory = (ctypes.c_float * array.size).from_address(array.ctypes.data)
        memory.session = self
        return np.ctypeslib.as_array(memory)

    def weights(self) -> np.ndarray:
        return self._given(self._array(self._library.leeway_weights(self._handle)))

    def contribution(self) -> np.ndarray:
        """Returns the contribution's array: the same object as long as the memory is the same."""
        return self._array(self._library.leeway_contribution(self._handle))

    # ---- a clock

    def begin(self) -> Union[int, str]:
        clock = ctypes.c_uint64()
        self._peeked = None
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

    def peek_batch(self) -> Optional[int]:
        """Returns the number that next_batch() will return."""
        if self._peeked is None:
            self._peeked = self.next_batch()
        return self._peeked

    def next_batch(self) -> Optional[int]:
        """Returns the number of the next leased batch, or None if the clock has no more batches."""
        peeked, self._peeked = self._peeked, None
        if peeked is not None:
            return peeked
        batch = ctypes.c_uint64()
        code = self._until(lambda job, timeout: self._library.leeway_next_batch(job, timeout, ctypes.byref(batch)),
                           expected=native.NOT_FOUND)
        return None if code == native.NOT_FOUND else batch.value

    def upcoming_batches(self, most: int) -> list[int]:
        """Returns the numbers that the next calls of next_batch() will probably return."""
        numbers, count = (ctypes.c_uint64 * most)(), ctypes.c_size_t()
        self._check(self._library.leeway_upcoming_batches(self._handle, numbers, most, ctypes.byref(count)))
        return numbers[:count.value]

    def examples(self, count: int) -> None:
        self._check(self._library.leeway_examples(self._handle, count))

    def rates(self, parts: Parts) -> None:
        """Sets factors of the learning rate for all elements that become final in this clock from now on. Without parts
        all elements are updated, with the factor 1."""
        numbers = (native.Rate * len(parts))(*((end, native.SKIP if factor is None else factor) for end, factor in parts))
        self._check(self._library.leeway_rates(self._handle, numbers, len(parts)))

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

    def read_again(self) -> np.ndarray:
        """Reads the weights from the servers again, between two clocks of a gradient exchange. The array is valid until
        the next call."""
        address = native.c_void_p()
        self._until(lambda job, timeout: self._library.leeway_read_again(job, timeout, ctypes.byref(address)))
        return self._given(self._array(address.value))

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
        """Returns the state in the checkpoint, or None without a state."""
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        code = self.call(self._library.leeway_load_state, ctypes.byref(data), ctypes.byref(size),
                         expected=native.NOT_FOUND)
        if code == native.NOT_FOUND:
            return None
        return ctypes.string_at(data, size.value) if size.value else b""

    # ---- the end

    def leave(self, reason: str) -> bool:
        """Leaves the job. Returns True if the job is sealed, and False if it has gone back to a checkpoint and needs
        this worker. Call begin() then."""
        try:
            self._until(self._library.leeway_leave, REASONS[reason], b"")
        except FailedPrecondition:
            return False
        _members.discard(self)
        return True

    def fail(self, message: str, seconds: float) -> None:
        """Reports to the job that this worker cannot go on. Tries for at most `seconds`."""
        _members.discard(self)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self._library.leeway_leave(self._handle, native.FAILED, message.encode(), SLICE) != native.AGAIN:
                return
