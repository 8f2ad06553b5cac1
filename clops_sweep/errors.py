"""The ways in which things end early that a user reads one sentence about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


_LONGEST_REASON = 200
_LONGEST_VALUE = 100


def shown(value: object) -> str:
    """A value as Python writes it, as far as there is room for it in a sentence."""
    try:
        text = repr(value)
    except Exception:  # a number of thousands of digits; an object of the user's own
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


@contextmanager
def calling(what: str) -> Iterator[None]:
    """Around a call of the user's own code, which may raise anything, `SystemExit` included.

    Args:
        what: names the function and where it comes from, such as ``search space 'mine': where``.

    Raises:
        BadInput: the code raised something other than a `BadInput` or an interrupt.
    """
    try:
        yield
    except (KeyboardInterrupt, BadInput):
        raise
    except BaseException as error:
        raise BadInput(f"{what} raises {reason(error)}") from None


MOST_NAMES = 12


def listed(names: Iterable[object]) -> str:
    """Names with commas between them; of very many the first dozen, and how many others there are."""
    texts = [str(name) for name in names]
    left = len(texts) - MOST_NAMES
    return ", ".join(texts) if left <= 1 else f"{', '.join(texts[:MOST_NAMES])} and {left} others"


def several(count: int, what: str) -> str:
    """A number of things: "1 run", "2 runs"."""
    return f"{count} {what}{'' if count == 1 else 's'}"
