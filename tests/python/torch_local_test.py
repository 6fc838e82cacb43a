#!/usr/bin/python3
"""Local steps, states, buffers, evaluations and files of leeway.torch, without servers."""

import copy
import io
import pickle
import tempfile
import unittest

from fake_job import batches_of, close, data, join, loss_of, mlp, plain

import torch
from torch import nn

import leeway.torch as leeway


def with_norm():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))


class Local(unittest.TestCase):
    def test_any_optimizer_steps_in_the_worker(self):
        for make in (torch.optim.AdamW, torch.optim.RMSprop, lambda p, lr: torch.optim.Adam(p, lr=lr, amsgrad=True)):
            alone, worker = with_norm(), with_norm()
            batches = batches_of(48)
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
        """Each optimizer steps by itself. A step of the job is a batch, whichever optimizers step in it."""
        def train(model, optimizers, batches):
            first, second = optimizers
            for number, (x, y) in enumerate(batches):
                first.zero_grad()
                second.zero_grad()
                loss_of(model, x, y).backward()
                first.step()
                if number % 3 == 0:
                    second.step()
        batches = batches_of(48)
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
        """A step of the job ends when the last optimizer has stepped, or when an optimizer steps again."""
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

    def test_state_goes_round(self):
        batches = batches_of(48)
        for make in (lambda p: torch.optim.AdamW(p, lr=0.01), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
                     lambda p: torch.optim.Adagrad(p, lr=0.1)):
            whole, first, second = with_norm(), with_norm(), with_norm()
            plain(whole, make(whole.parameters()), batches)
            options = {"exchange": "delta", "steps_per_clock": 4, "state": b""}
            optimizer = make(first.parameters())
            job = join(first, optimizer, {**options, "clocks": 2})
            plain(first, optimizer, job.over(batches[:8]))
            saved = job._session.saved[-1]
            self.assertNotIn(b"pickle", saved)
            second.load_state_dict({n: v for n, v in first.state_dict().items() if "tracked" not in n}, strict=False)
            optimizer = make(second.parameters())
            job = join(second, optimizer, {**options, "clocks": 1, "state": saved})
            plain(second, optimizer, job.over(batches[8:]))
            close(second, whole, 0)
            self.assertEqual(int(second[1].num_batches_tracked), 12)

    def test_state_of_lbfgs(self):
        """LBFGS keeps lists of tensors, all under the first parameter."""
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
        batches = batches_of(32)
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
        with self.assertRaisesRegex(leeway.InvalidArgument, "'AdamW,SGD', but this is SGD"):
            third = with_norm()
            join(third, torch.optim.SGD(third.parameters(), lr=0.1), {**options, "state": job._session.saved[-1]})

    def test_a_clock_that_is_broken_off_leaves_no_state(self):
        batches = batches_of(48)
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
        batches = batches_of(48)
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

    def test_the_state_of_another_optimizer(self):
        model = mlp()
        optimizer = torch.optim.AdamW(model.parameters())
        options = {"exchange": "delta", "steps_per_clock": 1, "clocks": 1, "state": b""}
        job = join(model, optimizer, options)
        plain(model, optimizer, job.over([data(4)]))
        saved = job._session.saved[-1]
        other = mlp()
        with self.assertRaisesRegex(leeway.InvalidArgument, "'AdamW', but this is SGD. Resume with the model"):
            join(other, torch.optim.SGD(other.parameters(), lr=0.1), {**options, "state": saved})
        for width, text in ((4, r"exp_avg of 0.weight with the shape \(5, 6\)"), (5, "parameter 2.weight, which no optimizer")):
            other = nn.Sequential(nn.Linear(6, width))
            with self.assertRaisesRegex(leeway.InvalidArgument, f"{text}.*Resume with the model"):
                join(other, torch.optim.AdamW(other.parameters()), {**options, "state": saved})


class Buffers(unittest.TestCase):
    """The servers keep running statistics; a step changes the worker's own copy."""

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
        """A copy by pickle, torch.save or deepcopy contains no part of the job."""
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
