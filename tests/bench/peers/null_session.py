"""A Session that does nothing, so that only the Python above it is measured."""

import numpy as np

from leeway.session import Info


class NullSession:
    def __init__(self, schema, initial, *_):
        total = len(initial)
        self._weights, self._contribution = initial.copy(), np.zeros(total, np.float32)
        self.info = Info(rank=0, workers=1, exchange="gradient", total=total, trained=total, clocks=0, steps_per_clock=1,
                         steps_per_epoch=0, seed=0, batch_size=1, examples=0, evaluate_every=0, has_update=False)
        self._clock = -1

    def weights(self):
        return self._weights

    def contribution(self):
        return self._contribution

    def begin(self):
        self._clock += 1
        return self._clock

    def nothing(self, *_):
        return None

    wait = examples = rates = final = end = settle = read_again = evaluated = save_state = load_state = fail = free = nothing

    def state_wanted(self):
        return False

    def leave(self, reason):
        return True
