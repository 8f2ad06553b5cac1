"""The function that declares a data set: called for labels and patients, and once more for the samples."""

from __future__ import annotations

import builtins
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from clops_sweep.data.catalog import DATASETS, Declared
from clops_sweep.data.declared.in_memory import InMemory, Outline
from clops_sweep.data.declared.one_by_one import one_by_one
from clops_sweep.data.declared.recordings import Recordings
from clops_sweep.data.records import Common, EveryRecordFails, Source
from clops_sweep.errors import AbsentData, UsageError, one_line, user_code


class DeclaredFunction:
    """The function of the data set of a name, and how far it was called."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._root: Path | None = None
        self._many = 0
        self._common: Common | None = None
        self._again: Iterator[tuple[int, Source]] | None = None
        self._at: tuple[int, InMemory] | None = None
        self._failed: UsageError | None = None

    def declared(self) -> Declared:
        """The declaration.

        Raises:
            AbsentData: no file of this process declares the data set.
        """
        declared = DATASETS.declared(self._name)
        if declared is None:
            raise AbsentData(
                f"dataset {self._name!r} is declared by no file that was given; name the one that does: --plugins FILE"
            )
        return declared

    def call(self, root: Path | None) -> tuple[Common, Iterator[Source]]:
        """What the function returns, whatever form it has; what it raises becomes one sentence.

        Recordings in memory come without their samples, which are taken from a second call.
        """
        self._root = root
        self._again = self._at = self._failed = None
        self._common, sources = self._called()
        return self._common, self._outlined(sources)

    def _outlined(self, sources: Iterator[Source]) -> Iterator[Source]:
        self._many = 0
        for turn, source in enumerate(sources):
            self._many += 1
            yield Outline.made(source, self, turn) if isinstance(source, InMemory) else source

    def samples(self, outline: Outline) -> InMemory:
        """Recordings with their samples, from a second call, in the order of the first.

        Raises:
            UsageError: they are not the same as in the first call, or the function raises.
        """
        held = self._called_again(outline)
        if len(held) != outline.whole:
            raise self._changed(outline.record)
        if len(held) != len(outline):
            held = held.portion(outline.begin, outline.begin + len(outline))
        change = outline.first_change(Outline.made(held, self, outline.turn))
        if change is not None:
            raise self._changed(outline.names[change])
        return held

    def refused(self, what: str) -> UsageError:
        """A sentence that begins with the data set."""
        return EveryRecordFails(
            what if what.startswith(f"dataset {self._name!r}") else f"dataset {self._name!r}: {what}"
        )

    def _called(self) -> tuple[Common, Iterator[Source]]:
        declared = self.declared()
        try:
            with user_code(partial(_raised, declared)), _unharmed():
                returned = declared.member(self._root)
            if isinstance(returned, Recordings):
                if declared.recording:
                    given = next(iter(declared.recording))
                    raise UsageError(
                        f"{given}: it goes with a function that yields Recording(...); give it to Recordings(...)"
                    )
                return replace(returned.common, name=self._name), returned.sources()
            if returned is None:
                raise UsageError(
                    "the function returns nothing; expected Recordings(...), or that it yields Recording(...)"
                )
            if not isinstance(returned, Iterator):
                what = type(returned).__name__
                raise UsageError(
                    f"the function returns a {what}; expected Recordings(...), or that it yields Recording(...)"
                )
            common, recordings = one_by_one(_guarded(returned, declared), declared.recording)
        except UsageError as problem:
            raise self.refused(str(problem)) from None
        return replace(common, name=self._name), self._guarded(recordings)

    def _guarded(self, recordings: Iterator[InMemory]) -> Iterator[InMemory]:
        try:
            yield from recordings
        except UsageError as problem:
            raise self.refused(str(problem)) from None

    def _called_again(self, outline: Outline) -> InMemory:
        if self._at is not None and self._at[0] == outline.turn:
            return self._at[1]
        if self._failed is not None:
            raise self._failed
        try:
            if self._again is None:
                common, sources = self._called()
                if common != self._common:
                    raise self._changed(outline.record)
                self._again = enumerate(sources)
            for turn, source in self._again:
                if turn == outline.turn and isinstance(source, InMemory):
                    if turn == self._many - 1 and next(self._again, None) is not None:
                        break  # more recordings than the first time
                    self._at = (turn, source)
                    return source
        except UsageError as problem:
            self._failed = problem  # a generator that has raised gives nothing more, and would not say why
            raise
        raise self._changed(outline.record)

    def _changed(self, record: str) -> UsageError:
        return self.refused(
            f"the function gives other data when it is called again (recording {record!r}); expected the same "
            "for the same files: draw numbers from a generator with a fixed seed"
        )


def _guarded(yielded: Iterator[Any], declared: Declared) -> Iterator[Any]:
    """What a generator yields; an error of its code becomes one sentence."""
    ended = object()
    while True:
        with user_code(partial(_raised, declared)), _unharmed():
            each = next(yielded, ended)
        if each is ended:
            return
        yield each


@contextmanager
def _unharmed() -> Iterator[None]:
    """Puts back what the rest of the command needs, and a data set's function may have replaced."""
    opened, depth = builtins.open, sys.getrecursionlimit()
    try:
        yield
    finally:
        builtins.open = opened
        sys.setrecursionlimit(max(depth, sys.getrecursionlimit()))


def _raised(declared: Declared, error: BaseException) -> UsageError:
    """One sentence about an error of a declared function, with its line."""
    place = getattr(declared.member, "__code__", None)
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if place is not None and frame.filename == place.co_filename
    ]
    line = f" in line {lines[-1]}" if lines else ""
    return UsageError(f"the function raises {type(error).__name__}{line}: {one_line(error)[:300]}")
