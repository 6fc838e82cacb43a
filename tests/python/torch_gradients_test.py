#!/usr/bin/python3
"""What a step sends: gradients that leave in backward(), that the script changes, accumulates or lacks."""

import functools
import unittest

from fake_job import batches_of, close, compare, data, join, left_early, loss_of, mlp, plain, seeded, sgd

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


class Gradients(unittest.TestCase):
    def test_zero_grad_keeps_tensors(self):
        def loop(model, optimizer, batches):
            for x, y in batches:
                optimizer.zero_grad(set_to_none=False)
                loss_of(model, x, y).backward()
                optimizer.step()
        compare(loop=loop)

    def test_zero_grad_after_step(self):
        def loop(model, optimizer, batches):
            for x, y in batches:
                loss_of(model, x, y).backward()
                optimizer.step()
                model.zero_grad(set_to_none=True)
        compare(loop=loop)

    def changed_by(self, change, first=0, overlap="backward"):
        """Trains as PyTorch does, with `change(model)` between backward() and step() from the step `first` on."""
        def loop(model, optimizer, batches):
            for number, (x, y) in enumerate(batches):
                optimizer.zero_grad()
                loss_of(model, x, y).backward()
                if number >= first:
                    change(model)
                optimizer.step()
        return compare(loop=loop, reference=loop, overlap=overlap)

    def test_clipping(self):
        job = self.changed_by(lambda model: nn.utils.clip_grad_norm_(model.parameters(), 0.1))
        self.assertFalse(left_early(job))

    def test_replaced_gradients(self):
        def replaced(model):
            for parameter in model.parameters():
                parameter.grad = parameter.grad / 3
        self.changed_by(replaced)

    def test_a_late_clip_is_an_error(self):
        model = mlp()
        optimizer = sgd(model)
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
                self.assertFalse(left_early(job))

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
        job = compare(loop=functools.partial(loop, 99))
        self.assertEqual(len(left_early(job)), 9 * 6)
        with self.assertRaisesRegex(leeway.Misuse, "parameter 0.weight.*changed after it had left"):
            compare(loop=functools.partial(loop, 4))

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
        batches = batches_of(80)
        alone, other = mlp(), mlp()
        loop(alone, torch.optim.SGD(alone.parameters(), lr=0.1, momentum=0.9), batches)
        optimizer = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
        job = join(other, optimizer, {"clocks": 10})
        worker(other, optimizer, job.over(batches))
        close(other, alone)
        self.assertIn(("end", 1, 8), job._session.log)
        self.assertEqual(len(left_early(job)), 9 * 6)

    def test_more_backward_than_before(self):
        model = mlp()
        optimizer = sgd(model)
        join(model, optimizer)
        x, y = data(8)
        for _ in range(2):
            plain(model, optimizer, [(x, y)])
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        with self.assertRaisesRegex(leeway.Misuse, "no_send"):
            loss_of(model, x, y).backward()

    def test_no_send(self):
        model, alone = mlp(), mlp()
        optimizer, own = (sgd(m) for m in (model, alone))
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

    def accumulated(self, counts, **options):
        """Trains as PyTorch does, with that many backward() calls in each step."""
        model, alone = mlp(), mlp()
        optimizer, own = (sgd(m) for m in (model, alone))
        job = join(model, optimizer, **options)
        for count in counts:
            for one, its in ((model, optimizer), (alone, own)):
                its.zero_grad()
                for _ in range(count):
                    loss_of(one, *data(8)).backward()
                its.step()
        job._ready(False)
        close(model, alone)
        return job

    def test_fewer_backward_than_before(self):
        """The last step of an epoch accumulates fewer batches."""
        self.accumulated((3, 3, 1, 3))

    def test_step_without_backward(self):
        model = mlp()
        optimizer = sgd(model)
        join(model, optimizer)
        with self.assertRaisesRegex(leeway.Misuse, "without backward.*backward.. first; .*job.skip.."):
            optimizer.step()

    def test_without_overlap(self):
        job = self.accumulated((1, 1, 3, 2), overlap="none")
        self.assertFalse(left_early(job))

    def test_sparse_embedding(self):
        class Bag(nn.Module):
            def __init__(self):
                super().__init__()
                self.table, self.out = nn.Embedding(7, 4, sparse=True), nn.Linear(4, 3)

            def forward(self, x):
                return self.out(self.table((x.abs() * 3).long().clamp(max=6)).mean(1))

        job = compare(seeded(Bag), {"lr": 0.1})
        self.assertEqual(len(left_early(job)), 9 * 2, "the table's gradient leaves at step()")

    def test_parameters_without_a_gradient(self):
        """A rule without state leaves such parameters alone, as PyTorch does. With momentum or decay they are an
        error."""
        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.used, self.unused = nn.Linear(6, 3), nn.Linear(6, 3)

            def forward(self, x):
                return self.used(x)

        make = seeded(Twice)
        compare(make, {"lr": 0.1})
        for options in ({"lr": 0.1, "momentum": 0.9}, {"lr": 0.1, "weight_decay": 0.01}):
            with self.assertRaisesRegex(leeway.Misuse, "parameter unused.weight: it has no gradient.*freeze it.*as a list"):
                compare(make, options)

        def frozen():
            model = make()
            model.unused.requires_grad_(False)
            return model
        compare(frozen, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01})

    def test_closure(self):
        def loop(model, optimizer, batches):
            for x, y in batches:
                def closure():
                    optimizer.zero_grad()
                    loss = loss_of(model, x, y)
                    loss.backward()
                    return loss
                optimizer.step(closure)
        compare(loop=loop, reference=loop)


if __name__ == "__main__":
    unittest.main()
