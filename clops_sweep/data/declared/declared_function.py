"""Calls of the function of a data set; its errors become one sentence."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from clops_sweep.data.catalog import DATASETS, Declared
from clops_sweep.data.declared.one_by_one import one_by_one
from clops_sweep.data.declared.recordings import Recordings
from clops_sweep.data.records import Common, EveryRecordFails, Source
from clops_sweep.errors import AbsentData, UsageError, one_line, user_code


def declaration(name: str) -> Declared:
    """Return the declaration of a data set.

    Raises:
        AbsentData: no file in this process declares it.
    """
    declared = DATASETS.declared(name)
    if declared is None:
        raise AbsentData(
            f"dataset {name!r} is not declared by any given file; pass the file that declares it: --plugins FILE"
        )
    return declared


def recordings_of(name: str, root: Path | None) -> tuple[Common, Iterable[Source]]:
    """Return the values common to the recordings of a data set, and its recordings."""
    declared = declaration(name)
    try:
        with user_code(partial(_raised, declared)):
            returned = declared.member(root)
        if isinstance(returned, Recordings):
            if declared.recording:
                given = next(iter(declared.recording))
                raise UsageError(f"{given}: only for functions that yield Recording(...); pass it to Recordings(...)")
            return replace(returned.common, name=name), returned.sources()
        if not isinstance(returned, Iterator):
            what = "nothing" if returned is None else f"a {type(returned).__name__}"
            raise UsageError(f"the function returns {what}; expected Recordings(...), or that it yields Recording(...)")
        common, yielded = one_by_one(_guarded(returned, declared), declared.recording)
    except UsageError as problem:
        raise refused(name, str(problem)) from None
    return replace(common, name=name), _prefixed(name, yielded)


def refused(name: str, what: str) -> UsageError:
    """Return an error that begins with the data set."""
    return EveryRecordFails(what if what.startswith(f"dataset {name!r}") else f"dataset {name!r}: {what}")


def _prefixed(name: str, yielded: Iterator[Source]) -> Iterator[Source]:
    try:
        yield from yielded
    except UsageError as problem:
        raise refused(name, str(problem)) from None


def _guarded(yielded: Iterator[Any], declared: Declared) -> Iterator[Any]:
    """Yield from a generator; errors of its code become one sentence."""
    ended = object()
    while True:
        with user_code(partial(_raised, declared)):
            each = next(yielded, ended)
        if each is ended:
            return
        yield each


def _raised(declared: Declared, error: BaseException) -> UsageError:
    """Return one sentence about an error of a declared function, with its line."""
    place = getattr(declared.member, "__code__", None)
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if place is not None and frame.filename == place.co_filename
    ]
    line = f" in line {lines[-1]}" if lines else ""
    return UsageError(f"the function raises {type(error).__name__}{line}: {one_line(error)[:300]}")
