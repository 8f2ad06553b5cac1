"""The ways in which things end early that a user reads one sentence about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


class BadInput(ValueError):
    """Wrong usage or input: one sentence that names the file or key, what is wrong and what would be right.

    The command prints the sentence and ends with exit status 2, before any worker has started.
    """


class AbsentData(BadInput):
    """A data set's files are not under the data root at all: there is nothing that could be damaged."""


class DamagedStore(BadInput):
    """A file of the results store or of the prepared data that is not what its writer left there."""


class StoreError(Exception):
    """The store could not be read or written while a sweep was running.

    That is no fault of a run: it is not finished, and has not failed. The command prints the sentence and ends with
    exit status 1; the same command goes on when the store is back.
    """


class Diverged(FloatingPointError):
    """The training of some runs of a lockstep has come to parameters or outputs that are no numbers.

    Attributes:
        runs: their positions in the lockstep.
    """

    def __init__(self, message: str, runs: Sequence[int]) -> None:
        super().__init__(message, runs)
        self.message = message
        self.runs = tuple(runs)

    def __str__(self) -> str:
        return self.message


@contextmanager
def user_code(refused: Callable[[BaseException], Exception]) -> Iterator[None]:
    """Raise `refused(error)` for any error of the user's code in the block, also for `sys.exit()`.

    BadInput and an interrupt pass unchanged.
    """
    try:
        yield
    except (BadInput, KeyboardInterrupt):
        raise
    except BaseException as error:  # SystemExit would end the command, with exit status 0 and without a word
        raise refused(error) from None


def one_line(what: object) -> str:
    """What an exception says, or any text, on one line; what a user's code raises may not let itself be printed."""
    try:
        text = str(what)
    except Exception:
        text = "(it cannot be printed)"
    return " ".join(text.split())


def reason(error: BaseException) -> str:
    """An error of the user's code on a line: its kind, and what it says as far as there is room."""
    return f"{type(error).__name__}: {one_line(error)[:_LONGEST_REASON]}"


_LONGEST_REASON = 500
_LONGEST_VALUE = 100


def shown(value: object) -> str:
    """A value as Python writes it, as far as there is room for it in a sentence."""
    try:
        text = repr(value)
    except Exception:  # a number of thousands of digits; an object of the user's own
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def several(count: int, what: str) -> str:
    """A number of things: "1 run", "2 runs"."""
    return f"{count} {what}{'' if count == 1 else 's'}"
