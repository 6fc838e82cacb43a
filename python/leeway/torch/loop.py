"""The batches of a torch worker, pass by pass. They come from a dataset or from the script's own loader."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, Optional

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, SequentialSampler

from ..batches import Dealer, Pick, dealer_of
from ..clocks import ClockedJob
from ..errors import InvalidArgument, Misuse
from ..notes import note
from .measures import Measures
from .source import Ahead, Source, Tensors, by_number, seed_of


def length_of(batch: Any) -> int:
    """Returns the number of examples in a batch: the first dimension of its first tensor, or 0 without a tensor."""
    if isinstance(batch, (torch.Tensor, np.ndarray)):
        return int(batch.shape[0]) if batch.ndim else 0
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)) and batch:
        return length_of(batch[0])
    return 0


def _own_choice(loader: DataLoader) -> str:
    """Returns an empty string if the loader reads each example of its dataset once a pass, in order or shuffled.
    Otherwise returns what the loader does instead."""
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
        return (f"the loader's {type(sampler).__name__} takes {len(sampler)} of {len(sampler.data_source)} examples, "
                f"but the dataset has {examples}")
    return ""


class Loop(ClockedJob):
    """Runs over batches, pass by pass, until the job's end. The base class of OpenClock, which opens the clocks."""

    _measures: Measures
    _begin: Callable[[], bool]
    _end_step: Callable[[], None]
    _end_due: Callable[[], None]
    skip: Callable[[], None]
    _end_early: Callable[[], None]
    _lack_batch: Callable[[], None]
    _weights_of_clock: Callable[[], torch.Tensor]
    _begin_again: Callable[[torch.Tensor], None]

    def __init__(self) -> None:
        #: The number of examples in the batches of the current step.
        self._taken = 0
        #: The number of batches that the loop has returned in the current clock.
        self._given = 0
        #: The batches that the loop has yet to return before step(). With local steps there is at most one.
        self._left: list[Pick] = []
        #: True if the batches of the current clock were put into _left. Used in a gradient exchange only.
        self._dealt = False
        #: True if batches() or over() has returned a batch.
        self._fed = False
        self._epoch = 0
        self._is_last = True
        #: The pass that epochs() has returned (None outside of epochs()), and whether the script has read all of its
        #: batches.
        self._pass: Optional[int] = None
        self._passed = False
        #: True if a loop over batches has begun.
        self._looped = False
        #: If the pass ended early because the job went back: the weights with which the new clock has begun.
        #: Otherwise None.
        self._went_back: Optional[torch.Tensor] = None
        #: The loader that over() reads, and the iterator over its remaining batches.
        self._over: Optional[tuple[Iterable[Any], Iterator[Any]]] = None

    @property
    def epoch(self) -> int:
        """The number of the pass over the data to which the batch belongs, from 0."""
        return self._epoch

    @property
    def last_batch(self) -> bool:
        """Whether the batch is the last one of its clock. With `accumulation`, call step() after the backward() of this
        batch."""
        return self._is_last

    def loss(self, value: Any) -> None:
        """Reports the mean loss of the step's batch, for the job's curves. Call it before step(), with a number or a
        tensor with one element. Without this call the job uses the scalar on which backward() was called."""
        self._measures.told = value.detach() if isinstance(value, torch.Tensor) else value

    def _check_fed(self) -> None:
        if self.info.workers > 1 and not self._fed:
            raise Misuse(f"rank {self.info.rank}: step() without a batch from the job: the {self.info.workers} workers would train "
                         "on the same examples. Write `loader = job.batches(loader)` before the loop; or, for a loader that "
                         "reads by job.rank and job.workers, `for batch in job.over(loader)`")

    def _open(self) -> bool:
        """Opens a clock, unless an open clock needs more batches. Returns False if the job is over. Raises Misuse if
        the last batch had no step(), because the job would return that batch again."""
        if self._clocks.is_open:
            local = self.info.exchange != "gradient"
            if self._given > self._clocks.report.steps if local else self._given and self._is_last:
                what = f"rank {self.info.rank}, clock {self._clocks.clock}: {self._given} batches, and the last one has no step(): "
                if not local and self.info.steps_per_clock > 1:
                    raise Misuse(f"{what}call optimizer.step() when job.last_batch is true, or job.skip() to leave the clock's batches "
                                 "out. In the last clock of a pass there may be fewer batches than the job's accumulation says")
                raise Misuse(f"{what}call optimizer.step() after each batch, or job.skip() to leave one out. To "
                             "accumulate over several batches set the job's exchange to {type: gradient, accumulation: "
                             "NUMBER}")
        return self._begin()

    def epochs(self, count: int = 1) -> Iterator[int]:
        """The numbers of the passes over the data, until the job ends. The job's `stop` sets the end; `count` is for a
        script that trains alone. A restarted worker begins with the job's current pass, and this pass has only the
        batches that are left."""
        self._say_length(count)
        try:
            while True:
                epoch = self._stand()
                if epoch is None:
                    return
                if epoch == self._pass and not self._passed:
                    raise Misuse(f"rank {self.info.rank}, clock {self.clock}: this round of job.epochs() ended "
                                 f"before pass {epoch} did: loop over `job.batches(loader)` or `job.over(loader)` in "
                                 "it, up to the end of the pass. The `stop` of the job says how long it trains")
                self._pass, self._passed, self._epoch = epoch, False, epoch
                yield epoch
                # The script may have changed its state since the job went back, for example by a scheduler's step after
                # the pass. So the clock begins again with the right state.
                if self._went_back is not None:
                    self._begin_again(self._went_back)
                    self._went_back = None
        finally:
            self._pass = self._went_back = None

    def _say_length(self, count: int) -> None:
        info = self.info
        passes = -(-info.step_of(info.clocks) // max(1, info.steps_per_epoch))
        if passes and passes != count != 1 and info.rank == 0:
            note(f"the job has {passes} passes over its data (stop), and not the {count} of job.epochs({count})")

    def _begin_loop(self) -> None:
        """Begins a loop over batches() or over(). Raises Misuse if the loop would have no batch because an earlier loop
        has read them all. The first loop may have no batch, because the job may be over when the worker joins, or the
        pass may have no batches left for this worker."""
        if self.ended is not None and self._looped or self._pass is not None and self._passed:
            what = f"pass {self._pass}" if self.ended is None else "the job"
            raise Misuse(f"rank {self.info.rank}: {what} is over, so another loop over the job's batches would get "
                         "no batch: each round of job.epochs() has one loop. For an evaluation, loop over the "
                         "script's own DataLoader")
        self._looped = True

    def _stand(self) -> Optional[int]:
        """Opens the clock of the next batch. Returns the pass of that batch, or None if the job is over."""
        info = self.info
        while self._open():
            if self._left:
                return self._left[0].epoch
            if not info.batches_per_epoch:
                return (info.step_of(self.clock) + self._clocks.report.steps) // max(1, info.steps_per_epoch)
            number = self._clocks.session.peek_batch()
            if number is not None:
                return number // info.batches_per_epoch
            self._end_early()
        return None

    def _goes_on(self) -> bool:
        """Returns whether the pass, or outside of epochs() the job, has more batches. If it has, a clock is open. After
        the last clock of a pass no clock is opened, so that the script finds settled weights."""
        if self._pass is None:
            return self._open()
        # Ends the clock before the script runs the code after the pass, so that changes of schedulers in that code
        # are kept.
        self._end_step()
        self._end_due()
        info = self.info
        ahead = info.step_of(self.clock + 1) // max(1, info.steps_per_epoch)
        if self._clocks.is_open or info.batches_per_epoch or self.clock < 0 or ahead == self._pass:
            restored = self._clocks.restored
            epoch = self._stand()
            if epoch is None or epoch == self._pass:
                return epoch is not None
            if self._clocks.restored != restored:
                self._went_back = self._weights_of_clock()
        self._passed = True
        return False

    def batches(self, dataset: Any, collate: Optional[Callable[[list], Any]] = None, shuffle: bool = True) -> "_Batches":
        """Returns this worker's batches, which are a function of (seed, clock, rank), or are leased to it by the job
        (data.assignment). Within epochs() each iteration is one pass; over() goes on to the job's end. All batches have
        the size that the job specifies.

        dataset: a dataset with indices, a tuple of tensors or arrays, or a DataLoader. The dataset, the
            collate_fn and the worker processes of a DataLoader are used.
        collate: makes a batch from a list of examples.
        shuffle: whether the examples are shuffled. A DataLoader decides this itself."""
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
        return _Batches(self, dealer, Source(dataset, collate, ahead))

    def _check_loader(self, loader: DataLoader) -> bool:
        """Returns whether the loader shuffles. Raises InvalidArgument for a loader with its own sampler. Such a sampler
        decides which examples are read, so over() is the method for such a loader."""
        why = _own_choice(loader)
        if why:
            raise InvalidArgument(f"job.batches: {why}: wrap the loader itself, `for batch in job.over(loader)`, and sample by "
                                  "job.rank and job.workers; or give the examples as torch.utils.data.Subset")
        size, given = self.info.batch_size, loader.batch_sampler.batch_size
        # A loader without a batch_size has batches of 1.
        if self.info.rank == 0 and (given not in (1, size) or loader.drop_last):
            note(f"job.batches: a batch has the job's {size} examples (data.batch_size), and the last one of a pass is kept; "
                 f"the loader says batch_size={given}, drop_last={loader.drop_last}")
        return type(loader.batch_sampler.sampler) is RandomSampler

    def over(self, loader: Iterable[Any]) -> "_Over":
        """Returns the batches of a loader, which is read repeatedly. Within epochs() each loop ends with the pass,
        whose length data.examples sets. Outside of epochs() a loop ends with the job. The script's own loader must
        choose its examples by job.rank and, after a restart, by job.clock. A loop over the result of job.batches ends
        with the job."""
        if self.info.batches_per_epoch and not isinstance(loader, (_Batches, _Over)):
            raise InvalidArgument(f"rank {self.info.rank}: job.over(loader) reads what the loader chooses, but the "
                                  "job leases its batches (data.assignment): take them from job.batches")
        return loader if isinstance(loader, _Over) else _Over(self, loader)

    def _go_over(self, loader: Iterable[Any]) -> Iterator[Any]:
        if isinstance(loader, _Batches):
            yield from loader.steps()
            return
        if self._over is None or self._over[0] is not loader:
            self._over = loader, self._again(loader)
        batches = self._over[1]
        while self._goes_on():
            batch = self._measures.loading(next, batches)
            self._taken += length_of(batch)
            self._fed = True
            yield batch

    def _again(self, loader: Iterable[Any]) -> Iterator[Any]:
        passes = first = self._pass or 0
        while True:
            sampler = getattr(loader, "sampler", None)
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(passes)
            some = False
            for batch in loader:
                some = True
                yield batch
            if not some:
                raise InvalidArgument(f"job.over: the loader gave no batch in pass {passes - first}: a generator can be "
                                      "read only once; give a loader, or a list")
            passes += 1


class _Over:
    """The result of over(). Each loop continues where the last one has ended. next() continues in a loop of its own."""

    def __init__(self, job: Loop, loader: Iterable[Any]) -> None:
        self._job, self._loader = job, loader
        self._loop: Optional[Iterator[Any]] = None

    def __iter__(self) -> Iterator[Any]:
        self._job._begin_loop()
        return self._job._go_over(self._loader)

    def __next__(self) -> Any:
        if self._loop is None:
            self._loop = iter(self)
        try:
            return next(self._loop)
        except StopIteration:
            self._loop = None
            raise


class _Batches:
    """The result of batches(). Each iteration is one pass of job.epochs()."""

    def __init__(self, job: Loop, dealer: Dealer, source: Source) -> None:
        self._job, self._dealer, self._source = job, dealer, source

    def __len__(self) -> int:
        """The number of batches in a pass, for schedulers. In a gradient exchange it is the same on all ranks, because
        kept schedulers step also in a worker without a batch. Leased batches count as an equal share for each worker.
        Otherwise it is the number of this worker's batches."""
        order = self._dealer.order
        alike = self._dealer.ends_early or self._job.info.exchange == "gradient"
        return order.steps_per_epoch if alike else order.own_steps_per_epoch

    def __iter__(self) -> Iterator[Any]:
        if self._job._pass is None and self._job.ended is None:
            raise Misuse(f"rank {self._job.info.rank}: the loop over job.batches(...) is not in job.epochs(): each "
                         "round of job.epochs() is one pass over the data, and the job says how many passes there "
                         "are. Write `for epoch in job.epochs():` around it; or, for all passes as one loop, "
                         "`for batch in job.over(loader):`")
        self._job._begin_loop()
        return self.steps()

    def steps(self) -> Iterator[Any]:
        job = self._job
        while job._goes_on():
            self._deal()
            if not job._left:
                job._end_early() if self._dealer.ends_early else job._lack_batch()
                continue
            if job._pass is not None and job._left[0].epoch != job._pass:
                job._passed = True
                return
            yield self._take(job._left.pop(0))
        if job.ended is not None:
            self._source.close()

    def _deal(self) -> None:
        """Fills _left with the batch of the step or, in a gradient exchange, the batches of the clock. If there is no
        batch, _left stays empty."""
        job = self._job
        step = job.info.step_of(job.clock) + job._clocks.report.steps
        if job.info.exchange != "gradient":
            job._left = job._left or self._dealer.take(step, 1)
        elif not job._dealt:
            job._dealt, job._left = True, self._dealer.take(step, job.info.steps_per_clock)

    def _take(self, pick: Pick) -> Any:
        job = self._job
        job._given, job._fed = job._given + 1, True
        job._epoch, job._is_last = pick.epoch, not job._left
        job._taken += len(pick.rows)
        seed = seed_of(job.info.seed, job.info.rank, pick.number)
        return job._measures.loading(self._source.seeded_batch, pick, seed)
