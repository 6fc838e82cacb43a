"""Reads the batches of a dataset by number. A loader's worker processes read ahead."""

from __future__ import annotations

import collections
import random
from typing import Any, Callable, Iterator, NamedTuple, Optional, Sequence

import numpy as np
import torch
from torch.utils.data import DataLoader, default_collate, get_worker_info

from ..batches import Dealer, Pick
from ..errors import InvalidArgument
from ..session import Info

MASK = (1 << 64) - 1


def seed_of(seed: int, rank: int, step: int) -> int:
    """Returns the seed of the random numbers in a step. Each rank gets other dropout masks, and a restarted worker gets
    the same ones again. The mixing function is splitmix64 of Steele, Lea and Flood 2014."""
    mixed = (seed * 0xD1342543DE82EF95 + rank * 0x9E3779B97F4A7C15 + step + 1) * 0x9E3779B97F4A7C15 & MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & MASK
    return mixed ^ mixed >> 31


def seed_generators(seed: int) -> None:
    """Seeds the global random generators of Python, numpy and torch."""
    random.seed(seed)
    np.random.seed([seed & 0xFFFFFFFF, seed >> 32])
    torch.default_generator.manual_seed(seed)


class Tensors:
    """Tensors or arrays with the same number of rows. A batch is read without a call for each example."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        self._tensors = [array if isinstance(array, torch.Tensor) else torch.as_tensor(np.asarray(array))
                         for array in arrays]
        rows = [len(tensor) if tensor.ndim else 0 for tensor in self._tensors]
        if len(set(rows)) > 1:
            raise InvalidArgument(f"job.batches: the tensors have {', '.join(map(str, rows))} rows: give tensors "
                                  "that all have the same number of rows")

    def __len__(self) -> int:
        return len(self._tensors[0])

    def take(self, rows: np.ndarray) -> Any:
        index = torch.from_numpy(rows)
        return tuple(tensor.index_select(0, index) for tensor in self._tensors)


def by_number(dataset: Any) -> Any:
    """Returns a tuple of tensors or arrays as one dataset, and any other dataset unchanged."""
    if isinstance(dataset, (tuple, list)) and dataset and all(hasattr(part, "shape") for part in dataset):
        return Tensors(dataset)
    return dataset


class _Batch(NamedTuple):
    """The rows that a loader's process reads, and the seed that the process sets before it reads them."""

    seed: int
    rows: list[int]


class _Seeded:
    """Presents a dataset of examples as a dataset of batches. It may be sent to another process."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __getitem__(self, batch: _Batch) -> list:
        seed_generators(batch.seed)
        if hasattr(self.dataset, "__getitems__"):
            return self.dataset.__getitems__(batch.rows)
        return [self.dataset[row] for row in batch.rows]


class _Collate:
    """Calls a loader's own collate_fn with the list of a batch's examples. Returns None if there is no batch."""

    def __init__(self, collate: Callable[[list], Any]) -> None:
        self._collate = collate

    def __call__(self, batches: list[list]) -> Any:
        return self._collate(batches[0]) if batches else None


class _Start:
    """Calls a loader's own worker_init_fn, after it has put the script's dataset into get_worker_info()."""

    def __init__(self, own: Optional[Callable[[int], None]]) -> None:
        self._own = own

    def __call__(self, number: int) -> None:
        info = get_worker_info()
        vars(info)["dataset"] = info.dataset.dataset
        if self._own is not None:
            self._own(number)


class Ahead:
    """Reads batches through a DataLoader, whose worker processes read ahead. The next batches are a guess, so a batch
    that is not needed after all is dropped."""

    def __init__(self, dealer: Dealer, loader: DataLoader, info: Info) -> None:
        self._dealer, self._like, self._info = dealer, loader, info
        self._most = loader.prefetch_factor * loader.num_workers if loader.num_workers else 0
        self._wanted = -1
        #: The numbers of the batches that the worker processes read, in order. None is an empty batch.
        self._under_way: collections.deque[Optional[int]] = collections.deque()
        #: The batches that have arrived but are not needed yet, by number.
        self._ready: dict[int, Any] = {}
        self._batches: Optional[Iterator[Any]] = None

    def __iter__(self) -> Iterator[list[_Batch]]:
        """Acts as the loader's batch sampler, without an end."""
        while True:
            expected = [self._wanted, *self._dealer.after(self._wanted, self._most)]
            number = next((each for each in expected if each not in self._under_way and each not in self._ready), None)
            self._under_way.append(number)
            yield [] if number is None else [_Batch(seed_of(self._info.seed, self._info.rank, number),
                                                    self._dealer.rows(number).tolist())]

    def batch(self, number: int) -> Any:
        self._wanted = number
        if self._batches is None:
            self._batches = iter(self._loader())
        while number not in self._ready:
            batch = next(self._batches)
            found = self._under_way.popleft()
            if found is not None:
                self._ready[found] = batch
        batch = self._ready.pop(number)
        if self._ready:
            expected = self._dealer.after(number, self._most)
            self._ready = {each: kept for each, kept in self._ready.items() if each in expected}
        return batch

    def close(self) -> None:
        """Ends the loader's processes. The loader and this sampler refer to each other. If the garbage collector ended
        the loader, it would wait five seconds for each process."""
        self._batches = None

    def _loader(self) -> DataLoader:
        like = self._like
        more = {"prefetch_factor": like.prefetch_factor} if like.num_workers else {}
        generator = torch.Generator()
        generator.manual_seed(seed_of(self._info.seed, self._info.rank, self._wanted))
        return DataLoader(_Seeded(like.dataset), batch_sampler=self, num_workers=like.num_workers,
                          collate_fn=_Collate(like.collate_fn), pin_memory=like.pin_memory, timeout=like.timeout,
                          worker_init_fn=_Start(like.worker_init_fn), multiprocessing_context=like.multiprocessing_context,
                          generator=generator, **more)


class Source:
    """Returns the examples of a batch, through a loader if there is one. Random numbers in the examples depend on the
    batch only, and not on the process that reads them."""

    def __init__(self, data: Any, collate: Optional[Callable], ahead: Optional[Ahead] = None) -> None:
        self._data, self._collate, self._ahead = data, collate or default_collate, ahead

    def batch(self, pick: Pick) -> Any:
        if isinstance(self._data, Tensors):
            return self._data.take(pick.rows)
        if self._ahead is None:
            return self._collate([self._data[int(row)] for row in pick.rows])
        return self._ahead.batch(pick.number)

    def close(self) -> None:
        """Ends the reading ahead, when no more batches are needed."""
        if self._ahead is not None:
            self._ahead.close()

    def seeded_batch(self, pick: Pick, seed: int) -> Any:
        """Returns a batch, and seeds the random generators, so that the random numbers in the step depend on the batch
        only."""
        if self._ahead is None and not isinstance(self._data, Tensors):
            seed_generators(seed)
        batch = self.batch(pick)
        seed_generators(seed)
        return batch
