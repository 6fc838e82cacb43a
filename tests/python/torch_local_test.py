#!/usr/bin/python3
"""Delta and elastic exchanges, batches, evaluations, states and files of leeway.torch, without servers."""

import copy
import io
import multiprocessing
import pickle
import random
import sys
import tempfile
import unittest
import warnings

try:
    import torch
except ImportError:
    print("SKIPPED: torch is not installed (python3-torch)")
    sys.exit(77)

import numpy as np
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from torch.optim import lr_scheduler as lr

import leeway.torch as leeway
from leeway.batches import BatchOrder
from leeway.session import Info
from leeway.torch.schedulers import Schedulers
from torch_job_test import close, data, join, loss_of, mlp, plain

torch.set_num_threads(1)


def with_norm():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))


class Drawn(torch.utils.data.Dataset):
    """Each example is its number, and draws of every generator."""

    ready = False

    def __len__(self):
        return 24

    def __getitem__(self, index):
        return index, torch.tensor([random.random(), np.random.rand(), float(torch.rand(1))], dtype=torch.float64), self.ready

    @staticmethod
    def set_up(_):
        torch.utils.data.get_worker_info().dataset.ready = True


def info(**more):
    return Info(**{"seed": 7, "batch_size": 4, **more})


class Local(unittest.TestCase):
    def test_any_optimizer_steps_in_the_worker(self):
        for make in (torch.optim.AdamW, torch.optim.RMSprop, lambda p, lr: torch.optim.Adam(p, lr=lr, amsgrad=True)):
            alone, worker = with_norm(), with_norm()
            x, y = data(48)
            batches = [(x[i:i + 4], y[i:i + 4]) for i in range(0, 48, 4)]
            plain(alone, make(alone.parameters(), lr=0.01), batches)
            optimizer = make(worker.parameters(), lr=0.01)
            job = join(worker, optimizer, {"exchange": "delta", "steps_per_clock": 4, "clocks": 3})
            plain(worker, optimizer, job.over(batches))
            self.assertEqual(job.ended, "finished")
            self.assertEqual([e for e in job._session.log if e[0] == "end"], [("end", 4, 16)] * 3)
            close(worker, alone, 0)

    def test_lbfgs_and_a_scheduler(self):
        alone, worker = mlp(), mlp()
        x, y = data(8)

        def train(model, optimizer, rounds, keep=lambda scheduler: scheduler):
            scheduler = keep(torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9))
            for _ in rounds:
                def closure():
                    optimizer.zero_grad()
                    loss = loss_of(model, x, y)
                    loss.backward()
                    return loss
                optimizer.step(closure)
                scheduler.step()
        train(alone, torch.optim.LBFGS(alone.parameters(), lr=0.5), range(6))
        optimizer = torch.optim.LBFGS(worker.parameters(), lr=0.5)
        job = join(worker, optimizer, {"exchange": "elastic", "steps_per_clock": 2, "clocks": 3})
        train(worker, optimizer, job.over([(x, y)]), job.keep)
        close(worker, alone, 0)

    def test_several_optimizers(self):
        """Each steps by itself. A step of the job is a batch, whichever of them step in it."""
        def train(model, optimizers, batches):
            first, second = optimizers
            for number, (x, y) in enumerate(batches):
                first.zero_grad()
                second.zero_grad()
                loss_of(model, x, y).backward()
                first.step()
                if number % 3 == 0:
                    second.step()
        x, y = data(48)
        batches = [(x[i:i + 4], y[i:i + 4]) for i in range(0, 48, 4)]
        for exchange in ("delta", "elastic"):
            alone, worker = with_norm(), with_norm()
            made = [(torch.optim.Adam(m[0].parameters(), lr=0.01), torch.optim.RMSprop(m[1:].parameters(), lr=0.01))
                    for m in (alone, worker)]
            train(alone, made[0], batches)
            job = join(worker, list(made[1]), {"exchange": exchange, "steps_per_clock": 4, "clocks": 3})
            train(worker, made[1], job.over(batches))
            self.assertEqual(job.ended, "finished")
            self.assertEqual([e for e in job._session.log if e[0] == "end"], [("end", 4, 16)] * 3)
            close(worker, alone, 0)

    def test_several_optimizers_without_a_loader(self):
        """A step ends with the last of them, or as one steps again."""
        model = mlp()
        first, second = (torch.optim.SGD(part.parameters(), lr=0.1) for part in (model[0], model[2:]))
        job = join(model, [first, second], {"exchange": "delta", "clocks": 5})
        x, y = data(4)
        clocks = []
        for steps in ([first, second], [first], [first, second], [second, first]):
            loss_of(model, x, y).backward()
            for optimizer in steps:
                optimizer.step()
                clocks.append((job.clock, job._is_due))
        self.assertEqual(clocks, [(0, False), (0, True), (1, False), (2, False), (2, True), (3, False), (3, True)])

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

    def test_state_goes_round(self):
        def train(model, optimizer, batches):
            plain(model, optimizer, batches)
        x, y = data(48)
        batches = [(x[i:i + 4], y[i:i + 4]) for i in range(0, 48, 4)]
        for make in (lambda p: torch.optim.AdamW(p, lr=0.01), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
                     lambda p: torch.optim.Adagrad(p, lr=0.1)):
            whole, first, second = with_norm(), with_norm(), with_norm()
            train(whole, make(whole.parameters()), batches)
            options = {"exchange": "delta", "steps_per_clock": 4, "state": b""}
            optimizer = make(first.parameters())
            job = join(first, optimizer, {**options, "clocks": 2})
            train(first, optimizer, job.over(batches[:8]))
            saved = job._session.saved[-1]
            self.assertNotIn(b"pickle", saved)
            second.load_state_dict({n: v for n, v in first.state_dict().items() if "tracked" not in n}, strict=False)
            optimizer = make(second.parameters())
            job = join(second, optimizer, {**options, "clocks": 1, "state": saved})
            train(second, optimizer, job.over(batches[8:]))
            close(second, whole, 0)
            self.assertEqual(int(second[1].num_batches_tracked), 12)

    def test_state_of_lbfgs(self):
        """It has lists of tensors, all under the first parameter."""
        def train(model, optimizer, batches):
            for x, y in batches:
                def closure():
                    optimizer.zero_grad()
                    loss = loss_of(model, x, y)
                    loss.backward()
                    return loss
                optimizer.step(closure)
        batches = [data(8, seed) for seed in range(6)]
        whole, first, second = mlp(), mlp(), mlp()
        train(whole, torch.optim.LBFGS(whole.parameters(), lr=0.3, max_iter=3), batches)
        options = {"exchange": "delta", "clocks": 3, "state": b""}
        optimizer = torch.optim.LBFGS(first.parameters(), lr=0.3, max_iter=3)
        job = join(first, optimizer, options)
        train(first, optimizer, job.over(batches[:3]))
        second.load_state_dict(first.state_dict())
        optimizer = torch.optim.LBFGS(second.parameters(), lr=0.3, max_iter=3)
        job = join(second, optimizer, {**options, "state": job._session.saved[-1]})
        train(second, optimizer, job.over(batches[3:]))
        close(second, whole, 0)

    def test_state_of_several_optimizers(self):
        def make(model):
            return [torch.optim.AdamW(model[0].parameters(), lr=0.01),
                    torch.optim.SGD(model[1:].parameters(), lr=0.1, momentum=0.9)]

        def train(model, optimizers, batches):
            for x, y in batches:
                for optimizer in optimizers:
                    optimizer.zero_grad()
                loss_of(model, x, y).backward()
                for optimizer in optimizers:
                    optimizer.step()
        x, y = data(32)
        batches = [(x[i:i + 4], y[i:i + 4]) for i in range(0, 32, 4)]
        whole, first, second = with_norm(), with_norm(), with_norm()
        train(whole, make(whole), batches)
        options = {"exchange": "delta", "steps_per_clock": 2, "clocks": 2, "state": b""}
        optimizers = make(first)
        job = join(first, optimizers, options)
        train(first, optimizers, job.over(batches[:4]))
        second.load_state_dict(first.state_dict())
        optimizers = make(second)
        job = join(second, optimizers, {**options, "state": job._session.saved[-1]})
        train(second, optimizers, job.over(batches[4:]))
        close(second, whole, 0)
        with self.assertRaisesRegex(leeway.InvalidArgument, "'AdamW,SGD', and this is SGD"):
            third = with_norm()
            join(third, torch.optim.SGD(third.parameters(), lr=0.1), {**options, "state": job._session.saved[-1]})

    def test_a_clock_that_is_broken_off_leaves_no_state(self):
        x, y = data(48)
        batches = [(x[i:i + 4], y[i:i + 4]) for i in range(0, 48, 4)]
        saved = []
        for options in ({"clocks": 2}, {"clocks": 5, "stop_in": 2}):
            model = with_norm()
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
            job = join(model, optimizer, {"exchange": "delta", "steps_per_clock": 4, "state": b"", **options})
            plain(model, optimizer, job.over(batches))
            saved.append((job.ended, job._session.saved[-1]))
        self.assertEqual([ended for ended, _ in saved], ["finished", "stopped"])
        self.assertEqual(saved[0][1], saved[1][1])

    def test_going_back_loads_the_checkpoint(self):
        x, y = data(48)
        batches = [(x[i:i + 4], y[i:i + 4]) for i in range(0, 48, 4)]
        model = mlp()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        job = join(model, optimizer, {"exchange": "delta", "steps_per_clock": 1, "clocks": 6, "state": b"", "jump": (3, 2)})
        session = job._session
        steps = []
        for number, batch in enumerate(job.over(batches)):
            plain(model, optimizer, [batch])
            steps.append((job.clock, int(optimizer.state[model[0].weight]["step"])))
            if job.clock == 2 and number == 2:
                session.state = session.saved[-1]
        self.assertEqual(steps, [(0, 1), (1, 2), (2, 3), (3, 4), (2, 3), (3, 4), (4, 5), (5, 6)])

    def rates(self, make, session, clocks=6):
        """The rate of each step of a worker with a scheduler, by clock; and its session."""
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
        """In a life that begins at a checkpoint, in one that goes back to it, and in one that goes back without one: each
        step has the rate that it has in an undisturbed job."""
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

    def test_a_gradient_worker_says_that_it_keeps_a_scheduler(self):
        """Before the first clock; without a scheduler it keeps nothing. One that begins later without its state ends."""
        for make, saved in ((self.SCHEDULERS["steps"], 1), (None, 0)):
            model = mlp()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            job = join(model, optimizer, {"clocks": 2})
            if make:
                job.keep(make(optimizer))
            plain(model, optimizer, job.over([data(4)]))
            self.assertEqual(len(job._session.saved), saved)
        with self.assertRaisesRegex(leeway.InvalidArgument, "at clock 3, and no checkpoint has the state of its scheduler.*every"):
            self.rates(self.SCHEDULERS["steps"], {"exchange": "gradient", "steps_per_clock": 1, "first": 3})

    def test_a_scheduler_steps_where_there_is_no_batch(self):
        """In the last clock of a pass, where another rank has one: of each step only. The same where a life begins there, and
        where the job goes back to it."""
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
        """Not of the clock before the load. A checkpoint that does not say it is of a clock without a step."""
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
        """A scheduler that steps after optimizer.step() has a k-th of the loader's batches a pass."""
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

    def test_rates_go_with_what_they_are_of(self):
        """Parts of the vector, in its order, of the rates that the groups had at join."""
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

    def test_a_scheduler_that_nobody_keeps(self):
        model = mlp()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        join(model, optimizer, {"exchange": "delta"})
        lr.StepLR(optimizer, 1)
        with self.assertRaisesRegex(leeway.Misuse, r"rate of AdamW.*scheduler = job\.keep\(scheduler\)"):
            plain(model, optimizer, [data(4)])

    def test_the_state_of_another_scheduler(self):
        _, session = self.rates(self.SCHEDULERS["cosine"], {}, clocks=1)
        with self.assertRaisesRegex(leeway.InvalidArgument, "rank 0: .*'CosineAnnealingLR', and this is MultiStepLR"):
            self.rates(self.SCHEDULERS["steps"], {"state": session.saved[-1], "first": 1})

    def test_the_state_of_another_optimizer(self):
        model = mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        options = {"exchange": "delta", "steps_per_clock": 1, "clocks": 1, "state": b""}
        job = join(model, optimizer, options)
        plain(model, optimizer, job.over([data(4)]))
        saved = job._session.saved[-1]
        other = mlp()
        with self.assertRaisesRegex(leeway.InvalidArgument, "'AdamW', and this is SGD"):
            join(other, torch.optim.SGD(other.parameters(), lr=0.1), {**options, "state": saved})


class Batches(unittest.TestCase):
    def test_an_epoch_is_dealt_out(self):
        for workers, examples in ((1, 40), (3, 41), (4, 13)):
            orders = [BatchOrder(info(rank=rank, workers=workers), examples) for rank in range(workers)]
            steps = orders[0].steps_per_epoch
            for epoch in range(2):
                rows = np.concatenate([order.rows(epoch * steps + s) for s in range(steps) for order in orders])
                self.assertEqual(sorted(rows), list(range(examples)))
                self.assertEqual(rows.tolist(), orders[0].permutation(epoch).tolist())
        self.assertNotEqual(orders[0].permutation(0).tolist(), orders[0].permutation(1).tolist())

    def rows(self, dataset, clocks=8, session=None, **options):
        """Which examples each batch had: the first feature is the example's number."""
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
        job = join(model, optimizer, {"clocks": clocks, **(session or {})})
        seen = []
        for x, y in job.over(job.batches(dataset, **options)):
            seen.append(x[:, 0].int().tolist())
            optimizer.zero_grad()
            loss_of(model, x, y).backward()
            optimizer.step()
        self.assertEqual(job.ended, "finished")
        self.assertEqual(list(job.over(job.batches(dataset, **options))), [])
        return seen, job

    def numbered(self, count):
        x, y = data(count)
        x[:, 0] = torch.arange(count)
        return x, y

    def test_all_kinds_of_datasets_give_the_same(self):
        x, y = self.numbered(14)
        first, _ = self.rows((x, y))
        self.assertEqual(sorted(sum(first[:4], [])), list(range(14)))
        self.assertEqual(self.rows((x.numpy(), y.numpy()))[0], first)
        self.assertEqual(self.rows(TensorDataset(x, y))[0], first)
        self.assertEqual(self.rows(DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True))[0], first)
        self.assertEqual(self.rows(DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True, num_workers=2))[0], first)
        in_order, _ = self.rows(DataLoader(TensorDataset(x, y)))
        self.assertEqual(in_order[:2], [[0, 1, 2, 3], [4, 5, 6, 7]])

    def test_a_rank_without_a_batch(self):
        x, y = self.numbered(10)
        seen, job = self.rows((x, y), session={"workers": 2, "rank": 1})
        self.assertEqual([len(rows) for rows in seen], [4, 4, 4, 4])
        ends = [entry for entry in job._session.log if entry[0] == "end"]
        self.assertEqual(ends, [("end", 1, 4), ("end", 1, 0)] * 4)

    def test_local_steps_without_a_batch(self):
        """Three steps an epoch, the last one without a batch for rank 1; clocks of two steps lie across epochs."""
        x, y = self.numbered(18)
        seen, job = self.rows((x, y), clocks=3, session={"workers": 2, "rank": 1, "exchange": "delta", "steps_per_clock": 2})
        order = BatchOrder(info(workers=2, rank=1, seed=job.info.seed), 18)
        self.assertEqual(seen, [order.rows(step).tolist() for step in range(6) if len(order.rows(step))])
        self.assertEqual([e for e in job._session.log if e[0] == "end"], [("end", 2, 8), ("end", 2, 4), ("end", 2, 4)])

    def test_a_loader_follows_a_jump(self):
        x, y = self.numbered(40)
        jump = {"clocks": 7, "jump": (3, 2)}
        plain_rows, _ = self.rows((x, y), session=jump)
        self.assertEqual(plain_rows[2], plain_rows[4])
        loader = DataLoader(TensorDataset(x, y), shuffle=True, num_workers=1)
        self.assertEqual(self.rows(loader, session=jump)[0], plain_rows)

    def test_accumulation(self):
        x, y = self.numbered(16)
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
        job = join(model, optimizer, {"clocks": 4, "steps_per_clock": 2})
        seen = []
        for a, b in job.over(job.batches((x, y))):
            seen.append(a[:, 0].int().tolist())
            (loss_of(model, a, b) / 2).backward()
            if job.last_batch:
                optimizer.step()
                optimizer.zero_grad()
        self.assertEqual(len(seen), 8)
        self.assertEqual(sorted(sum(seen[4:], [])), list(range(16)))
        self.assertEqual([e for e in job._session.log if e[0] == "end"], [("end", 2, 8)] * 4)

    def test_skip(self):
        x, y = self.numbered(16)
        for exchange in ({"exchange": "gradient"}, {"exchange": "delta", "steps_per_clock": 2}):
            model = mlp()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            job = join(model, optimizer, {"clocks": 2, **exchange})
            before = [p.detach().clone() for p in model.parameters()]
            for a, b in job.over(job.batches((x, y))):
                job.skip()
            self.assertEqual(job.ended, "finished")
            for one, other in zip(before, model.parameters()):
                self.assertTrue(torch.equal(one, other))

    def test_random_numbers_are_the_steps(self):
        def draws(rank):
            model = mlp()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            job = join(model, optimizer, {"clocks": 3, "workers": 2, "rank": rank})
            drawn = []
            for x, y in job.over(job.batches(data(40))):
                drawn.append(float(torch.rand(1)))
                loss_of(model, x, y).backward()
                optimizer.step()
            return drawn
        self.assertEqual(draws(0), draws(0))
        self.assertEqual(len({*draws(0), *draws(1)}), 6)

    def test_random_examples_are_the_batches(self):
        """Augmentation by any of the three generators gives the same in this process, in a loader's processes, and after a
        restart in the middle; other values on another rank."""
        order = BatchOrder(info(seed=0), 24)
        whole = {count: self.random_examples(count) for count in (0, 2)}
        self.assertEqual(whole[0], whole[2])
        self.assertEqual(len(whole[0]), 6)
        self.assertEqual([rows for rows, _, _ in whole[0]], [order.rows(step).tolist() for step in range(6)])
        self.assertEqual(self.random_examples(2, first=3), whole[0][3:])
        other = self.random_examples(2, workers=2, rank=1)
        self.assertFalse({tuple(map(tuple, drawn)) for _, drawn, _ in other} & {tuple(map(tuple, drawn)) for _, drawn, _ in whole[0]})

    def random_examples(self, processes, **session):
        """Of each batch: the rows, three draws for each row, and a draw of the step."""
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        job = join(model, optimizer, {"clocks": 6, "examples": 24, **session})
        loader = DataLoader(Drawn(), batch_size=4, shuffle=True, num_workers=processes, worker_init_fn=Drawn.set_up)
        seen = []
        for rows, drawn, ready in job.over(job.batches(loader)):
            self.assertTrue(ready.all() or processes == 0)
            seen.append((rows.tolist(), drawn.tolist(), float(torch.rand(1)) + np.random.rand() + random.random()))
            loss_of(model, *data(4)).backward()
            optimizer.step()
        self.assertEqual(multiprocessing.active_children(), [], "a loader's processes end with the job")
        return seen

    def test_tensors_of_other_lengths(self):
        x, y = data(16)
        for labels in (y[:15], torch.cat([y, y])):
            with self.assertRaisesRegex(leeway.InvalidArgument, f"16, {len(labels)} rows; as many in each"):
                self.rows((x, labels))

    def test_alone(self):
        x, y = self.numbered(10)
        model = mlp()
        job = leeway.join(model, torch.optim.SGD(model.parameters(), lr=0.1), alone=leeway.Alone(batch_size=4))
        seen = [a[:, 0].int().tolist() for _ in job.epochs(2) for a, _ in job.batches((x, y))]
        self.assertEqual([len(rows) for rows in seen], [4, 4, 2] * 2)
        self.assertEqual(sorted(sum(seen[:3], [])), list(range(10)))


class Buffers(unittest.TestCase):
    """Running statistics are the servers'; a step moves the worker's own copy."""

    def test_a_step_begins_with_the_servers(self):
        model = with_norm()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        job = join(model, optimizer, overlap="forward")
        place = job._layout.places["1.running_mean"]
        plain(model, optimizer, [data(4)])
        job._session.true[place.first:place.first + place.count] = 10
        model.train()
        plain(model, optimizer, [data(4)])
        self.assertGreater(float(model[1].running_mean.min()), 8)

    def test_a_module_that_is_not_called_hands_in_what_it_read(self):
        class Halves(nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(1)
                self.used, self.norm, self.idle = nn.Linear(6, 3), nn.BatchNorm1d(3), nn.BatchNorm1d(3)

            def forward(self, x):
                return self.norm(self.used(x))
        model = Halves()
        model.idle.requires_grad_(False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        job = join(model, optimizer, overlap="forward")
        place = job._layout.places["idle.running_mean"]
        where = slice(place.first, place.first + place.count)
        plain(model, optimizer, [data(4)])
        for _ in range(3):
            job._session.true[where] = 7
            plain(model, optimizer, [data(4)])
            self.assertEqual(job._session.true[where].tolist(), [7] * 3)


class Evaluations(unittest.TestCase):
    def test_when_due_and_at_the_end(self):
        model = with_norm()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = data(40)
        modes = []

        def evaluate(evaluated):
            modes.append((evaluated.training, torch.is_grad_enabled()))
            return {"loss": float(loss_of(evaluated, x, y)), "accuracy": 0.5, "examples": 40}
        job = join(model, optimizer, {"clocks": 5, "evaluate_every": 2}, evaluate=evaluate)
        plain(model, optimizer, job.over([(x[:4], y[:4])]))
        self.assertEqual([entry[0] for entry in job._session.evaluations], [1, 3, 4])
        self.assertEqual(modes, [(False, False)] * 3)
        self.assertTrue(all(module.training for module in model.modules()))
        losses = [entry[1] for entry in job._session.evaluations]
        self.assertEqual(len(set(losses)), 3)
        model.eval()
        with torch.no_grad():
            self.assertAlmostEqual(float(loss_of(model, x, y)), losses[-1], places=5)

    def test_a_copy_of_a_joined_model_is_a_plain_model(self):
        """By pickle, torch.save or deepcopy: nothing of the job is in it."""
        model = with_norm()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        job = join(model, optimizer)
        plain(model, optimizer, [data(4)])
        job._ready(False)
        file = io.BytesIO()
        torch.save(model, file)
        self.assertNotIn(b"leeway", file.getvalue())
        file.seek(0)
        for other in (torch.load(file), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            close(other, model, 0)
            rounds = job._gate.round
            other.train()(data(4)[0]).sum().backward()
            self.assertEqual((job._gate.round, job._clocks.is_open), (rounds, False))

    def test_save(self):
        model = with_norm()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        job = join(model, optimizer)
        plain(model, optimizer, [data(4)])
        with tempfile.TemporaryDirectory() as folder:
            job.save(f"{folder}/m.safetensors")
            other = with_norm()
            other.load_state_dict(leeway.load(f"{folder}/m.safetensors"))
        close(other, model, 0)
        self.assertTrue(all(torch.isfinite(v).all() for v in other.state_dict().values()))


if __name__ == "__main__":
    unittest.main()
