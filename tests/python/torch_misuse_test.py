#!/usr/bin/python3
"""What leeway.torch refuses, with a typed error that says what is wrong and what to do. The folder habits has more
refusals."""

import collections
import contextlib
import copy
import io
import os
import unittest
import warnings

from fake_job import close, data, join, loss_of, mlp, plain, sgd, step

import numpy as np
import torch
from torch import nn

import leeway.torch as leeway
from leeway.torch import optimizers


class Join(unittest.TestCase):
    """Misuses that are refused at join."""

    def refused(self, text, model, optimizer, kind=leeway.InvalidArgument, **options):
        with self.assertRaisesRegex(kind, text):
            join(model, optimizer, **options)

    def test_half_precision(self):
        for dtype in (torch.float16, torch.bfloat16, torch.float64):
            model = mlp().to(dtype)
            self.refused(f"0.weight is {dtype}.*float", model, sgd(model))

    def test_scripted(self):
        model = torch.jit.script(mlp())
        self.refused("RecursiveScriptModule: give the module itself", model, sgd(model))

    def test_lazy(self):
        model = nn.Sequential(nn.LazyLinear(3))
        self.refused("0.weight has no shape yet", model, sgd(model))

    def test_other_parameters(self):
        self.refused(r"parameter 0 of the optimizer's group 0.*\(5, 6\).*does not belong to the model", mlp(), sgd(mlp(2)))

    def test_no_parameters(self):
        model = mlp()
        optimizer = sgd(model)
        model.requires_grad_(False)
        self.refused("no parameter is trained.*needs a gradient", model, optimizer)

    def test_two_optimizers(self):
        model = mlp()
        halves = [torch.optim.SGD(part.parameters(), lr=0.1, momentum=momentum) for part, momentum in ((model[0], 0), (model[2:], 0.9))]
        self.refused("group 0 of optimizer 1 .SGD. differs from optimizer 0 .SGD. in momentum, nesterov.*delta", model, halves)
        self.refused(r"parameter 0 of the optimizer's group 0.*also belongs to another optimizer: give each", model, [sgd(model), *halves])
        self.refused("is empty, or has an optimizer twice", model, [halves[0]] * 2)
        self.refused("is empty, or has an optimizer twice", model, [])
        self.refused("the optimizer is a Linear.*or a list", model, [halves[0], model[0]])
        job = join(model, sgd(model))
        self.refused("has already joined a job that is not over", model, sgd(model), leeway.Misuse)
        self.refused("or a part of it, has already joined", model[0], sgd(model[0]), leeway.Misuse)
        self.assertIsNone(job.ended)

    def test_overlap(self):
        for wrong in (True, "both"):
            self.refused("overlap is .*none, backward, forward", mlp(), sgd(mlp()), overlap=wrong)

    def test_no_model(self):
        self.refused("the model is a function", mlp, sgd(mlp()))

    def test_a_state(self):
        model = mlp()
        optimizer = sgd(model, momentum=0.9)
        step(model, optimizer)
        self.refused("already has a state", model, optimizer)


class Optimizers(unittest.TestCase):
    """Which optimizers become a job's update, and which are refused."""

    def refused(self, text, make):
        with self.assertRaisesRegex(optimizers.Untranslatable, text):
            optimizers.translate([make(mlp())])
        model = mlp()
        # The job has no rule of its own, so the error ends with what to do.
        with self.assertRaisesRegex(leeway.InvalidArgument, text) as refusal:
            join(model, make(model))
        self.assertNotIn("which optimizer it has", str(refusal.exception))

    def test_refused(self):
        optim = torch.optim
        for text, make in {
                "LBFGS.*exchange": lambda m: optim.LBFGS(m.parameters()),
                "RMSprop.*exchange": lambda m: optim.RMSprop(m.parameters()),
                "amsgrad": lambda m: optim.Adam(m.parameters(), amsgrad=True),
                "use amsgrad=False": lambda m: optim.AdamW(m.parameters(), amsgrad=True),
                "maximize": lambda m: optim.SGD(m.parameters(), lr=0.1, maximize=True),
                "dampening 0.5": lambda m: optim.SGD(m.parameters(), lr=0.1, momentum=0.9, dampening=0.5),
                "lr_decay 0.1.*keep a LambdaLR": lambda m: optim.Adagrad(m.parameters(), lr_decay=0.1),
                "group 1 differs from group 0 in momentum": lambda m: optim.SGD(
                    [{"params": list(m[0].parameters()), "momentum": 0.9}, {"params": list(m[2].parameters()),
                                                                           "momentum": 0.5}], lr=0.1),
                "is 0.0: it must be above 0 in at least one group.*let a scheduler": lambda m: optim.SGD(m.parameters(), lr=0.0)}.items():
            self.refused(text, make)

    def test_unknown_keys(self):
        """Keys that a later torch or the script puts into a group are known or named in an error, but never dropped."""
        for optimizer in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad):
            model = mlp()
            self.refused(f"param group 1 of .*{optimizer.__name__} has clip, which", lambda m, kind=optimizer: kind(
                [{"params": m[0].parameters()}, {"params": m[2].parameters(), "clip": 0.5}], lr=0.1))
            off = optimizer([{"params": model.parameters(), "clip": None, "name": "all", "later": False}], lr=0.1)
            default = optimizer(model.parameters(), lr=0.1)
            self.assertEqual(optimizers.translate([off]).update, optimizers.translate([default]).update)

    def test_decoupled_weight_decay(self):
        """In torch 2.7 Adam with this argument is AdamW; older versions do not have it."""
        optimizer = torch.optim.Adam(mlp().parameters(), weight_decay=0.1)
        self.assertEqual(optimizers.translate([optimizer]).update["type"], "adam")
        optimizer.param_groups[0]["decoupled_weight_decay"] = True
        self.assertEqual(optimizers.translate([optimizer]).update["type"], "adamw")

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
            self.assertEqual(optimizers.translate([make(mlp().parameters())]).update, update)

    def test_factors(self):
        model = mlp()
        optimizer = torch.optim.AdamW([{"params": [model[0].weight, model[2].weight], "weight_decay": 0.2},
                                       {"params": [model[0].bias], "weight_decay": 0.0},
                                       {"params": [model[2].bias], "lr": 0.0005}], lr=0.001, weight_decay=0.1)
        found = optimizers.translate([optimizer])
        self.assertEqual((found.update["learning_rate"], found.update["weight_decay"]), (0.001, 0.2))
        self.assertEqual(found.factors[id(model[0].bias)], (1.0, 0.0))
        self.assertEqual(found.factors[id(model[2].bias)], (0.5, 0.5))


class Steps(unittest.TestCase):
    """Misuses that are refused while the worker trains."""

    #: The fake session has no other rule than SGD.
    UPDATE = {"update": {"type": "sgd", "learning_rate": 0.1}}

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
        with self.assertRaisesRegex(leeway.Misuse, "0.weight.*no longer uses the memory that join assigned.*before join"):
            step(model, optimizer)

    def test_replaced_data(self):
        model, optimizer, _ = self.joined()
        model[2].weight.data = model[2].weight.data.clone()
        with self.assertRaisesRegex(leeway.Misuse, "2.weight"):
            step(model, optimizer)

    def test_weights_that_the_script_writes(self):
        """The script writes in every possible way; the servers would continue with their own weights."""
        def no_grad(model):
            with torch.no_grad():
                model[2].weight.clamp_(-0.05, 0.05)

        def detached(model):
            model[2].weight.detach()[0] = 0

        def kept(model):
            for data in self.kept:
                data.mul_(0.5)
        for write in (lambda m: m[2].load_state_dict(mlp(3)[2].state_dict()), no_grad, detached, kept,
                      lambda m: m[2].weight.data.clamp_(-0.05, 0.05), lambda m: nn.init.zeros_(m[2].weight),
                      lambda m: m[2].weight.data.__setitem__(0, 1.0), lambda m: m[2].weight.data.view(-1).add_(1)):
            model, optimizer, job = self.joined()
            self.kept = [model[2].weight.data]
            step(model, optimizer)
            write(model)
            with self.assertRaisesRegex(leeway.Misuse, "parameter 2.weight: the script has changed its values.*before join.*delta"):
                step(model, optimizer)
        self.assertEqual(job.clock, 2, "nothing was sent")

    def test_an_optimizer_that_join_did_not_get_steps(self):
        model, optimizer, _ = self.joined()
        step(model, optimizer)
        with self.assertRaisesRegex(leeway.Misuse, "the script has changed its values .*an optimizer that was not given to join"):
            sgd(model).step()
            step(model, optimizer)

    def test_a_remainder_without_a_step(self):
        """A pass has three batches, and each step accumulates two."""
        model = mlp()
        optimizer = sgd(model)
        job = join(model, optimizer, {"steps_per_clock": 2, "examples": 12})
        loader = job.batches(data(12))
        with self.assertRaisesRegex(leeway.Misuse, "no step..: call optimizer.step.. when job.last_batch is true.*fewer batches"):
            for _ in job.epochs():
                for number, (x, y) in enumerate(loader):
                    loss_of(model, x, y).backward()
                    if number % 2:
                        optimizer.step()

    def test_a_state_that_the_script_writes(self):
        """The script writes in every possible way; the servers' moments would continue. In a delta exchange the state
        is the script's."""
        def replace(optimizer, _):
            optimizer.state = collections.defaultdict(dict)
        ways = (lambda o, state: o.load_state_dict(state), lambda o, _: o.load_state_dict(o.state_dict()),
                lambda o, state: type(o).load_state_dict(o, state), lambda o, _: o.state.clear(), replace,
                lambda o, _: o.state.update({}), lambda o, _: o.state[o.param_groups[0]["params"][0]]["step"],
                lambda o, _: o.state.get(o.param_groups[0]["params"][0]))
        for exchange in ("gradient", "delta"):
            for way in ways[:-2] if exchange == "delta" else ways:
                model = mlp()
                optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
                initial = copy.deepcopy(optimizer.state_dict())
                join(model, optimizer, {"exchange": exchange, **self.UPDATE})
                step(model, optimizer, 2)
                if exchange == "delta":
                    way(optimizer, initial)
                    step(model, optimizer)
                    continue
                with self.assertRaisesRegex(leeway.Misuse, "the optimizer's state is on the servers.*delta.*--resume"):
                    way(optimizer, initial)
                    step(model, optimizer)

    def test_a_state_from_before_join_comes_back(self):
        """Adagrad has a state before its first step. A copy of the optimizer is a plain one."""
        model = mlp()
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
        own = optimizer.state
        join(model, optimizer, {"clocks": 1, **self.UPDATE})
        step(model, optimizer)
        self.assertEqual(len(optimizer.state), 0)
        self.assertIs(type(copy.deepcopy(optimizer).state), collections.defaultdict)
        with self.assertRaises(leeway.Finished):
            step(model, optimizer)
        join(model, sgd(model))
        self.assertIs(optimizer.state, own)

    def test_a_state_that_was_left_on_servers(self):
        """The saved state of the optimizer has a mark. New jobs and scripts without a job do not accept this state."""
        def adam(model):
            return torch.optim.Adam(model.parameters(), lr=0.01)

        def loaded(saved):
            model = mlp()
            optimizer = adam(model)
            optimizer.load_state_dict(saved(optimizer))
            return model, optimizer
        model = mlp()
        optimizer = adam(model)
        own = copy.deepcopy(optimizer.state_dict())
        join(model, optimizer, {"clocks": 1, **self.UPDATE})
        step(model, optimizer)
        with self.assertWarnsRegex(UserWarning, "state is on the servers and not in its state_dict.*--resume"):
            saved = io.BytesIO()
            torch.save(optimizer.state_dict(), saved)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            optimizer.state_dict()
        for kept in (lambda _: torch.load(io.BytesIO(saved.getvalue())), lambda _: copy.deepcopy(optimizer).state_dict()):
            for session in ({"exchange": "delta"}, self.UPDATE):
                model, other = loaded(kept)
                join(model, other, session)
                with self.assertRaisesRegex(leeway.InvalidArgument, "rank 0: .*has no moments. Continue that run.*new moments"):
                    step(model, other)
            model, other = loaded(kept)
            with self.assertRaisesRegex(leeway.InvalidArgument, "has no moments"):
                leeway.join(model, other)
            join(model, other, {"first": 3, **self.UPDATE})
            step(model, other)
        model, other = loaded(lambda _: own)
        join(model, other, self.UPDATE)
        step(model, other)

    def test_a_rule_without_state_leaves_none(self):
        model, optimizer, _ = self.joined()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            saved = optimizer.state_dict()
        model = mlp()
        optimizer = sgd(model)
        optimizer.load_state_dict(saved)
        join(model, optimizer)
        step(model, optimizer)

    def test_numbers_of_groups(self):
        """All numbers except the rate are refused, however they are changed; a scheduler's own notes in a group are
        allowed."""
        def adam(model):
            return torch.optim.Adam(model.parameters(), lr=0.01, betas=[0.9, 0.999])

        def momentum(model):
            return sgd(model, momentum=0.9, nesterov=True)
        for text, make, change in (
                ("nesterov.*is False, but was True", momentum, lambda g: g.update(nesterov=False)),
                ("momentum.*is 0.5", momentum, lambda g: g.update(momentum=np.float32(0.5))),
                ("dampening", momentum, lambda g: g.update(dampening=0.5)), ("maximize", adam, lambda g: g.update(maximize=True)),
                ("eps.*is 0.1", adam, lambda g: g.update(eps=0.1)), ("amsgrad", adam, lambda g: g.update(amsgrad=True)),
                ("betas", adam, lambda g: g["betas"].__setitem__(0, 0.5)), ("scale", adam, lambda g: g.update(scale=0.1)),
                ("clip", adam, lambda g: g.update(clip=object())), ("", adam, lambda g: g.update(foreach=True, fused=None)),
                ("", adam, lambda g: g.update(lr=0.02, max_lr=0.1)), ("", adam, lambda g: g.update(amsgrad=None))):
            model = mlp()
            optimizer = make(model)
            join(model, optimizer, self.UPDATE)
            step(model, optimizer)
            change(optimizer.param_groups[0])
            refused = self.assertRaisesRegex(leeway.InvalidArgument, f"changed since join: {text}.*the servers update")
            with refused if text else contextlib.nullcontext():
                step(model, optimizer)

    def test_groups_of_other_objects(self):
        """The rates are those of the groups that the optimizer has now."""
        model, optimizer, job = self.joined()
        told, own = [], job._session.rates
        job._session.rates = lambda parts: (told.append(parts[0][1]), own(parts))
        optimizer.param_groups = [{**group, "lr": 0.05} for group in optimizer.param_groups]
        step(model, optimizer)
        self.assertEqual(told, [0.5])

    def test_weights_that_are_put_back(self):
        """A script may write other weights to evaluate them, and restore its own. It may read weights at any time."""
        model, optimizer, _ = self.joined()
        state = {name: value.clone() for name, value in model.state_dict().items()}
        for parameter in model.parameters():
            parameter.data.mul_(0.5)
        model.load_state_dict(state)
        step(model, optimizer)
        norms = [float(parameter.data.norm()) for parameter in model.parameters()]
        self.assertEqual(norms, [float(parameter.detach().norm()) for parameter in model.parameters()])
        step(model, optimizer)

    def test_evaluate_may_try_other_weights(self):
        def evaluate(model):
            kept = [parameter.clone() for parameter in model.parameters()]
            for parameter in model.parameters():
                parameter.data.zero_()
            for parameter, value in zip(model.parameters(), kept if puts_back else kept[:1]):
                parameter.copy_(value)
            return {"loss": 1.0}
        for puts_back in (True, False):
            model = mlp()
            optimizer = sgd(model)
            job = join(model, optimizer, {"evaluate_every": 1, "clocks": 3}, evaluate=evaluate)
            if puts_back:
                step(model, optimizer, 3)
                continue
            with self.assertRaisesRegex(leeway.InvalidArgument, "parameter 0.bias: the script has changed its values"):
                step(model, optimizer, 2)
            self.assertEqual(job.clock, 0)

    def test_weights_of_one_s_own_may_be_written(self):
        model = mlp()
        optimizer = sgd(model)
        join(model, optimizer, {"exchange": "delta", "steps_per_clock": 2})
        for _ in range(4):
            step(model, optimizer)
            for parameter in model.parameters():
                parameter.data.clamp_(-0.05, 0.05)
        self.assertLessEqual(max(float(p.abs().max()) for p in model.parameters()), 0.0501)

    def test_other_tensors(self):
        """A replaced parameter, an added or removed layer and another buffer are errors in every exchange.
        habits/tensors.py has more cases."""
        def replaced(model):
            model[4].weight = nn.Parameter(torch.zeros(3, 5))

        def longer(model):
            model.add_module("5", nn.Linear(3, 3))
        for text, change in (("4.weight: it is not the same tensor", replaced), ("5.weight: it is new", longer),
                             ("4.weight: it is no longer there", lambda m: m.__delitem__(4)),
                             ("mean: it is new", lambda m: m.register_buffer("mean", torch.zeros(3)))):
            for exchange in ("gradient", "delta"):
                model = mlp()
                optimizer = sgd(model)
                join(model, optimizer, {"exchange": exchange, "steps_per_clock": 1 + (exchange == "delta")})
                step(model, optimizer)
                change(model)
                with self.assertRaisesRegex(leeway.Misuse, f"{text}.*Stages"):
                    step(model, optimizer)

    def test_modules_without_tensors_may_change(self):
        model, optimizer, _ = self.joined()
        model[1] = nn.Tanh()
        step(model, optimizer)
        model[3] = nn.Sequential(nn.Dropout(0.1), nn.ReLU())
        step(model, optimizer, 2)

    def test_after_the_end(self):
        model = mlp()
        optimizer = sgd(model)
        job = join(model, optimizer, {"clocks": 2})
        step(model, optimizer, 2)
        with self.assertRaisesRegex(leeway.Finished, "job.batches"):
            step(model, optimizer)
        self.assertEqual(job.ended, "finished")
        model.eval()(data()[0])
        self.assertTrue(torch.isfinite(model.train()(data()[0])).all(), "as a script may evaluate after its loop")

    def test_stages(self):
        """A finished job releases the model: its trained part joins the next job, with a new head."""
        batches = [data(4, seed) for seed in range(6)]
        models = []
        for joins in (False, True):
            body, heads = mlp()[:4], [mlp(4)[4], mlp(5)[4]]
            body[0].requires_grad_(False)
            for head, part in zip(heads, (batches[:3], batches[3:])):
                model = nn.Sequential(body, head)
                optimizer = sgd(model, momentum=0.9)
                plain(model, optimizer, join(model, optimizer, {"clocks": 3}).over(part) if joins else part)
                body[0].requires_grad_(True)
            models.append(model)
        close(models[1], models[0])

    def test_evaluate_gives_nothing(self):
        model = mlp()
        optimizer = sgd(model)
        join(model, optimizer, {"clocks": 1}, evaluate=lambda m: None)
        step(model, optimizer)
        with self.assertRaisesRegex(leeway.InvalidArgument, "evaluate.. returned None"):
            step(model, optimizer)

    def test_evaluate_raises(self):
        """The error is permanent: a next life would continue after the evaluation, and the job would end as if all were
        well."""
        def evaluate(_):
            raise OSError("no test data")
        model = mlp()
        optimizer = sgd(model)
        join(model, optimizer, {"clocks": 1}, evaluate=evaluate)
        step(model, optimizer)
        with self.assertRaisesRegex(leeway.InvalidArgument, "evaluate.. raised OSError: no test data"):
            step(model, optimizer)


class Alone(unittest.TestCase):
    """Without a job nothing is changed. A rank without a coordinator is refused."""

    def test_nothing_changes(self):
        model, other = mlp(), mlp()
        optimizer, own = sgd(model, momentum=0.9), sgd(other, momentum=0.9)
        job = leeway.join(model, optimizer)
        loader = [data(8, seed) for seed in range(5)]
        plain(model, optimizer, job.over(loader))
        plain(other, own, loader)
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
