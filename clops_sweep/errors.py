"""The ways in which things end early that a user reads one sentence about."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

_LONGEST_SENTENCE, _BEGINNING, _END = 560, 380, 160
"""Characters of an error that a user reads, and of its two ends where it is longer."""

_PASSWORD = re.compile(r"(://[^:@/?#\s]*:)[^\s'\"]+@")
_SECRET = re.compile(
    r"([?&;][^=&;\s]*(?:key|secret|token|passw|signature|credential)[^=&;\s]*=)[^&;\s'\"]+", re.IGNORECASE
)


def masked(text: str) -> str:
    """A text without the passwords and secret keys of the addresses in it: everything printed goes through this.

    Masked are `PASSWORD` in ``s3://KEY:PASSWORD@bucket`` and the values of parameters such as ``secret_key=``.
    """
    return _SECRET.sub(r"\1***", _PASSWORD.sub(r"\1***@", text)) if "://" in text else text


def sentence(text: str) -> str:
    """An error as a user reads it: without passwords, and without its middle where that is long.

    Values and lists stand in the middle. The beginning names the file or key, the end says what would be right.
    """
    text = masked(text)
    return text if len(text) <= _LONGEST_SENTENCE else f"{text[:_BEGINNING]} ... {text[-_END:]}"


class UsageError(ValueError):
    """Wrong usage or input: one sentence that names the file or key, what is wrong and what would be right.

    The command prints the sentence and ends with exit status 2, before any worker has started.
    """

    def __init__(self, message: str) -> None:
        super().__init__(sentence(message))


class AbsentData(UsageError):
    """A data set's files are not under the data root at all: there is nothing that could be damaged."""


class DamagedStore(UsageError):
    """A file of the results store or of the prepared data that is not what its writer left there."""


class OtherFormat(UsageError):
    """A part of the results store was written by a version of clops-sweep whose parts differ from this one's."""


class UnreadableFile(UsageError):
    """A file of the results store cannot be read now, which says nothing about its content."""


class StoreError(Exception):
    """The store could not be read or written while a sweep was running.

    That is no fault of a run: it is not finished, and has not failed. The command prints the sentence and ends with
    exit status 1; the same command goes on when the store is back.
    """

    def __init__(self, message: str) -> None:
        super().__init__(sentence(message))


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


OF_USERS = (Exception, SystemExit)
"""What a user's code may raise: it must not end the command, as SystemExit would. Ctrl-C is not among them."""


@contextmanager
def user_code(refused: Callable[[BaseException], Exception]) -> Iterator[None]:
    """Raise `refused(error)` for any error of the user's code in the block, also for `sys.exit()`.

    UsageError and an interrupt pass unchanged.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit would end the command, with exit status 0 and without a word
        if isinstance(error, UsageError) and str(error).strip():
            raise
        raise refused(error) from error


def one_line(what: object) -> str:
    """What an exception says, or any text, on one line and without passwords; printing it may fail, too."""
    try:
        text = str(what)
    except Exception:
        text = "(it cannot be printed)"
    return masked(" ".join(text.split()))


def reason(error: BaseException) -> str:
    """An error of the user's code on a line: its kind, and what it says as far as there is room."""
    return f"{type(error).__name__}: {one_line(error)[:_LONGEST_REASON]}"


_LONGEST_REASON = 200
_LONGEST_VALUE = 100
_LONGEST_LIST = 160


def shown(value: object) -> str:
    """A value as Python writes it, as far as there is room for it in a sentence."""
    try:
        text = repr(value)
    except Exception:  # a number of thousands of digits; an object of the user's own
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def calling(what: str) -> AbstractContextManager[None]:
    """Around a call of user code: any error but an interrupt becomes a `UsageError` that begins with `what`."""
    return user_code(lambda error: UsageError(f"{what} raises {reason(error)}"))


def listed(names: Iterable[object]) -> str:
    """Names with commas between them, as far as there is room for them in a sentence."""
    texts = [str(name) for name in names]
    end, room = 0, _LONGEST_LIST
    while end < len(texts) and (room := room - len(texts[end]) - 2) >= 0:
        end += 1
    end = max(1, end)
    return ", ".join(texts[:end]) + (f" and {len(texts) - end} more" if len(texts) > end else "")


_CLOSE, _CLOSE_IF_SHORT = 0.75, 0.6
"""Least `difflib` similarity of a suggested name; one wrong letter of three leaves 0.67."""


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like `name`, or begins with it; None if no name does."""
    names = {each.lower(): each for each in known}
    cutoff = _CLOSE if len(name) > 4 else _CLOSE_IF_SHORT
    close = difflib.get_close_matches(name.lower(), list(names), n=1, cutoff=cutoff)
    close += [each for each in names if name and each.startswith(name.lower())]
    return names[close[0]] if close else None


def nearest(name: str, known: Iterable[str]) -> str:
    """Return " (did you mean 'clops'?)" for an unknown name that is like a known one, else ""."""
    close = closest(name, known)
    return f" (did you mean {close!r}?)" if close else ""


def nearest_or_all(name: str, known: Iterable[str]) -> str:
    """Return the known name most like an unknown one as a question, or all known names if none is like it."""
    known = list(known)
    return nearest(name, known) or f"; known: {listed(known)}"


def several(count: int, what: str) -> str:
    """A number of things: "1 run", "2 runs"."""
    return f"{count} {what}{'' if count == 1 else 's'}"
