"""A Session without servers, which is stricter than real ones: memory that was not waited for or not filled is NaN."""

import json

import numpy as np

from leeway.alone import AloneSession, Alone
from leeway.session import FINISHED, STOPPED, Info


class FakeSession(AloneSession):
    """One worker with SGD, or with Adam that counts steps by tensor. Weights are NaN until they are waited for, and
    contributions until they are filled. A range may become final once a clock. The contribution may be written where the
    weights were waited for."""

    def __init__(self, schema, initial, update, clocks=10, exchange="gradient", steps_per_clock=1, batch_size=4,
                 examples=0, evaluate_every=0, workers=1, rank=0, state=None, jump=None, stop_in=None,
                 first=None, has_schedule=False):
        update = json.loads(update) if isinstance(update, str) else update
        if not update or exchange != "gradient":
            update = {"type": "sgd", "learning_rate": 1}
        self.adam = dict(update) if update["type"] in ("adam", "adamw") else None
        super().__init__(schema, initial, {"type": "sgd", "learning_rate": 1} if self.adam else update, Alone(clocks, batch_size))
        self.moments, self.steps = np.zeros((2, self.info.total), np.float32), {}
        # Optimizers that step apart: what is final is exchanged at once.
        self.apart = any(tensor.begins_block for tensor in schema.values())
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
        self.finals, self.count, self.applied = [], None, set()
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
        if any(other <= first < other + length for other, length in self.finals):
            self.seen[where][fresh] = self.true[where][fresh]
            return
        assert np.isnan(self._contribution[where][fresh]).all(), "written while the clock before was being sent"
        self.seen[where][fresh] = self.true[where][fresh]

    def examples(self, count):
        assert not self.finals and count > 0
        self.count = count

    def rates(self, parts):
        assert self.is_open and (self.apart or not self.finals) and self.info.exchange == "gradient"
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
        if self.apart:
            self.seen[first:first + count] = np.nan
            for name, (start, length) in self._places.items():
                if first <= start < first + count:
                    assert start + length <= first + count
                    self._apply(name)

    def _apply(self, name):
        if not (self.apart and name in self.applied):
            self.applied.add(name)
            super()._apply(name)

    def _step(self, part, tensor, factor):
        if not self.adam:
            super()._step(part, tensor, factor)
            return
        t = self.steps[part.start] = self.steps.get(part.start, 0) + 1
        rule, x, g = self.adam, self._weights[part], self._contribution[part].copy()
        rate = rule["learning_rate"] * tensor.learning_rate_factor * factor
        decay = rule["weight_decay"] * tensor.weight_decay_factor
        if rule["type"] == "adamw":
            x *= np.float32(1 - rate * decay)
        else:
            g += np.float32(decay) * x
        (m, v), (beta1, beta2) = self.moments[:, part], (rule["beta1"], rule["beta2"])
        m[:] = np.float32(beta1) * m + np.float32(1 - beta1) * g
        v[:] = np.float32(beta2) * v + np.float32(1 - beta2) * g * g
        size, scale = np.float32(rate / (1 - beta1 ** t)), np.float32(1 / np.sqrt(1 - beta2 ** t))
        x -= size * m / (scale * np.sqrt(v) + np.float32(rule["epsilon"]))

    def end(self, report):
        assert self.is_open
        self.log.append(("end", report.steps, report.examples))
        self.reports.append(report)
        self.is_open = False
        if self.info.exchange == "gradient":
            for first, count in self.finals if self.apart else ():
                self.seen[first:first + count] = self.true[first:first + count]
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
