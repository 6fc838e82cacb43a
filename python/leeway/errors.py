"""The errors of this package: a class for each code of leeway/client.h. Every text states what is wrong, where, and
what to do."""

from __future__ import annotations

# The exit codes of common/exit_code.h. leeway_exit_code() in leeway/client.h documents the exit code of each error.
EXIT_TEMPORARY = 1
EXIT_PERMANENT = 3
EXIT_REPLACED = 5


class Error(Exception):
    """The base of all errors of this package."""

    #: If this error ends a process, the process has this exit status. The launcher restarts a process that ended with
    #: EXIT_TEMPORARY.
    exit_code = EXIT_TEMPORARY


class InvalidArgument(Error, ValueError):
    """An argument, the job, its token, the certificate or another worker's model is wrong. Another attempt would fail,
    too."""

    exit_code = EXIT_PERMANENT


class DeadlineExceeded(Error, TimeoutError):
    """The wait was longer than the job's limit. The text names the missing processes."""

    exit_code = EXIT_PERMANENT


class Unavailable(Error, ConnectionError):
    """A process does not answer. Another life of this worker may succeed."""


class Replaced(Error):
    """A newer life of this rank exists, so this process must end."""

    exit_code = EXIT_REPLACED


class FailedPrecondition(Error):
    """This worker is at another clock than the servers expect. Another life may succeed."""


class NotFinite(Error, ArithmeticError):
    """A value is NaN or infinite. The text names the tensor."""

    exit_code = EXIT_PERMANENT


class NotFound(Error, LookupError):
    """The requested object does not exist."""

    exit_code = EXIT_PERMANENT


class Misuse(Error, RuntimeError):
    """The function cannot be called now. The text names the function to call."""

    exit_code = EXIT_PERMANENT


class ForkedError(Error, RuntimeError):
    """The call was made in a process that was forked from the one that joined."""

    exit_code = EXIT_PERMANENT


class NoMemory(Error, MemoryError):
    """The library could not get the memory that it needs."""

    exit_code = EXIT_PERMANENT


class InternalError(Error):
    """An error in Leeway itself."""


class LibraryNotFound(Error, ImportError):
    """libleeway-client.so cannot be loaded."""

    exit_code = EXIT_PERMANENT


class Finished(Error):
    """The job is over, but the script asks for another step."""

    exit_code = 0


#: The error of each leeway_code.
BY_CODE: dict[int, type[Error]] = {
    4: InvalidArgument,
    10: InvalidArgument,
    11: DeadlineExceeded,
    12: Unavailable,
    13: Replaced,
    14: FailedPrecondition,
    15: NotFinite,
    16: NotFound,
    17: Misuse,
    18: ForkedError,
    19: NoMemory,
    20: InternalError,
}

FORKED = ("this process was forked from the process that joined the job, so it cannot take part. Start processes with "
          "multiprocessing_context=\"forkserver\" (or \"spawn\"), or do not use the job in them")
