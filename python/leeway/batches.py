"""Which examples a worker trains on: a pure function of (seed, step, rank), the same after a restart."""

from __future__ import annotations

from typing import Iterator

import numpy as np

from .errors import InvalidArgument
from .session import Info


class BatchOrder:
    """Each epoch has one permutation of all examples, the same on every rank. It is dealt out batch by batch: step s of
    rank r takes batch s * workers + r, as Leeway's own workers do. The last step of an epoch may give a rank a short
    batch, or none."""

    def __init__(self, info: Info, examples: int, shuffle: bool = True) -> None:
        if info.examples and info.examples != examples:
            raise InvalidArgument(f"rank {info.rank}: the dataset has {examples} examples, and the job's data.examples "
                                  f"says {info.examples}: correct one of them")
        if examples < 1:
            raise InvalidArgument(f"rank {info.rank}: the dataset is empty")
        self.examples, self.batch_size, self.shuffle = examples, info.batch_size, shuffle
        self._workers, self._rank, self._seed = info.workers, info.rank, info.seed
        batches = -(-examples // self.batch_size)
        self.steps_per_epoch = -(-batches // self._workers)
        self._epoch = -1
        self._permutation = np.empty(0, np.int64)

    def epoch_of(self, step: int) -> int:
        return step // self.steps_per_epoch

    def permutation(self, epoch: int) -> np.ndarray:
        if not self.shuffle:
            return np.arange(self.examples)
        # The raw draws of a bit generator are the same in every version of numpy; Generator's methods may change.
        draws = np.random.Philox(key=[self._seed, epoch]).random_raw(self.examples)
        return np.argsort(draws, kind="stable")

    def rows(self, step: int) -> np.ndarray:
        """The examples of a step; none if the epoch has no batch left for this rank."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._epoch, self._permutation = epoch, self.permutation(epoch)
        first = (position * self._workers + self._rank) * self.batch_size
        return self._permutation[first:first + self.batch_size]

    def rows_from(self, step: int) -> Iterator[list[int]]:
        """Without end: a sampler for loaders that read ahead."""
        while True:
            yield self.rows(step).tolist()
            step += 1
