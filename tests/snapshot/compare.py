"""The comparison of tables with those of the snapshot: exact, but for what PyTorch or SciPy computed.

`backend` says what computed a run. PyTorch's sums are in another order on another processor, so its numbers are never
the same to the last bit everywhere; those of the native kernels are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .parts import IDS, Tables

PYTORCH = 1e-3
"""How far a run of PyTorch may be off. The losses of its deep networks differ by up to 1.2e-4 between the instruction
sets of one processor, because a rounding of 6e-8 grows with every layer and step; a step left out changes them by 1e-2.
"""

LOSS_OF_NATIVE_OUTPUTS = 1e-6
"""How far the validation loss of a native run may be off: PyTorch averages it, in float32, from outputs that are exact.
By up to 1.2e-7 between instruction sets. Nothing that is learned or measured depends on it.
"""

CLAIMS = 1e-9
"""How far a verdict's numbers may be off: SciPy computes them in float64."""


@dataclass(frozen=True)
class Difference:
    """Where two tables of a case differ.

    Attributes:
        size: the largest difference of the column, inf if they cannot be compared.
        allowed: how large it may be.
    """

    case: str
    table: str
    column: str
    row: int | None
    what: str
    size: float = np.inf
    allowed: float = 0.0

    def __str__(self) -> str:
        row = "" if self.row is None else f", row {self.row}"
        return f"{self.case}: table {self.table}, column {self.column}{row}: {self.what}"


def differences(stored: Tables, now: Tables, *, ignore_ids: bool = False) -> Iterator[Difference]:
    """Every column of every case in which two tables differ, with its first row that does."""
    pytorch = _computed_by_pytorch(stored) | _computed_by_pytorch(now)
    for table in sorted(stored.keys() | now.keys()):
        before, after = (
            {} if it is None else dict(list(it.groupby("case"))) for it in (stored.get(table), now.get(table))
        )
        for case in sorted(before.keys() | after.keys()):
            if case not in before or case not in after:
                yield Difference(case, table, "case", None, "not in the snapshot" if case in after else "missing now")
                continue
            for found in _of_case(before[case], after[case]):
                if not (ignore_ids and found.column in IDS):
                    yield Difference(case, table, allowed=_allowed(table, found.column, case in pytorch), **vars(found))


def _allowed(table: str, column: str, pytorch: bool) -> float:
    if table in ("verdicts", "evidence"):
        return CLAIMS
    if pytorch:
        return PYTORCH
    return LOSS_OF_NATIVE_OUTPUTS if (table, column) == ("curves", "loss") else 0.0


def _computed_by_pytorch(stored: Tables) -> set[str]:
    if "runs" not in stored:
        return set()
    rows = stored["runs"]
    return set(rows.loc[~rows["backend"].str.startswith("native"), "case"])


@dataclass(frozen=True)
class _Column:
    column: str
    row: int | None
    what: str
    size: float = np.inf


def _of_case(before: pd.DataFrame, after: pd.DataFrame) -> Iterator[_Column]:
    if len(before) != len(after):
        yield _Column("case", None, f"{len(before)} rows then, {len(after)} now")
        return
    for column in [name for name in dict.fromkeys((*before, *after)) if name != "case"]:
        then, now = (it[column].tolist() if column in it else [None] * len(it) for it in (before, after))
        row = next((row for row, (a, b) in enumerate(zip(then, now, strict=True)) if not _equal(a, b)), None)
        if row is not None:
            yield _Column(column, row, f"{_shown(then[row])} then, {_shown(now[row])} now", _distance(then, now))


def _numbers(value: Any) -> np.ndarray:
    """A cell as float64: a number, a list of numbers, or nothing, which is NaN."""
    if value is None:
        return np.array([np.nan])
    return np.atleast_1d(np.asarray(value, dtype=np.float64))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return np.array_equal(_numbers(one), _numbers(other), equal_nan=True)


def _distance(then: list[Any], now: list[Any]) -> float:
    """The largest difference of two columns of numbers; inf where they are no numbers, or of another shape."""
    largest = 0.0
    for one, other in zip(then, now, strict=True):
        if not _equal(one, other):
            if isinstance(one, str) or isinstance(other, str) or len(_numbers(one)) != len(_numbers(other)):
                return np.inf
            apart = np.abs(_numbers(one) - _numbers(other))
            largest = max(largest, float(np.where(np.isnan(apart), np.inf, apart).max()))
    return largest


def _shown(value: Any) -> str:
    text = repr(value.tolist() if isinstance(value, np.ndarray) else value)
    return text if len(text) <= 80 else f"{text[:80]}..."
