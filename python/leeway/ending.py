"""Ends a process with the exit codes of common/exit_code.h, and without hanging.

If a permanent error is not caught, it is reported to the job and the process ends with EXIT_PERMANENT, so that the
launcher does not restart it in vain. So do mistakes of the script: an import that fails, a name that does not exist,
and any error of MISTAKES in a life that has not ended a clock. The next life would make the same mistake. Any other
exception ends the process as in any Python program, and the launcher restarts it."""

from __future__ import annotations

import atexit
import sys
import weakref
from typing import Protocol

from .errors import EXIT_PERMANENT, EXIT_TEMPORARY, Error, Finished
from .handle import free_all
from .notes import note

#: How long a failing worker may take to report its failure.
FAREWELL_SECONDS = 5.0


ALWAYS = (ImportError, NameError, SyntaxError)
MISTAKES = (AttributeError, LookupError, TypeError, ValueError)


class Ending(Protocol):
    #: True if this life has ended a clock.
    moved: bool

    def fail(self, message: str, seconds: float) -> None: ...
    def unfinished(self) -> str: ...


_jobs: "weakref.WeakSet[Ending]" = weakref.WeakSet()
#: The jobs that have already printed the message about their early end.
_told: "weakref.WeakSet[Ending]" = weakref.WeakSet()
_installed = False


def _tell_all(message: str) -> None:
    for job in list(_jobs):
        try:
            job.fail(message, FAREWELL_SECONDS)
        except Exception as error:  # The process ends anyway, with the first error.
            note(f"the failure could not be reported to the job: {error}")


def _say_unfinished() -> None:
    for job in list(_jobs):
        left_over = job.unfinished()
        if left_over and job not in _told:
            _told.add(job)
            note(left_over)


def _at_exit() -> None:
    _say_unfinished()
    free_all()


def watch(job: Ending) -> None:
    """Adds a job that must be told when the process ends with a permanent error."""
    install()
    _jobs.add(job)


def exit_code_of(error: BaseException) -> int:
    if isinstance(error, Error):
        return error.exit_code
    again = isinstance(error, MISTAKES) and not any(job.moved for job in _jobs)
    return EXIT_PERMANENT if again or isinstance(error, ALWAYS) else EXIT_TEMPORARY


def install() -> None:
    """Installs a hook, so that an error ends the process with the error's exit code. Call this function before join,
    because most permanent errors come from join."""
    global _installed
    if _installed:
        return
    _installed = True
    atexit.register(_at_exit)
    previous = sys.excepthook

    def hook(kind, error, trace):
        if isinstance(error, Finished):
            note(str(error))
            raise SystemExit(error.exit_code)
        # The exception must be the last line that the process prints, because the launcher shows that line.
        if not hasattr(sys, "ps1"):
            _say_unfinished()
        previous(kind, error, trace)
        if hasattr(sys, "ps1"):
            return
        code = exit_code_of(error)
        if code == EXIT_PERMANENT:
            _tell_all(f"{kind.__name__}: {error}")
        if code != EXIT_TEMPORARY:
            raise SystemExit(code)

    sys.excepthook = hook
