"""A torch model as a worker: the object that leeway.torch.join returns inside a job."""

from __future__ import annotations

import contextlib
import os
import sys
import types
from typing import Any, Callable, Iterator, Mapping, Optional, Union

import numpy as np
import torch
from torch import nn

from .. import safetensors
from ..clocks import Clocks
from ..errors import Finished, InvalidArgument, Misuse
from ..session import Session
from .apart import Apart
from .gate import Gate, Hook
from .gradients import Gradients
from .held import Held, LOST, has_left
from .kept import Kept
from .layout import Layout
from .loop import Loop
from .measures import Measures, unwatch, watch
from .optimizers import Translation, Untranslatable
from .rates import Rates, why_fixed
from .schedulers import STEP_MARKS, count_step
from .structure import Structure
from .weights import Weights

Evaluate = Callable[[nn.Module], Mapping[str, float]]
#: What runs while a gradient is exchanged: nothing, backward(), or backward() and the next forward pass.
OVERLAPS = ("none", "backward", "forward")


class TorchJob(Loop):
    """A worker in a job. The trained parameters are views of the vector of weights. One thread uses the object."""

    def __init__(self, model: nn.Module, optimizers: list[torch.optim.Optimizer], session: Session, layout: Layout, *,
                 translation: Optional[Translation] = None, refusal: Optional[Untranslatable] = None,
                 overlap: str = "backward", evaluate: Optional[Evaluate] = None, apart: bool = False) -> None:
        self._model, self._optimizers, self._session, self._layout = model, optimizers, session, layout
        self._clocks = Clocks(session)
        self._local = session.info.exchange != "gradient"
        #: True in a gradient exchange in which each step() of an optimizer is an exchange of its own.
        self._apart = apart and not self._local
        self._overlap, self._examples_told, self._keeps_state = "none" if self._apart else overlap, False, False
        self._rates = Rates(session.info.rank, optimizers, translation, why_fixed(session.info.has_schedule, refusal), layout)
        self._early_uses: set[str] = set()
        #: The numbers of the optimizers that have stepped in the job's current step.
        self._stepped: set[int] = set()
        #: The value that the first closure of the current step returned.
        self._closures_loss: Any = None
        #: Whether the open clock has all its local steps. It ends when the next clock begins, so that what the script
        #: does to the weights until then belongs to it.
        self._is_due = False
        self._weights = Weights(session, layout, self._local)
        self._structure = Structure(model, optimizers, layout)
        self._measures = Measures((lambda: self._clocks.is_open) if self._local else None)
        self._gate = Gate(model, layout, self._weights.vector, self._ready, self._wait)
        self._gradients = None if self._local else self._hook_gradients(translation)
        self._has_left = has_left(optimizers)
        self._held = Held(session.info.rank, [] if self._local else optimizers, translation is None or translation.has_state)
        self._own_steps = [optimizer.step for optimizer in optimizers]
        for number, optimizer in enumerate(optimizers):
            optimizer.step = types.MethodType(self._make_step(number), optimizer)  # Schedulers need a bound method.
        self._state_hooks = [module._register_state_dict_hook(Hook(lambda *_: self.wait())) for module in model.modules()]
        if evaluate is not None:
            self._clocks.evaluate = lambda: self._evaluate(evaluate)
        self._kept = Kept(model, optimizers, layout, session.info.rank, self._local)
        self._schedulers = self._kept.schedulers
        self._clocks.state, self._clocks.load, self._clocks.go_back = self._kept.save, self._kept.load, self._kept.go_back
        saved = session.load_state()
        self._has_state = bool(saved)
        self._kept.load(saved)
        super().__init__()
        watch(self._measures)

    def _hook_gradients(self, translation: Optional[Translation]) -> Union[Apart, Gradients]:
        if self._apart:
            return Apart(self._layout, self._optimizers, self._contribution, self._opening)
        indifferent = {name for name, p in self._layout.trained.items() if translation and translation.ignores_zeros(p)}
        return Gradients(self._layout, self._overlap != "none", indifferent, self._contribution, self._opening, self._final)

    def _check(self) -> None:
        """Raises Misuse if the script has changed what join took over. Called before a clock begins, at step() and
        after an evaluation."""
        change = self._structure.change()
        if change:
            raise Misuse(f"rank {self.rank}: {change}")
        self._held.check()
        self._weights.check(self._clocks.is_open)

    # ---- a clock

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

    # ---- step()

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
        self._gate.arrive_all()  # Until then the last clock may still send the contribution.
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
            # No optimizer updates the elements that have not left. If the job must not exchange parts of a clock, this
            # call reports the error in the first clock.
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

    # ---- between clocks

    def _evaluate(self, evaluate: Evaluate) -> Mapping[str, float]:
        self._gate.refresh()
        training = [module for module in self._model.modules() if module.training]
        self._model.eval()
        try:
            with torch.no_grad():
                found = evaluate(self._model)
        finally:
            for module in training:
                module.training = True
        self._check()  # The evaluation may have written other weights.
        return found

    def _weights_of_clock(self) -> torch.Tensor:
        self._gate.arrive_all()
        return self._weights.vector.clone()

    def _begin_again(self, weights: torch.Tensor) -> None:
        """Begins the open clock again, with these weights and the state that the worker had when the clock began."""
        self._weights.put_back(weights)
        self._gate.refresh()
        self._weights.accept()
        self._kept.undo_clock()
        self._kept.begin_clock()

    def keep(self, scheduler: Any) -> Any:
        """Saves the scheduler's state in the job's checkpoints, and restores it from them. Returns the scheduler. Keep
        the schedulers in the same order each time the script starts."""
        self._schedulers.keep(scheduler)
        return scheduler

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes model.state_dict() to a safetensors file. Only rank 0 writes. Call it between two steps or at the
        end."""
        if self.rank != 0:
            return
        save_model(path, self._model)

    def shares(self, model: nn.Module) -> bool:
        """Returns whether the model has parameters of this job."""
        own = {id(parameter) for parameter in self._layout.parameters.values()}
        return any(id(parameter) in own for parameter in model.parameters())

    def let_go(self) -> None:
        """Removes all hooks, after the job's end. The script may then pass the model and the optimizers to another
        join."""
        for optimizer, own_step in zip(self._optimizers, self._own_steps):
            optimizer.step = own_step  # type: ignore[method-assign]
        self._held.let_go()
        for hook in self._state_hooks:
            hook.remove()
        if self._gradients is not None:
            self._gradients.remove()
        self._gate.remove()
        self._weights.close()
        unwatch(self._measures)


def save_model(path: Union[str, "os.PathLike[str]"], model: nn.Module) -> None:
    tensors = {name: np.array(value.detach().cpu().numpy()) for name, value in model.state_dict().items()}
    safetensors.save(path, tensors, {"format": "pt"})


def note(text: str) -> None:
    print(f"leeway: {text}", file=sys.stderr, flush=True)
