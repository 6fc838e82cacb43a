#!/usr/bin/python3
"""Batches of leeway.torch, without servers: which examples and random numbers a rank gets, and which loaders are
refused."""

import contextlib
import io
import multiprocessing
import random
import unittest

from fake_job import data, join, loss_of, mlp, plain, sgd, step

import numpy as np
import torch
from torch.utils.data import (BatchSampler, DataLoader, RandomSampler, SequentialSampler, SubsetRandomSampler, TensorDataset,
                              WeightedRandomSampler)

import leeway.torch as leeway
from leeway.batches import BatchOrder
from leeway.session import Info


class Drawn(torch.utils.data.Dataset):
    """Each example is its number, with draws from every generator."""

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


class Batches(unittest.TestCase):
    def test_the_size_of_a_loader_is_not_the_jobs(self):
        """Rank 0 prints once that the loader's size is not used."""
        for options, said in (({"batch_size": 4}, ""), ({"batch_size": 8}, "batch_size=8, drop_last=False"),
                              ({"batch_size": 4, "drop_last": True}, "batch_size=4, drop_last=True")):
            model = mlp()
            job = join(model, sgd(model))
            with contextlib.redirect_stderr(io.StringIO()) as stderr:
                job.batches(DataLoader(TensorDataset(*data(8)), **options))
            self.assertIn(said, stderr.getvalue())
            self.assertEqual("the job's 4 examples" in stderr.getvalue(), bool(said))

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
        """Returns which examples each batch had: the first feature is the example's number."""
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
        job = join(model, optimizer, {"clocks": clocks, **(session or {})})
        seen = []
        for x, y in job.over(job.batches(dataset, **options)):
            seen.append(x[:, 0].int().tolist())
            plain(model, optimizer, [(x, y)])
        self.assertEqual(job.ended, "finished")
        with self.assertRaisesRegex(leeway.Misuse, "the job is over"):
            list(job.over(job.batches(dataset, **options)))
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
        """An epoch has three steps, and rank 1 has no batch for the last one. Clocks of two steps cross epochs."""
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

    def test_skip_after_backward(self):
        """A skip after backward() is an error if blocks may have left."""
        def trained(overlap, skipped):
            model = mlp()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            job = join(model, optimizer, {"clocks": 4}, overlap=overlap)
            kept = []
            for number, (a, b) in enumerate(job.over(job.batches(self.numbered(16)))):
                optimizer.zero_grad()
                kept.append([p.detach().clone() for p in model.parameters()])
                loss_of(model, a, b).backward()
                if number == skipped:
                    job.skip()
                else:
                    optimizer.step()
            for one, other in zip(kept[skipped], kept[skipped + 1]):
                self.assertTrue(torch.equal(one, other))
        trained("none", 2)
        trained("backward", 0)
        with self.assertRaisesRegex(leeway.Misuse, "parameter .*: its gradient has left, and job.skip.*overlap=\"none\""):
            trained("backward", 2)

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
        """Augmentation by any of the three generators gives the same in this process, in a loader's processes, and
        after a restart in the middle. Another rank gets other values."""
        order = BatchOrder(info(seed=0), 24)
        whole = {count: self.random_examples(count) for count in (0, 2)}
        self.assertEqual(whole[0], whole[2])
        self.assertEqual(len(whole[0]), 6)
        self.assertEqual([rows for rows, _, _ in whole[0]], [order.rows(step).tolist() for step in range(6)])
        self.assertEqual(self.random_examples(2, first=3), whole[0][3:])
        other = self.random_examples(2, workers=2, rank=1)
        self.assertFalse({tuple(map(tuple, drawn)) for _, drawn, _ in other} & {tuple(map(tuple, drawn)) for _, drawn, _ in whole[0]})

    def random_examples(self, processes, **session):
        """Returns, for each batch, the rows, three draws for each row, and a draw of the step."""
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
            with self.assertRaisesRegex(leeway.InvalidArgument, f"16, {len(labels)} rows: .*the same number"):
                self.rows((x, labels))

    def test_alone(self):
        x, y = self.numbered(10)
        model = mlp()
        job = leeway.join(model, torch.optim.SGD(model.parameters(), lr=0.1), alone=leeway.Alone(batch_size=4))
        seen = [a[:, 0].int().tolist() for _ in job.epochs(2) for a, _ in job.batches((x, y))]
        self.assertEqual([len(rows) for rows in seen], [4, 4, 2] * 2)
        self.assertEqual(sorted(sum(seen[:3], [])), list(range(10)))


class Refused(unittest.TestCase):
    def joined(self, **session):
        model = mlp()
        return join(model, sgd(model), session)

    def test_other_examples(self):
        job = self.joined(examples=41)
        with self.assertRaisesRegex(leeway.InvalidArgument, "40 examples.*41"):
            job.batches(data(40))

    def test_a_batch_without_a_step(self):
        job = self.joined()
        with self.assertRaisesRegex(leeway.Misuse, "no step.*skip.*accumulation"):
            for _ in job.over(job.batches(data(40))):
                pass

    def test_the_same_batches_on_all_workers(self):
        """A script without the line with job.batches gets an error before it trains."""
        for exchange in ({"exchange": "gradient"}, {"exchange": "delta"}):
            model = mlp()
            optimizer = sgd(model)
            job = join(model, optimizer, {"workers": 2, "rank": 1, **exchange})
            before = [p.detach().clone() for p in model.parameters()]
            with self.assertRaisesRegex(leeway.Misuse, r"rank 1: step\(\) without a batch from the job: the 2 workers.*"
                                        r"job\.batches\(loader\).*job\.over\(loader\)"):
                step(model, optimizer)
            self.assertTrue(all(map(torch.equal, before, model.parameters())))
            self.assertEqual([entry for entry in job._session.log if entry[0] == "end"], [])

    def test_iterable_datasets(self):
        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter(range(3))
        job = self.joined()
        for stream in (Stream(), DataLoader(Stream())):
            with self.assertRaisesRegex(leeway.InvalidArgument, "job.over"):
                job.batches(stream)

    def test_loaders_that_choose(self):
        """A loader that does not read all examples of its dataset is refused, because its batches would differ."""
        class Buckets(BatchSampler):
            pass

        class Mine(RandomSampler):
            pass
        dataset, job = TensorDataset(*data(40)), self.joined(examples=40)
        for text, options in {
                r"a batch sampler of its own \(Buckets\)": {"batch_sampler": Buckets(RandomSampler(dataset), 8, False)},
                r"a batch sampler of its own \(list\)": {"batch_sampler": [[0, 1], [2, 3]]},
                r"single examples": {"batch_size": None},
                r"RandomSampler takes 8 of 40 examples, but the dataset has 40":
                    {"sampler": RandomSampler(dataset, num_samples=8), "batch_size": 8},
                r"SequentialSampler takes 10 of 10 examples, but the dataset has 40":
                    {"sampler": SequentialSampler(range(10)), "batch_size": 8},
                r"RandomSampler takes 50 of 50": {"sampler": RandomSampler(range(50)), "batch_size": 8},
                r"of its own \(Mine\)": {"sampler": Mine(dataset), "batch_size": 8},
                r"of its own \(SubsetRandomSampler\)": {"sampler": SubsetRandomSampler([1, 2]), "batch_size": 8},
                r"with replacement": {"sampler": RandomSampler(dataset, replacement=True), "batch_size": 8},
                r"WeightedRandomSampler": {"sampler": WeightedRandomSampler([1.0] * 40, 40), "batch_size": 8}}.items():
            with self.assertRaisesRegex(leeway.InvalidArgument, f"{text}.*job.over"):
                job.batches(DataLoader(dataset, **options))
        for options in ({"batch_size": 8, "shuffle": True}, {"batch_size": 8},
                        {"batch_sampler": BatchSampler(RandomSampler(dataset), 8, False)},
                        {"batch_sampler": BatchSampler(SequentialSampler(range(40)), 8, False)}):
            job.batches(DataLoader(dataset, **options))

    def test_a_generator_twice(self):
        model = mlp()
        optimizer = sgd(model)
        job = join(model, optimizer)
        with self.assertRaisesRegex(leeway.InvalidArgument, "no batch in pass 1"):
            plain(model, optimizer, job.over(iter([data(8)])))


if __name__ == "__main__":
    unittest.main()
