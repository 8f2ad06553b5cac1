"""All means, standard deviations, intervals, p-values and power that the project prints.

Random splits of the same people are not independent samples, because their training sets overlap. With n splits, the
variance of the mean difference is estimated as (Nadeau and Bengio, 2003)

    SE^2 = s^2 (1 / n + rho),    rho = evaluated people / training people,

where s^2 is the sample variance of the n differences; (mean - bound) / SE is compared with Student's t of n - 1
degrees of freedom. The same formula serves folds and repeated folds, with n their number (Bouckaert and Frank, 2004).
If the evaluated people are also trained on, that ratio is 1 whatever the split. Then rho = f / (1 - f), where f is the
share of all people that a split evaluates: the mean of s^2 (1 / n + rho) over splits is the variance of the mean if
people differ and training adds nothing (sampling without replacement; Cochran, 1977, section 2.6).
Runs on a single split differ by their seeds alone: then rho = 0, and the result is about that split.

Nadeau, C. and Bengio, Y. (2003). Inference for the generalization error. Machine Learning 52, 239-281.
Bouckaert, R. R. and Frank, E. (2004). Evaluating the replicability of significance tests for comparing learning
algorithms. PAKDD, 3-12.
Cochran, W. G. (1977). Sampling techniques, third edition. Wiley.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from clops_sweep.data.splits.fold_names import fold_of
from clops_sweep.errors import UsageError, several

CONFIDENCE, ALPHA = 0.95, 0.05
MIN_UNITS = 3
POWER, DIFFERENCE, MOST_SPLITS = 0.8, 0.02, 500

Floats = npt.NDArray[np.float64]


class Fold(NamedTuple):
    """Fold `part` of `of`, counted from 1, of the people shuffled with the split seed `repeat`."""

    repeat: int
    part: int
    of: int

    def __str__(self) -> str:
        return f"fold {self.part}/{self.of} of split seed {self.repeat}"


Split = int | Fold
"""A random or published split, as its split seed, or a fold."""

Replicate = tuple[Split, int]
"""Patient split and seed."""

UnitKind = Literal["patient splits", "folds", "seeds", "runs"]
Counted = Literal["patient splits", "folds", "seeds"]
"""What n counts, everywhere."""


@dataclass(frozen=True)
class Partition:
    """The partition of the people into training, validation and test, as the runs of a split record it.

    Attributes:
        name: equal for splits with the same partition.
        validation: rho of values of validation people; NaN if not recorded.
        test: rho of values of test people.
        training: rho of values of training people.
        unseen: rho of values of people in no task.
    """

    name: str
    validation: float = np.nan
    test: float = np.nan
    training: float = np.nan
    unseen: float = np.nan


Partitions = Mapping[Split, Partition]


@dataclass(frozen=True)
class Units:
    """The units of a comparison: partitions of the people, each with its seeds, or the seeds of a single partition.

    Attributes:
        members: positions of the replicates in each unit.
        kind: "patient splits"; "folds"; "seeds" of a single partition; or "runs": partitions without a recorded number
            of people, which are tested as if independent; the result is about these runs only.
        overlap: rho, the mean over the units; 0 for "seeds" and "runs".
        seeds: "same" if all units have equal seeds; "common" if units are means over the seeds common to all; "own" if
            no seed is common to all and units are means over their own seeds.
        obstacle: why there is no test: too few units, or an incomplete set of folds; else empty.
    """

    members: tuple[tuple[int, ...], ...]
    kind: UnitKind
    overlap: float = 0.0
    seeds: Literal["same", "common", "own"] = "same"
    obstacle: str = ""

    @property
    def counted(self) -> Counted:
        """What n counts: patient splits also where the runs do not record the numbers of people."""
        return "patient splits" if self.kind == "runs" else self.kind

    def in_short(self, n: int) -> str:
        """Return n with its unit, as in "3 splits" or "1 seed"."""
        return several(n, self.counted.removeprefix("patient ").removesuffix("s"))


@dataclass(frozen=True)
class Estimate:
    """Mean and sample standard deviation (n - 1 in the denominator) of n values; NaN where undefined."""

    mean: float
    sd: float
    n: int


_NOTHING = Estimate(np.nan, np.nan, 0)


@dataclass(frozen=True)
class PairedDifference:
    """The mean difference over n units, with a 95 % interval and the two-sided p of the corrected t-test.

    `low`, `high` and `p` are NaN below 3 units, for an incomplete set of folds, and if all differences are equal.
    `units` describes the units; None without units. `of_units` has the difference of each unit.
    """

    mean: float
    low: float
    high: float
    p: float
    n: int
    units: Units | None = None
    of_units: tuple[float, ...] = ()

    @property
    def excludes_zero(self) -> bool:
        """Whether the whole interval lies on one side of zero."""
        return self.low > 0 or self.high < 0

    @property
    def negated(self) -> PairedDifference:
        """The difference of the other side."""
        of_units = tuple(-value for value in self.of_units)
        return replace(self, mean=-self.mean, low=-self.high, high=-self.low, of_units=of_units)


def estimate(values: npt.ArrayLike) -> Estimate:
    """Return mean and standard deviation of the values, without NaN."""
    array = np.asarray(values, dtype=float)
    array = array[np.isfinite(array)]
    mean = float(array.mean()) if array.size else np.nan
    sd = float(array.std(ddof=1)) if array.size > 1 else np.nan
    return Estimate(mean, sd, int(array.size))


def estimates(values: Floats) -> list[Estimate]:
    """Return `estimate` of every row of an array (rows, values)."""
    n = values.shape[1]
    of_rows = [_NOTHING] * len(values)
    is_complete = np.array([n > 1]) & np.isfinite(values).all(axis=1)
    for row in np.flatnonzero(~is_complete).tolist():
        of_rows[row] = estimate(values[row])
    complete = values[is_complete]
    if complete.size:  # all at once, which is much faster for many rows
        means = complete.mean(axis=1).tolist()
        sds = complete.std(axis=1, ddof=1).tolist()
        for row, mean, sd in zip(np.flatnonzero(is_complete).tolist(), means, sds, strict=True):
            of_rows[row] = Estimate(mean, sd, n)
    return of_rows


def split_of(split: str | float | None, split_seed: int) -> Split:
    """Return the patient split of a run, from its config fields `split` and `split_seed`."""
    if not isinstance(split, str):
        return int(split_seed)
    return Fold(int(split_seed), *fold_of(split))


def split_name(split: Split) -> str:
    """Return "split 0" or "fold 1/5 of split seed 0"."""
    return str(split) if isinstance(split, Fold) else f"split {split}"


def splits_of(runs: pd.DataFrame) -> list[Split]:
    """Return `split_of` of every row of `runs`."""
    splits = runs["split"].tolist() if "split" in runs else [None] * len(runs)
    seeds = runs["split_seed"].tolist()
    return [split_of(split, seed) for split, seed in zip(splits, seeds, strict=True)]


def ordered(replicates: Iterable[Replicate]) -> list[Replicate]:
    """Return distinct replicates, random splits before folds, then ascending."""
    return sorted(set(replicates), key=lambda replicate: (isinstance(replicate[0], Fold), replicate))


def partitions(runs: pd.DataFrame) -> dict[Split, Partition]:
    """Return the partition of the people of each patient split of one data set and scenario.

    Args:
        runs: rows of the table `runs`, with `split_seed` and, where recorded, `split_hash` and `patients_*`, the number
            of distinct people in each part over all tasks, in no task (`unseen`), and in any of these (`all`).
    """
    of_splits: dict[Split, Partition] = {}
    if "split_hash" not in runs:
        return of_splits
    recorded = runs.dropna(subset=["split_hash"])
    overlaps = _overlaps(recorded)
    runs_of: dict[Split, list[int]] = {}
    for position, split in enumerate(splits_of(recorded)):
        runs_of.setdefault(split, []).append(position)
    for split, positions in runs_of.items():
        name = "+".join(sorted(set(recorded["split_hash"].iloc[positions])))
        rho = {part: _mean(of_runs[positions]) for part, of_runs in overlaps.items()}
        of_splits[split] = Partition(name, **rho)
    return of_splits


def _mean(values: Floats) -> float:
    """Return the mean of the values that are known; NaN without any."""
    count = np.count_nonzero(~np.isnan(values))
    return float(np.nansum(values) / count) if count else np.nan


def _overlaps(runs: pd.DataFrame) -> dict[str, Floats]:
    """Return rho of the values of each part of the people, by run; NaN where the numbers of people are not known."""
    names = ("train", "validation", "test", "unseen", "all")
    train, validation, test, unseen, everybody = (_people(runs, name) for name in names)
    parts = np.nansum([train, validation, test, unseen], axis=0)
    by_time = np.zeros(len(runs), dtype=bool)
    if "split_within" in runs:
        by_time = (runs["split_within"] == "time").to_numpy(dtype=bool)
    everybody = np.where(np.isnan(everybody) & ~by_time, parts, everybody)
    validation = np.where(validation > 0, validation, test)  # then test people are evaluated

    def among_all(evaluated: Floats) -> Floats:
        return evaluated / _if_positive(everybody - evaluated)

    def overlap(evaluated: Floats) -> Floats:
        people_are_in_one_part = parts <= everybody
        return np.where(people_are_in_one_part, evaluated / _if_positive(train), among_all(evaluated))

    return {
        "validation": overlap(validation),
        "test": overlap(test),
        "training": among_all(train),
        "unseen": _if_positive(unseen) / _if_positive(train),
    }


def _people(runs: pd.DataFrame, part: str) -> Floats:
    """Return the number of people in a part, by run; NaN where it is not recorded."""
    name = f"patients_{part}"
    if name not in runs:
        return np.full(len(runs), np.nan)
    return runs[name].to_numpy(dtype=float, na_value=np.nan)


def _if_positive(values: Floats) -> Floats:
    """Return the values above 0; NaN instead of the others."""
    return np.where(values > 0, values, np.nan)


_EVALUATED = {"test": "test", "unseen": "unseen", "prequential": "training", "training": "training"}
"""The evaluated part of the people by the beginning of a measure's name."""


def units_of(replicates: Sequence[Replicate], known: Partitions, measure: str = "auc") -> Units:
    """Group replicates into units.

    Splits with the same partition are one unit. A unit is the mean over the seeds common to all units or, without
    common seeds, over its own.

    Args:
        replicates: (patient split, seed) of the values, one or more.
        known: partitions by patient split, from `partitions`.
        measure: the compared column. `test_*` evaluates test people, `unseen_*` people in no task, `prequential_*` and
            `training_*` training people, others validation people.

    Raises:
        UsageError: folds and random splits, or folds of different numbers of parts.
    """
    splits = list(dict.fromkeys(split for split, _ in replicates))
    folds = [split for split in splits if isinstance(split, Fold)]
    check_alike(splits)
    of_partition: dict[str, list[int]] = {}
    of_seed: dict[int, list[int]] = {}
    for position, (split, seed) in enumerate(replicates):
        name = known[split].name if split in known else f"split {split}"
        of_partition.setdefault(name, []).append(position)
        of_seed.setdefault(seed, []).append(position)
    if len(of_partition) < 2:
        members = tuple(map(tuple, of_seed.values()))
        return Units(members, "seeds", obstacle=_too_few(len(members), "seed") or _incomplete(folds))
    members, seeds = _with_comparable_seeds(list(of_partition.values()), replicates)
    overlap = _mean_overlap([replicates[unit[0]][0] for unit in members], known, measure)
    obstacle = _incomplete(folds) or _too_few(len(members), "fold" if folds else "patient split")
    if not overlap > 0:  # not recorded
        return Units(members, "runs", 0.0, seeds, obstacle)
    return Units(members, "folds" if folds else "patient splits", overlap, seeds, obstacle)


def _with_comparable_seeds(
    groups: Sequence[Sequence[int]], replicates: Sequence[Replicate]
) -> tuple[tuple[tuple[int, ...], ...], Literal["same", "common", "own"]]:
    """Return the replicates of each group whose seeds all groups have, or all if no seed is common to all.

    Also returns how the seeds of the groups agree, as in `Units.seeds`.
    """
    seeds_of = []
    for group in groups:
        seeds_of.append({replicates[position][1] for position in group})
    if all(seeds == seeds_of[0] for seeds in seeds_of):
        return tuple(map(tuple, groups)), "same"
    common = set.intersection(*seeds_of)
    if not common:
        return tuple(map(tuple, groups)), "own"
    members = []
    for group in groups:
        members.append(tuple(position for position in group if replicates[position][1] in common))
    return tuple(members), "common"


def _mean_overlap(splits: Sequence[Split], known: Partitions, measure: str) -> float:
    """Return the mean rho of the people that a measure evaluates, over splits; NaN if one is not recorded."""
    part = _EVALUATED.get(measure.partition("_")[0], "validation")
    unknown = Partition("")
    return float(np.mean([getattr(known.get(split, unknown), part) for split in splits]))


def check_alike(splits: Sequence[Split]) -> None:
    """Check that splits can be combined.

    Raises:
        UsageError: folds and random splits, or folds of different numbers of parts.
    """
    numbers_of_folds = {split.of if isinstance(split, Fold) else 0 for split in splits}
    if len(numbers_of_folds) > 1:
        kinds = [f"{folds} folds" if folds else "random splits" for folds in sorted(numbers_of_folds)]
        raise UsageError(
            f"{' and '.join(kinds)} of the same people cannot be compared together; put them into search spaces of "
            "their own"
        )


def _too_few(n: int, unit: str) -> str:
    return f"{several(n, unit)} where {MIN_UNITS} are needed" if n < MIN_UNITS else ""


def _incomplete(folds: Sequence[Fold]) -> str:
    """Return a phrase that names the missing folds; empty if there are no folds or none is missing."""
    if not folds:
        return ""
    number_of_folds = folds[0].of
    repeats = sorted({fold.repeat for fold in folds})
    present = {(fold.repeat, fold.part) for fold in folds}
    missing = []
    for repeat in repeats:
        suffix = f" of split seed {repeat}" if len(repeats) > 1 else ""
        for part in range(1, number_of_folds + 1):
            if (repeat, part) not in present:
                missing.append(f"{part}/{number_of_folds}{suffix}")
    if not missing:
        return ""
    return f"{'folds' if len(missing) > 1 else 'fold'} {', '.join(missing)} missing"


def standard_error(units: Floats, overlap: float = 0.0) -> Floats:
    """SE = s sqrt(1 / n + rho) of the mean of each row of differences.

    Args:
        units: [..., n].
        overlap: rho, 0 for independent differences.

    Returns:
        [...]; NaN below 3 differences, and if all are equal up to rounding.
    """
    n = units.shape[-1]
    if n < MIN_UNITS:
        return np.full(units.shape[:-1], np.nan)
    rounding = np.maximum(1e-12, 1e-9 * np.abs(units).max(axis=-1))
    differs = np.ptp(units, axis=-1) > rounding
    s = units.std(axis=-1, ddof=1)
    return np.where(differs, s * np.sqrt(1 / n + overlap), np.nan)


def interval(units: Floats, overlap: float = 0.0) -> tuple[Floats, Floats]:
    """Return the 95 % interval mean ± t(0.975; n - 1) SE of each row of differences.

    Args:
        units: [..., n].
        overlap: rho.

    Returns:
        Two arrays [...]; NaN as `standard_error`.
    """
    n = units.shape[-1]
    mean = units.mean(axis=-1)
    t = special.stdtrit(max(n - 1, 1), (1 + CONFIDENCE) / 2)
    half = t * standard_error(units, overlap)
    return mean - half, mean + half


def bound(mean: float, error: float, n: int, tail: float) -> float:
    """Return the one-sided upper bound mean + t(1 - tail; n - 1) SE of a mean; the lower one has -SE.

    Args:
        mean: mean of n differences.
        error: SE, from `standard_error`.
        n: number of differences.
        tail: error rate of the bound, such as 0.05.
    """
    t = float(special.stdtrit(max(n - 1, 1), 1 - tail))
    return mean + t * error


def at_level(difference: PairedDifference, level: float) -> PairedDifference:
    """Return a tested difference, from `paired_differences`, with an interval of another level than 95 %."""
    assert difference.units is not None
    error = float(standard_error(np.asarray(difference.of_units), difference.units.overlap))
    t = float(special.stdtrit(max(difference.n - 1, 1), (1 + level) / 2))
    half = t * error
    return replace(difference, low=difference.mean - half, high=difference.mean + half)


def clipped(difference: PairedDifference, limits: tuple[float, float]) -> PairedDifference:
    """Return a difference whose interval ends at the least and largest possible value.

    The true value lies between the limits, so the interval contains it exactly as often as before.
    """
    low = float(np.clip(difference.low, *limits))  # NaN stays NaN
    high = float(np.clip(difference.high, *limits))
    return replace(difference, low=low, high=high)


def p_above(units: Floats, bound: float = 0.0, overlap: float = 0.0) -> Floats:
    """Return the one-sided p-value of H0: the mean of a row of differences is at most `bound`.

    p = P(T > (mean - bound) / SE), where T has Student's t distribution with n - 1 degrees of freedom.

    Args:
        units: [..., n].
        bound: the bound on the mean.
        overlap: rho.

    Returns:
        [...]; NaN as `standard_error`.
    """
    t = (units.mean(axis=-1) - bound) / standard_error(units, overlap)
    return np.asarray(special.stdtr(max(units.shape[-1] - 1, 1), -t))


def paired_difference(
    ours: npt.ArrayLike,
    theirs: npt.ArrayLike,
    replicates: Sequence[Replicate] | None = None,
    known: Partitions | None = None,
    measure: str = "auc",
) -> PairedDifference:
    """Return the mean of `ours` - `theirs` over units that have both, with the corrected resampled t-test.

    With d_i the difference of unit i, the mean over its seeds, the 95 % interval is mean(d) ± t(0.975; n - 1) SE,
    SE^2 = s^2 (1 / n + rho) (Nadeau and Bengio, 2003; Bouckaert and Frank, 2004); p is two-sided, of
    mean(d) / SE. See `Units`.

    Args:
        ours: values by replicate, NaN where missing.
        theirs: the same replicates in the same order.
        replicates: patient split and seed of each; by default each position is a seed of one split.
        known: partitions by patient split, from `partitions`; without them patient splits count as independent.
        measure: the column compared.

    Raises:
        UsageError: folds and random splits, or folds of different numbers of parts.
    """
    one = paired_differences(
        np.asarray(ours, dtype=float)[None], np.asarray(theirs, dtype=float)[None], replicates, known, measure
    )
    return one[0]


def paired_differences(
    ours: Floats,
    theirs: Floats,
    replicates: Sequence[Replicate] | None = None,
    known: Partitions | None = None,
    measure: str = "auc",
) -> list[PairedDifference]:
    """Return `paired_difference` of every row of two arrays (rows, replicates)."""
    differences = ours - theirs
    if replicates is None:
        replicates = [(0, seed) for seed in range(differences.shape[1])]
    of_rows = [PairedDifference(np.nan, np.nan, np.nan, np.nan, 0)] * len(differences)
    if not len(differences):
        return of_rows
    # Rows with values of the same replicates have the same units, and are computed together.
    presence, group_of = np.unique(np.isfinite(differences), axis=0, return_inverse=True)
    for group, is_present in enumerate(presence):
        if not is_present.any():
            continue
        rows = np.flatnonzero(group_of.reshape(-1) == group)
        columns = np.flatnonzero(is_present)
        units = units_of([replicates[column] for column in columns.tolist()], known or {}, measure)
        present = differences[np.ix_(rows, columns)]
        by_unit = np.stack([present[:, list(members)].mean(axis=1) for members in units.members], axis=1)
        tested = np.full((3, len(rows)), np.nan)
        if not units.obstacle:
            lows, highs = interval(by_unit, units.overlap)
            above = p_above(by_unit, overlap=units.overlap)
            below = p_above(-by_unit, overlap=units.overlap)  # 1 - above, without loss of digits
            tested = np.stack([lows, highs, 2 * np.minimum(above, below)])
        for row, values, (low, high, p) in zip(rows.tolist(), by_unit, tested.T.tolist(), strict=True):
            mean = float(values.mean())
            of_rows[row] = PairedDifference(mean, low, high, p, values.size, units, tuple(values.tolist()))
    return of_rows


def units_in_words(units: Sequence[Units | None]) -> tuple[str, ...]:
    """Return sentences on the units of intervals and p-values, for the notes of a table."""
    present = [of_comparison for of_comparison in units if of_comparison is not None]
    overlaps = [of_comparison.overlap for of_comparison in present if of_comparison.overlap]
    kinds, said = {of_comparison.kind for of_comparison in present}, []
    if overlaps:
        low, high = min(overlaps), max(overlaps)
        rho = f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"
        what = "fold" if kinds == {"folds"} else "patient split"
        said.append(
            f"A {what} with its seeds counts once. Because {what}s share people, SE² = s² (1/n + rho), rho = {rho}: "
            "evaluated people divided by training people or, if tasks train on evaluated people, by all other people "
            "(corrected t-test; Nadeau and Bengio, 2003)."
        )
    if "seeds" in kinds:
        said.append("Where all runs share one patient split, intervals and p-values are about that split.")
    if "runs" in kinds:
        said.append(
            "These runs do not record how many people they have: intervals and p-values are about these runs, and "
            "would be wider for other splits of the people."
        )
    if any(of_comparison.seeds == "common" for of_comparison in present):
        said.append("The seeds differ between splits: a split is the mean over the seeds common to all.")
    if any(of_comparison.seeds == "own" for of_comparison in present):
        said.append("No seed is common to all splits: a split is the mean over its own seeds.")
    obstacles = {of_comparison.obstacle for of_comparison in present} - {""}
    said += sorted(f"{obstacle[0].upper()}{obstacle[1:]}: not tested." for obstacle in obstacles)
    return tuple(said)


def counted_in_words(counts: Iterable[tuple[int, Counted]]) -> str:
    """Return what means are over: "5 patient splits", "2 to 5 folds", "3 seeds of one patient split".

    Args:
        counts: number and kind of the units of each mean.
    """
    of_kinds: dict[Counted, list[int]] = {}
    for n, kind in counts:
        of_kinds.setdefault(kind, []).append(n)
    words = []
    for kind, numbers in of_kinds.items():
        fewest, most = min(numbers), max(numbers)
        noun = kind if most > 1 else kind.removesuffix("s")
        of_one = " of one patient split" if kind == "seeds" else ""
        words.append(f"{f'{fewest} to ' * (fewest < most)}{most} {noun}{of_one}")
    return " or ".join(words)


def holm(p_values: npt.ArrayLike) -> Floats:
    """Return Holm-corrected p-values, which control the family-wise error rate; NaN stays NaN."""
    # statsmodels has this as multipletests; a further dependency would save three lines and not the levels below.
    p = np.asarray(p_values, dtype=float)
    corrected = np.full(p.shape, np.nan)
    known = np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return corrected


def holm_levels(p_values: npt.ArrayLike) -> Floats:
    """Return the level at which Holm tests each hypothesis: it is rejected if its p-value is below.

    Of m hypotheses, the one with the i-th smallest p-value is tested at 0.05 / (m - i + 1). All that are not rejected
    have the level of the first of them. So a bound at this level, an uncorrected p-value against it and `holm` < 0.05
    decide alike. NaN, a hypothesis that is not tested, has the level of those that are not rejected.
    """
    p = np.asarray(p_values, dtype=float)
    known = np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known], kind="stable")]
    rejected = int((holm(p)[order] < ALPHA).sum())
    left = order.size - np.minimum(np.arange(order.size), rejected)
    levels = np.full(p.shape, ALPHA / max(order.size - rejected, 1))
    levels[order] = ALPHA / left
    return levels


def power_of_t_test(n: float, deviation: float, difference: float, overlap: float = 0.0) -> float:
    """Return the power of the two-sided corrected t-test at a level of 5 %.

    The test statistic is noncentral t with n - 1 degrees of freedom and noncentrality difference / SE,
    SE = deviation sqrt(1 / n + rho); normal for n = inf.

    Args:
        n: number of differences; the power is 0 below 3.
        deviation: their standard deviation.
        difference: their true mean.
        overlap: rho.
    """
    if n < MIN_UNITS:
        return 0.0
    from scipy import stats  # slow to import, and needed here only

    if deviation == 0:
        return 1.0
    if 1 / n + overlap == 0:
        return 1.0 if difference else ALPHA
    shift = abs(difference) / (deviation * np.sqrt(1 / n + overlap))
    if np.isinf(n):
        critical = stats.norm.ppf(1 - ALPHA / 2)
        return float(stats.norm.sf(critical - shift) + stats.norm.cdf(-critical - shift))
    critical = stats.t.ppf(1 - ALPHA / 2, n - 1)
    below = stats.nct.sf(critical, n - 1, -shift)  # = cdf(-critical, n - 1, shift), which is NaN for large shifts
    return float(stats.nct.sf(critical, n - 1, shift) + below)


def splits_needed(
    deviation: float, difference: float = DIFFERENCE, power: float = POWER, overlap: float = 0.0
) -> float | None:
    """Return the least number of patient splits with this power (`power_of_t_test`); None if above 500.

    SE never falls below deviation sqrt(rho). If no number of splits suffices, the result is inf.
    """
    if power_of_t_test(np.inf, deviation, difference, overlap) < power:
        return np.inf
    tried = range(MIN_UNITS, MOST_SPLITS + 1)
    return next((n for n in tried if power_of_t_test(n, deviation, difference, overlap) >= power), None)
