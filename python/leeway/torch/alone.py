"""A torch script where there is no job: plain torch, bit for bit."""

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
    """Has what TorchJob has, and changes nothing: model, optimizer and loader do what they do."""

    def __init__(self, model: nn.Module, alone: Alone) -> None:
        self._model = model
        self.info = Info(seed=alone.seed, batch_size=alone.batch_size)
        self.rank, self.workers = self.info.rank, self.info.workers
        #: Batches given so far, less one.
        self.clock = -1
        self.epoch = 0
        self.last_batch = True
        self.ended: Optional[str] = None

    def batches(self, dataset: Any, collate: Optional[Callable[[list], Any]] = None, shuffle: bool = True,
                epochs: int = 1) -> Iterable[Any]:
        """A DataLoader as it is: each iteration is one pass. Of other datasets, `epochs` passes in batches of
        Alone.batch_size, by numbers drawn from Alone.seed."""
        if isinstance(dataset, DataLoader):
            return _Counted(self, dataset)
        return self._passes(dataset, collate, shuffle, epochs)

    def _passes(self, dataset: Any, collate: Optional[Callable[[list], Any]], shuffle: bool, epochs: int) -> Iterator[Any]:
        dataset = by_number(dataset)
        if not hasattr(dataset, "__len__"):
            raise InvalidArgument(f"job.batches: {type(dataset).__name__} has no length: give a DataLoader, a dataset with "
                                  "examples by number, or a tuple of tensors")
        order = BatchOrder(self.info, len(dataset), shuffle)
        source = Source(dataset, collate)
        dealt = Dealt(order)
        for step in range(epochs * order.steps_per_epoch):
            (pick,) = dealt.take(step, 1)
            self.clock, self.epoch = self.clock + 1, pick.epoch
            yield source.batch(pick)

    def over(self, loader: Iterable[Any]) -> Iterable[Any]:
        """The loader's batches, once."""
        return _Counted(self, loader)

    def loss(self, value: Any) -> None:
        """Nobody asks for it here."""

    def skip(self) -> None:
        """Nothing counts batches here."""

    def evaluated(self, loss: float, accuracy: Optional[float] = None, examples: int = 0) -> None:
        """Nobody asks for it here."""

    @contextlib.contextmanager
    def no_send(self) -> Iterator[None]:
        yield

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        save_model(path, self._model)


class _Counted:
    def __init__(self, job: AloneJob, loader: Iterable[Any]) -> None:
        self._job, self._loader = job, loader

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        for batch in self._loader:
            self._job.clock += 1
            yield batch
        self._job.epoch += 1
