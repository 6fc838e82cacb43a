#!/usr/bin/python3
"""Several optimizers in a gradient exchange, without servers: what each step exchanges, what it leaves alone, and which
errors it raises."""

import unittest

from fake_job import data, join, loss_of, sgd

import torch
from torch import nn
from torch.nn import functional as F

import leeway.torch as leeway


class Pair(nn.Module):
    """Two networks and running statistics. The second network reads the output of the first one."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.second = nn.Linear(6, 5, bias=False), nn.Linear(5, 3)
        self.norm = nn.BatchNorm1d(5, affine=False)

    def forward(self, x):
        return self.second(self.norm(self.first(x)).tanh())


def adams(model, **options):
    return [torch.optim.Adam(part.parameters(), lr=rate, **options) for part, rate in ((model.first, 0.01), (model.second, 0.02))]


def batches(count=6):
    return [data(4, seed=seed) for seed in range(count)]


def in_turn(model, optimizers, given, which=lambda step: (1, 0), after=lambda number: None):
    """Each optimizer that steps with a batch has a loss of its own."""
    for step, (x, y) in enumerate(given):
        for number in which(step):
            for optimizer in optimizers:
                optimizer.zero_grad(set_to_none=True)
            loss_of(model, x, y).backward()
            optimizers[number].step()
            after(number)


class Apart(unittest.TestCase):
    def check(self, which=lambda step: (1, 0), make=adams, **options):
        """Trains as a worker and in plain torch, and compares the results. Returns the job."""
        worker, alone = Pair(), Pair()
        optimizers = make(worker)
        job = join(worker, optimizers, {"clocks": 6, **options})
        in_turn(worker, optimizers, job.over(batches()), which)
        in_turn(alone, make(alone), batches(), which)
        self.assertEqual(job.ended, "finished")
        for (name, found), expected in zip(worker.named_parameters(), alone.parameters()):
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6, msg=name)
        return job

    def test_a_clock_is_a_batch(self):
        log = self.check()._session.log
        second = [entry[0] for entry in log[log.index(("begin", 1)):log.index(("begin", 2))]]
        self.assertEqual(second.count("final"), 2)
        self.assertEqual(second.count("end"), 1)

    def test_one_that_steps_less_often_is_left_out(self):
        """Only the optimizer's own steps count for its step number, momentum and decay."""
        self.check(lambda step: (1, 0) if step % 3 == 2 else (1,))
        self.check(lambda step: (0,) if step < 3 else (1,))
        self.check(lambda step: (1, 0) if step % 2 else (0, 1), lambda model: [
            sgd(model.first, momentum=0.9, weight_decay=0.1), sgd(model.second, momentum=0.9, lr=0.05)])

    def test_only_its_tensors_change(self):
        model = Pair()
        optimizers = adams(model)
        job, seen = join(model, optimizers, {"clocks": 4}), []

        def look(number):
            now = [parameter.detach().clone() for parameter in model.parameters()]
            if seen:
                changed = [not torch.equal(old, new) for old, new in zip(seen[-1], now)]
                self.assertEqual(changed, [number == 0] + [number == 1] * 2)
            seen.append(now)
        in_turn(model, optimizers, job.over(batches()), after=look)
        self.assertEqual(len(seen), 8)

    def test_gradients_that_came_before_another_step(self):
        """One backward() computes the gradients for both optimizers."""
        worker, alone = Pair(), Pair()
        for model, job in ((worker, True), (alone, False)):
            optimizers = adams(model, weight_decay=0.1)
            given = join(model, optimizers, {"clocks": 6}).over(batches()) if job else batches()
            for x, y in given:
                model.zero_grad()
                loss_of(model, x, y).backward()
                for optimizer in optimizers:
                    optimizer.step()
        for found, expected in zip(worker.parameters(), alone.parameters()):
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)

    def test_an_old_graph_over_new_weights_is_an_error(self):
        """The error is the one that PyTorch raises."""
        for joined in (False, True):
            model = Pair()
            optimizers = adams(model)
            if joined:
                for x, y in join(model, optimizers, {"clocks": 2}).over(batches()):
                    break
            else:
                x, y = batches()[0]
            first, second = loss_of(model, x, y), loss_of(model, x, y)
            first.backward()
            optimizers[1].step()
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                second.backward()

    def test_a_parameter_without_a_gradient(self):
        """An optimizer in a list leaves such a parameter alone, with each rule. A gradient of zeros counts as a
        gradient."""
        for kind in (lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1), lambda p: torch.optim.SGD(
                p, lr=0.1, momentum=0.9, weight_decay=0.1)):
            worker, alone = Pair(), Pair()
            for model, joined in ((worker, True), (alone, False)):
                optimizer = kind(model.parameters())
                given = join(model, [optimizer], {"clocks": 6}).over(batches()) if joined else batches()
                for step, (x, y) in enumerate(given):
                    optimizer.zero_grad(set_to_none=step != 4)
                    (loss_of(model, x, y) if step % 2 else model.first(x).square().mean()).backward()
                    optimizer.step()
            for found, expected in zip(worker.parameters(), alone.parameters()):
                torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)

    def test_passes_and_counts(self):
        """A pass has as many clocks as batches, whichever optimizers step. A clock reports the examples of its
        batch."""
        model = Pair()
        optimizers = adams(model)
        job = join(model, optimizers, {"clocks": 6, "examples": 12})
        loader, seen = job.batches(data(12)), []
        for epoch in job.epochs():
            for batch in loader:
                in_turn(model, optimizers, [batch], lambda _: (1, 0) if job.clock % 2 else (1,))
                seen.append((epoch, job.clock))
        self.assertEqual(seen, [(clock // 3, clock) for clock in range(6)])
        self.assertEqual([(report.steps, report.examples) for report in job._session.reports], [(1, 4)] * 6)

    def test_an_optimizer_that_steps_again_begins_a_clock(self):
        model = Pair()
        optimizers = adams(model)
        job = join(model, optimizers, {"clocks": 6})
        in_turn(model, optimizers, job.over(batches()), lambda _: (1, 1, 0))
        self.assertEqual([report.examples for report in job._session.reports], [4] * 6)

    def test_running_statistics_are_handed_in_once(self):
        job = self.check()
        model = Pair()
        in_turn(model, adams(model), batches())
        torch.testing.assert_close(job._model.norm.running_mean, model.norm.running_mean, rtol=1e-5, atol=1e-6)

    def refused(self, text, optimizers=adams, body=in_turn, kind=leeway.Misuse, **options):
        model = Pair()
        made = optimizers(model)
        with self.assertRaisesRegex(kind, text):
            job = join(model, made, {"clocks": 3, **options})
            body(model, made, job.over(batches()))

    def test_refusals(self):
        def without_backward(model, optimizers, given):
            for x, y in given:
                F.mse_loss(model.first(x), model.first(x).detach() + 1).backward()
                optimizers[1].step()
        self.refused("step.. without backward..: no parameter of optimizer 1 .Adam. has a new gradient. Call backward.*leave", body=without_backward)

        def skips_late(model, optimizers, given):
            for x, y in given:
                loss_of(model, x, y).backward()
                optimizers[0].step()
                given._job.skip()
        self.refused("an optimizer has stepped with this batch, and job.skip", body=skips_late)

        def writes(model, optimizers, given):
            in_turn(model, optimizers, given, after=lambda _: model.first.weight.data.clamp_(-0.1, 0.1))
        self.refused("parameter first.weight: the script has changed its values", body=writes)

        def moves_betas(model, optimizers, given):
            in_turn(model, optimizers, given, after=lambda _: optimizers[1].param_groups[0].update(betas=(0.5, 0.5)))
        self.refused("the optimizer has changed since join: betas of param group 1", body=moves_betas, kind=leeway.InvalidArgument)
        self.refused("has left and|on the servers, so a change by the script", body=lambda model, optimizers, _:
                     optimizers[1].load_state_dict(optimizers[1].state_dict()))

    def test_what_one_rule_cannot_be(self):
        for optimizers, text in ((lambda m: [torch.optim.Adam(m.first.parameters()), sgd(m.second)],
                                  "group 0 of optimizer 1 .SGD. differs from optimizer 0 .Adam. in type.*delta"),
                                 (lambda m: [torch.optim.Adam(m.first.parameters(), betas=(0.5, 0.9)), *adams(m)[1:]],
                                  "group 0 of optimizer 1 .Adam. differs from optimizer 0 .Adam. in beta1, beta2: .*lr and weight_decay"),
                                 (lambda m: [torch.optim.RMSprop(m.first.parameters()), *adams(m)[1:]],
                                  "no rule for .*RMSprop")):
            self.refused(text, optimizers, kind=leeway.InvalidArgument)


if __name__ == "__main__":
    unittest.main()
