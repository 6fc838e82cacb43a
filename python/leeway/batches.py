"""Chooses the examples on which a worker trains: by (seed, step, rank), or by the batches that the job leases to it."""

from __future__ import annotations

from typing import NamedTuple, Union

import numpy as np

from .errors import InvalidArgument
from .session import Info, Session


class BatchOrder:
    """Each epoch has one permutation of all examples, the same on every rank, cut into batches. The last batch may be
    short."""

    def __init__(self, info: Info, examples: int, shuffle: bool = True) -> None:
        if info.examples and info.examples != examples:
            raise InvalidArgument(f"rank {info.rank}: the dataset has {examples} examples, but the job's data.examples "
                                  f"says {info.examples}: correct one of them")
        if examples < 1:
            raise InvalidArgument(f"rank {info.rank}: the dataset is empty")
        self.examples, self.batch_size, self.shuffle = examples, info.batch_size, shuffle
        self._workers, self._rank, self._seed = info.workers, info.rank, info.seed
        #: The number of batches in an epoch of all workers together, and of the worker that has the most.
        self.batches_per_epoch = -(-examples // self.batch_size)
        self.steps_per_epoch = -(-self.batches_per_epoch // self._workers)
        #: The number of steps of an epoch that have a batch for this rank.
        self.own_steps_per_epoch = -(-(self.batches_per_epoch - self._rank) // self._workers)
        self._permutations: dict[int, np.ndarray] = {}

    def epoch_of(self, step: int) -> int:
        return step // self.steps_per_epoch

    def permutation(self, epoch: int) -> np.ndarray:
        if not self.shuffle:
            return np.arange(self.examples)
        # Uses raw draws, because a bit generator's raw draws are the same in every version of numpy. The methods of
        # Generator may change.
        draws = np.random.Philox(key=[self._seed, epoch]).random_raw(self.examples)
        return np.argsort(draws, kind="stable")

    def _rows(self, epoch: int, batch: int) -> np.ndarray:
        if epoch not in self._permutations:
            # Keeps two permutations. Near the end of an epoch, a loader that reads ahead already uses the next one.
            while len(self._permutations) > 1:
                self._permutations.pop(min(self._permutations))
            self._permutations[epoch] = self.permutation(epoch)
        first = batch * self.batch_size
        return self._permutations[epoch][first:first + self.batch_size]

    def rows(self, step: int) -> np.ndarray:
        """Returns the examples of this rank's step. Step s of rank r uses batch s * workers + r, as in Leeway's own
        workers. The result is empty if the epoch has no batch left for this rank."""
        epoch, position = divmod(step, self.steps_per_epoch)
        return self._rows(epoch, position * self._workers + self._rank)

    def batch(self, number: int) -> np.ndarray:
        """Returns the examples of a leased batch. Batches are numbered through all epochs."""
        return self._rows(*divmod(number, self.batches_per_epoch))


class Pick(NamedTuple):
    """A batch: its number, its epoch and its rows."""

    number: int
    epoch: int
    rows: np.ndarray


class Dealt:
    """Chooses batches by (seed, step, rank), so that they are the same after a restart. A batch's number is its
    step."""

    def __init__(self, order: BatchOrder) -> None:
        self.order = order
        #: True if a clock may end before it has all of its steps.
        self.ends_early = False

    def take(self, step: int, count: int) -> list[Pick]:
        """Returns the batches of these steps. There are fewer if the epoch has no batch left for some steps."""
        steps = range(step, step + count)
        picks = (Pick(each, self.order.epoch_of(each), self.rows(each)) for each in steps)
        return [pick for pick in picks if len(pick.rows)]

    def rows(self, number: int) -> np.ndarray:
        return self.order.rows(number)

    def after(self, number: int, most: int) -> list[int]:
        """Returns the numbers that will probably follow, at most `most`."""
        following: list[int] = []
        while len(following) < most:
            number += 1
            if len(self.rows(number)):
                following.append(number)
        return following


class Leased:
    """Batches that the job leases to the workers that ask, so that a fast worker gets more of them."""

    def __init__(self, order: BatchOrder, session: Session) -> None:
        self.order, self._session = order, session
        self.ends_early = True

    def take(self, step: int, count: int) -> list[Pick]:
        """Returns batches for `count` steps of the open clock. There are fewer if the clock has no more batches."""
        picks: list[Pick] = []
        while len(picks) < count:
            number = self._session.next_batch()
            if number is None:
                break
            picks.append(Pick(number, number // self.order.batches_per_epoch, self.rows(number)))
        return picks

    def rows(self, number: int) -> np.ndarray:
        return self.order.batch(number)

    def after(self, number: int, most: int) -> list[int]:
        return self._session.upcoming_batches(most)


Dealer = Union[Dealt, Leased]


def dealer_of(session: Session, examples: int, shuffle: bool) -> Dealer:
    order = BatchOrder(session.info, examples, shuffle)
    return Leased(order, session) if session.info.batches_per_epoch else Dealt(order)
