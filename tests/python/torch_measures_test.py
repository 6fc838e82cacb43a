#!/usr/bin/python3
"""What a step reports to the job: its loss, which the script need not pass, and where its time went."""

import unittest
from unittest import mock

from fake_job import data, join, loss_of, mlp, plain

import torch
from torch import nn

import leeway.torch as leeway


OWN = torch.autograd.backward


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.01)


class Losses(unittest.TestCase):
    def tearDown(self):
        self.assertIs(torch.autograd.backward, OWN, "torch has its own function back")

    def losses(self, loop, clocks=3, session=None):
        """Returns the loss of each clock that the job got, and the loss that the loop computed."""
        model = mlp()
        optimizer = sgd(model)
        job = join(model, optimizer, {"clocks": clocks, **(session or {})})
        self.assertIsNot(torch.autograd.backward, OWN)
        given = [loop(job, model, optimizer, x, y) for x, y in job.over([data(4, seed) for seed in range(3)])]
        reports = job._session.reports
        return [report.loss_sum / report.examples for report in reports], given

    def same(self, loop, **options):
        found, given = self.losses(loop, **options)
        self.assertEqual(len(found), len(given))
        for one, other in zip(found, given):
            self.assertAlmostEqual(one, float(other), places=5)

    def test_of_backward(self):
        def loop(job, model, optimizer, x, y):
            optimizer.zero_grad()
            loss = loss_of(model, x, y)
            loss.backward()
            optimizer.step()
            return loss.detach()
        self.same(loop)
        self.same(loop, session={"exchange": "delta"})

    def test_of_a_function(self):
        def loop(job, model, optimizer, x, y):
            loss = loss_of(model, x, y)
            torch.autograd.backward([loss], retain_graph=False)
            optimizer.step()
            return loss.detach()
        self.same(loop)

    def test_several_are_one_sum(self):
        def loop(job, model, optimizer, x, y):
            losses = [loss_of(model, x, y), loss_of(model, -x, y)]
            for loss in losses:
                loss.backward()
            optimizer.step()
            return sum(loss.detach() for loss in losses)
        self.same(loop)

    def test_of_a_closure(self):
        def loop(job, model, optimizer, x, y):
            found = []

            def closure():
                optimizer.zero_grad()
                found.append(loss_of(model, x, y))
                found[-1].backward()
                return found[-1]
            optimizer.step(closure)
            return found[0].detach()
        self.same(loop)
        self.same(loop, session={"exchange": "delta"})

    def test_what_the_script_says_comes_first(self):
        def loop(job, model, optimizer, x, y):
            loss_of(model, x, y).backward()
            job.loss(torch.tensor(7.5))
            optimizer.step()
            return 7.5
        self.same(loop)

    def test_said_after_the_step(self):
        """The loss is reported one step late. The first step reports the loss on which backward() was called."""
        def loop(job, model, optimizer, x, y):
            loss = loss_of(model, x, y)
            loss.backward()
            optimizer.step()
            job.loss(100)
            return loss.detach()
        found, given = self.losses(loop)
        self.assertAlmostEqual(found[0], float(given[0]), places=5)
        self.assertEqual(found[1:], [100, 100])

    def test_no_scalar_is_no_loss(self):
        def loop(job, model, optimizer, x, y):
            scores = model(x)
            scores.backward(torch.ones_like(scores))
            optimizer.step()
        self.assertEqual(self.losses(loop)[0], [0, 0, 0])

    def test_of_another_model(self):
        other = nn.Linear(6, 1)

        def loop(job, model, optimizer, x, y):
            other(x).sum().backward()
            loss = loss_of(model, x, y)
            loss.backward()
            (1000 * other(x).sum()).backward()
            optimizer.step()
            return loss.detach()
        self.same(loop)

    def test_two_jobs_in_turns(self):
        models = [mlp(1), mlp(2)]
        optimizers = list(map(sgd, models))
        jobs = [join(*pair, {"clocks": 2}) for pair in zip(models, optimizers)]
        x, y = data(4)
        for _ in range(2):
            losses = [loss_of(model, x, y) for model in models]
            for loss in losses:
                loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            for job, loss in zip(jobs, losses):
                self.assertAlmostEqual(job._session.reports[-1].loss_sum / 4, float(loss), places=5)
        for job in jobs:
            self.assertFalse(job._begin())

    def test_alone_nothing_is_changed(self):
        leeway.join(mlp(), sgd(mlp()))
        self.assertIs(torch.autograd.backward, OWN)


class Times(unittest.TestCase):
    def test_where_a_step_goes(self):
        """The test replaces the system's clock by a clock that each part of a step advances."""
        now = [0.0]

        class Slow(nn.Module):
            def forward(self, x):
                now[0] += 3
                x.register_hook(lambda _: now.__setitem__(0, now[0] + 5))
                return x

        class Dataset(torch.utils.data.Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, index):
                now[0] += 0.25
                return torch.randn(6), 1

        for exchange in ({"exchange": "gradient"}, {"exchange": "delta"}):
            model = nn.Sequential(nn.Linear(6, 5), Slow(), nn.Linear(5, 3))
            optimizer = sgd(model)
            with mock.patch("leeway.torch.measures.time.perf_counter", lambda: now[0]):
                job = join(model, optimizer, {"clocks": 3, "examples": 4, **exchange})
                wait = job._session.wait

                def slowly(*place):
                    now[0] += 100
                    wait(*place)
                job._session.wait = slowly
                for x, y in job.over(job.batches(Dataset())):
                    plain(model, optimizer, [(x, y)])
                    now[0] += 1000  # The time between a step and the next batch belongs to no step.
            for report in job._session.reports:
                self.assertEqual((report.data_seconds, report.forward_seconds, report.backward_seconds), (1, 3, 5))


if __name__ == "__main__":
    unittest.main()
