"""The batches of a torch worker: of a dataset, or of a loader of one's own."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, Optional

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, SequentialSampler

from ..batches import Dealer, Pick, dealer_of
from ..clocks import ClockedJob
from ..errors import InvalidArgument, Misuse
from .source import Ahead, Source, Tensors, by_number, seed_of

def length_of(batch: Any) -> int:
    """Examples of a batch: the first side of its first tensor; 0 if nothing says so."""
    if isinstance(batch, (torch.Tensor, np.ndarray)):
        return int(batch.shape[0]) if batch.ndim else 0
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)) and batch:
        return length_of(batch[0])
    return 0


def _own_choice(loader: DataLoader) -> str:
    """How a loader reads other examples than all of its dataset once a pass, in order or shuffled; empty: it does not."""
    batches = loader.batch_sampler
    if batches is None:
        return "the loader gives single examples (batch_size=None)"
    if type(batches) is not BatchSampler:
        return f"the loader has a batch sampler of its own ({type(batches).__name__})"
    sampler = batches.sampler
    if type(sampler) not in (RandomSampler, SequentialSampler):
        return f"the loader has a sampler of its own ({type(sampler).__name__})"
    if type(sampler) is RandomSampler and sampler.replacement:
        return "the loader has a sampler of its own (RandomSampler with replacement)"
    examples = len(loader.dataset)
    if len(sampler) != examples or len(sampler.data_source) != examples:
        return (f"the loader's {type(sampler).__name__} takes {len(sampler)} of {len(sampler.data_source)} examples, and the "
                f"dataset has {examples}")
    return ""


class Loop(ClockedJob):
    """Runs over batches until the job's end. A base of TorchJob, which has clocks and steps."""

    _begin: Callable[[], bool]
    skip: Callable[[], None]
    _end_early: Callable[[], None]

    def __init__(self) -> None:
        #: Examples of the batches that the step under way has had.
        self._taken = 0
        #: Batches that the clock under way has had.
        self._given = 0
        #: Of a gradient exchange, batches that are to come before step().
        self._left: list[Pick] = []
        self._loss: Any = None
        self._epoch = 0
        self._is_last = True

    @property
    def epoch(self) -> int:
        """The pass over the data that the batch is of, from 0."""
        return self._epoch

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
            if self._given > self._clocks.report.steps if local else self._given and self._is_last:
                raise Misuse(f"rank {self.info.rank}, clock {self._clocks.clock}: {self._given} batches, and the last one has "
                             "no step(): call optimizer.step() after each batch, or job.skip() to leave one out. To "
                             "accumulate over several batches set the job's exchange to {type: gradient, accumulation: "
                             "NUMBER}")
        return self._begin()

    def batches(self, dataset: Any, collate: Optional[Callable[[list], Any]] = None, shuffle: bool = True,
                epochs: int = 1) -> Iterable[Any]:
        """This worker's batches until the job's end, a function of (seed, clock, rank), or those that the job leases to
        it (data.assignment). `dataset`: one with indices, a tuple of tensors or arrays, or a DataLoader, whose dataset,
        collate_fn and worker processes are used. Batches are of the job's size. `epochs` counts only where there is no
        job."""
        loader = dataset if isinstance(dataset, DataLoader) else None
        if loader is not None:
            shuffle = self._check_loader(loader)
            dataset = loader.dataset
        dataset = by_number(dataset)
        if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__") and not isinstance(dataset, Tensors):
            raise InvalidArgument(f"job.batches: {type(dataset).__name__} has no examples by number: read it yourself, by "
                                  "job.rank and job.workers, and wrap the loader: `for batch in job.over(loader)`")
        dealer = dealer_of(self._clocks.session, len(dataset), shuffle)
        ahead = None if loader is None else Ahead(dealer, loader, self.info)
        return self._Batches(self, dealer, Source(dataset, collate, ahead))

    def _check_loader(self, loader: DataLoader) -> bool:
        """Whether it shuffles. A sampler of one's own decides what is read: that is for over()."""
        why = _own_choice(loader)
        if why:
            raise InvalidArgument(f"job.batches: {why}: wrap the loader itself, `for batch in job.over(loader)`, and sample by "
                                  "job.rank and job.workers; or give the examples as torch.utils.data.Subset")
        return type(loader.batch_sampler.sampler) is RandomSampler

    class _Batches:
        """Each iteration runs to the job's end; one after that is empty."""

        def __init__(self, job: "Loop", dealer: Dealer, source: Source) -> None:
            self._job, self._dealer, self._source = job, dealer, source
            self._clock = -1

        def __len__(self) -> int:
            """Steps of one pass over the data; where batches are leased, those of a worker with an equal share."""
            return self._dealer.order.steps_per_epoch

        def __iter__(self) -> Iterator[Any]:
            job = self._job
            while job._open():
                pick = self._next()
                if pick is None:
                    job._end_early() if self._dealer.ends_early else job.skip()
                    continue
                job._given += 1
                job._epoch, job._is_last = pick.epoch, not job._left
                torch.default_generator.manual_seed(seed_of(job.info.seed, job.info.rank, pick.number))
                job._taken += len(pick.rows)
                yield self._source.batch(pick)

        def _next(self) -> Optional[Pick]:
            """None: there is no batch for the step, or the clock."""
            job = self._job
            step = job.clock * job.info.steps_per_clock + job._clocks.report.steps
            if job.info.exchange != "gradient":
                job._left = self._dealer.take(step, 1)
            elif self._clock != job.clock:
                self._clock, job._left = job.clock, self._dealer.take(step, job.info.steps_per_clock)
            return job._left.pop(0) if job._left else None

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
