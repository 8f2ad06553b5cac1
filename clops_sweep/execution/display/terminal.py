"""Standard output: one that may go away, and one that libraries are kept out of."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TextIO, cast


class Lenient:
    """A stream that takes everything and passes on what it can: what a sweep computes is worth more than what it says.

    Attributes:
        error: what first went wrong.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        """Writes a text, if nothing has gone wrong yet."""
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Passes on what has been written, if nothing has gone wrong yet."""
        self._try(self._stream.flush)

    def _try(self, use: Callable[[], object]) -> None:
        if self.error is None:
            try:
                use()
            except OSError as error:
                self.error = error
            except ValueError as error:  # a user's code has closed it
                self.error = OSError(errno.EBADF, str(error))

    def close(self) -> None:
        """Leaves the stream open: the command still writes to it when the user's code has closed it."""
        self.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def lenient_output() -> Iterator[Lenient]:
    """Standard output is lenient inside, and there even where it was closed, so that no other file takes its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    before = sys.stdout
    output = Lenient(before or os.fdopen(os.dup(1), "w"))
    sys.stdout = cast(TextIO, output)
    try:
        yield output
        output.flush()
    finally:
        sys.stdout = before


def matters(error: OSError) -> bool:
    """Whether what could not be written was wanted: a reader that closes its end of a pipe has had enough."""
    return error.errno != errno.EPIPE


@contextmanager
def output_to(log: Path) -> Iterator[None]:
    """Standard output and error of this process, and of those it starts, go to `log` meanwhile.

    Ray and Tune print from C++ as well as from Python, so the file descriptors themselves are redirected. To write to
    the terminal meanwhile, duplicate its descriptor first (see `display`).
    """
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(target, 1)
        os.dup2(target, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        for descriptor in (*saved, target):
            os.close(descriptor)
