#!/usr/bin/python3
"""The hooks of leeway.torch compared with plain torch, in a session without servers that is stricter than real ones."""

import unittest
from unittest import mock

from fake_job import close, compare, data, join, left_early, loss_of, mlp, plain, seeded, sgd

import torch
from torch import nn


class Steps(unittest.TestCase):
    def test_equals_torch(self):
        job = compare()
        self.assertEqual(len(left_early(job)), 9 * 6, "blocks leave early in all clocks but the first")

    def test_the_hook_of_newer_torch(self):
        """Emulates the hook of torch 2.1 with the older hook. The bits of the results are the same."""
        if hasattr(nn.Parameter, "register_post_accumulate_grad_hook"):
            self.skipTest("torch has it")
        kept = []

        def register(parameter, hook):
            accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            kept.append(accumulator)
            return accumulator.register_hook(lambda *_: hook(parameter))
        older = compare()
        with mock.patch.object(nn.Parameter, "register_post_accumulate_grad_hook", register, create=True):
            newer = compare()
        self.assertEqual(len(kept), 6)
        close(newer._model, older._model, 0)

    def test_layers_wait_for_themselves(self):
        job = compare(overlap="forward")
        log = job._session.log
        second = log[log.index(("begin", 1)):log.index(("begin", 2))]
        self.assertEqual([e for e in second if e[0] == "wait"], [("wait", 0, 35), ("wait", 35, 30), ("wait", 65, 18)])

    def test_what_a_script_reads_after_a_step(self):
        """The script reads the step's weights, whichever way it reads them. Its average equals PyTorch's down to the
        last bit of the weights' difference."""
        def averaged(into):
            def loop(model, optimizer, batches):
                for batch in batches:
                    plain(model, optimizer, [batch])
                    into.append([parameter.detach().clone() for parameter in model.parameters()])
            return loop
        ours, theirs = [], []
        compare(loop=averaged(ours), reference=averaged(theirs))
        for step, (one, other) in enumerate(zip(ours, theirs)):
            for a, b in zip(one, other):
                self.assertTrue(torch.allclose(a, b, rtol=1e-5, atol=1e-6), f"after step {step}: {a} and {b}")

    def test_reading_what_is_on_its_way(self):
        """With overlap="forward", wait() and state_dict() wait for the weights. A submodule's state_dict() does so,
        too."""
        for read in (lambda m, job: m.state_dict(), lambda m, job: m[0].state_dict(), lambda m, job: job.wait()):
            def loop(model, optimizer, batches):
                for batch in batches:
                    plain(model, optimizer, [batch])
                    self.assertTrue(torch.isnan(model[0].weight).all(), "still on its way")
                    read(model, joined[0])
                    self.assertTrue(torch.isfinite(model[0].weight).all())
            joined = []
            x, y = data(12)
            model, alone = mlp(), mlp()
            optimizer, own = (sgd(m) for m in (model, alone))
            joined.append(join(model, optimizer, {"clocks": 3}, overlap="forward"))
            batches = [(x[i:i + 4], y[i:i + 4]) for i in range(0, 12, 4)]
            loop(model, optimizer, joined[0].over(batches))
            plain(alone, own, batches)
            close(model, alone)

    def test_copies_are_not_joined(self):
        """A copy or a pickle of the model does not take part in the job: its forward passes begin no clock."""
        import copy
        import io
        model = mlp()
        optimizer = sgd(model)
        job = join(model, optimizer)
        plain(model, optimizer, [data(4)])
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        for other in (copy.deepcopy(model), torch.load(file), torch.optim.swa_utils.AveragedModel(model)):
            loss_of(other, *data(4)).backward()
            other.state_dict()
            self.assertFalse(job._clocks.is_open)
            with torch.no_grad():
                next(other.parameters()).data.zero_()
        plain(model, optimizer, [data(4)])
        self.assertEqual(job.clock, 1)

    def test_parameters_that_a_parent_reads(self):
        class Parent(nn.Module):
            def __init__(self):
                super().__init__()
                self.hidden, self.out = nn.Linear(6, 5), nn.Linear(5, 3)

            def forward(self, x):
                return nn.functional.linear(self.hidden(x), self.out.weight, self.out.bias)

        for overlap in ("forward", "backward"):
            compare(seeded(Parent), overlap=overlap)

    def test_tied_weights(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.two, self.out = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
                self.two.weight = self.one.weight

            def forward(self, x):
                return self.out(self.two(self.one(x)))

        job = compare(seeded(Tied))
        self.assertNotIn("two.weight", job._layout.schema)

    def test_batch_norm(self):
        def make():
            torch.manual_seed(3)
            return nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))
        job = compare(make)
        self.assertIn("1.running_mean", job._layout.schema)
        self.assertNotIn("1.num_batches_tracked", job._layout.schema)

    def test_frozen_parameters(self):
        def make():
            model = mlp()
            model[0].weight.requires_grad_(False)
            return model
        job = compare(make)
        self.assertTrue(job._layout.schema["0.weight"].averaged)


if __name__ == "__main__":
    unittest.main()
