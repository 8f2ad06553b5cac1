"""Means, spreads, and paired differences with the corrected resampled t-test.

Several random splits of the same people are not independent samples: their training sets overlap. With n splits the
variance of the mean difference is therefore estimated as (Nadeau and Bengio, 2003)

    SE^2 = s^2 (1 / n + rho),    rho = evaluated people / training people,

and (mean - bound) / SE is compared with Student's t of n - 1 degrees of freedom. The same formula serves folds and
repeated folds, with n their number (Bouckaert and Frank, 2004). Runs on a single split differ by their seeds alone:
there rho = 0, and the result is about that split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

CONFIDENCE = 0.95
MIN_PAIRS = 3

Floats = npt.NDArray[np.float64]
Replicate = tuple[int, int]
"""Patient split and seed."""


@dataclass(frozen=True)
class Partition:
    """Who is in training, validation and test, as the runs of a split record it.

    Attributes:
        name: the same for splits of the same people.
        validation: validation people / training people; NaN where the runs do not record them.
        test: likewise of test people.
    """

    name: str
    validation: float = np.nan
    test: float = np.nan


@dataclass(frozen=True)
class Units:
    """What counts as one difference: a partition of the people with all its seeds, or a seed of a single partition.

    Attributes:
        members: positions of the replicates in each unit.
        kind: "patient splits"; "seeds", where there is a single partition; "runs", which are patient splits whose runs
            do not record how many people they have: tested as if independent, about these runs only.
        overlap: rho, the mean over the units; 0 unless the units are patient splits.
        uneven: whether units are means over different seeds, because no seed is common to all.
    """

    members: tuple[tuple[int, ...], ...]
    kind: Literal["patient splits", "seeds", "runs"]
    overlap: float = 0.0
    uneven: bool = False


@dataclass(frozen=True)
class Estimate:
    """Mean and sample standard deviation (n - 1 in the denominator) of n values; NaN where undefined."""

    mean: float
    sd: float
    n: int


_NOTHING = Estimate(np.nan, np.nan, 0)


@dataclass(frozen=True)
class PairedDifference:
    """The mean of differences over n units, with a 95 % interval and the two-sided p of the corrected t-test.

    `low`, `high` and `p` are NaN below 3 units, and where all units are equal, which leaves no spread to judge by.
    `units` says what was counted; None where nothing was.
    """

    mean: float
    low: float
    high: float
    p: float
    n: int
    units: Units | None = None

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


def partitions(runs: pd.DataFrame) -> dict[int, Partition]:
    """The partition of the people behind each patient split, by `split_seed`.

    Args:
        runs: rows of the table `runs`, with `split_seed` and, where recorded, `split_hash` and `patients_*`.
    """
    found: dict[int, Partition] = {}
    if "split_hash" not in runs or "patients_train" not in runs:
        return found
    recorded = runs.dropna(subset=["split_hash", "patients_train"])
    for split, rows in recorded.groupby("split_seed"):
        trained = rows["patients_train"].where(rows["patients_train"] > 0).astype(float)
        ratios = [float((rows[f"patients_{part}"] / trained).mean()) for part in ("validation", "test")]
        found[int(str(split))] = Partition("+".join(sorted(set(rows["split_hash"]))), *ratios)
    return found


def units_of(replicates: Sequence[Replicate], known: Mapping[int, Partition], measure: str = "auc") -> Units:
    """What counts as one difference among replicates.

    A unit has the mean over its seeds: those common to all units or, where there are none, all of its own.

    Args:
        replicates: (patient split, seed) of the values at hand.
        known: partitions by patient split.
        measure: the column compared; the prefix `test_` makes test people the evaluated ones.
    """
    names = [known[split].name if split in known else f"split {split}" for split, _ in replicates]
    several = len(set(names)) > 1
    groups: dict[str | int, list[int]] = {}
    for position, (name, (_, seed)) in enumerate(zip(names, replicates, strict=True)):
        groups.setdefault(name if several else seed, []).append(position)
    if not several:
        return Units(tuple(map(tuple, groups.values())), "seeds")
    seeds = [{replicates[position][1] for position in group} for group in groups.values()]
    common = set.intersection(*seeds)
    kept = common or set.union(*seeds)
    members = tuple(tuple(at for at in group if replicates[at][1] in kept) for group in groups.values())
    part = "test" if measure.startswith("test_") else "validation"
    missing = Partition("")
    ratios = [getattr(known.get(replicates[group[0]][0], missing), part) for group in members]
    overlap = float(np.mean(ratios))
    uneven = not common and any(it != seeds[0] for it in seeds)
    return Units(members, "patient splits", overlap, uneven) if overlap > 0 else Units(members, "runs", 0.0, uneven)


def standard_error(units: Floats, overlap: float = 0.0) -> Floats:
    """SE of the mean of each row of differences [..., n], n >= 2: s sqrt(1 / n + overlap)."""
    return np.asarray(units.std(axis=-1, ddof=1) * np.sqrt(1 / units.shape[-1] + overlap))


def paired_difference(
    ours: npt.ArrayLike,
    theirs: npt.ArrayLike,
    replicates: Sequence[Replicate] | None = None,
    known: Mapping[int, Partition] | None = None,
    measure: str = "auc",
) -> PairedDifference:
    """Mean of `ours` - `theirs` over the units where both are numbers, with the corrected resampled t-test.

    With d_i the difference of unit i, the mean over its seeds, the 95 % interval is mean(d) ± t(0.975; n - 1) SE,
    SE^2 = s^2 (1 / n + rho); see the module's description and `Units`.

    Args:
        ours: values by replicate, NaN where missing.
        theirs: the same replicates in the same order.
        replicates: patient split and seed of each; by default each position is a seed of one split.
        known: partitions by patient split, from `partitions`; without them patient splits count as independent.
        measure: the column compared.
    """
    one = paired_differences(
        np.asarray(ours, dtype=float)[None], np.asarray(theirs, dtype=float)[None], replicates, known, measure
    )
    return one[0]


def paired_differences(
    ours: Floats,
    theirs: Floats,
    replicates: Sequence[Replicate] | None = None,
    known: Mapping[int, Partition] | None = None,
    measure: str = "auc",
) -> list[PairedDifference]:
    """`paired_difference` of every row of two arrays of shape (rows, replicates), all rows at once."""
    differences = ours - theirs
    labels = [(0, seed) for seed in range(differences.shape[1])] if replicates is None else list(replicates)
    found = [PairedDifference(np.nan, np.nan, np.nan, np.nan, 0)] * len(differences)
    if not len(differences):
        return found
    there, group_of = np.unique(np.isfinite(differences), axis=0, return_inverse=True)
    for group, columns in enumerate(there):
        if not columns.any():
            continue
        rows, places = np.flatnonzero(group_of.reshape(-1) == group), np.flatnonzero(columns)
        units = units_of([labels[place] for place in places], known or {}, measure)
        present = differences[np.ix_(rows, places)]
        by_unit = np.stack([present[:, list(members)].mean(axis=1) for members in units.members], axis=1)
        mean, n = by_unit.mean(axis=1), by_unit.shape[1]
        half, p = _t_tests(by_unit, units.overlap)
        for row, middle, reach, chance in zip(rows.tolist(), mean.tolist(), half.tolist(), p.tolist(), strict=True):
            found[row] = PairedDifference(middle, middle - reach, middle + reach, chance, n, units)
    return found


def _t_tests(units: Floats, overlap: float) -> tuple[Floats, Floats]:
    """Half the 95 % interval and two-sided p against 0 of each row; NaN below 3 units and where all are equal."""
    rows, n = units.shape
    if n < MIN_PAIRS:
        return np.full(rows, np.nan), np.full(rows, np.nan)
    error = np.where(np.ptp(units, axis=1) > 0, standard_error(units, overlap), np.nan)
    half = special.stdtrit(n - 1, (1 + CONFIDENCE) / 2) * error
    return half, 2 * special.stdtr(n - 1, -np.abs(units.mean(axis=1) / error))


def units_in_words(units: Sequence[Units | None]) -> tuple[str, ...]:
    """Sentences on what intervals and p-values were computed over, for the notes of a table."""
    present = [it for it in units if it is not None]
    overlaps = [it.overlap for it in present if it.kind == "patient splits"]
    kinds, said = {it.kind for it in present}, []
    if overlaps:
        low, high = min(overlaps), max(overlaps)
        rho = f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"
        said.append(
            "A patient split with all its seeds counts once. Splits share people, so SE² = s² (1/n + rho) with "
            f"rho = evaluated / training people = {rho} (corrected t-test; Nadeau and Bengio, 2003)."
        )
    if "seeds" in kinds:
        said.append("Over the seeds of one patient split intervals and p-values are about that split.")
    if "runs" in kinds:
        said.append(
            "These runs do not record how many people they have: intervals and p-values are about these runs, and "
            "would be wider for other splits of the people."
        )
    if any(it.uneven for it in present):
        said.append("The seeds differ between splits; each split has the mean over its own.")
    return tuple(said)


def holm(p_values: npt.ArrayLike) -> Floats:
    """Holm's step-down correction: family-wise error over all p-values that are numbers; NaN stays NaN."""
    p = np.asarray(p_values, dtype=float)
    corrected = np.full(p.shape, np.nan)
    known = np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return corrected
