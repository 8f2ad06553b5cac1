"""Standard output that may be closed, and its redirection while libraries print."""

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
    """A stream that ignores errors of writing, because a sweep should not end if its output cannot be written.

    Attributes:
        error: the first error.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text, unless an error has occurred."""
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream, unless an error has occurred."""
        self._try(self._stream.flush)

    def _try(self, use: Callable[[], object]) -> None:
        if self.error is None:
            try:
                use()
            except OSError as error:
                self.error = error
            except ValueError as error:  # user code has closed it
                self.error = OSError(errno.EBADF, str(error))

    def close(self) -> None:
        """Leave the stream open: the command writes to it even after user code has closed it."""
        self.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def lenient_output() -> Iterator[Lenient]:
    """Make standard output lenient in the block, and open it if closed, so that no file takes its descriptor."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor
    before = sys.stdout
    output = Lenient(before or os.fdopen(os.dup(1), "w"))
    sys.stdout = cast(TextIO, output)
    try:
        yield output
        output.flush()
    finally:
        sys.stdout = before


def matters(error: OSError) -> bool:
    """Return whether an error of writing matters: a reader that closes its end of a pipe wants no more output."""
    return error.errno != errno.EPIPE


@contextmanager
def output_to(log: Path) -> Iterator[None]:
    """Redirect standard output and error of this process and its children to `log`.

    Ray and Tune also print from C++, so the file descriptors themselves are redirected. To reach the terminal
    meanwhile, duplicate it first (see `display`). In a notebook, Python's streams send text to a page instead of
    writing to a descriptor, so they are replaced, too.
    """
    with open(log, "a", buffering=1, encoding="utf-8") as text, contextlib.ExitStack() as stack:
        if descriptor_of(sys.stdout) < 0:
            stack.enter_context(contextlib.redirect_stdout(text))
        if descriptor_of(sys.stderr) < 0:
            stack.enter_context(contextlib.redirect_stderr(text))
        with _descriptors_to(log):
            yield


def descriptor_of(stream: IO[str] | None) -> int:
    """Return 1 or 2, if a stream writes to standard output or error of the process, else -1, as in a notebook."""
    try:
        descriptor = -1 if stream is None else stream.fileno()
    except (OSError, ValueError, AttributeError):  # no file, or a closed one
        return -1
    return descriptor if descriptor in (1, 2) else -1


@contextmanager
def _descriptors_to(log: Path) -> Iterator[None]:
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
