"""Warnings of libraries that read files: named as harmless with a reason, or the refusal of the file."""

from __future__ import annotations

import logging
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from clops_sweep.data.files.folder import shorten
from clops_sweep.errors import UsageError, one_line

ABOUT_CODE = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning, ResourceWarning)
"""Categories of warnings about the code of a library, which say nothing about a file."""

_LONGEST = 200


@dataclass(frozen=True)
class Harmless:
    """A warning that changes nothing of what is read.

    Attributes:
        pattern: regular expression that the start of the message matches.
        why: reason why nothing is lost.
    """

    pattern: str
    why: str


class _Collector(logging.Handler):
    """Collects messages of level WARNING and above that one thread logs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.thread = threading.get_ident()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message."""
        if record.thread == self.thread:
            self.messages.append(record.getMessage())


@contextmanager
def warnings_refused(path: Path, what: str, harmless: Sequence[Harmless] = (), library: str = "") -> Iterator[None]:
    """Refuse a file about which a library warns within the block, by a warning or by its log.

    Args:
        path: the file.
        what: what is read, such as "EDF file".
        harmless: warnings that are dropped.
        library: the library, whose log may not reach the root.

    Raises:
        UsageError: a warning is neither about code nor in `harmless`.
    """
    collector = _Collector()
    loggers = [logging.getLogger()]
    own = logging.getLogger(library.partition(".")[0])
    if not own.propagate:
        loggers.append(own)
    for logger in loggers:
        logger.addHandler(collector)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:
        for logger in loggers:
            logger.removeHandler(collector)
    messages = [str(warning.message) for warning in caught if not issubclass(warning.category, ABOUT_CODE)]
    for message in messages + collector.messages:
        if not any(re.match(named.pattern, message) for named in harmless):
            raise UsageError(
                f"{shorten(path)}: not wholly readable as {what}: {one_line(message)[:_LONGEST]}; "
                "repair or export the file again, or leave it out"
            )
