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
    differences = np.asarray(ours, dtype=float) - np.asarray(theirs, dtype=float)
    labels = np.arange(differences.size) if units is None else np.asarray(units)
    there = np.isfinite(differences)
    differences, labels = differences[there], labels[there]
    if not differences.size:
        return PairedDifference(np.nan, np.nan, np.nan, np.nan, 0)
    found = np.unique(labels)
    alone = found.size == labels.size
    by_unit = differences if alone else np.array([differences[labels == unit].mean() for unit in found])
    low, high = bootstrap_interval(by_unit)
    return PairedDifference(float(by_unit.mean()), low, high, _t_test(by_unit), int(by_unit.size))


def bootstrap_interval(values: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """An interval for the mean of a few values; (NaN, NaN) below 3."""
    n = values.size
    if n < MIN_PAIRS:
        return np.nan, np.nan
    tail = _tail(n, confidence)
    low, high = np.quantile(_weights(n) @ values, [tail, 1 - tail])
    return float(low), float(high)


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


def _t_test(values: Floats) -> float:
    """Two-sided p of a one-sample t-test against 0; written out, as scipy's checks take longer than the test."""
    n = values.size
    # Equal differences have no variance, and a t-test of them no answer.
    if n < 2 or np.ptp(values) == 0:
        return np.nan
    t = float(values.mean() / (values.std(ddof=1) / np.sqrt(n)))
    return float(2 * special.stdtr(n - 1, -abs(t)))


@cache
def _weights(n: int) -> Floats:
    """Resampling as a matrix: row r holds how often each of n values is drawn, divided by n."""
    return np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n
