"""A Session without servers, which is stricter than real ones: memory that was not waited for or not filled is NaN."""

import json

import numpy as np

from leeway.alone import AloneSession, Alone
from leeway.session import FINISHED, STOPPED, Info


class FakeSession(AloneSession):
    """One worker with SGD. Weights are NaN until they are waited for, and contributions until they are filled. A range
    may become final once a clock. The contribution may be written where the weights were waited for."""

    def __init__(self, schema, initial, update, clocks=10, exchange="gradient", steps_per_clock=1, batch_size=4,
                 examples=0, evaluate_every=0, workers=1, rank=0, state=None, jump=None, stop_in=None,
                 first=None, has_schedule=False):
        update = json.loads(update) if isinstance(update, str) else update
        if not update or exchange != "gradient":
            update = {"type": "sgd", "learning_rate": 1}
        super().__init__(schema, initial, update, Alone(clocks, batch_size))
        self.info = Info(**{**vars(self.info), "exchange": exchange, "steps_per_clock": steps_per_clock,
                            "examples": examples, "steps_per_epoch": -(-(-(-examples // batch_size)) // workers),
                            "evaluate_every": evaluate_every, "workers": workers, "rank": rank, "has_schedule": has_schedule})
        self.true = self._weights
        self.seen = self.true.copy()
        self.state, self.saved = state, []
        # jump is (clock, to): after this clock the job goes to another one. stop_in is the clock in which the job is
        # stopped.
        self.jump, self.stop_in = jump, stop_in
        if first:
            self._clock = first - 1
        self.log, self.finals, self.evaluations, self.reports = [], [], [], []
        self.failed = None
        self.is_open = False

    def weights(self):
        return self.seen

    def begin(self):
        assert not self.is_open, "begin while a clock is open"
        if self._clock is not None and self._clock == self.stop_in:
            self.next_clock = self._clock
            return STOPPED
        if self.jump and self._clock == self.jump[0]:
            self._clock, self.jump = self.jump[1] - 1, None
        begun = super().begin()
        if begun == FINISHED:
            self.seen[:] = self.true
            return begun
        self.log.append(("begin", begun))
        self.is_open = True
        self._contribution = np.full_like(self._contribution, np.nan)
        self.finals, self.count = [], None
        if self.info.exchange != "gradient":
            self.started = self.true.copy()
        return begun

    def contribution(self):
        assert self.is_open, "contribution between clocks"
        return self._contribution

    def wait(self, first, count):
        assert self.is_open, "wait between clocks"
        self.log.append(("wait", first, count))
        where = slice(first, first + count)
        fresh = np.isnan(self.seen[where])
        assert np.isnan(self._contribution[where][fresh]).all(), "written while the clock before was being sent"
        self.seen[where][fresh] = self.true[where][fresh]

    def examples(self, count):
        assert not self.finals and count > 0
        self.count = count

    def rates(self, parts):
        assert self.is_open and not self.finals and self.info.exchange == "gradient"
        ends = [end for end, _ in parts]
        assert ends == sorted(set(ends)) and ends[-1] == self.info.trained, "rates are of all trained elements"
        super().rates(parts)

    def final(self, first, count):
        assert self.is_open
        for other, length in self.finals:
            assert first + count <= other or other + length <= first, "a range is final twice"
        assert np.isfinite(self._contribution[first:first + count]).all(), "what is final was not filled"
        self.finals.append((first, count))
        self.log.append(("final", first, count))

    def end(self, report):
        assert self.is_open
        self.log.append(("end", report.steps, report.examples))
        self.reports.append(report)
        self.is_open = False
        if self.info.exchange == "gradient":
            assert np.isfinite(self._contribution).all(), "the contribution was not filled"
            assert np.isfinite(self.seen).all(), "the contribution was filled before all weights were there"
            if self.count is not None:
                assert self.count == report.examples, (self.count, report.examples)
            super().end(report)
            self.seen[:] = np.nan
        else:
            assert np.isfinite(self.seen).all()
            self.true[:] = self.seen

    def settle(self):
        assert not self.is_open, "settle while a clock is open"
        self.seen[:] = self.true

    def read_again(self):
        assert not self.is_open, "read_again while a clock is open"
        return self.true.copy()

    def evaluated(self, loss, accuracy, examples):
        self.evaluations.append((self._clock, loss, accuracy, examples))

    def state_wanted(self):
        return self.state is not None

    def save_state(self, state):
        self.saved.append(state)

    def load_state(self):
        return self.state or None

    def fail(self, message, seconds):
        self.failed = message
