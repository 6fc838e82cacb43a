"""The steps of a clock: what the step() of a worker's optimizers does, and how a clock ends."""

from __future__ import annotations

import types
from typing import Any, Callable, Optional

import torch
from torch import nn

from ..errors import Misuse
from ..session import Session
from .clock import OpenClock
from .layout import Layout
from .optimizers import Translation, Untranslatable
from .schedulers import STEP_MARKS, count_step


class Steps(OpenClock):
    """Takes over step() of the optimizers. The base class of TorchJob."""

    def __init__(self, model: nn.Module, optimizers: list[torch.optim.Optimizer], session: Session, layout: Layout,
                 translation: Optional[Translation], refusal: Optional[Untranslatable], overlap: str, apart: bool) -> None:
        super().__init__(model, optimizers, session, layout, translation, refusal, overlap, apart)
        #: The numbers of the optimizers that have stepped in the job's current step.
        self._stepped: set[int] = set()
        #: The value that the first closure of the current step returned.
        self._closures_loss: Any = None
        #: True if the open clock has all its local steps. The clock ends only when the next clock begins, so that it
        #: includes everything that the script does to the weights until then.
        self._is_due = False
        self._own_steps = [optimizer.step for optimizer in optimizers]
        for number, optimizer in enumerate(optimizers):
            optimizer.step = types.MethodType(self._make_step(number), optimizer)  # Schedulers need a bound method.

    def _make_step(self, number: int) -> Callable[..., Any]:
        job = self

        def step(optimizer: torch.optim.Optimizer, closure: Optional[Callable[[], Any]] = None) -> Any:
            job._check_fed()
            if job._local:
                return job._step_locally(number, closure)
            count_step(optimizer)
            return job._step_apart(number, closure) if job._apart else job._step_remotely(closure)

        for mark in STEP_MARKS:
            if hasattr(self._own_steps[number], mark):
                setattr(step, mark, True)
        return step

    def _open_remotely(self, closure: Optional[Callable[[], Any]]) -> Any:
        """Prepares a step(): checks the model, opens a clock and waits until its contribution may be filled. Returns
        the value of the closure."""
        if self._left:
            raise Misuse(f"rank {self.rank}, clock {self.clock}: step() came after {self._given} of "
                         f"{self._given + len(self._left)} batches (exchange.accumulation): call it when job.last_batch "
                         "is true")
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._check()
        self._rates.check()
        self._schedulers.check()
        if not self._clocks.is_open:
            self._ready(True)
        self._gate.arrive_all()  # Until then the last clock may still be sending its contribution.
        return loss

    def _step_apart(self, number: int, closure: Optional[Callable[[], Any]]) -> Any:
        """Exchanges the parameters of this optimizer. The clock stays open for the other optimizers."""
        if number in self._stepped:
            self._end_step()
        loss = self._open_remotely(closure)
        self._rates.tell_part(self._session.rates, self._gradients.collect(number))
        self._tell_examples()
        first, count = self._gradients.range_of(number)
        self._session.final(first, count)
        self._stepped.add(number)
        if self._closures_loss is None:
            self._closures_loss = loss
        if len(self._stepped) == len(self._optimizers):
            self._end_step()
        else:
            self._wait(first, count)
        self._weights.count_writes(self._gradients.parameters_of(number))
        return loss

    def _end_apart(self, stepped: set[int]) -> None:
        """Ends the clock. `stepped` has the numbers of the optimizers that have stepped in it."""
        self._gradients.leave_out(stepped)
        if len(stepped) < len(self._optimizers):
            # No optimizer updates the elements that have not left. If the job does not allow a clock to skip
            # elements, this call raises the error in the first clock.
            self._rates.tell_part(self._session.rates, ())
        self._weights.hand_in_averaged(self._contribution())
        self._clocks.report.steps = max(1, self._given)
        self._end_clock()

    def _step_remotely(self, closure: Optional[Callable[[], Any]]) -> Any:
        """Sends the gradients that have not left yet, and ends the clock. The servers update the weights."""
        loss = self._open_remotely(closure)
        if self._gradients.learning and self._rates.settles_late():
            self._gradients.keep_back()
        self._gradients.collect()
        if self._early_uses:
            self._gate.adopt(self._early_uses)
            self._early_uses = set()
        self._weights.hand_in_averaged(self._contribution())
        self._tell()
        self._count(loss)
        self._clocks.report.steps = max(1, self._given)
        self._end_clock()
        return loss

    def _step_locally(self, number: int, closure: Optional[Callable[[], Any]]) -> Any:
        """Runs the optimizer's own step on the vector of weights, and returns its result."""
        if number in self._stepped:
            self._end_step()
        self._end_due()
        if not self._clocks.is_open:
            self._ready(True)
        self._check()
        self._schedulers.check()
        own_step = self._own_steps[number]
        loss = own_step() if closure is None else own_step(closure)
        self._stepped.add(number)
        if self._closures_loss is None:
            self._closures_loss = loss
        if len(self._stepped) == len(self._optimizers):
            self._end_step()
        return loss

    def _end_step(self) -> None:
        """Ends the job's current step, if an optimizer has stepped in it. Called after the last optimizer's step(), at
        the next batch, and before an optimizer steps again."""
        if not self._stepped:
            return
        stepped, self._stepped = self._stepped, set()
        self._count(self._closures_loss)
        self._closures_loss = None
        self._end_apart(stepped) if self._apart else self._end_if_due()

    def _end_if_due(self) -> None:
        self._is_due = self._clocks.report.steps >= self.info.steps_per_clock
        if self._is_due:
            self._gate.pause()

    def _end_due(self) -> None:
        if self._is_due:
            self._is_due = False
            self._check()
            self._weights.hand_in_averaged(self._weights.vector)
            self._end_clock()

    def _end_clock(self) -> None:
        self._clocks.end()
        self._gate.close()
        if self._overlap != "forward":
            self.wait()

    def _count(self, loss: Any) -> None:
        report, count = self._clocks.report, self._taken or self.info.batch_size
        report.steps += 1
        report.examples += count
        self._measures.count(report, loss, count)
        report.learning_rate = float(self._optimizers[0].param_groups[0]["lr"])
        self._taken = 0

    def skip(self) -> None:
        """Counts the batch as a step that changes nothing. Call it instead of backward() and step(). With
        `accumulation` it skips all batches of the clock."""
        if self._apart and self._stepped:
            raise Misuse(f"rank {self.rank}, clock {self.clock}: an optimizer has stepped with this batch, and job.skip() cannot call "
                         "its step back: skip before the first step()")
        if not self._begin():
            return
        self._gate.arrive_all()
        self._clocks.report.steps += 1
        self._taken, self._left = 0, []
        if self._local:
            self._end_if_due()
            return
        self._gradients.zero()
        self._weights.hand_in_averaged(self._contribution())
        self._end_clock()

    def _lack_batch(self) -> None:
        """Skips a step for which this worker has no batch, as in the last clock of a pass. In a gradient
        exchange kept schedulers still step."""
        self.skip()
        if not self._local and self.ended is None:
            self._schedulers.step_along()

    def _end_early(self) -> None:
        """Ends a clock that has no more batches."""
        if not self._local:
            self._lack_batch()
            return
        self._gate.arrive_all()
        self._weights.hand_in_averaged(self._weights.vector)
        self._end_clock()
