"""Reads the weights of a running job, from anywhere."""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any, Mapping, Optional

import numpy as np

from . import _library as native
from . import ending
from .errors import Finished, Misuse
from .handle import Handle, c_text
from .schema import Tensor, offsets_of, tensors_of

#: How long close() waits for a read in another thread.
FREE_SECONDS = 5.0


class Watch(Handle):
    """Reads the weights of a job without taking part in it, so no process waits for the reader. watch() makes a Watch.
    One thread may read, and any thread may close the watch.

    with leeway.watch("host:port") as job:
        weights = job.weights()"""

    def __init__(self, coordinator: Optional[str], start_seconds: float = 0.0) -> None:
        library = native.load()
        super().__init__(library, library.leeway_watch_free)
        self._schema: dict[str, Tensor] = {}
        self._reading, self._closing, self._pid = threading.Lock(), False, os.getpid()
        #: The smallest version of all blocks at the last read: the number of updates that were applied to a block.
        self.version = 0
        self._open(library.leeway_watch_open, c_text("coordinator", coordinator), start_seconds)

    def weights(self) -> dict[str, np.ndarray]:
        """Returns all weights as they are now, by name, in new arrays. Each block of the model (`servers.block_bytes`)
        holds the result of one update. While the job goes on, neighbouring blocks may be some updates apart. The
        servers send only the blocks that have changed since the last call.

        The first call waits for a job that has weights. Raises Finished if the job is over, and Unavailable if no
        process answers."""
        if not self._reading.acquire(blocking=False):
            raise Misuse("another thread is reading with this watch: give each thread its own")
        try:
            return self._read()
        finally:
            self._reading.release()

    def _read(self) -> dict[str, np.ndarray]:
        version = ctypes.c_uint64()

        def read(watch: ctypes.c_void_p, timeout: float) -> int:
            if self._closing:
                raise Misuse("the watch is closed")
            return self._library.leeway_watch_read(watch, timeout, ctypes.byref(version))

        code = self._until(read)
        if code == native.FINISHED:
            raise Finished((self._library.leeway_error() or b"the job is over").decode(errors="replace"))
        self.version = version.value
        if not self._schema:
            self._schema = tensors_of(self, self._library.leeway_watch_tensor_of)
        total = sum(tensor.size for tensor in self._schema.values())
        memory = (ctypes.c_float * total).from_address(self._library.leeway_watch_weights(self._handle))
        flat = np.array(np.ctypeslib.as_array(memory))
        return {name: flat[first:first + count].reshape(self._schema[name].shape)
                for name, (first, count) in offsets_of(self._schema).items()}

    @property
    def schema(self) -> Mapping[str, Tensor]:
        """The tensors of the job by name. Empty before the first weights()."""
        return dict(self._schema)

    def waiting(self) -> str:
        return "for the weights of the job that is watched"

    def free(self) -> None:
        """Closes the watch. A read in another thread ends with Misuse within SLICE seconds. In a forked process this
        does nothing, because the process has nothing to free and the lock may be held for ever."""
        self._closing = True
        if os.getpid() == self._pid and self._reading.acquire(timeout=FREE_SECONDS):
            try:
                super().free()
            finally:
                self._reading.release()

    def close(self) -> None:
        self.free()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def watch(coordinator: Optional[str] = None, start_seconds: float = 0.0) -> Watch:
    """Watches the job whose server 0 is at `coordinator` (HOST:PORT). By default the environment specifies the address.
    The first read waits up to `start_seconds` (0 means 120) for weights."""
    ending.install()
    return Watch(coordinator, start_seconds)
