"""The batches of a torch worker: of a dataset, or of a loader of one's own."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, Optional, Sequence

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler, default_collate

from ..batches import BatchOrder
from ..clocks import ClockedJob
from ..errors import InvalidArgument, Misuse

MASK = (1 << 64) - 1


def length_of(batch: Any) -> int:
    """Examples of a batch: the first side of its first tensor; 0 if nothing says so."""
    if isinstance(batch, (torch.Tensor, np.ndarray)):
        return int(batch.shape[0]) if batch.ndim else 0
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)) and batch:
        return length_of(batch[0])
    return 0


def seed_of(seed: int, rank: int, step: int) -> int:
    """Of torch's random numbers in a step: other masks of dropout on each rank, the same after a restart. Steele, Lea and
    Flood 2014, the mix of splitmix64."""
    mixed = (seed * 0xD1342543DE82EF95 + rank * 0x9E3779B97F4A7C15 + step + 1) * 0x9E3779B97F4A7C15 & MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & MASK
    return mixed ^ mixed >> 31


class _Rows:
    """A batch sampler that begins at a step, and has no end."""

    def __init__(self, order: BatchOrder, step: int) -> None:
        self._order, self._step = order, step

    def __iter__(self) -> Iterator[list[int]]:
        return (rows for rows in self._order.rows_from(self._step) if rows)


class _Tensors:
    """Batches of tensors or arrays with as many rows, without a call for each example."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        self._tensors = [array if isinstance(array, torch.Tensor) else torch.as_tensor(np.asarray(array))
                         for array in arrays]

    def __len__(self) -> int:
        return len(self._tensors[0])

    def take(self, rows: np.ndarray) -> Any:
        index = torch.from_numpy(rows)
        return tuple(tensor.index_select(0, index) for tensor in self._tensors)


def by_number(dataset: Any) -> Any:
    """A tuple of tensors or arrays as one dataset; any other dataset as it is."""
    if isinstance(dataset, (tuple, list)) and dataset and all(hasattr(part, "shape") for part in dataset):
        return _Tensors(dataset)
    return dataset


class Source:
    """Gives the batch of any step, in order as a rule: a loader that reads ahead is begun anew after a jump."""

    def __init__(self, data: Any, collate: Optional[Callable], order: BatchOrder, loader: Optional[DataLoader]) -> None:
        self._data, self._collate, self._order, self._loader = data, collate, order, loader
        self._following: Optional[int] = None
        self._ahead: Iterator[Any] = iter(())

    def batch(self, step: int, rows: np.ndarray) -> Any:
        if isinstance(self._data, _Tensors):
            return self._data.take(rows)
        if self._loader is None:
            return (self._collate or default_collate)([self._data[int(row)] for row in rows])
        if step != self._following:
            self._ahead = iter(self._begin(step))
        self._following = step + 1
        while not len(self._order.rows(self._following)):
            self._following += 1
        return next(self._ahead)

    def _begin(self, step: int) -> DataLoader:
        old = self._loader
        more = {"prefetch_factor": old.prefetch_factor} if old.num_workers else {}
        return DataLoader(self._data, batch_sampler=_Rows(self._order, step), num_workers=old.num_workers,
                          collate_fn=old.collate_fn, pin_memory=old.pin_memory, timeout=old.timeout,
                          worker_init_fn=old.worker_init_fn, multiprocessing_context=old.multiprocessing_context, **more)


class Loop(ClockedJob):
    """Runs over batches until the job's end. A base of TorchJob, which has clocks and steps."""

    _begin: Callable[[], bool]
    skip: Callable[[], None]

    def __init__(self) -> None:
        #: Examples of the batches that the step under way has had.
        self._taken = 0
        #: Batches that the clock under way has had.
        self._given = 0
        self._loss: Any = None
        self._step_now, self._per_epoch = 0, 0
        self._is_last = True

    @property
    def epoch(self) -> int:
        """Passes over the data that are complete."""
        return self._step_now // self._per_epoch if self._per_epoch else 0

    @property
    def last_batch(self) -> bool:
        """Whether the batch is the last one of its clock: with `accumulation`, step() is due after its backward()."""
        return self._is_last

    def loss(self, value: Any) -> None:
        """Tells the job the mean loss of the step's batch, for its curves: a number or a tensor of one."""
        self._loss = value.detach() if isinstance(value, torch.Tensor) else value

    def _open(self) -> bool:
        """Opens a clock, unless one is open that wants more batches. A batch without a step() would come again."""
        if self._clocks.is_open:
            local = self.info.exchange != "gradient"
            if self._given > self._clocks.report.steps if local else self._given >= self.info.steps_per_clock:
                raise Misuse(f"rank {self.info.rank}, clock {self._clocks.clock}: {self._given} batches, and the last one has "
                             "no step(): call optimizer.step() after each batch, or job.skip() to leave one out. To "
                             "accumulate over several batches set the job's exchange to {type: gradient, accumulation: "
                             "NUMBER}")
        return self._begin()

    def batches(self, dataset: Any, collate: Optional[Callable[[list], Any]] = None, shuffle: bool = True,
                epochs: int = 1) -> Iterable[Any]:
        """This worker's batches until the job's end, a function of (seed, clock, rank). `dataset`: one with indices, a
        tuple of tensors or arrays, or a DataLoader, whose dataset, collate_fn and worker processes are used. Batches are
        of the job's size. `epochs` counts only where there is no job."""
        loader = dataset if isinstance(dataset, DataLoader) else None
        if loader is not None:
            shuffle = self._check_loader(loader)
            dataset = loader.dataset
        dataset = by_number(dataset)
        if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__") and not isinstance(dataset, _Tensors):
            raise InvalidArgument(f"job.batches: {type(dataset).__name__} has no examples by number: read it yourself, by "
                                  "job.rank and job.workers, and wrap the loader: `for batch in job.over(loader)`")
        order = BatchOrder(self.info, len(dataset), shuffle)
        self._per_epoch = order.steps_per_epoch
        return self._Batches(self, order, Source(dataset, collate, order, loader))

    def _batches_left(self) -> int:
        return self.info.steps_per_clock - self._given if self.info.exchange == "gradient" else 1

    def _leave_out(self, more: bool) -> None:
        """The epoch has no batch left for this rank. `more`: the next epoch gives the clock one."""
        has_others = self._given > 0 and self.info.exchange == "gradient"
        self._given += 1
        if not more and not has_others:
            self.skip()

    def _check_loader(self, loader: DataLoader) -> bool:
        """Whether it shuffles. A sampler of one's own decides what is read: that is for over()."""
        if isinstance(loader.sampler, RandomSampler) and not loader.sampler.replacement:
            return True
        if isinstance(loader.sampler, SequentialSampler):
            return False
        raise InvalidArgument(f"job.batches: the loader has a sampler of its own ({type(loader.sampler).__name__}): wrap the "
                              "loader itself, `for batch in job.over(loader)`, and sample by job.rank and job.workers")

    class _Batches:
        """Each iteration runs to the job's end; one after that is empty."""

        def __init__(self, job: "Loop", order: BatchOrder, source: Source) -> None:
            self._job, self._order, self._source = job, order, source

        def __len__(self) -> int:
            """Steps of one pass over the data."""
            return self._order.steps_per_epoch

        def __iter__(self) -> Iterator[Any]:
            job, order = self._job, self._order
            while job._open():
                step = job._clocks.clock * job.info.steps_per_clock + job._given
                # Of this batch, and of those that come with it into one step().
                rows = [order.rows(later) for later in range(step, step + job._batches_left())]
                if not len(rows[0]):
                    job._leave_out(any(map(len, rows)))
                    continue
                job._given += 1
                job._step_now, job._is_last = step, not any(map(len, rows[1:]))
                torch.default_generator.manual_seed(seed_of(job.info.seed, job.info.rank, step))
                job._taken += len(rows[0])
                yield self._source.batch(step, rows[0])

    def over(self, loader: Iterable[Any]) -> Iterator[Any]:
        """Goes over a loader of one's own again and again until the job's end. The loader reads by job.rank, and after a
        restart by job.clock."""
        passes = 0
        while True:
            sampler = getattr(loader, "sampler", None)
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(passes)
            some = False
            for batch in loader:
                some = True
                if not self._begin():
                    return
                self._taken += length_of(batch)
                yield batch
            if not some:
                raise InvalidArgument(f"job.over: the loader gave no batch in pass {passes}: a generator can be gone over "
                                      "only once; give a loader, or a list")
            passes += 1
