"""A message on the terminal while modules are imported and files and stores are read."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO, cast

from clops_sweep.errors import masked


@contextlib.contextmanager
def startup_message(arguments: Sequence[str]) -> Iterator[None]:
    """Show a message on a terminal until something is written to standard output or error in the block."""
    terminal = sys.stderr
    if terminal is None or not terminal.isatty() or os.environ.get("TERM", "dumb") == "dumb" or not arguments:
        yield
        return
    files = (Path(argument).name for argument in arguments if argument.endswith(".py"))
    subject = f"reading {next(files, 'the store')}"
    is_launch = arguments[0].endswith(".py") or arguments[0] == "launch"
    subject = f"{subject} and importing PyTorch" if is_launch else f"{masked(arguments[0])}: {subject}"
    terminal.write(f"clops-sweep: {subject if subject.isprintable() else 'working'} ...\r")
    terminal.flush()
    word = _Word(terminal)
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (stream and cast(TextIO, _After(word, stream)) for stream in before)
    try:
        yield
    finally:
        word.erase()
        sys.stdout, sys.stderr = before


class _Word:
    def __init__(self, terminal: TextIO) -> None:
        self._terminal, self._is_there = terminal, True

    def erase(self) -> None:
        if self._is_there:
            self._is_there = False
            with contextlib.suppress(OSError):
                self._terminal.write("\x1b[2K\r")
                self._terminal.flush()


class _After:
    """A stream that erases the message before its first use."""

    def __init__(self, word: _Word, stream: TextIO) -> None:
        self._word, self._stream = word, stream

    @property
    def closed(self) -> bool:
        """Whether the stream is closed; reading this does not count as use."""
        return self._stream.closed

    def __getattr__(self, name: str) -> Any:
        self._word.erase()
        return getattr(self._stream, name)
