"""Loads libleeway-client.so by ctypes, and declares the functions of leeway/client.h.

ctypes.CDLL releases the interpreter's lock during each call. So other Python threads run while a worker waits."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import pathlib
import threading
from ctypes import POINTER, Structure, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

from .errors import LibraryNotFound

NAME = "libleeway-client.so"

OK, AGAIN, FINISHED, STOPPED, FAILED = 0, 1, 2, 3, 4
NOT_FOUND, FORKED = 16, 18
GRADIENT, DELTA, ELASTIC = 0, 1, 2


class Tensor(Structure):
    _fields_ = [("name", c_char_p), ("shape", POINTER(c_uint64)), ("dimensions", c_uint32), ("kind", c_int),
                ("averaged", c_int), ("momentum", c_double), ("learning_rate_factor", c_double),
                ("weight_decay_factor", c_double)]


class JoinOptions(Structure):
    _fields_ = [("size", c_size_t), ("coordinator", c_char_p), ("rank", c_int64), ("tensors", POINTER(Tensor)),
                ("tensor_count", c_size_t), ("initial", POINTER(c_float)), ("update", c_char_p),
                ("start_seconds", c_double), ("begins_block", POINTER(c_size_t)), ("begins_block_count", c_size_t)]


class Info(Structure):
    _fields_ = [("size", c_size_t), ("rank", c_uint32), ("workers", c_uint32), ("exchange", c_int),
                ("total", c_uint64), ("trained", c_uint64), ("clocks", c_uint64), ("steps_per_clock", c_uint64),
                ("steps_per_epoch", c_uint64), ("seed", c_uint64), ("batch_size", c_uint64), ("examples", c_uint64),
                ("batches_per_epoch", c_uint64), ("evaluate_every", c_uint64), ("has_update", c_int),
                ("first_clock", c_uint64), ("first_step", c_uint64), ("has_schedule", c_int)]


class Report(Structure):
    _fields_ = [("size", c_size_t), ("steps", c_uint64), ("examples", c_uint64), ("loss_sum", c_double),
                ("learning_rate", c_double), ("data_seconds", c_double), ("forward_seconds", c_double),
                ("backward_seconds", c_double)]


class Evaluation(Structure):
    _fields_ = [("size", c_size_t), ("loss", c_double), ("accuracy", c_double), ("examples", c_uint64)]


#: Stands in place of a factor: the elements are not updated.
SKIP = -1.0


class Rate(Structure):
    _fields_ = [("end", c_uint64), ("factor", c_double)]


# The arguments of each function. The result is a leeway_code, except for the functions in RESULTS.
ARGUMENTS: dict[str, list] = {
    "leeway_version": [],
    "leeway_error": [],
    "leeway_join": [POINTER(JoinOptions), POINTER(c_void_p)],
    "leeway_joined": [c_void_p, c_double],
    "leeway_info_of": [c_void_p, POINTER(Info)],
    "leeway_tensor_of": [c_void_p, c_size_t, POINTER(Tensor)],
    "leeway_weights": [c_void_p],
    "leeway_contribution": [c_void_p],
    "leeway_begin": [c_void_p, c_double, POINTER(c_uint64)],
    "leeway_wait": [c_void_p, c_uint64, c_uint64, c_double],
    "leeway_next_batch": [c_void_p, c_double, POINTER(c_uint64)],
    "leeway_upcoming_batches": [c_void_p, POINTER(c_uint64), c_size_t, POINTER(c_size_t)],
    "leeway_examples": [c_void_p, c_uint64],
    "leeway_rates": [c_void_p, POINTER(Rate), c_size_t],
    "leeway_final": [c_void_p, c_uint64, c_uint64],
    "leeway_end": [c_void_p, POINTER(Report), c_double],
    "leeway_settle": [c_void_p, c_double],
    "leeway_read_again": [c_void_p, c_double, POINTER(c_void_p)],
    "leeway_evaluated": [c_void_p, POINTER(Evaluation)],
    "leeway_state_wanted": [c_void_p, POINTER(c_int)],
    "leeway_save_state": [c_void_p, c_char_p, c_size_t],
    "leeway_load_state": [c_void_p, POINTER(c_void_p), POINTER(c_size_t)],
    "leeway_waiting": [c_void_p, c_char_p, c_size_t],
    "leeway_leave": [c_void_p, c_int, c_char_p, c_double],
    "leeway_free": [c_void_p],
    "leeway_watch_open": [c_char_p, c_double, POINTER(c_void_p)],
    "leeway_watch_read": [c_void_p, c_double, POINTER(c_uint64)],
    "leeway_watch_tensor_of": [c_void_p, c_size_t, POINTER(Tensor)],
    "leeway_watch_weights": [c_void_p],
    "leeway_watch_free": [c_void_p],
}
RESULTS: dict[str, object] = {
    "leeway_version": c_char_p,
    "leeway_error": c_char_p,
    "leeway_weights": c_void_p,
    "leeway_contribution": c_void_p,
    "leeway_waiting": None,
    "leeway_free": None,
    "leeway_watch_weights": c_void_p,
    "leeway_watch_free": None,
}


def places() -> list[pathlib.Path]:
    """Returns the files that load() tries, best first, before it asks the operating system's loader."""
    package = pathlib.Path(__file__).resolve().parent
    found = [pathlib.Path(os.environ["LEEWAY_LIBRARY"])] if os.environ.get("LEEWAY_LIBRARY") else []
    found.append(package / NAME)
    # An installed tree: PREFIX/share/leeway/python/leeway and PREFIX/lib or PREFIX/lib/x86_64-linux-gnu.
    for folder in list(package.parents)[2:5]:
        found += [folder / "lib" / NAME, folder / "lib/x86_64-linux-gnu" / NAME, folder / "lib64" / NAME]
    # A clone with a build: python/leeway beside build/release.
    build = package.parent.parent / "build"
    found += [build / preset / part / NAME for preset in ("release", "dev") for part in ("lib", "bin", "client")]
    return found


def _open() -> ctypes.CDLL:
    tried = []
    for path in places():
        if path.is_file():
            try:
                return ctypes.CDLL(str(path))
            except OSError as error:
                raise LibraryNotFound(
                    f"{path} cannot be loaded: {error}. It needs the distribution's gRPC and Protobuf "
                    "(Debian 12: libgrpc++1.51, libprotobuf32)") from error
        tried.append(str(path))
    try:
        return ctypes.CDLL(NAME)
    except OSError as error:
        raise LibraryNotFound(
            f"{NAME} was not found in these places: {', '.join(tried)}, and the system's loader did not find it "
            f"({error}). Build Leeway, install it, or set LEEWAY_LIBRARY to the file") from error


_lock = threading.Lock()
_loaded: ctypes.CDLL | None = None


def load() -> ctypes.CDLL:
    """Returns the library, with the types of its functions. Raises LibraryNotFound, with the places in which it
    looked."""
    global _loaded
    with _lock:
        if _loaded is None:
            library = _open()
            for name, arguments in ARGUMENTS.items():
                try:
                    function = getattr(library, name)
                except AttributeError as error:
                    raise LibraryNotFound(f"{library._name} has no {name}: it is of another version. Install the "
                                          "package and the library of the same version") from error
                function.argtypes = arguments
                function.restype = RESULTS.get(name, c_int)
            _loaded = library
        return _loaded
