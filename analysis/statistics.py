"""Means, spreads, and paired differences over common seeds with a bootstrap interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import special, stats

RESAMPLES = 10_000
CONFIDENCE = 0.95
MIN_PAIRS = 3

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """Mean and sample standard deviation (n - 1 in the denominator) of n values; NaN where undefined."""

    mean: float
    sd: float
    n: int


_NOTHING = Estimate(np.nan, np.nan, 0)
_AT_ONCE = 2_000_000
"""Means of resamples that are held in memory."""


@dataclass(frozen=True)
class PairedDifference:
    """The mean of differences over common seeds, with a bootstrap interval and a p-value.

    `low` and `high` are NaN below 3 pairs, where no interval means anything. `p` is the paired t-test's, NaN where
    it is not defined.
    """

    mean: float
    low: float
    high: float
    p: float
    n: int

    @property
    def excludes_zero(self) -> bool:
        """True where the whole interval lies on one side of zero."""
        return self.low > 0 or self.high < 0


def estimate(values: npt.ArrayLike) -> Estimate:
    """Mean and standard deviation of the values that are numbers."""
    array = np.asarray(values, dtype=float)
    array = array[np.isfinite(array)]
    mean = float(array.mean()) if array.size else np.nan
    sd = float(array.std(ddof=1)) if array.size > 1 else np.nan
    return Estimate(mean, sd, int(array.size))


def estimates(values: Floats) -> list[Estimate]:
    """`estimate` of every row of an array of shape (rows, values)."""
    whole = np.array([values.shape[1] > 1]) & np.isfinite(values).all(axis=1)
    found = [_NOTHING if full else estimate(row) for full, row in zip(whole.tolist(), values, strict=True)]
    rows, complete = np.flatnonzero(whole), values[whole]
    if rows.size:
        for row, mean, sd in zip(rows, complete.mean(axis=1), complete.std(axis=1, ddof=1), strict=True):
            found[row] = Estimate(float(mean), float(sd), values.shape[1])
    return found


def highest_coverage(pairs: int) -> float:
    """The coverage that no bootstrap interval over so few pairs can pass: 1 - 2^(1 - n).

    With probability 2^(1 - n) all n differences fall on the same side of their median; every resample then does too.
    """
    return 1 - 2.0 ** (1 - pairs)


def paired_difference(
    ours: npt.ArrayLike, theirs: npt.ArrayLike, units: Sequence[int] | None = None
) -> PairedDifference:
    """Mean of `ours` - `theirs` over the positions where both are numbers.

    The interval is the percentile bootstrap's over the units, its tail probabilities widened for few units from a/2
    to Phi(-sqrt(n / (n - 1)) t(1 - a/2; n - 1)) (Hesterberg 2015, "expanded percentile"), 10,000 resamples, always
    the same ones for the same n.

    Args:
        ours: values by replicate, NaN where missing.
        theirs: the same replicates in the same order.
        units: what is resampled as a whole, such as a patient split with all its seeds; default: each position.
    """
    one = paired_differences(np.asarray(ours, dtype=float)[None], np.asarray(theirs, dtype=float)[None], units)
    return one[0]


def paired_differences(ours: Floats, theirs: Floats, units: Sequence[int] | None = None) -> list[PairedDifference]:
    """`paired_difference` of every row of two arrays of shape (rows, replicates), all rows at once."""
    differences = ours - theirs
    if not len(differences):
        return []
    labels = np.arange(differences.shape[1]) if units is None else np.asarray(units)
    found = [PairedDifference(np.nan, np.nan, np.nan, np.nan, 0)] * len(differences)
    there, group_of = np.unique(np.isfinite(differences), axis=0, return_inverse=True)
    for group, columns in enumerate(there):
        if not columns.any():
            continue
        rows = np.flatnonzero(group_of.reshape(-1) == group)
        by_unit, units_there = differences[np.ix_(rows, np.flatnonzero(columns))], labels[columns]
        each = np.unique(units_there)
        if each.size < units_there.size:
            by_unit = np.stack([by_unit[:, units_there == unit].mean(axis=1) for unit in each], axis=1)
        low, high = bootstrap_intervals(by_unit)
        values = zip(rows.tolist(), by_unit.mean(axis=1), low, high, _t_tests(by_unit), strict=True)
        for row, mean, at_least, at_most, p in values:
            found[row] = PairedDifference(float(mean), float(at_least), float(at_most), float(p), by_unit.shape[1])
    return found


def bootstrap_interval(values: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """An interval for the mean of a few values; (NaN, NaN) below 3."""
    low, high = bootstrap_intervals(values[None], confidence)
    return float(low[0]), float(high[0])


def bootstrap_intervals(values: Floats, confidence: float = CONFIDENCE) -> tuple[Floats, Floats]:
    """`bootstrap_interval` of every row of an array of shape (rows, values)."""
    rows, n = values.shape
    if n < MIN_PAIRS:
        return np.full(rows, np.nan), np.full(rows, np.nan)
    tail = _tail(n, confidence)
    weights, counts = _weights(n)
    step = max(1, _AT_ONCE // len(weights))
    parts = []
    for first in range(0, rows, step):
        means = values[first : first + step] @ weights.T
        order = np.argsort(means, axis=1)
        upto = np.cumsum(counts[order], axis=1)
        ordered = np.take_along_axis(means, order, axis=1)
        parts.append([_quantile(ordered, upto, at) for at in (tail, 1 - tail)])
    low, high = np.concatenate(parts, axis=1) if parts else np.empty((2, 0))
    return low, high


def _quantile(ordered: Floats, upto: npt.NDArray[np.int64], share: float) -> Floats:
    """The quantile, between neighbours by their distance, of rows in which the first of `upto` are as large or less."""
    place = share * (RESAMPLES - 1)
    first, part = int(place), place - int(place)
    below, above = (
        np.take_along_axis(ordered, (upto <= rank).sum(axis=1)[:, None], axis=1)[:, 0]
        for rank in (first, min(first + 1, RESAMPLES - 1))
    )
    return below + (above - below) * part


def holm(p_values: npt.ArrayLike) -> Floats:
    """Holm's step-down correction: family-wise error over all p-values that are numbers; NaN stays NaN."""
    p = np.asarray(p_values, dtype=float)
    corrected = np.full(p.shape, np.nan)
    known = np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return corrected


@cache
def _tail(n: int, confidence: float) -> float:
    return float(stats.norm.cdf(-np.sqrt(n / (n - 1)) * stats.t.ppf((1 + confidence) / 2, n - 1)))


def _t_tests(values: Floats) -> Floats:
    """Two-sided p of a one-sample t-test of each row against 0; written out, as scipy's checks take longer."""
    n = values.shape[1]
    if n < 2:
        return np.full(len(values), np.nan)
    # Equal differences have no variance, and a t-test of them no answer.
    unlike = np.ptp(values, axis=1) > 0
    spread = np.where(unlike, values.std(axis=1, ddof=1), 1.0) / np.sqrt(n)
    return np.where(unlike, 2 * special.stdtr(n - 1, -np.abs(values.mean(axis=1) / spread)), np.nan)


@cache
def _weights(n: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Resampling as a matrix: a row holds how often each of n values is drawn, divided by n; and how often it occurs.

    Of few values most resamples are alike: of five there are 126 kinds.
    """
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    kinds, counts = np.unique(drawn, axis=0, return_counts=True)
    return kinds / n, counts.astype(np.int64)
