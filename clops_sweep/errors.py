"""Errors that users see as one sentence, and helpers to write such sentences."""

from __future__ import annotations

import difflib
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

_LONGEST_SENTENCE, _BEGINNING, _END = 560, 380, 160
"""Most characters of an error sentence, and of its two ends if it is longer."""

_IN_PYTHON = ContextVar("in_python", default=False)
"""Whether errors are for a caller of the public functions; else they are for a user of the command."""

_OF_COMMAND = {"retry_failed": "retry failed", "settings": "set"}
"""Options of the command whose names differ from those of the arguments."""

_PASSWORD = re.compile(r"(://[^:@/?#\s]*:)[^\s'\"]+@")
_SECRET = re.compile(
    r"([?&;][^=&;\s]*(?:key|secret|token|passw|signature|credential)[^=&;\s]*=)[^&;\s'\"]+", re.IGNORECASE
)


def masked(text: str) -> str:
    """Mask passwords and secret keys of addresses in a text; everything printed goes through this function.

    Masked are `PASSWORD` in ``s3://KEY:PASSWORD@bucket`` and the values of parameters such as ``secret_key=``.
    """
    return _SECRET.sub(r"\1***", _PASSWORD.sub(r"\1***@", text)) if "://" in text else text


def sentence(text: str) -> str:
    """Return an error as a sentence for the user, without passwords and shortened in the middle.

    Long values are in the middle; the beginning names the file or key, the end says what would be right.
    """
    text = masked(text)
    return text if len(text) <= _LONGEST_SENTENCE else f"{text[:_BEGINNING]} ... {text[-_END:]}"


class UsageError(ValueError):
    """Wrong usage or input: one sentence that names the file or key, what is wrong and what would be right.

    The command prints the sentence and ends with exit status 2, before any worker has started.

    Args:
        message: the sentence.
        place: the file or key that it begins with, if a caller may name it too (see `prefixed`).

    Attributes:
        places: the places that the sentence begins with.
    """

    def __init__(self, message: str, *, place: object = None) -> None:
        super().__init__(sentence(message))
        self.places: tuple[str, ...] = () if place is None else (str(place),)


class OtherDefinition(UsageError):
    """A study was created from another definition than that of the search space of its name.

    Args:
        message: the sentence, whose end says what to do in any case.
        entry: name of the first entry of the definition that differs, such as "seeds".
        before: value of this entry in the study.
    """

    def __init__(self, message: str, entry: str, before: Any) -> None:
        super().__init__(message)
        self.entry = entry
        self.before = before


class OtherData(OtherDefinition):
    """A study was created with the same definition, on another edition of the prepared data: it can be read."""


class AbsentData(UsageError):
    """The files of a data set are not under the data root, so that none can be damaged."""


class DamagedStore(UsageError):
    """A file of the results store or of the prepared data was damaged or changed."""


class OtherFormat(UsageError):
    """A part of the results store was written by a version of clops-sweep with another format."""


class UnreadableFile(UsageError):
    """A file of the results store cannot be accessed; its content may be intact."""


class StoreError(Exception):
    """The store could not be read or written while a sweep was running.

    The runs concerned are neither finished nor failed. The command prints the sentence and exits with status 1; the
    same command continues when the store is back.
    """

    def __init__(self, message: str) -> None:
        super().__init__(sentence(message))


class Diverged(FloatingPointError):
    """Parameters or outputs of the network are not finite."""


_NOT_OF_USERS = {"clops_sweep", "contextlib"}
"""Packages whose frames lie between a call of the user and a warning."""


def warn_user(text: str) -> None:
    """Warn of a fact, at the line of the user's code that called this package; each time, also in the same line."""
    frame = inspect.currentframe()
    file, line = "clops_sweep", 1
    while frame is not None:
        file, line = frame.f_code.co_filename, frame.f_lineno
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _NOT_OF_USERS:
            break
        frame = frame.f_back
    warnings.warn_explicit(text, UserWarning, file, line, registry={})


OF_USERS = (Exception, SystemExit)
"""Exceptions of a user's code that must not end the command, including SystemExit; not Ctrl-C."""


@contextmanager
def prefixed(where: object) -> Iterator[None]:
    """Begin errors in the block with a place, unless they name it already."""
    try:
        yield
    except UsageError as problem:
        if str(where) in problem.places:
            raise
        with_place = UsageError(f"{where}: {problem}", place=where)
        with_place.places += problem.places
        raise with_place from None


@contextmanager
def user_code(refused: Callable[[BaseException], Exception]) -> Iterator[None]:
    """Raise `refused(error)` for any error of the user's code in the block, also for `sys.exit()`.

    UsageError and an interrupt pass unchanged.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit would end the command silently, with exit status 0
        if isinstance(error, UsageError) and str(error).strip():
            raise
        raise refused(error) from error


@contextmanager
def speaking_python() -> Iterator[None]:
    """Name arguments of functions in the sentences made in the block, instead of options of the command."""
    before = _IN_PYTHON.set(True)
    try:
        yield
    finally:
        _IN_PYTHON.reset(before)


def either(command: str, python: str) -> str:
    """Return the words for a user of the command, or those for a caller of the public functions."""
    return python if _IN_PYTHON.get() else command


def option(name: str, value: object = None) -> str:
    """Return an option for a sentence: `--data-root DIR`, or the argument `data_root=DIR` of the public functions.

    Args:
        name: name of the argument.
        value: its value, or a placeholder in capital letters; None for the name alone.
    """
    words = f"--{_OF_COMMAND.get(name, name).replace('_', '-')}"
    if value is None:
        return either(words, name)
    text = f"{value:g}" if isinstance(value, float) else str(value)
    is_placeholder = not isinstance(value, str) or text.isupper()
    return either(f"{words} {text}", f"{name}={text if is_placeholder else shown(text)}")


def one_line(what: object) -> str:
    """Return the message of an exception, or a text, on one line and without passwords."""
    try:
        text = str(what)
    except Exception:
        text = "(it cannot be printed)"
    return masked(" ".join(text.split()))


def reason(error: BaseException) -> str:
    """Return an error of the user's code on one line: its type and its message, shortened."""
    return f"{type(error).__name__}: {one_line(error)[:_LONGEST_REASON]}"


_LONGEST_REASON = 200
_LONGEST_VALUE = 100
_LONGEST_LIST = 160
_LONGEST_LAST = 40


def shown(value: object) -> str:
    """Return the repr of a value, shortened to fit into a sentence."""
    try:
        text = " ".join(repr(value).split("\n"))
    except Exception:  # an integer with thousands of digits, or a user's object
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def calling(what: str) -> AbstractContextManager[None]:
    """Convert errors of user code in the block, except interrupts, to a `UsageError` that begins with `what`."""
    return user_code(lambda error: UsageError(f"{what} raises {reason(error)}"))


def listed(names: Iterable[object]) -> str:
    """Return names separated by commas, shortened to fit into a sentence."""
    texts = [str(name) for name in names]
    end, room = 0, _LONGEST_LIST
    while end < len(texts) and (room := room - len(texts[end]) - 2) >= 0:
        end += 1
    end = max(1, end)
    if len(texts) - end == 1 and len(texts[-1]) <= _LONGEST_LAST:  # "and 1 more" is hardly shorter
        end = len(texts)
    return ", ".join(texts[:end]) + (f" and {len(texts) - end} more" if len(texts) > end else "")


_CLOSE, _CLOSE_IF_SHORT = 0.75, 0.6
"""Least `difflib` similarity of a suggested name; one wrong letter of three leaves 0.67."""


_MOST_BEGINNING = 2
"""Most suggested names that only begin with the given one."""


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to `name`, or beginning with it; None if there is no such name."""
    return next(iter(_alike(name, known)), None)


def _alike(name: str, known: Iterable[str]) -> list[str]:
    """Return the known name most similar to `name`, and then those that begin with it."""
    names = {each.lower(): each for each in known}
    cutoff = _CLOSE if len(name) > 4 else _CLOSE_IF_SHORT
    spelt = name.lower().replace("+", "p")  # as in DER++, whose name is derpp
    close = difflib.get_close_matches(spelt, list(names), n=1, cutoff=cutoff)
    close += [each for each in names if name and each.startswith(name.lower())]
    return [names[each] for each in dict.fromkeys(close)]


def nearest(name: str, known: Iterable[str]) -> str:
    """Return " (did you mean 'clops'?)" for an unknown name that is similar to a known one, else "".

    If the most similar one does not begin with the name, up to two that do follow: "der" may mean 'er' or 'derpp'.
    """
    close = _alike(name, known)
    if not close:
        return ""
    is_beginning = close[0].lower().startswith(name.lower())
    meant = close[:1] if is_beginning else close[: 1 + _MOST_BEGINNING]
    return f" (did you mean {' or '.join(map(repr, meant))}?)"


def nearest_or_all(name: str, known: Iterable[str]) -> str:
    """Return the most similar known name as a question, or all known names if none is similar."""
    known = list(known)
    return nearest(name, known) or f"; known: {listed(known)}"


def several(count: int, what: str) -> str:
    """Return a count with its noun: "1 run", "2 runs"."""
    return f"{count} {what}{'' if count == 1 else 's'}"
