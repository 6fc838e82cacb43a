"""Wraps a handle of libleeway-client.so: makes calls with it, and turns their codes into errors.

Waits are cut into slices of SLICE seconds, so that Ctrl-C interrupts them."""

from __future__ import annotations

import ctypes
import time
import weakref
from typing import Any, Callable, Optional

from . import _library as native
from .errors import BY_CODE, FORKED, ForkedError, InternalError, InvalidArgument
from .notes import note

SLICE = 0.1
#: If a call waits longer than this, it prints on stderr, once, what it waits for.
TELL_AFTER = 30.0


def c_text(what: str, text: Any) -> Optional[bytes]:
    """Returns the text as a C string. Returns NULL for None and ""."""
    if not text:
        return None
    if not isinstance(text, str) or "\0" in text:
        raise InvalidArgument(f"{what}: {text!r} must be a string without NUL")
    return text.encode(errors="surrogateescape")


_live: "weakref.WeakSet[Handle]" = weakref.WeakSet()


def free_all() -> None:
    """Frees all handles. Called at exit, because the library's threads must end before the interpreter does."""
    for handle in list(_live):
        handle.free()


class Handle:
    """The base of classes with a handle. A subclass passes the function that frees the handle, and calls `_open` with
    the function that makes the handle."""

    def __init__(self, library: ctypes.CDLL, free: Callable[[ctypes.c_void_p], None]) -> None:
        self._library, self._free_handle = library, free
        self._handle = ctypes.c_void_p()

    def _open(self, function: Callable[..., int], *arguments: Any) -> None:
        self._check(function(*arguments, ctypes.byref(self._handle)))
        _live.add(self)

    def waiting(self) -> str:
        """Returns what a call waits for."""
        raise NotImplementedError

    def _check(self, code: int) -> None:
        if code != native.OK:
            self._fail(code)

    def _fail(self, code: int) -> None:
        if code == native.FORKED:
            raise ForkedError(FORKED)
        text = (self._library.leeway_error() or b"").decode(errors="replace")
        raise BY_CODE.get(code, InternalError)(text or f"the library returned code {code} without a text")

    def call(self, function: Callable[..., int], *arguments: Any, expected: int = native.OK) -> int:
        """Calls `function`. Returns its code if that is OK or the expected code, and raises the error for any other
        code."""
        code = function(self._handle, *arguments)
        if code not in (native.OK, expected):
            self._fail(code)
        return code

    def _until(self, function: Callable[..., int], *arguments: Any, expected: int = native.OK) -> int:
        """Calls `function`, whose last argument is the timeout, until it returns something other than AGAIN. Returns
        the code if it is no error or the expected code, and raises the error for any other code."""
        begun = time.monotonic()
        while True:
            code = function(self._handle, *arguments, SLICE)
            if code != native.AGAIN:
                break
            if begun is not None and time.monotonic() - begun > TELL_AFTER:
                begun = None
                note(f"still waiting: {self.waiting()}")
        if code not in (native.OK, native.FINISHED, native.STOPPED, expected):
            self._fail(code)
        return code

    def free(self) -> None:
        handle, self._handle = self._handle, ctypes.c_void_p()
        _live.discard(self)
        if handle:
            self._free_handle(handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.free()
