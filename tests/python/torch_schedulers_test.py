#!/usr/bin/python3
"""Schedulers and rates of leeway.torch, without servers: what checkpoints keep, what the servers are told, and what is
refused."""

import unittest
import warnings

from fake_job import data, join, loss_of, mlp, plain, sgd, step

import torch
from torch.optim import lr_scheduler as lr

import leeway.torch as leeway
from leeway.torch.schedulers import Schedulers


class Kept(unittest.TestCase):
    def rates(self, make, session, clocks=6):
        """Returns the rate of each step of a worker with a scheduler, by clock, and its session."""
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        job = join(model, optimizer, {"exchange": "delta", "steps_per_clock": 2, "clocks": clocks, "state": b"", **session})
        scheduler = job.keep(make(optimizer))
        seen = []
        for batch in job.over([data(4)]):
            plain(model, optimizer, [batch])
            seen.append((job.clock, optimizer.param_groups[0]["lr"]))
            scheduler.step(*([1.0] if isinstance(scheduler, lr.ReduceLROnPlateau) else []))
        return seen, job._session

    SCHEDULERS = {
        "cosine": lambda o: lr.CosineAnnealingLR(o, 12), "steps": lambda o: lr.MultiStepLR(o, [3, 7]),
        "warmup": lambda o: lr.LambdaLR(o, lambda step: min(1, (step + 1) / 5)), "restarts": lambda o:
        lr.CosineAnnealingWarmRestarts(o, 5), "one cycle": lambda o: lr.OneCycleLR(o, 0.1, 12, cycle_momentum=False),
        "plateau": lambda o: lr.ReduceLROnPlateau(o, patience=2), "two": lambda o: lr.SequentialLR(
            o, [lr.ConstantLR(o, 0.1, 4), lr.ExponentialLR(o, 0.9)], [4])}

    def test_a_scheduler_goes_on(self):
        """Each step has the same rate as in an undisturbed job. The worker begins at a checkpoint, goes back to a
        checkpoint, or goes back without one."""
        for name, make in self.SCHEDULERS.items():
            for exchange, steps, clocks in (("delta", 2, 6), ("gradient", 1, 12)):
                options = {"exchange": exchange, "steps_per_clock": steps}
                with self.subTest(name, exchange=exchange), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    whole, session = self.rates(make, options, clocks)
                    self.assertGreater(len({rate for _, rate in whole}), 1)
                    _, half = self.rates(make, options, 3)
                    later, _ = self.rates(make, {**options, "state": half.saved[-1], "first": 3}, clocks)
                    self.assertEqual(later, whole[3 * steps:])
                    for back in (0, 3):
                        again, _ = self.rates(make, {**options, "jump": (3, back), "state": None}, clocks)
                        self.assertEqual(again, whole[:4 * steps] + whole[back * steps:])

    def test_a_scheduler_from_before_join_says_nothing(self):
        for exchange in ("delta", "gradient"):
            model = mlp()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
            job = join(model, optimizer, {"exchange": exchange, "clocks": 4})
            job.keep(scheduler)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                for batch in job.over([data(4)]):
                    plain(model, optimizer, [batch])
                    scheduler.step()
            self.assertEqual(optimizer.param_groups[0]["lr"], 0.01 / 16)

    def test_a_gradient_worker_says_that_it_keeps_a_scheduler(self):
        """It says so before the first clock; without a scheduler it keeps nothing. A worker that begins later without
        its state ends."""
        for make, saved in ((self.SCHEDULERS["steps"], 1), (None, 0)):
            model = mlp()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            job = join(model, optimizer, {"clocks": 2})
            if make:
                job.keep(make(optimizer))
            plain(model, optimizer, job.over([data(4)]))
            self.assertEqual(len(job._session.saved), saved)
        with self.assertRaisesRegex(leeway.InvalidArgument, "at clock 3, and no checkpoint has the state of its scheduler.*every.*"
                                    "this worker's previous process ended is further up in its log .logs/worker-0.log"):
            self.rates(self.SCHEDULERS["steps"], {"exchange": "gradient", "steps_per_clock": 1, "first": 3})

    def test_a_scheduler_steps_where_there_is_no_batch(self):
        """In the last clock of a pass, in which another rank has a batch, only schedulers that step with each step do
        so. The same holds if a life begins there, or if the job goes back to it."""
        def seen(each_step, **session):
            model = mlp()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            job = join(model, optimizer, {"clocks": 6, "workers": 2, "rank": 1, "examples": 10, **session})
            scheduler = job.keep(lr.ExponentialLR(optimizer, 0.5))
            loader, found = job.batches(data(10)), []
            for epoch in job.epochs():
                for batch in loader:
                    plain(model, optimizer, [batch])
                    found.append((job.clock, optimizer.param_groups[0]["lr"]))
                    if each_step:
                        scheduler.step()
                if not each_step:
                    scheduler.step()
            return found, job._session
        for each_step in (True, False):
            whole, _ = seen(each_step)
            self.assertEqual([clock for clock, _ in whole], [0, 2, 4])
            for clock, rate in whole:
                self.assertAlmostEqual(rate, 0.1 * 0.5 ** (clock if each_step else clock // 2))
            _, before = seen(each_step, clocks=3, state=b"")
            later, _ = seen(each_step, first=3, state=before.saved[-1])
            self.assertEqual(later, whole[2:])
            again, _ = seen(each_step, jump=(3, 3))
            self.assertEqual(again, whole)

    def test_whether_one_steps_along_is_of_the_state_that_was_loaded(self):
        """Whether a scheduler steps along depends on the loaded state, and not on the clock before the load. In a
        checkpoint without this note, the scheduler has not stepped."""
        for load in (lambda schedulers, saved: schedulers.load(saved), lambda schedulers, _: schedulers.load_first()):
            optimizer = torch.optim.SGD(mlp().parameters(), lr=0.1)
            schedulers, scheduler = Schedulers(0, [optimizer]), lr.ExponentialLR(optimizer, 0.5)
            schedulers.keep(scheduler)
            saved = schedulers.save()
            for _ in range(2):
                schedulers.begin_clock()
                optimizer.step()
                scheduler.step()
            load(schedulers, saved)
            schedulers.begin_clock()
            schedulers.step_along()
            self.assertEqual(scheduler.last_epoch, 0)

    def test_the_length_of_a_pass_with_accumulation(self):
        """A scheduler that steps after optimizer.step() makes a k-th as many steps in a pass as the loader has
        batches."""
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        job = join(model, optimizer, {"clocks": 8, "steps_per_clock": 2, "examples": 32})
        loader, rates = job.batches(data(32)), []
        scheduler = job.keep(lr.StepLR(optimizer, len(loader) // 2, 0.5))
        for epoch in job.epochs():
            for x, y in loader:
                (loss_of(model, x, y) / 2).backward()
                if job.last_batch:
                    rates.append((epoch, optimizer.param_groups[0]["lr"]))
                    optimizer.step()
                    optimizer.zero_grad()
                    scheduler.step()
        self.assertEqual(rates, [(0, 0.1)] * 4 + [(1, 0.05)] * 4)

    def test_a_scheduler_that_nobody_keeps(self):
        """Such a scheduler is refused when it sets its first rate, even if it is made after the first step."""
        for exchange in ("gradient", "delta"):
            for what, make in (("a scheduler", lambda optimizer: lr.StepLR(optimizer, 1)),
                               ("a ReduceLROnPlateau", lambda optimizer: lr.ReduceLROnPlateau(optimizer, patience=0))):
                model = mlp()
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                job = join(model, optimizer, {"exchange": exchange})
                step(model, optimizer)
                scheduler = make(optimizer)
                with self.assertRaisesRegex(leeway.Misuse, rf"^rank 0: {what} sets the rate of SGD.*= job\.keep\(scheduler\)"):
                    for _ in range(4):
                        step(model, optimizer)
                        scheduler.step(*([1.0] if "Plateau" in what else []))
                self.assertLessEqual(job.clock, 3)

    def test_the_state_of_another_scheduler(self):
        _, session = self.rates(self.SCHEDULERS["cosine"], {}, clocks=1)
        with self.assertRaisesRegex(leeway.InvalidArgument, "rank 0: .*'CosineAnnealingLR', but this is MultiStepLR"):
            self.rates(self.SCHEDULERS["steps"], {"state": session.saved[-1], "first": 1})


class Rates(unittest.TestCase):
    def joined(self, make=sgd, **session):
        """Returns a worker that has done its first step."""
        model = mlp()
        optimizer = make(model)
        job = join(model, optimizer, session)
        step(model, optimizer)
        return model, optimizer, job

    def test_rates_go_with_what_they_are_of(self):
        """The rates apply to parts of the vector, in its order, by the groups at join."""
        model = mlp()
        optimizer = torch.optim.SGD([{"params": [p for p in model.parameters() if p.ndim > 1], "lr": 0.1},
                                     {"params": [p for p in model.parameters() if p.ndim < 2], "lr": 0.2}])
        job = join(model, optimizer, {"clocks": 4})
        told, own = [], job._session.rates
        job._session.rates = lambda parts: (told.append((job.clock, parts)), own(parts))
        for number, batch in zip(range(4), job.over([data(4)])):
            optimizer.param_groups[0]["lr"] = (0.1, 0.05, 0.05, 0.1)[number]
            optimizer.param_groups[1]["lr"] = (0.2, 0.1, 0.2, 0.2)[number]
            plain(model, optimizer, [batch])
        self.assertEqual(told, [(1, [(83, 0.5)]), (2, [(30, 0.5), (35, 1.0), (60, 0.5), (65, 1.0), (80, 0.5), (83, 1.0)])])

    def test_a_rate_that_the_jobs_update_says(self):
        """The reason is the job's schedule, or that the servers do not step as this optimizer does: then the optimizer
        gives its own reason."""
        for make, has_schedule, remedy in (
                (sgd, True, "remove its `schedule`"),
                (lambda model: sgd(model, maximize=True), False, "with `update.schedule`.*maximize has no counterpart.*delta"),
                (lambda model: torch.optim.RMSprop(model.parameters(), lr=0.1), True,
                 "with `update.schedule`.*no rule for torch.optim.rmsprop.RMSprop.*AdamW.*delta")):
            model, optimizer, _ = self.joined(make, has_schedule=has_schedule, update={"type": "sgd", "learning_rate": 0.1})
            optimizer.param_groups[0]["lr"] = 0.05
            with self.assertRaisesRegex(leeway.InvalidArgument, "rank 0: .*lr of param group 0 is 0.05, but was 0.1.*" + remedy):
                step(model, optimizer)

    def test_a_rate_that_is_none(self):
        for rate in (-0.1, float("nan"), float("inf")):
            model, optimizer, _ = self.joined()
            optimizer.param_groups[0]["lr"] = rate
            with self.assertRaisesRegex(leeway.InvalidArgument, "rank 0: lr of param group 0 is .*; set a finite value"):
                step(model, optimizer)

    def test_a_rate_that_comes_too_late(self):
        """In the first step the rate was set before backward(), so blocks leave with this rate."""
        model, optimizer, _ = self.joined()
        step(model, optimizer)
        optimizer.zero_grad()
        loss_of(model, *data(4)).backward()
        optimizer.param_groups[0]["lr"] = 0.05
        with self.assertRaisesRegex(leeway.Misuse, "rank 0: .*has changed since backward.*before backward.*overlap="):
            optimizer.step()


if __name__ == "__main__":
    unittest.main()
