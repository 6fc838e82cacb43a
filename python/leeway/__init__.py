"""Takes part in a Leeway job as a worker. docs/python.md has the guide.

    import leeway
    job = leeway.join(schema={"w": (784, 10), "b": (10,)}, initial=first)
    for clock, weights in job:
        job.push_pull(gradients(weights, *data(clock, job.rank)), examples=64)

PyTorch scripts use leeway.torch."""

from . import safetensors
from .alone import Alone
from .errors import (DeadlineExceeded, Error, FailedPrecondition, Finished, ForkedError, InternalError, InvalidArgument,
                     LibraryNotFound, Misuse, NoMemory, NotFinite, NotFound, Replaced, Unavailable)
from .job import Job, join
from .schema import Tensor
from .session import Info
from .watching import Watch, watch

__version__ = "0.2.0"

__all__ = ["Alone", "DeadlineExceeded", "Error", "FailedPrecondition", "Finished", "ForkedError", "Info",
           "InternalError", "InvalidArgument", "Job", "LibraryNotFound", "Misuse", "NoMemory", "NotFinite", "NotFound",
           "Replaced", "Tensor", "Unavailable", "Watch", "join", "safetensors", "watch"]
