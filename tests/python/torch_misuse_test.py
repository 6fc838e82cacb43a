#!/usr/bin/python3
"""What leeway.torch refuses: each by a typed error that names what is wrong and what would do."""

import os
import sys
import unittest

try:
    import torch
except ImportError:
    print("SKIPPED: torch is not installed (python3-torch)")
    sys.exit(77)

from torch import nn

import leeway.torch as leeway
from leeway.torch import optimizers
from torch_job_test import close, data, join, loss_of, mlp


def sgd(model, **options):
    return torch.optim.SGD(model.parameters(), **{"lr": 0.1, **options})


def step(model, optimizer, times=1, seed=2):
    x, y = data(8, seed)
    for _ in range(times):
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()


class Join(unittest.TestCase):
    """Refused at join."""

    def refused(self, text, model, optimizer, kind=leeway.InvalidArgument, **options):
        with self.assertRaisesRegex(kind, text):
            join(model, optimizer, **options)

    def test_half_precision(self):
        for dtype in (torch.float16, torch.bfloat16, torch.float64):
            model = mlp().to(dtype)
            self.refused(f"0.weight is {dtype}.*float", model, sgd(model))

    def test_data_parallel(self):
        model = nn.DataParallel(mlp())
        self.refused("DataParallel: start a worker for each device", model, sgd(model))

    def test_scripted(self):
        model = torch.jit.script(mlp())
        self.refused("RecursiveScriptModule: give the module itself", model, sgd(model))

    def test_lazy(self):
        model = nn.Sequential(nn.LazyLinear(3))
        self.refused("0.weight has no shape yet", model, sgd(model))

    def test_other_parameters(self):
        self.refused(r"parameter 0 of the optimizer's group 0.*\(5, 6\).*not the model's", mlp(), sgd(mlp(2)))

    def test_no_parameters(self):
        model = mlp()
        optimizer = sgd(model)
        model.requires_grad_(False)
        self.refused("no parameter is trained", model, optimizer)

    def test_two_optimizers(self):
        model = mlp()
        self.refused("the optimizer is a list.*one", model, [sgd(model), sgd(model)])
        join(model, sgd(model))
        self.refused("has joined already", model, sgd(model), leeway.Misuse)

    def test_no_model(self):
        self.refused("the model is a function", mlp, sgd(mlp()))

    def test_a_state(self):
        model = mlp()
        optimizer = sgd(model, momentum=0.9)
        step(model, optimizer)
        self.refused("has a state already", model, optimizer)


class Optimizers(unittest.TestCase):
    """Which become a job's update, and which are refused."""

    def refused(self, text, make):
        with self.assertRaisesRegex(optimizers.Untranslatable, text):
            optimizers.translate(make(mlp()))

    def test_refused(self):
        optim = torch.optim
        for text, make in {
                "LBFGS.*exchange": lambda m: optim.LBFGS(m.parameters()),
                "RMSprop.*exchange": lambda m: optim.RMSprop(m.parameters()),
                "amsgrad": lambda m: optim.Adam(m.parameters(), amsgrad=True),
                "use amsgrad=False": lambda m: optim.AdamW(m.parameters(), amsgrad=True),
                "maximize": lambda m: optim.SGD(m.parameters(), lr=0.1, maximize=True),
                "dampening 0.5": lambda m: optim.SGD(m.parameters(), lr=0.1, momentum=0.9, dampening=0.5),
                "lr_decay 0.1": lambda m: optim.Adagrad(m.parameters(), lr_decay=0.1),
                "group 1 differs from group 0 in momentum": lambda m: optim.SGD(
                    [{"params": list(m[0].parameters()), "momentum": 0.9}, {"params": list(m[2].parameters()),
                                                                           "momentum": 0.5}], lr=0.1),
                "is 0.0: it is above 0": lambda m: optim.SGD(m.parameters(), lr=0.0)}.items():
            self.refused(text, make)

    def test_unknown_keys(self):
        """What a later torch or the script puts into a group is known or named, never dropped."""
        for optimizer in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad):
            model = mlp()
            self.refused(f"param group 1 of .*{optimizer.__name__} has clip, which", lambda m, kind=optimizer: kind(
                [{"params": m[0].parameters()}, {"params": m[2].parameters(), "clip": 0.5}], lr=0.1))
            off = optimizer([{"params": model.parameters(), "clip": None, "name": "all", "later": False}], lr=0.1)
            plain = optimizer(model.parameters(), lr=0.1)
            self.assertEqual(optimizers.translate(off).update, optimizers.translate(plain).update)

    def test_decoupled_weight_decay(self):
        """torch 2.7's Adam with it is AdamW; older ones take no such argument."""
        optimizer = torch.optim.Adam(mlp().parameters(), weight_decay=0.1)
        self.assertEqual(optimizers.translate(optimizer).update["type"], "adam")
        optimizer.param_groups[0]["decoupled_weight_decay"] = True
        self.assertEqual(optimizers.translate(optimizer).update["type"], "adamw")

    def test_a_subclass(self):
        class MySGD(torch.optim.SGD):
            pass
        self.refused("MySGD", lambda m: MySGD(m.parameters(), lr=0.1))

    def test_translated(self):
        optim = torch.optim
        for update, make in (
                ({"type": "sgd", "learning_rate": 0.1, "weight_decay": 0.0}, lambda p: optim.SGD(p, lr=0.1)),
                ({"type": "sgd", "learning_rate": 0.1, "weight_decay": 0.01, "momentum": 0.9, "nesterov": True},
                 lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)),
                ({"type": "adagrad", "learning_rate": 0.01, "weight_decay": 0.0, "epsilon": 1e-10, "initial_sum": 0.5},
                 lambda p: optim.Adagrad(p, initial_accumulator_value=0.5)),
                ({"type": "adam", "learning_rate": 0.001, "weight_decay": 0.0, "epsilon": 1e-8, "beta1": 0.9,
                  "beta2": 0.99}, lambda p: optim.Adam(p, betas=(0.9, 0.99))),
                ({"type": "adamw", "learning_rate": 0.001, "weight_decay": 0.01, "epsilon": 1e-8, "beta1": 0.9,
                  "beta2": 0.999}, lambda p: optim.AdamW(p))):
            self.assertEqual(optimizers.translate(make(mlp().parameters())).update, update)

    def test_factors(self):
        model = mlp()
        optimizer = torch.optim.AdamW([{"params": [model[0].weight, model[2].weight], "weight_decay": 0.2},
                                       {"params": [model[0].bias], "weight_decay": 0.0},
                                       {"params": [model[2].bias], "lr": 0.0005}], lr=0.001, weight_decay=0.1)
        found = optimizers.translate(optimizer)
        self.assertEqual((found.update["learning_rate"], found.update["weight_decay"]), (0.001, 0.2))
        self.assertEqual(found.factors[id(model[0].bias)], (1.0, 0.0))
        self.assertEqual(found.factors[id(model[2].bias)], (0.5, 0.5))


class Steps(unittest.TestCase):
    """Refused while it trains."""

    def joined(self, **options):
        model = mlp()
        optimizer = sgd(model)
        job = join(model, optimizer, **options)
        step(model, optimizer, 2)
        return model, optimizer, job

    def test_half_after_join(self):
        model, optimizer, _ = self.joined()
        model.half()
        model.float()
        with self.assertRaisesRegex(leeway.Misuse, "0.weight.*no longer where join put it.*before join"):
            step(model, optimizer)

    def test_replaced_data(self):
        model, optimizer, _ = self.joined()
        model[2].weight.data = model[2].weight.data.clone()
        with self.assertRaisesRegex(leeway.Misuse, "2.weight"):
            step(model, optimizer)

    def test_a_scheduler(self):
        model, optimizer, _ = self.joined()
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        step(model, optimizer)
        scheduler.step()
        with self.assertRaisesRegex(leeway.InvalidArgument, "lr of param group 0 is 0.05, and was 0.1.*schedule"):
            step(model, optimizer)

    def test_another_group(self):
        model, optimizer, _ = self.joined()
        optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(2))]})
        with self.assertRaisesRegex(leeway.InvalidArgument, "2 param groups, and had 1"):
            step(model, optimizer)

    def test_unfrozen(self):
        model = mlp()
        model[0].weight.requires_grad_(False)
        optimizer = sgd(model)
        join(model, optimizer)
        step(model, optimizer)
        model[0].weight.requires_grad_(True)
        with self.assertRaisesRegex(leeway.Misuse, "0.weight.*frozen at join"):
            step(model, optimizer)

    def test_load_state_dict_is_fine(self):
        model, optimizer, _ = self.joined()
        model.load_state_dict(mlp(3).state_dict())
        step(model, optimizer)

    def test_after_the_end(self):
        model = mlp()
        optimizer = sgd(model)
        job = join(model, optimizer, {"clocks": 2})
        step(model, optimizer, 2)
        with self.assertRaisesRegex(leeway.Finished, "job.batches"):
            step(model, optimizer)
        self.assertEqual(job.ended, "finished")
        model.eval()(data()[0])

    def test_other_examples(self):
        _, _, job = self.joined(session={"examples": 41})
        with self.assertRaisesRegex(leeway.InvalidArgument, "40 examples.*41"):
            job.batches(data(40))

    def test_a_batch_without_a_step(self):
        model = mlp()
        job = join(model, sgd(model))
        with self.assertRaisesRegex(leeway.Misuse, "no step.*skip.*accumulation"):
            for _ in job.over(job.batches(data(40))):
                pass

    def test_the_same_batches_on_all_workers(self):
        """The line with job.batches is forgotten: before anything is trained."""
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
        _, _, job = self.joined()
        for stream in (Stream(), torch.utils.data.DataLoader(Stream())):
            with self.assertRaisesRegex(leeway.InvalidArgument, "job.over"):
                job.batches(stream)

    def test_loaders_that_choose(self):
        """A loader that reads other examples than all of its dataset is refused; its batches would be others."""
        from torch.utils.data import (BatchSampler, DataLoader, RandomSampler, SequentialSampler, SubsetRandomSampler,
                                      TensorDataset, WeightedRandomSampler)

        class Buckets(BatchSampler):
            pass

        class Mine(RandomSampler):
            pass
        dataset = TensorDataset(*data(40))
        model = mlp()
        job = join(model, sgd(model), {"examples": 40})
        for text, options in {
                r"a batch sampler of its own \(Buckets\)": {"batch_sampler": Buckets(RandomSampler(dataset), 8, False)},
                r"a batch sampler of its own \(list\)": {"batch_sampler": [[0, 1], [2, 3]]},
                r"single examples": {"batch_size": None},
                r"RandomSampler takes 8 of 40 examples, and the dataset has 40":
                    {"sampler": RandomSampler(dataset, num_samples=8), "batch_size": 8},
                r"SequentialSampler takes 10 of 10 examples, and the dataset has 40":
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
        x, y = data(8)
        with self.assertRaisesRegex(leeway.InvalidArgument, "no batch in pass 1"):
            for a, b in job.over(iter([(x, y)])):
                loss_of(model, a, b).backward()
                optimizer.step()

    def test_evaluate_gives_nothing(self):
        model = mlp()
        optimizer = sgd(model)
        join(model, optimizer, {"clocks": 1}, evaluate=lambda m: None)
        step(model, optimizer)
        with self.assertRaisesRegex(leeway.InvalidArgument, "evaluate.. gave None"):
            step(model, optimizer)

    def test_evaluate_raises(self):
        """For good: a next life would go on behind the evaluation, and the job would end as if all were well."""
        def evaluate(_):
            raise OSError("no test data")
        model = mlp()
        optimizer = sgd(model)
        join(model, optimizer, {"clocks": 1}, evaluate=evaluate)
        step(model, optimizer)
        with self.assertRaisesRegex(leeway.InvalidArgument, "evaluate.. raised OSError: no test data"):
            step(model, optimizer)


class Alone(unittest.TestCase):
    """Without a job nothing is changed, and places without a coordinator are refused."""

    def test_nothing_changes(self):
        model, other = mlp(), mlp()
        optimizer, own = sgd(model, momentum=0.9), sgd(other, momentum=0.9)
        job = leeway.join(model, optimizer)
        loader = [data(8, seed) for seed in range(5)]
        for x, y in job.over(loader):
            optimizer.zero_grad()
            loss_of(model, x, y).backward()
            optimizer.step()
        for seed in range(5):
            step(other, own, seed=seed)
        close(model, other, 0)

    def test_places(self):
        model = mlp()
        for name, value in {"LEEWAY_RANK": "1", "WORLD_SIZE": "2"}.items():
            os.environ[name] = value
            try:
                with self.assertRaisesRegex(leeway.InvalidArgument, f"{name}.*LEEWAY_COORDINATOR"):
                    leeway.join(model, sgd(model))
            finally:
                del os.environ[name]


if __name__ == "__main__":
    unittest.main()
