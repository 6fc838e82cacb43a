"""Runs the clocks of one worker: begin, end, evaluations, states, and the orderly end."""

from __future__ import annotations

from typing import Callable, Mapping, Optional

from . import ending
from .alone import AloneSession
from .errors import InvalidArgument
from .session import FINISHED, Info, Report, Session


class Clocks:
    """Drives a Session. One thread uses it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.info = session.info
        #: The open clock or, between two clocks, the last one.
        self.clock = -1
        #: The report of the open clock.
        self.report = Report()
        self.is_open = False
        #: None while the job runs, then "finished", "stopped" or "failed".
        self.ended: Optional[str] = None
        #: Evaluates the weights, on rank 0.
        self.evaluate: Optional[Callable[[], Mapping[str, float]]] = None
        #: Returns the worker's state for a checkpoint. If the last clock was broken off, the argument is True, and
        #: the result must be the state before that clock.
        self.state: Callable[[bool], bytes] = lambda before: b""
        #: Called with the checkpoint's state when the job has gone back.
        self.load: Callable[[bytes], None] = lambda state: None
        #: Called when the job has gone back and there is no saved state. The argument is True if the job has gone
        #: back to just before the last clock, and False if it has gone back to its start.
        self.go_back: Callable[[bool], None] = lambda one: None
        self._evaluated = -1
        #: How often an earlier state has replaced the worker's state.
        self.restored = 0
        #: True if this life has ended a clock.
        self.moved = False
        ending.watch(self)

    def begin(self) -> bool:
        """Opens the next clock, unless a clock is open. Returns False if the job is over and the worker has left."""
        while not self.is_open and self.ended is None:
            self._between()
            begun = self.session.begin()
            if isinstance(begun, str):
                self._finish(begun)
                continue
            if self.clock >= 0 and begun != self.clock + 1:
                self._jump(begun)
            self.clock, self.is_open, self.report = begun, True, Report()
        return self.is_open

    def _jump(self, begun: int) -> None:
        """Restores the worker's state after the clock has jumped. Either the other workers went on without this worker,
        or the job has gone back: to a checkpoint, to the last clock or to the start."""
        saved = self.session.load_state()
        if saved:
            self.load(saved)
        elif begun <= self.clock:
            self.go_back(begun == self.clock)
        else:
            return
        self.restored += 1

    def end(self) -> None:
        self.session.end(self.report)
        self.moved = True
        self.is_open = False

    def fail(self, message: str, seconds: float = ending.FAREWELL_SECONDS) -> None:
        """Tells the job that this worker cannot go on, and that its next life could not go on, either."""
        if self.ended is not None:
            return
        self.ended = "failed"
        self.session.fail(message, seconds)

    def unfinished(self) -> str:
        """Returns why the process should not end now, or an empty string."""
        if self.ended is not None or isinstance(self.session, AloneSession):
            return ""
        return (f"rank {self.info.rank} ends at clock {max(self.clock, 0)}, before the job does. The other workers "
                "consider it lost until it is restarted. To end a job early, give it `evaluation.early_stop`, or call "
                "`leeway stop`")

    def _between(self) -> None:
        if self.session.state_wanted():
            self.session.save_state(self.state(False))
        every = self.info.evaluate_every
        if every and self.clock >= 0 and (self.clock + 1) % every == 0:
            self._evaluate()

    def _evaluate(self) -> None:
        if self.evaluate is None or self.info.rank != 0 or self._evaluated == self.clock:
            return
        self.session.settle()
        self._evaluated = self.clock
        try:
            found = self.evaluate()
        except Exception as error:
            # The error is permanent. Otherwise the next life would go on after this clock, and nobody would notice that
            # the evaluation is missing.
            raise InvalidArgument(f"rank 0: evaluate() raised {type(error).__name__}: {error}") from error
        if not isinstance(found, Mapping) or "loss" not in found:
            raise InvalidArgument(f"rank 0: evaluate() returned {found!r}; it must return a mapping with loss and, "
                                  "optionally, accuracy")
        others = [str(key) for key in found if key not in ("loss", "accuracy", "examples")]
        if others:
            raise InvalidArgument(f"rank 0: evaluate() returned {', '.join(others)}; a job keeps loss, accuracy and "
                                  "examples. Leave out the others, and print or write them yourself")
        self.evaluated(found["loss"], found.get("accuracy"), found.get("examples", 0))

    def evaluated(self, loss: float, accuracy: Optional[float] = None, examples: int = 0) -> None:
        self.session.evaluated(float(loss), None if accuracy is None else float(accuracy), int(examples))

    def _finish(self, reason: str) -> None:
        if reason == FINISHED:
            self._evaluate()
        if self.session.state_wanted():
            self.session.save_state(self.state(0 <= self.clock == self.session.next_clock))
        if self.session.leave(reason):
            self.ended = reason


class ClockedJob:
    """The properties that Job and TorchJob share. Those classes set `_clocks`."""

    _clocks: Clocks

    @property
    def info(self) -> Info:
        return self._clocks.info

    @property
    def rank(self) -> int:
        return self.info.rank

    @property
    def workers(self) -> int:
        return self.info.workers

    @property
    def clock(self) -> int:
        """The open clock or, between two clocks, the last one. -1 before the first clock."""
        return self._clocks.clock

    @property
    def ended(self) -> Optional[str]:
        """None while the job runs, then "finished" or "stopped"."""
        return self._clocks.ended

    def evaluated(self, loss: float, accuracy: Optional[float] = None, examples: int = 0) -> None:
        """Rank 0 reports an evaluation between two clocks. `accuracy` is the share of right answers, in 0..1."""
        self._clocks.evaluated(loss, accuracy, examples)
