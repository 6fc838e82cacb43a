#!/usr/bin/python3
"""The hooks of leeway.torch compared with plain torch, in a session without servers that is stricter than real ones."""

import functools
import unittest
from unittest import mock

from fake_job import close, data, join, loss_of, mlp, plain

import torch
from torch import nn

import leeway.torch as leeway
from leeway.torch.gradients import _same_bits


def clamped(model):
    for parameter in model.parameters():
        parameter.grad.data.clamp_(-0.02, 0.02)


def doubled(model):
    for parameter in model.parameters():
        parameter.grad.data.mul_(2)


def doubled_in_numpy(model):
    for parameter in model.parameters():
        parameter.grad.numpy()[...] *= 2


def one_element_in_numpy(model):
    list(model.parameters())[-1].grad.numpy()[1] += 0.01


def clipped_norm(model):
    norm = sum(float(parameter.grad.data.norm()) ** 2 for parameter in model.parameters()) ** 0.5
    for parameter in model.parameters():
        parameter.grad.data.mul_(min(1, 0.05 / norm))


#: Changes of gradients that torch does not count.
CHANGES_BY_VALUE = (clamped, doubled, doubled_in_numpy, one_element_in_numpy, clipped_norm)


class Steps(unittest.TestCase):
    def check(self, make=mlp, options=None, loop=None, reference=None, clocks=10, shape=None, overlap="backward"):
        """Trains twice on the same batches, as a worker and in plain torch."""
        options = options or {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}
        x, y = data(4 * clocks)
        batches = [(x[i:i + 4], y[i:i + 4]) for i in range(0, len(x), 4)]
        if shape:
            batches = [(a.view(4, *shape), b) for a, b in batches]
        alone, worker = make(), make()
        optimizer = torch.optim.SGD(alone.parameters(), **options)
        (reference or plain)(alone, optimizer, batches)
        optimizer = torch.optim.SGD(worker.parameters(), **options)
        job = join(worker, optimizer, {"clocks": clocks}, overlap=overlap)
        (loop or plain)(worker, optimizer, job.over(batches))
        self.assertEqual(job.ended, "finished")
        close(worker, alone)
        return job

    def test_equals_torch(self):
        job = self.check()
        finals = [entry for entry in job._session.log if entry[0] == "final"]
        self.assertEqual(len(finals), 9 * 6, "blocks leave early in all clocks but the first")

    def test_the_hook_of_newer_torch(self):
        """Emulates the hook of torch 2.1 with the older hook. The bits of the results are the same."""
        if hasattr(nn.Parameter, "register_post_accumulate_grad_hook"):
            self.skipTest("torch has it")
        kept = []

        def register(parameter, hook):
            accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            kept.append(accumulator)
            return accumulator.register_hook(lambda *_: hook(parameter))
        older = self.check()
        with mock.patch.object(nn.Parameter, "register_post_accumulate_grad_hook", register, create=True):
            newer = self.check()
        self.assertEqual(len(kept), 6)
        close(newer._model, older._model, 0)

    def test_layers_wait_for_themselves(self):
        job = self.check(overlap="forward")
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
        self.check(loop=averaged(ours), reference=averaged(theirs))
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
            optimizer, own = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, alone))
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
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
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

    def test_zero_grad_keeps_tensors(self):
        def loop(model, optimizer, batches):
            for x, y in batches:
                optimizer.zero_grad(set_to_none=False)
                loss_of(model, x, y).backward()
                optimizer.step()
        self.check(loop=loop)

    def test_zero_grad_after_step(self):
        def loop(model, optimizer, batches):
            for x, y in batches:
                loss_of(model, x, y).backward()
                optimizer.step()
                model.zero_grad(set_to_none=True)
        self.check(loop=loop)

    def test_clipping(self):
        def loop(model, optimizer, batches):
            for x, y in batches:
                optimizer.zero_grad()
                loss_of(model, x, y).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                optimizer.step()
        job = self.check(loop=loop, reference=loop)
        self.assertFalse([entry for entry in job._session.log if entry[0] == "final"])

    def test_a_change_that_leaves_no_version(self):
        def loop(model, optimizer, batches):
            for x, y in batches:
                optimizer.zero_grad()
                loss_of(model, x, y).backward()
                for parameter in model.parameters():
                    parameter.grad.data.mul_(0.5)
                optimizer.step()
        self.check(loop=loop, reference=loop)

    def test_replaced_gradients(self):
        def loop(model, optimizer, batches):
            for x, y in batches:
                optimizer.zero_grad()
                loss_of(model, x, y).backward()
                for parameter in model.parameters():
                    parameter.grad = parameter.grad / 3
                optimizer.step()
        self.check(loop=loop, reference=loop)

    def test_a_late_clip_is_an_error(self):
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        job = join(model, optimizer)
        x, y = data(8)
        with self.assertRaisesRegex(leeway.Misuse, "parameter 0.weight.*overlap=\"none\""):
            for step in range(3):
                optimizer.zero_grad()
                loss_of(model, x, y).backward()
                if step == 2:
                    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                optimizer.step()
        self.assertEqual(job.clock, 2)

    def changed_by(self, change, first=0, overlap="backward"):
        """Trains as PyTorch does, with `change(model)` between backward() and step() from the step `first` on."""
        def loop(model, optimizer, batches):
            for number, (x, y) in enumerate(batches):
                optimizer.zero_grad()
                loss_of(model, x, y).backward()
                if number >= first:
                    change(model)
                optimizer.step()
        return self.check(loop=loop, reference=loop, overlap=overlap)

    def test_changes_that_begin_late(self):
        """The error names the parameter. With overlap="none" these changes count."""
        for change in CHANGES_BY_VALUE:
            for overlap in ("backward", "forward"):
                with self.subTest(change.__name__, overlap=overlap):
                    with self.assertRaisesRegex(leeway.Misuse, "parameter .*changed after it had left.*overlap=\"none\""):
                        self.changed_by(change, first=3, overlap=overlap)
            self.changed_by(change, first=3, overlap="none")

    def test_one_change_in_the_first_step_holds_all_back(self):
        """The script may change other gradients later, for instance by a clip whose limit only one gradient exceeds at
        first."""
        for change in CHANGES_BY_VALUE:
            with self.subTest(change.__name__):
                steps = []

                def one_first(model):
                    steps.append(0)
                    change(model[2:3] if len(steps) % 10 == 1 else model)
                job = self.changed_by(one_first)
                self.assertFalse([entry for entry in job._session.log if entry[0] == "final"])

    def test_gradients_in_another_order_of_memory(self):
        def loop(change_from, model, optimizer, batches):
            for number, (x, y) in enumerate(batches):
                optimizer.zero_grad(set_to_none=False)
                for parameter in model.parameters() if number == 0 else ():
                    parameter.grad = torch.zeros(parameter.shape[::-1]).permute(*reversed(range(parameter.ndim)))
                loss_of(model, x, y).backward()
                if number >= change_from:
                    model[0].weight.grad.data[1, 2] += 0.01
                optimizer.step()
        job = self.check(loop=functools.partial(loop, 99))
        self.assertEqual(len([entry for entry in job._session.log if entry[0] == "final"]), 9 * 6)
        with self.assertRaisesRegex(leeway.Misuse, "parameter 0.weight.*changed after it had left"):
            self.check(loop=functools.partial(loop, 4))

    def test_a_gradient_that_is_not_a_number_is_no_change(self):
        view = torch.tensor([1.0, float("nan"), 0.0])
        self.assertTrue(_same_bits(view, view.clone()))
        self.assertFalse(_same_bits(view, torch.tensor([1.0, float("nan"), 1e-30])))

    def test_accumulation(self):
        def loop(model, optimizer, batches):
            batches = list(batches)
            for place in range(0, len(batches), 2):
                optimizer.zero_grad()
                for x, y in batches[place:place + 2]:
                    (loss_of(model, x, y) / 2).backward()
                optimizer.step()

        def worker(model, optimizer, batches):
            for number, (x, y) in enumerate(batches):
                if number % 2 == 0:
                    optimizer.zero_grad()
                (loss_of(model, x, y) / 2).backward()
                if number % 2:
                    optimizer.step()
        x, y = data(80)
        batches = [(x[i:i + 4], y[i:i + 4]) for i in range(0, 80, 4)]
        alone, other = mlp(), mlp()
        loop(alone, torch.optim.SGD(alone.parameters(), lr=0.1, momentum=0.9), batches)
        optimizer = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
        job = join(other, optimizer, {"clocks": 10})
        worker(other, optimizer, job.over(batches))
        close(other, alone)
        self.assertIn(("end", 1, 8), job._session.log)
        self.assertEqual(len([e for e in job._session.log if e[0] == "final"]), 9 * 6)

    def test_more_backward_than_before(self):
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        join(model, optimizer)
        x, y = data(8)
        for _ in range(2):
            optimizer.zero_grad()
            loss_of(model, x, y).backward()
            optimizer.step()
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        with self.assertRaisesRegex(leeway.Misuse, "no_send"):
            loss_of(model, x, y).backward()

    def test_no_send(self):
        model, alone = mlp(), mlp()
        optimizer, own = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, alone))
        job = join(model, optimizer)
        x, y = data(8)
        for step in range(3):
            for one, its in ((model, optimizer), (alone, own)):
                its.zero_grad()
                if step == 2:
                    with job.no_send():
                        loss_of(one, x, y).backward()
                loss_of(one, x, y).backward()
                its.step()
        job._ready(False)
        close(model, alone)

    def test_fewer_backward_than_before(self):
        """The last step of an epoch accumulates fewer batches."""
        model, alone = mlp(), mlp()
        optimizer, own = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, alone))
        job = join(model, optimizer)
        x, y = data(8)
        for count in (3, 3, 1, 3):
            for one, its in ((model, optimizer), (alone, own)):
                its.zero_grad()
                for _ in range(count):
                    loss_of(one, x, y).backward()
                its.step()
        job._ready(False)
        close(model, alone)

    def test_step_without_backward(self):
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        join(model, optimizer)
        with self.assertRaisesRegex(leeway.Misuse, "without backward.*backward.. first; .*job.skip.."):
            optimizer.step()

    def test_parameters_without_a_gradient(self):
        """A rule without state leaves such parameters alone, as PyTorch does. With momentum or decay they are an
        error."""
        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.used, self.unused = nn.Linear(6, 3), nn.Linear(6, 3)

            def forward(self, x):
                return self.used(x)

        def make():
            torch.manual_seed(3)
            return Twice()
        self.check(make, {"lr": 0.1})
        for options in ({"lr": 0.1, "momentum": 0.9}, {"lr": 0.1, "weight_decay": 0.01}):
            with self.assertRaisesRegex(leeway.Misuse, "parameter unused.weight: it has no gradient.*freeze it.*as a list"):
                self.check(make, options)

        def frozen():
            model = make()
            model.unused.requires_grad_(False)
            return model
        self.check(frozen, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01})

    def test_parameters_that_a_parent_reads(self):
        class Parent(nn.Module):
            def __init__(self):
                super().__init__()
                self.hidden, self.out = nn.Linear(6, 5), nn.Linear(5, 3)

            def forward(self, x):
                return nn.functional.linear(self.hidden(x), self.out.weight, self.out.bias)

        def make():
            torch.manual_seed(3)
            return Parent()
        for overlap in ("forward", "backward"):
            self.check(make, overlap=overlap)

    def test_attention(self):
        class Attends(nn.Module):
            def __init__(self):
                super().__init__()
                self.attention, self.out = nn.MultiheadAttention(6, 2, batch_first=True), nn.Linear(6, 3)

            def forward(self, x):
                return self.out(self.attention(x, x, x)[0].mean(1))

        def make():
            torch.manual_seed(3)
            return Attends()
        self.check(make, shape=(1, 6))

    def test_tied_weights(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.two, self.out = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
                self.two.weight = self.one.weight

            def forward(self, x):
                return self.out(self.two(self.one(x)))

        def make():
            torch.manual_seed(3)
            return Tied()
        job = self.check(make)
        self.assertNotIn("two.weight", job._layout.schema)

    def test_weight_norm_and_parametrizations(self):
        def make():
            torch.manual_seed(3)
            return nn.Sequential(nn.utils.weight_norm(nn.Linear(6, 5)), nn.utils.parametrizations.orthogonal(nn.Linear(5, 5)),
                                 nn.Linear(5, 3))
        self.check(make, {"lr": 0.1})

    def test_channels_last(self):
        def make():
            torch.manual_seed(3)
            model = nn.Sequential(nn.Conv2d(6, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4, 3))
            return model.to(memory_format=torch.channels_last)
        self.check(make, shape=(6, 1, 1))

    def test_batch_norm(self):
        def make():
            torch.manual_seed(3)
            return nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))
        job = self.check(make)
        self.assertIn("1.running_mean", job._layout.schema)
        self.assertNotIn("1.num_batches_tracked", job._layout.schema)

    def test_frozen_parameters(self):
        def make():
            model = mlp()
            model[0].weight.requires_grad_(False)
            return model
        job = self.check(make)
        self.assertTrue(job._layout.schema["0.weight"].averaged)

    def test_parameters_that_the_optimizer_does_not_have(self):
        model, alone = mlp(), mlp()
        optimizer, own = (torch.optim.SGD(m[2:].parameters(), lr=0.1) for m in (model, alone))
        job = join(model, optimizer, {"clocks": 5})
        plain(model, optimizer, job.over([data(4)]))
        plain(alone, own, [data(4)] * 5)
        close(model, alone)

    def test_sparse_embedding(self):
        class Bag(nn.Module):
            def __init__(self):
                super().__init__()
                self.table, self.out = nn.Embedding(7, 4, sparse=True), nn.Linear(4, 3)

            def forward(self, x):
                return self.out(self.table((x.abs() * 3).long().clamp(max=6)).mean(1))

        def make():
            torch.manual_seed(3)
            return Bag()
        job = self.check(make, {"lr": 0.1})
        finals = [entry for entry in job._session.log if entry[0] == "final"]
        self.assertEqual(len(finals), 9 * 2, "the table's gradient leaves at step()")

    def test_closure(self):
        def loop(model, optimizer, batches):
            for x, y in batches:
                def closure():
                    optimizer.zero_grad()
                    loss = loss_of(model, x, y)
                    loss.backward()
                    return loss
                optimizer.step(closure)
        self.check(loop=loop, reference=loop)

    def test_groups(self):
        def groups(model):
            return [{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 0.1},
                    {"params": [p for p in model.parameters() if p.ndim < 2], "lr": 0.02}]
        x, y = data(40)
        batches = [(x[i:i + 4], y[i:i + 4]) for i in range(0, 40, 4)]
        alone, worker = mlp(), mlp()
        plain(alone, torch.optim.SGD(groups(alone), lr=0.1), batches)
        optimizer = torch.optim.SGD(groups(worker), lr=0.1)
        job = join(worker, optimizer, {"clocks": 10})
        plain(worker, optimizer, job.over(batches))
        close(worker, alone)

    def test_without_overlap(self):
        model, alone = mlp(), mlp()
        optimizer, own = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, alone))
        job = join(model, optimizer, overlap="none")
        x, y = data(8)
        for count in (1, 1, 3, 2):
            for one, its in ((model, optimizer), (alone, own)):
                its.zero_grad()
                for _ in range(count):
                    loss_of(one, x, y).backward()
                its.step()
        self.assertFalse([entry for entry in job._session.log if entry[0] == "final"])
        job._ready(False)
        close(model, alone)


if __name__ == "__main__":
    unittest.main()
