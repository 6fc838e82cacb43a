"""What join returns to a script without a job. The script computes what plain torch computes, bit for bit."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Callable, Iterable, Iterator, Optional, Union

from torch import nn
from torch.utils.data import DataLoader

from ..alone import Alone
from ..batches import BatchOrder, Dealt
from ..errors import InvalidArgument
from ..session import Info
from .job import save_model
from .source import Source, by_number


class AloneJob:
    """Has the methods of TorchJob, but changes nothing about the model, the optimizer and the loader."""

    def __init__(self, model: nn.Module, alone: Alone) -> None:
        self._model = model
        self.info = Info(seed=alone.seed, batch_size=alone.batch_size)
        self.rank, self.workers = self.info.rank, self.info.workers
        #: The number of batches returned so far, minus one.
        self.clock = -1
        self.epoch = 0
        #: True if a loop over epochs() sets `epoch`. Outside of such a loop each iteration over batches is the next
        #: pass.
        self._told = False
        self.last_batch = True
        self.ended: Optional[str] = None

    def epochs(self, count: int = 1) -> Iterator[int]:
        """The numbers of the passes: 0 to `count` - 1."""
        self._told = True
        try:
            for self.epoch in range(count):
                yield self.epoch
        finally:
            self._told = False

    def batches(self, dataset: Any, collate: Optional[Callable[[list], Any]] = None, shuffle: bool = True) -> Iterable[Any]:
        """Returns the batches of a dataset; each iteration is one pass. A DataLoader decides on its batches itself.
        Other datasets are read in batches of Alone.batch_size examples, in an order drawn from Alone.seed."""
        if isinstance(dataset, DataLoader):
            return _Counted(self, dataset)
        dataset = by_number(dataset)
        if not hasattr(dataset, "__len__"):
            raise InvalidArgument(f"job.batches: {type(dataset).__name__} has no length: give a DataLoader, a dataset with "
                                  "examples by number, or a tuple of tensors")
        return _Counted(self, _Passes(self, Source(dataset, collate), BatchOrder(self.info, len(dataset), shuffle)))

    def over(self, loader: Iterable[Any]) -> Iterable[Any]:
        """Returns the loader's batches. Each iteration goes over the loader once."""
        return loader if isinstance(loader, _Counted) else _Counted(self, loader)

    def loss(self, value: Any) -> None:
        """Does nothing, because there is no job that collects the loss."""

    def keep(self, scheduler: Any) -> Any:
        """Returns the scheduler. There are no checkpoints for its state here."""
        return scheduler

    def skip(self) -> None:
        """Does nothing, because there is no clock whose batches are counted."""

    def evaluated(self, loss: float, accuracy: Optional[float] = None, examples: int = 0) -> None:
        """Does nothing, because there is no job that collects evaluations."""

    def wait(self) -> None:
        """Does nothing, because no weights are on their way."""

    @contextlib.contextmanager
    def no_send(self) -> Iterator[None]:
        yield

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        save_model(path, self._model)


class _Passes:
    def __init__(self, job: AloneJob, source: Source, order: BatchOrder) -> None:
        self._job, self._source, self._order = job, source, order

    def __len__(self) -> int:
        return self._order.steps_per_epoch

    def __iter__(self) -> Iterator[Any]:
        for pick in Dealt(self._order).take(self._job.epoch * len(self), len(self)):
            yield self._source.batch(pick)


class _Counted:
    def __init__(self, job: AloneJob, loader: Iterable[Any]) -> None:
        self._job, self._loader = job, loader

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        for batch in self._loader:
            self._job.clock += 1
            yield batch
        if not self._job._told:
            self._job.epoch += 1
