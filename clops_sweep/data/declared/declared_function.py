"""The function that declares a data set: called for labels and patients, and once more for the samples."""

from __future__ import annotations

import builtins
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from clops_sweep.data.catalog import DATASETS, Declared
from clops_sweep.data.declared.one_by_one import one_by_one
from clops_sweep.data.declared.recording_items import Common, Item
from clops_sweep.data.declared.recording_stack import Outline, Stack, stacked
from clops_sweep.data.declared.recordings import Recordings
from clops_sweep.data.reader import EveryRecordFails, Source
from clops_sweep.errors import AbsentData, BadInput, one_line, user_code


@dataclass(frozen=True, eq=False)
class Held:
    """Recordings in memory, whose samples are had by calling the function again.

    They are those from `begin` on of the stack at `place` among all that the function gives. That stack has `whole`
    recordings.
    """

    outline: Outline
    place: int
    whole: int
    begin: int = 0

    def source(self) -> Source:
        """They as a source."""
        names = tuple(self.outline.stack.names)
        return Source(names[0], (), self, records=names)

    def apart(self) -> list[Source]:
        """Every one of them as a source."""
        return [
            Held(self.outline.portion(place, place + 1), self.place, self.whole, self.begin + place).source()
            for place in range(len(self.outline.stack))
        ]


class DeclaredFunction:
    """A data set's function, by the data set's name; pickled without the function's own objects."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._root: Path | None = None
        self._groups = 0
        self._common: Common | None = None
        self._again: Iterator[tuple[int, Item | Stack]] | None = None
        self._at: tuple[int, Stack] | None = None
        self._same: tuple[Held, Stack] | None = None
        self._failed: BadInput | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without what other processes need not be able to have."""
        return {**vars(self), "_again": None, "_at": None, "_same": None, "_failed": None}

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

    def call(self, root: Path | None) -> tuple[Common, Iterator[Item | Stack]]:
        """What the function returns, whatever form it has; what it raises becomes one sentence."""
        self._root = root
        self._again = self._at = self._same = self._failed = None
        self._common, groups = self._called()
        return self._common, self._counted(groups)

    def _counted(self, groups: Iterator[Item | Stack]) -> Iterator[Item | Stack]:
        self._groups = 0
        for group in groups:
            self._groups += 1
            yield group

    def samples(self, source: Source) -> Stack:
        """Recordings that are held, with their samples, from a second call, in the order of the first.

        Raises:
            BadInput: they are not the same as in the first call, or the function raises.
        """
        held: Held = source.detail
        if self._same is not None and self._same[0] is held:
            return self._same[1]
        stack = self._called_again(source, held.place)
        if len(stack) != held.whole:
            raise self._changed(held.outline.stack.names[0])
        if len(stack) != len(held.outline.stack):
            stack = stack.portion(held.begin, held.begin + len(held.outline.stack))
        change = held.outline.first_change(stack.outline())
        if change is not None:
            raise self._changed(held.outline.stack.names[change])
        self._same = held, stack
        return stack

    def refused(self, what: str) -> BadInput:
        """A sentence that begins with the data set."""
        return EveryRecordFails(
            what if what.startswith(f"dataset {self._name!r}") else f"dataset {self._name!r}: {what}"
        )

    def _called(self) -> tuple[Common, Iterator[Item | Stack]]:
        declared = self.declared()
        try:
            with user_code(partial(_raised, declared)), _unharmed():
                returned = declared.member(self._root)
            if isinstance(returned, Recordings):
                if declared.recording:
                    given = next(iter(declared.recording))
                    raise BadInput(
                        f"{given}: it goes with a function that yields Recording(...); give it to Recordings(...)"
                    )
                found = returned.items
                return returned.common, found.portions() if isinstance(found, Stack) else stacked(found)
            if returned is None:
                raise BadInput(
                    "the function returns nothing; expected Recordings(...), or that it yields Recording(...)"
                )
            if not isinstance(returned, Iterator):
                what = type(returned).__name__
                raise BadInput(
                    f"the function returns a {what}; expected Recordings(...), or that it yields Recording(...)"
                )
            common, items = one_by_one(_guarded(returned, declared), declared.recording)
        except BadInput as problem:
            raise self.refused(str(problem)) from None
        return common, stacked(self._guarded(items))

    def _guarded(self, items: Iterator[Item]) -> Iterator[Item]:
        try:
            yield from items
        except BadInput as problem:
            raise self.refused(str(problem)) from None

    def _called_again(self, source: Source, place: int) -> Stack:
        if self._at is not None and self._at[0] == place:
            return self._at[1]
        if self._failed is not None:
            raise self._failed
        try:
            if self._again is None:
                common, groups = self._called()
                if common != self._common:
                    raise self._changed(source.record)
                self._again = enumerate(groups)
            for number, group in self._again:
                if number == place and isinstance(group, Stack):
                    if number == self._groups - 1 and next(self._again, None) is not None:
                        break  # more recordings than the first time
                    self._at = (number, group)
                    return group
        except BadInput as problem:
            self._failed = problem  # a generator that has raised gives nothing more, and would not say why
            raise
        raise self._changed(source.record)

    def _changed(self, record: str) -> BadInput:
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


def _raised(declared: Declared, error: BaseException) -> BadInput:
    """One sentence about an error of a declared function, with its line."""
    place = getattr(declared.member, "__code__", None)
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if place is not None and frame.filename == place.co_filename
    ]
    line = f" in line {lines[-1]}" if lines else ""
    return BadInput(f"the function raises {type(error).__name__}{line}: {one_line(error)[:300]}")
