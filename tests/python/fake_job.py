"""A small torch model in a job without servers, shared by the tests of leeway.torch. Without torch they are skipped."""

import contextlib
import sys
from unittest import mock

try:
    import torch
except ImportError:
    print("SKIPPED: torch is not installed (python3-torch)")
    sys.exit(77)

from torch import nn

import leeway.torch as leeway
from fake_session import FakeSession

torch.set_num_threads(1)


def mlp(seed=1):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 3))


def data(count=40, seed=2):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, 6, generator=generator), torch.randint(0, 3, (count,), generator=generator)


@contextlib.contextmanager
def faked(update=None, **options):
    """leeway.torch.join over a FakeSession. `update`: the job's own rule, if it has one."""
    def make(schema, initial, translated, coordinator, rank, start_seconds):
        if not translated and not update and options.get("exchange", "gradient") == "gradient":
            raise leeway.InvalidArgument("the job has no `update`, and this program does not say which optimizer it has")
        return FakeSession(schema, initial, update or translated, **options)
    with mock.patch("leeway.torch.LibrarySession", make):
        yield


def join(model, optimizer, session=None, **options):
    with faked(**(session or {})):
        return leeway.join(model, optimizer, coordinator="fake:1", **options)


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x), y)


def plain(model, optimizer, batches):
    for x, y in batches:
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()


def sgd(model, **options):
    return torch.optim.SGD(model.parameters(), **{"lr": 0.1, **options})


def step(model, optimizer, times=1):
    """Trains on the same eight examples each time."""
    plain(model, optimizer, [data(8)] * times)


def close(one, other, tolerance=1e-5):
    for (name, a), b in zip(one.state_dict().items(), other.state_dict().values()):
        scale = max(1e-3, float(b.abs().max()))
        assert torch.allclose(a.float(), b.float(), rtol=tolerance, atol=tolerance * scale), (name, a, b)


def batches_of(examples):
    x, y = data(examples)
    return list(zip(x.split(4), y.split(4)))


def seeded(build):
    def make():
        torch.manual_seed(3)
        return build()
    return make


def left_early(job):
    """The ranges that left before step()."""
    return [entry for entry in job._session.log if entry[0] == "final"]


def compare(make=mlp, options=None, loop=plain, reference=plain, shape=None, overlap="backward"):
    """Trains ten clocks twice on the same batches, as a worker and in plain torch. Returns the worker's job."""
    options = options or {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}
    batches = [(x.view(4, *(shape or (6,))), y) for x, y in batches_of(40)]
    alone, worker = make(), make()
    reference(alone, sgd(alone, **options), batches)
    optimizer = sgd(worker, **options)
    job = join(worker, optimizer, {"clocks": 10}, overlap=overlap)
    loop(worker, optimizer, job.over(batches))
    assert job.ended == "finished", job.ended
    close(worker, alone)
    return job
