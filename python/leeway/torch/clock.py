"""A worker's clock: when it opens, when the weights that a pass needs have arrived, and what leaves in it."""

from __future__ import annotations

import contextlib
from typing import Iterator, Optional, Union

import torch
from torch import nn

from ..clocks import Clocks
from ..errors import Finished, InvalidArgument, Misuse
from ..notes import note
from ..session import Session
from .apart import Apart
from .gate import Gate
from .gradients import Gradients
from .held import Held, LOST, has_left
from .kept import Kept
from .layout import Layout
from .loop import Loop
from .measures import Measures, unwatch
from .optimizers import Translation, Untranslatable
from .rates import Rates, why_fixed
from .schedulers import Schedulers
from .structure import Structure
from .weights import Weights


class OpenClock(Loop):
    """Opens clocks and sends what is final in them. The base class of Steps, which ends them."""

    _kept: Kept
    _schedulers: Schedulers
    #: True if a checkpoint had a state for this worker.
    _has_state: bool

    def __init__(self, model: nn.Module, optimizers: list[torch.optim.Optimizer], session: Session, layout: Layout,
                 translation: Optional[Translation], refusal: Optional[Untranslatable], overlap: str, apart: bool) -> None:
        super().__init__()
        self._model, self._optimizers, self._session, self._layout = model, optimizers, session, layout
        self._clocks = Clocks(session)
        self._local = session.info.exchange != "gradient"
        #: True in a gradient exchange in which each step() of an optimizer is an exchange of its own.
        self._apart = apart and not self._local
        self._overlap, self._examples_told, self._keeps_state = "none" if self._apart else overlap, False, False
        self._rates = Rates(session.info.rank, optimizers, translation, why_fixed(session.info.has_schedule, refusal), layout)
        self._early_uses: set[str] = set()
        self._weights = Weights(session, layout, self._local)
        self._structure = Structure(model, optimizers, layout)
        self._measures = Measures((lambda: self._clocks.is_open) if self._local else None)
        self._gate = Gate(model, layout, self._weights.vector, self._ready, self._wait)
        self._gradients = None if self._local else self._hook_gradients(translation)
        self._has_left = has_left(optimizers)
        self._held = Held(session.info.rank, [] if self._local else optimizers, translation is None or translation.has_state)

    def _hook_gradients(self, translation: Optional[Translation]) -> Union[Apart, Gradients]:
        if self._apart:
            return Apart(self._layout, self._optimizers, self._contribution, self._opening)
        indifferent = {name for name, p in self._layout.trained.items() if translation and translation.ignores_zeros(p)}
        return Gradients(self._layout, self._overlap != "none", indifferent, self._contribution, self._opening, self._final)

    def _check(self) -> None:
        """Raises Misuse if the script has changed the model, the optimizers or their settings in a way that join does
        not allow. Called before a clock begins, at step() and after an evaluation."""
        change = self._structure.change()
        if change:
            raise Misuse(f"rank {self.rank}: {change}")
        self._held.check()
        self._weights.check(self._clocks.is_open)

    def _begin(self) -> bool:
        """Opens a clock, unless one is open. Returns False if the job is over. The model then has the final weights."""
        self._end_step()
        self._end_due()
        return self._clocks.is_open or self._measures.waiting(self._begin_clock)

    def _begin_clock(self) -> bool:
        self._check()
        if not self._local and self._schedulers.some and not self._keeps_state:
            self._session.save_state(self._kept.save(False))
            self._keeps_state = True
        first = self._clocks.clock < 0
        if not self._clocks.begin():
            self._gate.finish()
            unwatch(self._measures)
            return False
        if first and self.clock == 0 and self._has_left:
            raise InvalidArgument(f"rank {self.rank}: {LOST}")
        if first and self.clock > 0 and not self._has_state:
            self._begin_late()
        self._examples_told = False
        self._rates.begin()
        self._taken = self._given = 0
        self._left, self._dealt = [], False
        self._kept.begin_clock()
        self._gate.open()
        if self._overlap != "forward" or self._gradients is None:
            self._session.wait(0, self.info.total)
            self._gate.refresh()
        elif self._gradients.learning:
            self._session.wait(0, self.info.total)
        return True

    def _begin_late(self) -> None:
        if not self._local:
            self._schedulers.begin_late(self.clock)
            return
        note(f"rank {self.rank} goes on at clock {self.clock} with a new {type(self._optimizers[0]).__name__}: no checkpoint has "
             "the state of its optimizer and schedulers, so what follows differs from a run without a restart. With "
             "`checkpoint: {every: ...}` in the job, a restarted worker goes on with them")

    def _wait(self, first: int, count: int) -> None:
        self._measures.waiting(self._session.wait, first, count)

    def _open(self) -> bool:
        self._end_step()
        self._end_due()
        return super()._open()

    def wait(self) -> None:
        """Returns when no weights are on their way. The model then has the weights with which the next step begins, or
        the current step has begun. With overlap="forward" a script calls wait() before it reads weights. state_dict()
        calls wait() itself."""
        self._end_due()
        if self._gate.is_settled or self._clocks.ended is not None:
            return
        if self._clocks.is_open:
            self._gate.arrive_all()
            return
        self._measures.waiting(self._session.settle)
        self._gate.refresh()

    def _ready(self, training: bool) -> None:
        """Opens a clock for a training step, or waits for the weights for another pass. Called before a module's
        forward."""
        self._end_due()
        if self._clocks.is_open:
            return
        if training:
            if not self._begin():
                raise Finished(f"the job is over ({self.ended}): leave the loop. `for epoch in job.epochs()`, with "
                               "`job.batches(loader)` in it, and `job.over(loader)` do so by themselves")
        else:
            self.wait()

    def _contribution(self) -> torch.Tensor:
        return torch.from_numpy(self._session.contribution())

    def _opening(self, name: str) -> None:
        """Opens a clock if none is open. Called before the gradient of the parameter `name` is copied. Raises Misuse if
        the forward pass, after the first step, used the parameter without a call of its module."""
        self._measures.touched = True
        if not self._clocks.is_open:
            self._ready(True)
        if self._gradients.learning:
            self._rates.see()
        if not self._gate.has_arrived(name):
            self._early_uses.add(name)
            if not self._gradients.learning:
                raise Misuse(f"rank {self.rank}, parameter {name}: the forward pass used it without calling its module, "
                             "but did not do so in the first step: join without overlap=\"forward\"")

    def _final(self, first: int, count: int) -> None:
        self._tell()
        self._session.final(first, count)

    def _tell(self) -> None:
        """Sets the learning rates and the number of examples of the clock. Called before its first block leaves."""
        self._rates.tell(self._session.rates)
        self._tell_examples()

    def _tell_examples(self) -> None:
        if not self._examples_told and self._taken:
            self._session.examples(self._taken)
        self._examples_told = True

    @contextlib.contextmanager
    def no_send(self) -> Iterator[None]:
        """A context in which backward() adds to gradients, but no block leaves. Use it for all but the last backward()
        of a step."""
        if self._gradients is None:
            yield
            return
        self._gradients.held, before = True, self._gradients.held
        try:
            yield
        finally:
            self._gradients.held = before
