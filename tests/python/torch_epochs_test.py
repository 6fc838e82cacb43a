#!/usr/bin/python3
"""A loop over epochs: each round is one pass, as without a job, even after a worker has moved to another clock."""

import contextlib
import io
import itertools
import unittest

from fake_job import close, data, join, loss_of, mlp, plain

import torch
from torch.utils.data import DataLoader, TensorDataset

import leeway.torch as leeway
from leeway.batches import BatchOrder


def numbered(count):
    """The first feature is the example's number."""
    x, y = data(count)
    x[:, 0] = torch.arange(count)
    return x, y


class Epochs(unittest.TestCase):
    def train(self, session, dataset=None, count=1, after=None):
        """Returns (epoch, examples' numbers) of each batch, and the job."""
        x, y = dataset or numbered(session["examples"])
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
        job = join(model, optimizer, session)
        loader, seen = job.batches((x, y)), []
        for epoch in job.epochs(count):
            for a, b in loader:
                seen.append((epoch, a[:, 0].int().tolist()))
                self.assertEqual(job.epoch, epoch)
                optimizer.zero_grad()
                loss_of(model, a, b).backward()
                if job.last_batch:
                    optimizer.step()
            if after:
                after(job, model, epoch)
        self.assertEqual(job.ended, "finished")
        return seen, job

    def test_each_round_is_a_pass(self):
        for exchange in ({"exchange": "gradient"}, {"exchange": "delta", "steps_per_clock": 2},
                         {"exchange": "gradient", "steps_per_clock": 2}):
            clocks = 9 // exchange.get("steps_per_clock", 1)
            seen, job = self.train({"examples": 12, "clocks": clocks, **exchange})
            epochs = [epoch for epoch, _ in seen]
            self.assertEqual(epochs, [0, 0, 0, 1, 1, 1, 2, 2, 2][:clocks * exchange.get("steps_per_clock", 1)])
            for epoch in range(2):
                self.assertEqual(sorted(sum((rows for e, rows in seen if e == epoch), [])), list(range(12)))

    def rates(self, session):
        """Returns the rate of each pass, with a scheduler that steps after the pass."""
        x, y = numbered(12)
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.8)
        job = join(model, optimizer, {"examples": 12, "exchange": "delta", "steps_per_clock": 3, **session})
        loader = job.batches((x, y))
        scheduler = job.keep(torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5))
        rates = []
        for _ in job.epochs():
            rates.append(optimizer.param_groups[0]["lr"])
            plain(model, optimizer, loader)
            scheduler.step()
        return rates, job._session

    def test_a_scheduler_of_the_epoch_goes_on(self):
        """A scheduler that steps after a pass is in the state of the clock that ends there."""
        whole, _ = self.rates({"clocks": 4, "state": b""})
        self.assertEqual(whole, [0.8, 0.4, 0.2, 0.1])
        _, half = self.rates({"clocks": 2, "state": b""})
        later, _ = self.rates({"clocks": 4, "first": 2, "state": half.saved[-1]})
        self.assertEqual(later, whole[2:])

    def test_back_over_the_end_of_a_pass(self):
        """What the script does after the abandoned pass is undone: to schedulers, the optimizer and weights."""
        def everything():
            return [*(parameter.detach().clone() for parameter in model.parameters()),
                    *(slots["momentum_buffer"].clone() for slots in optimizer.state.values()),
                    *(torch.tensor(group[key]) for group in optimizer.param_groups for key in ("lr", "momentum"))]

        def spoil():
            with torch.no_grad():
                for each in [*model.parameters(), *(slots["momentum_buffer"] for slots in optimizer.state.values())]:
                    each.mul_(2)
            optimizer.param_groups[0]["momentum"] = 0.5
        for exchange in ("gradient", "delta"):
            with self.subTest(exchange):
                x, y = numbered(12)
                model = mlp()
                optimizer = torch.optim.SGD(model.parameters(), lr=0.008, momentum=0.9)
                job = join(model, optimizer, {"examples": 12, "clocks": 9, "exchange": exchange, "jump": (4, 0)})
                scheduler = job.keep(torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5))
                loader, rates, kept = job.batches((x, y)), [], None
                for epoch in job.epochs():
                    rates.append((epoch, optimizer.param_groups[0]["lr"]))
                    for known, found in zip(kept or (), everything()):
                        self.assertTrue(torch.equal(known, found))
                    plain(model, optimizer, loader)
                    kept = everything() if job.clock == 0 else None
                    if kept:
                        spoil()
                    scheduler.step()
                self.assertEqual(rates, [(0, 0.008), (1, 0.004), (0, 0.008), (1, 0.004), (2, 0.002)])

    def test_between_two_passes_the_weights_are_there(self):
        """The weights have arrived between passes, so a script can validate, save a file or call state_dict()."""
        found = []

        def after(job, model, epoch):
            model.eval()
            with torch.no_grad():
                found.append((bool(torch.isfinite(model(data(4)[0])).all()), job.clock, job.ended))
            model.train()
        self.train({"examples": 12, "clocks": 6}, after=after)
        self.assertEqual(found, [(True, 2, None), (True, 5, None)])

    def test_uneven_ranks(self):
        """Five batches for two ranks: rank 1 has no third batch, but its schedulers step."""
        for rank, own in ((0, 3), (1, 2)):
            for exchange, length in (("gradient", 3), ("delta", own)):
                seen, job = self.train({"examples": 20, "clocks": 6, "workers": 2, "rank": rank, "exchange": exchange})
                self.assertEqual([epoch for epoch, _ in seen], [0] * own + [1] * own)
                self.assertEqual(len(job.batches(numbered(20))), length)

    def one_cycle(self, rank):
        """Returns the rate of each clock; the scheduler is made from the loader's length."""
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
        job = join(model, optimizer, {"examples": 20, "clocks": 6, "workers": 2, "rank": rank})
        loader = job.batches(numbered(20))
        scheduler = job.keep(torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, epochs=2, steps_per_epoch=len(loader),
                                                                 cycle_momentum=False))
        rates = {}
        for _ in job.epochs():
            for a, b in loader:
                rates[job.clock] = optimizer.param_groups[0]["lr"]
                plain(model, optimizer, [(a, b)])
                scheduler.step()
        return rates, optimizer.param_groups[0]["lr"]

    def test_uneven_ranks_have_the_same_rates(self):
        (one, end), (other, others_end) = self.one_cycle(0), self.one_cycle(1)
        self.assertEqual(sorted(one), [0, 1, 2, 3, 4, 5])
        self.assertEqual(other, {clock: one[clock] for clock in (0, 1, 3, 4)})
        self.assertEqual(end, others_end)

    def test_begins_where_the_job_is(self):
        """The job has three passes of 3 clocks. Clocks 4 to 8 are the rest of pass 1, and pass 2."""
        seen, job = self.train({"examples": 12, "clocks": 9, "first": 4})
        order = BatchOrder(job.info, 12)
        self.assertEqual(seen, [(step // 3, order.rows(step).tolist()) for step in range(4, 9)])

    def test_a_job_that_goes_back(self):
        for back, epochs in ((1, [0, 0, 0, 1, 0, 0, 1, 1, 1]), (3, [0, 0, 0, 1, 1, 1, 1]), (4, [0, 0, 0, 1, 1, 1])):
            seen, _ = self.train({"examples": 12, "clocks": 6, "jump": (3, back)})
            self.assertEqual([epoch for epoch, _ in seen], epochs)

    def test_over_goes_by_passes_too(self):
        """The loader is wrapped again in each round, once before all rounds, or twice, or is read batch by batch."""
        def anew(job, own):
            while True:
                yield job.over(own)

        def once(job, own):
            return itertools.repeat(job.over(own))

        def wrapped(job, own):
            while True:
                own = job.over(own)
                yield own

        def by_hand(job, own):
            batches = job.over(own)
            while True:
                yield iter(lambda: next(batches, None), None)
        for rounds in (anew, once, wrapped, by_hand):
            with self.subTest(rounds.__name__):
                model = mlp()
                optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
                job = join(model, optimizer, {"examples": 12, "clocks": 6})
                x, y = numbered(16)
                seen = []
                for epoch, loader in zip(job.epochs(), rounds(job, [(x[i:i + 4], y[i:i + 4]) for i in range(0, 16, 4)])):
                    for batch in loader:
                        seen.append((epoch, int(batch[0][0, 0])))
                        plain(model, optimizer, [batch])
                # The loader's own passes are longer than the job's, and no part of a pass is left out.
                self.assertEqual(seen, [(0, 0), (0, 4), (0, 8), (1, 12), (1, 0), (1, 4)])

    def test_a_loop_of_its_own(self):
        """A loop outside of job.epochs() is an error, because `for epoch in range(2)` would count wrong after a
        restart."""
        model = mlp()
        job = join(model, torch.optim.SGD(model.parameters(), lr=0.1), {"examples": 12})
        with self.assertRaisesRegex(leeway.Misuse, r"for epoch in job\.epochs\(\).*job\.over\(loader\)"):
            for _ in job.batches(numbered(12)):
                pass

    def test_a_pass_that_is_left(self):
        for body in (lambda job: next(iter(job.batches(numbered(12)))), lambda job: None):
            model = mlp()
            job = join(model, torch.optim.SGD(model.parameters(), lr=0.1), {"examples": 12})
            with self.assertRaisesRegex(leeway.Misuse, "no step|before pass 0 did.*stop"):
                for _ in job.epochs():
                    body(job)

    def test_a_second_loop(self):
        """A second loop in a round or after the job is an error, because it would be empty."""
        for exchange in ("gradient", "delta"):
            for again in (lambda job, loader: list(loader), lambda job, loader: next(iter(loader)),
                          lambda job, loader: list(job.over(loader)), lambda job, loader: list(job.over([data(4)]))):
                model, refusals = mlp(), []
                optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
                job = join(model, optimizer, {"examples": 12, "clocks": 6, "exchange": exchange})
                loader = job.batches(numbered(12))

                def refused(text):
                    with self.assertRaisesRegex(leeway.Misuse, f"rank 0: {text} is over.*the script's own DataLoader"):
                        again(job, loader)
                    refusals.append(text)
                for epoch in job.epochs():
                    for batch in loader:
                        plain(model, optimizer, [batch])
                    refused(f"pass {epoch}" if epoch == 0 else "pass 1|the job")
                refused("the job")
                self.assertEqual(len(refusals), 3)
                self.assertEqual(job.ended, "finished")

    def test_an_empty_loop_that_is_right(self):
        """A loop may be empty if the job is over when the worker joins, as after a restart, or if the rank has no batch
        in the rest of a pass."""
        model = mlp()
        job = join(model, torch.optim.SGD(model.parameters(), lr=0.1), {"examples": 12, "clocks": 6, "first": 6})
        self.assertEqual(list(job.over([data(4)])), [])
        seen, _ = self.train({"examples": 20, "clocks": 6, "workers": 2, "rank": 1, "first": 2})
        self.assertEqual([epoch for epoch, _ in seen], [1, 1])

    def test_another_number(self):
        for count, said in ((1, ""), (2, ""), (5, "2 passes over its data (stop), and not the 5")):
            with contextlib.redirect_stderr(io.StringIO()) as stderr:
                self.train({"examples": 12, "clocks": 6}, count=count)
            self.assertIn(said, stderr.getvalue())
            self.assertEqual(bool(stderr.getvalue()), bool(said))

    def test_alone_the_same_code(self):
        """The results equal those of plain torch, with a scheduler that steps once a pass."""
        def loop(model, epochs, loader):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
            numbers = []
            torch.manual_seed(1)
            for epoch in epochs:
                for x, y in loader:
                    plain(model, optimizer, [(x, y)])
                    numbers.append(epoch)
                scheduler.step()
            return numbers, optimizer.param_groups[0]["lr"]
        loader = DataLoader(TensorDataset(*data(12)), batch_size=4, shuffle=True)
        alone, model = mlp(), mlp()
        job = leeway.join(model, torch.optim.SGD(model.parameters(), lr=0.1))
        found = loop(alone, range(3), loader), loop(model, job.epochs(3), job.batches(loader))
        self.assertEqual(*found)
        close(model, alone, 0)
        tuples = job.batches(data(12))
        self.assertEqual(len(tuples), 1)
        self.assertEqual([job.epoch for _ in job.epochs(2) for _ in tuples], [0, 1])
        before = job.clock
        self.assertEqual([(job.clock - before, job.epoch) for _ in range(2) for _ in job.over(tuples)], [(1, 1), (2, 2)])


if __name__ == "__main__":
    unittest.main()
