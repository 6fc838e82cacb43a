"""A worker with numpy arrays: clock by clock, or in batches."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, Union

import numpy as np

from . import ending, safetensors
from .alone import Alone, AloneSession, has_coordinator, say_so
from .batches import Dealer, dealer_of
from .clocks import ClockedJob, Clocks
from .errors import EXIT_PERMANENT, Error, InvalidArgument, Misuse
from .schema import Tensor, check_schema, offsets_of
from .session import LibrarySession, Session

Evaluate = Callable[[Any], Mapping[str, float]]


class Weights(Mapping[str, np.ndarray]):
    """Arrays by name, as views of one vector."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self._arrays = arrays

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def __setitem__(self, name: str, value: Any) -> None:
        """Writes into the array of a worker that trains by itself: `weights["w"] -= step`."""
        if value is not self._arrays[name]:
            self._arrays[name][...] = value

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return repr(self._arrays)


class Job(ClockedJob):
    """The result of leeway.join. One thread uses it.

    `for clock, weights in job` runs until the job's end. Each round calls push_pull once."""

    def __init__(self, session: Session, schema: Mapping[str, Tensor], evaluate: Optional[Evaluate] = None) -> None:
        self._clocks, self._schema, self._places = Clocks(session), schema, offsets_of(schema)
        self._session = session
        self._trains_locally = self.info.exchange != "gradient"
        flat = session.weights()
        self._flat = flat if self._trains_locally else flat.view()
        self._flat.flags.writeable = self._trains_locally
        #: Arrays by name, as views of one vector. They hold the weights of the open clock, or those at the job's end.
        #: Only a worker that trains by itself (delta, elastic) may write to them.
        self.weights = Weights(self._views(self._flat))
        self._rows: Optional[int] = None
        #: When the computation of the current step began.
        self._began = 0.0
        if evaluate is not None:
            self._clocks.evaluate = lambda: evaluate(self.weights)

    def _views(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        return {name: flat[first:first + count].reshape(self._schema[name].shape)
                for name, (first, count) in self._places.items()}

    def begin(self) -> bool:
        """Opens the next clock and waits for its weights. Returns False if the job is over."""
        if self._clocks.is_open:
            return True
        if not self._clocks.begin():
            return False
        self._session.wait(0, self.info.total)
        self._began = time.perf_counter()
        return True

    def __iter__(self) -> Iterator[tuple[int, Mapping[str, np.ndarray]]]:
        while self.begin():
            steps = self._clocks.report.steps
            yield self.clock, self.weights
            if self._clocks.is_open and self._clocks.report.steps == steps:
                raise Misuse(f"rank {self.rank}: clock {self.clock} has no push_pull: call it once in each round of "
                             "the loop")

    def push_pull(self, gradients: Union[None, np.ndarray, Mapping[str, Any]] = None, examples: Optional[int] = None,
                  loss: Optional[float] = None) -> None:
        """Sends the mean gradients of the clock, by name or as one flat array, and ends the clock. For an averaged
        tensor pass the worker's own value, or nothing if it has not changed. A worker that trains by itself (delta,
        elastic) changes `weights` and passes no gradients; this call then counts the step. `loss` is the mean over
        `examples`."""
        if not self._clocks.is_open:
            raise Misuse(f"rank {self.rank}: push_pull without a clock: call it within `for clock, weights in job`")
        report = self._clocks.report
        count = examples if examples is not None else self._rows
        count = self.info.batch_size if count is None else int(count)
        if self._trains_locally:
            if gradients is not None:
                raise Misuse(f"rank {self.rank}: with the exchange {self.info.exchange} the worker changes `weights` "
                             "itself: pass no gradients")
        else:
            self._fill(gradients)
        report.steps += 1
        report.examples += count
        report.loss_sum += 0.0 if loss is None else float(loss) * count
        report.forward_seconds += time.perf_counter() - self._began
        self._began = time.perf_counter()
        self._rows = None
        if not self._trains_locally or report.steps >= self.info.steps_per_clock:
            self._clocks.end()

    def _fill(self, gradients: Union[None, np.ndarray, Mapping[str, Any]]) -> None:
        contribution = self._session.contribution()
        if isinstance(gradients, np.ndarray):
            if gradients.shape != contribution.shape:
                raise InvalidArgument(f"rank {self.rank}: the flat gradient has the shape {gradients.shape}; it must "
                                      f"have {contribution.shape}")
            contribution[:] = gradients
            return
        if not isinstance(gradients, Mapping):
            raise InvalidArgument(f"rank {self.rank}: gradients must be a mapping of names to arrays, not "
                                  f"{type(gradients).__name__}")
        for name in gradients:
            if name not in self._schema:
                raise InvalidArgument(f"rank {self.rank}: there is a gradient for {name!r}, but the schema has only "
                                      f"{', '.join(self._schema)}")
        for name, place in self._views(contribution).items():
            self._fill_one(name, place, gradients.get(name))

    def _fill_one(self, name: str, place: np.ndarray, given: Any) -> None:
        if given is None:
            if not self._schema[name].averaged:
                raise InvalidArgument(f"rank {self.rank}, clock {self.clock}: the gradient for {name!r} is missing: "
                                      "give zeros if the tensor has no gradient")
            place[...] = self.weights[name]
            return
        array = np.asarray(given)
        if array.shape != place.shape:
            raise InvalidArgument(f"rank {self.rank}: the gradient of {name} has the shape {array.shape}; it must have "
                                  f"{place.shape}")
        place[...] = array

    def batches(self, data: Union[np.ndarray, Sequence[np.ndarray]], shuffle: bool = True) -> Iterator[Any]:
        """This worker's batches until the job's end, as one loop. `data` is an array, or a tuple of arrays with the
        same number of rows. The batches follow from (seed, clock, rank), or the job leases them to the worker
        (data.assignment)."""
        arrays = (data,) if isinstance(data, np.ndarray) else tuple(np.asarray(array) for array in data)
        if len({len(array) for array in arrays}) != 1:
            raise InvalidArgument(f"rank {self.rank}: the arrays have different numbers of rows: "
                                  f"{[len(array) for array in arrays]}")
        if self.ended is not None:
            raise Misuse(f"rank {self.rank}: the job is over. job.batches gives the batches of all passes in one loop: "
                         "remove the loop over epochs around it")
        dealer = dealer_of(self._session, len(arrays[0]), shuffle)
        for _ in self:
            rows = self._rows_of_round(dealer)
            if len(rows):
                self._rows, began = len(rows), time.perf_counter()
                batch = arrays[0][rows] if isinstance(data, np.ndarray) else tuple(array[rows] for array in arrays)
                self._began = time.perf_counter()
                self._clocks.report.data_seconds += self._began - began
                yield batch
            else:
                self._skip(dealer.ends_early)

    def _rows_of_round(self, dealer: Dealer) -> np.ndarray:
        """Returns the rows of this round. In a gradient exchange with `accumulation` they are all batches of the clock
        in one array."""
        first = self.info.step_of(self.clock) + self._clocks.report.steps
        picks = dealer.take(first, 1 if self._trains_locally else self.info.steps_per_clock)
        return np.concatenate([pick.rows for pick in picks]) if picks else np.empty(0, np.int64)

    def _skip(self, clock_is_over: bool) -> None:
        """Continues without a batch for the step, or for the clock."""
        if self._trains_locally:
            if clock_is_over:
                self._clocks.end()
            else:
                self.push_pull(examples=0)
            return
        self._session.contribution()[:self.info.trained] = 0
        self._session.contribution()[self.info.trained:] = self._flat[self.info.trained:]
        self._clocks.report.steps += 1
        self._clocks.end()

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the weights as a safetensors file, on rank 0 only."""
        if self.info.rank == 0:
            safetensors.save(path, self.weights, {"format": "leeway"})

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, Error) and error.exit_code == EXIT_PERMANENT:
            self._clocks.fail(f"{kind.__name__}: {error}")


def flat_initial(schema: Mapping[str, Tensor], initial: Any) -> np.ndarray:
    """Returns the first weights as one vector, made from a mapping, a flat array or a function of name and shape.
    Returns zeros for None."""
    total = sum(tensor.size for tensor in schema.values())
    if initial is None:
        return np.zeros(total, np.float32)
    if isinstance(initial, np.ndarray):
        if initial.shape != (total,):
            raise InvalidArgument(f"initial: the array has the shape {initial.shape}, but the schema has {total} "
                                  "elements")
        return np.ascontiguousarray(initial, np.float32)
    if not callable(initial) and not isinstance(initial, Mapping):
        raise InvalidArgument("initial: must be a mapping of names to arrays, a flat array, or a function of name and "
                              f"shape, not {type(initial).__name__}")
    flat = np.empty(total, np.float32)
    for name, (first, count) in offsets_of(schema).items():
        if isinstance(initial, Mapping) and name not in initial:
            raise InvalidArgument(f"initial: {name!r} is missing")
        value = np.asarray(initial(name, schema[name].shape) if callable(initial) else initial[name], np.float32)
        if value.shape != schema[name].shape:
            raise InvalidArgument(f"initial: {name} has the shape {value.shape}, but the schema says "
                                  f"{schema[name].shape}")
        flat[first:first + count] = value.ravel()
    return flat


def update_text(update: Union[None, str, Mapping]) -> Optional[str]:
    """Returns the update as YAML. A mapping becomes JSON, which is YAML, too."""
    return update if update is None or isinstance(update, str) else json.dumps(dict(update))


def join(schema: Optional[Mapping[str, Any]] = None, initial: Any = None, *, update: Union[None, str, Mapping] = None,
         coordinator: Optional[str] = None, rank: Optional[int] = None, evaluate: Optional[Evaluate] = None,
         alone: Optional[Alone] = None, start_seconds: float = 0.0) -> Job:
    """Joins a job as a worker, and returns when all other workers have joined.

    schema: names and shapes, or leeway.Tensor; all are float32. Every worker passes the same schema. None means the
        tensors of the job's layers.
    initial: the first weights (a mapping, a flat array, or a function of name and shape). The servers use one worker's
        first weights, and all workers begin with these.
    update: the servers' rule in the form of a job file, for a job without an `update`.
    coordinator, rank: by default the environment specifies them. Without a coordinator the script trains alone, with
        the settings in `alone`.
    evaluate: rank 0 calls it with the weights, as often as evaluation.every requires and at the end. It returns a
        mapping with loss and accuracy."""
    ending.install()
    alone_now = coordinator is None and not has_coordinator()
    if schema is None and not alone_now:
        session: Session = LibrarySession({}, None, None, coordinator, rank, start_seconds)
        return Job(session, session.schema(), evaluate)
    tensors = check_schema(schema)
    flat = flat_initial(tensors, initial)
    if alone_now:
        alone = alone or Alone()
        session = AloneSession(tensors, flat, update, alone)
        say_so(f"{alone.clocks} clocks with batches of {alone.batch_size}")
    else:
        session = LibrarySession(tensors, flat, update_text(update), coordinator, rank, start_seconds)
    return Job(session, tensors, evaluate)
