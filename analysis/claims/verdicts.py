"""Verdicts on claims: holds, does not hold, or undecided.

The difference of a claim is computed run by run. Its units are patient splits or folds, each the mean over its
seeds; with a single split the units are seeds, and the verdict is about that split. With n units of mean d,
(d - x) / SE is compared with Student's t of n - 1 degrees of freedom, one-sided, where SE^2 = s^2 (1/n + rho) and rho
is the number of evaluated people over that of training people (`clops_sweep.analysis.statistics`; 0 for seeds). m is
the smallest difference that matters. A claim holds if the first hypothesis is rejected, and does not hold if the second
is::

    more      d <= 0                                                   d >= m
    same      abs(d) >= m, by two one-sided tests (Schuirmann, 1987)   abs(d) <= m, twice the smaller p
    not less  d <= -m                                                  d >= 0

A claim with several differences holds if all do: its p is the largest of theirs (intersection-union; Berger, 1982), and
that against it the smallest times their number. p-values are adjusted by Holm (1979) over all claims on one data set,
separately for and against: the chance of any wrong "holds" is at most 5 %, and so is that of any wrong "does not hold".

The interval of a difference has the level of the test that decides (`Interval`), so it agrees with verdict and p.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.experiment.metrics import limits_of_difference
from clops_sweep.experiment.spaces.claims import Claim, Contrast, Says
from clops_sweep.experiment.spaces.executed_file import names_in
from clops_sweep.experiment.spaces.space_files import shipped_space
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import TableName

from ..collect import Experiment
from ..figures.frames import Frames
from ..statistics import (
    ALPHA,
    Partitions,
    Replicate,
    bound,
    holm,
    holm_levels,
    ordered,
    p_above,
    standard_error,
    units_of,
)
from .claim_runs import ClaimRuns, ContrastRuns, FinishedRuns
from .looks import Look
from .run_measures import MEASURES, OF_TWO, RunTables, Sampled, column_like

Floats = npt.NDArray[np.float64]
Outcome = Literal["holds", "does not hold", "undecided"]


@dataclass(frozen=True)
class Interval:
    """The interval of a difference that decides a claim, at the level at which Holm tests it.

    With the levels a for and b against the claim (0.05 for a single claim), the interval of `Says` is::

                  more, not less                       same
        holds     lower bound, 1 - a                   both bounds, 1 - 2a: within ±m
        fails     upper bound, 1 - b                   both bounds, 1 - b: outside ±m
        open      both bounds, 1 - 2 min(a, b)         both bounds, 1 - min(2a, b)

    Attributes:
        low: lower bound; -inf if the upper one decides.
        high: upper bound; inf if the lower one decides.
        level: the nominal coverage, such as 0.95.
    """

    low: float
    high: float
    level: float


UNKNOWN = Interval(np.nan, np.nan, np.nan)
"""Without a test there is no interval."""


@dataclass(frozen=True)
class Evidence:
    """The difference of one contrast: mean over units, with the SE and the p-values of the corrected t-test.

    `p_for` and `p_against` are not adjusted by Holm. SE, p-values and interval are NaN below 3 units, and if all
    differences are equal. The interval is also NaN before `decided`, which knows its level. `as_tuned` names the fields
    in which the methods differ as tuned.
    """

    contrast: Contrast
    mean: float
    error: float
    n: int
    p_for: float
    p_against: float
    missing: str = ""
    interval: Interval = UNKNOWN
    as_tuned: str = ""


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim on a data set.

    Attributes:
        claim: the claim.
        dataset: the data set.
        outcome: holds, does not hold, or undecided.
        evidence: the evidence of each contrast.
        unit: the units that `n` counts: "patient splits"; "seeds of patient split 0", if the verdict is about one
            split; "patient splits, about these runs", if the runs do not record their numbers of people.
        p_for: p-value for the claim, corrected over all claims on the data set; NaN if not tested.
        p_against: p-value against the claim, likewise.
        runs: the runs that decide the claim.
        earlier: the verdicts that the store keeps (`looks`), oldest first; the last one may be this.
    """

    claim: Claim
    dataset: str
    outcome: Outcome
    evidence: tuple[Evidence, ...]
    unit: str
    p_for: float
    p_against: float
    runs: ClaimRuns = field(hash=False)
    earlier: tuple[Look, ...] = field(default=(), hash=False, compare=False)

    @property
    def weakest(self) -> Evidence:
        """The difference that refutes the claim, is missing, or supports the claim least."""
        if self.outcome == "does not hold":
            return min(self.evidence, key=lambda evidence: np.nan_to_num(evidence.p_against, nan=1.0))

        def weakness(evidence: Evidence) -> tuple[bool, float]:
            has_no_run = bool(np.isnan(evidence.p_for)) and not evidence.n
            return has_no_run, float(np.nan_to_num(evidence.p_for, nan=1.0))

        return max(self.evidence, key=weakness)

    @property
    def missing(self) -> str:
        """The missing runs in words; empty if none is missing."""
        said = list(dict.fromkeys(difference.missing for difference in self.evidence if difference.missing))
        return "; ".join(said)

    @property
    def as_tuned(self) -> str:
        """The fields in which compared methods differ as tuned, with their values; empty without any."""
        said = dict.fromkeys(difference.as_tuned for difference in self.evidence if difference.as_tuned)
        return "; ".join(said)


def verdicts(
    experiments: Sequence[Experiment], store: RunStore, frames: Sequence[Frames] = (), claims: Sequence[Claim] = ()
) -> list[Verdict]:
    """Return the verdicts on every claim, for every data set and scenario of the runs.

    Two configurations are compared if they agree in every field that neither side names and both use. In given claims,
    methods of a tuned space may also differ in the fields that the search of either chose. p-values are adjusted by
    Holm over the claims on a data set.

    Args:
        experiments: search spaces and their runs, without searches.
        store: the store with the runs' tables.
        frames: prepared frames, for claims about signals of runs with their `data_hash`.
        claims: the claims; if empty, those of the paper.
    """
    finished = FinishedRuns(experiments, store)
    verdicts: list[Verdict] = []
    for runs in finished.about(claims or claims_of_paper(), of_paper=not claims).values():
        values = Values(finished, runs, frames)
        tested = []
        for of_claim in runs:
            evidence = [values.evidence(contrast, of_claim.claim) for contrast in of_claim.contrasts]
            tested.append((of_claim, evidence))
        verdicts += decided(tested)
    return verdicts


@cache
def claims_of_paper() -> tuple[Claim, ...]:
    """Return the paper's claims, the `CLAIMS` of its search-space file."""
    claims: tuple[Claim, ...] = names_in(shipped_space("paper_claims"))["CLAIMS"]
    return claims


def decided(tested: Sequence[tuple[ClaimRuns, Sequence[Evidence]]]) -> list[Verdict]:
    """Return the verdicts on claims, with p-values corrected over all of them."""
    all_for = []
    all_against = []
    for _, evidence in tested:
        all_for.append(_all_of([difference.p_for for difference in evidence]))
        all_against.append(_any_of([difference.p_against for difference in evidence]))
    p_for = holm(all_for).tolist()
    p_against = holm(all_against).tolist()
    levels_for = holm_levels(all_for).tolist()
    levels_against = holm_levels(all_against).tolist()
    verdicts = []
    for position, (runs, evidence) in enumerate(tested):
        outcome = outcome_of(runs.claim.says, p_for[position], p_against[position])
        levels = levels_for[position], levels_against[position] / len(evidence)
        shown = []
        for difference in evidence:
            interval = interval_of(difference, runs.claim.says, outcome, *levels)
            shown.append(replace(difference, interval=interval))
        unit = _unit([contrast for contrast in runs.contrasts if contrast.pairs])
        verdicts.append(
            Verdict(runs.claim, runs.dataset, outcome, tuple(shown), unit, p_for[position], p_against[position], runs)
        )
    return verdicts


def without_runs(claim: Claim) -> Verdict:
    """Return the verdict on a claim of which no run is finished: undecided."""
    evidence = []
    of_contrasts = []
    for contrast in claim.contrasts:
        names = [side.name for side in contrast.sides if side is not None]
        missing = f"no finished run of {' and '.join(names)}"
        evidence.append(Evidence(contrast, np.nan, np.nan, 0, np.nan, np.nan, missing))
        of_contrasts.append(ContrastRuns(contrast, {}, missing))
    dataset = claim.dataset or ""
    runs = ClaimRuns(claim, dataset, tuple(of_contrasts))
    return Verdict(claim, dataset, "undecided", tuple(evidence), "", np.nan, np.nan, runs)


def interval_of(difference: Evidence, says: Says, outcome: Outcome, level_for: float, level_against: float) -> Interval:
    """Return the interval of a difference that decides a claim (`Interval`).

    Args:
        difference: the difference.
        says: what the claim says.
        outcome: the verdict.
        level_for: level of the test for the claim, such as 0.05.
        level_against: level of the test against it.
    """
    if not np.isfinite(difference.error):
        return UNKNOWN
    one_sided = says != "same"
    of_each_side = level_against if one_sided else level_against / 2
    tails = {"holds": level_for, "does not hold": of_each_side, "undecided": min(level_for, of_each_side)}
    tail = tails[outcome]
    least, most = limits_of_difference(*_measures(difference.contrast))
    low = max(-bound(-difference.mean, difference.error, difference.n, tail), least)
    high = min(bound(difference.mean, difference.error, difference.n, tail), most)
    if one_sided and outcome == "holds":
        return Interval(low, np.inf, 1 - tail)
    if one_sided and outcome == "does not hold":
        return Interval(-np.inf, high, 1 - tail)
    return Interval(low, high, 1 - 2 * tail)


def _measures(contrast: Contrast) -> tuple[str | None, str | None]:
    """Return the columns of both sides; None for the number 0."""
    ours = None if contrast.ours is None else contrast.measure
    theirs = None if contrast.theirs is None else contrast.of_theirs or contrast.measure
    return ours, theirs


def _unit(contrasts: Sequence[ContrastRuns]) -> str:
    """Return the unit of the contrasts; of several, the one that generalises least to other people."""
    units = [contrast.units for contrast in contrasts]
    if any(of_contrast.kind == "runs" for of_contrast in units):
        return "patient splits, about these runs"
    if not units:
        return ""
    if all(of_contrast.kind == "seeds" for of_contrast in units):
        split, _ = next(chain.from_iterable(contrast.pairs for contrast in contrasts))
        return f"seeds of patient split {split}"
    return next(of_contrast.kind for of_contrast in units if of_contrast.kind != "seeds")


def outcome_of(says: Says, p_for: float, p_against: float) -> Outcome:
    """Return the verdict from corrected p-values.

    An effect in the claimed direction but below the threshold counts as no difference: against "more", and for "not
    less".
    """
    holds, fails = p_for < ALPHA, p_against < ALPHA
    if holds and fails:
        return "does not hold" if says == "more" else "holds"
    return "holds" if holds else "does not hold" if fails else "undecided"


def evidence_of(
    contrast: Contrast,
    says: Says,
    matters: float,
    values: Mapping[Replicate, float],
    partitions: Partitions | None = None,
    of_people: float = 0.0,
) -> Evidence:
    """Return the evidence of the differences of a contrast, by patient split and seed; NaN counts as missing.

    The mean has at least the variance `of_people` besides that of the units (`Sampled`).
    """
    known = {replicate: values[replicate] for replicate in ordered(values) if np.isfinite(values[replicate])}
    if not known:
        return _nothing(contrast, "")
    groups = units_of(list(known), partitions or {}, column_like(contrast.measure))
    differences = np.array(list(known.values()))
    units = np.array([differences[list(members)].mean() for members in groups.members])
    n = len(units)
    mean = float(units.mean())
    variance = float(units.var(ddof=1)) if n > 1 else 0.0
    overlap = max(groups.overlap, of_people / variance) if variance else groups.overlap
    error = float(standard_error(units, overlap))
    equal = "" if np.isfinite(error) else f"all {n} differences are {mean:g}, so nothing is tested"
    counted = sum(map(len, groups.members))
    uneven = ""
    if groups.seeds == "common":
        uneven = f"seeds differ between splits: {len(known) - counted} of {len(known)} pairs of split and seed left out"
    elif groups.seeds == "own":
        uneven = "no seed is common to all splits: each split is the mean over its own seeds"
    if missing := groups.obstacle or equal:
        return Evidence(contrast, mean, np.nan, n, np.nan, np.nan, "; ".join(filter(None, (missing, uneven))))
    p_for, p_against = p_values(units, says, matters, overlap)
    return Evidence(contrast, mean, error, n, p_for, p_against, uneven)


def p_values(units: Floats, says: Says, matters: float, overlap: float = 0.0) -> tuple[float, float]:
    """Return one-sided p-values for and against a claim from differences [n]; NaN as in `p_above`."""
    above = [float(p_above(units, bound, overlap)) for bound in (-matters, 0.0, matters)]
    below = [float(p_above(-units, bound, overlap)) for bound in (matters, 0.0, -matters)]
    match says:
        case "more":
            return above[1], below[2]
        case "same":
            return max(above[0], below[2]), min(1.0, 2 * min(above[2], below[0]))
        case "not less":
            return above[0], below[1]


def _all_of(p_values: Sequence[float]) -> float:
    return float(np.max(p_values))  # NaN if either is


def _any_of(p_values: Sequence[float]) -> float:
    known = [p for p in p_values if np.isfinite(p)]
    return min(1.0, len(p_values) * min(known)) if known else np.nan


class Values:
    """Measures of the runs of claims; every table is read once, and every measure of a run computed once.

    Args:
        finished: the runs.
        claims: the claims, which name the measures.
        frames: prepared frames.
    """

    def __init__(self, finished: FinishedRuns, claims: Sequence[ClaimRuns], frames: Sequence[Frames] = ()) -> None:
        self._finished = finished
        self._frames = {of_data.data_hash: of_data for of_data in frames}
        self._run_ids = list(dict.fromkeys(run_id for claim in claims for run_id in claim.run_ids))
        self._needed: dict[TableName, dict[str, None]] = {}
        for claim in claims:
            for runs in claim.contrasts:
                self._need(runs)
        self._tables: dict[TableName, dict[str, pd.DataFrame]] = {}
        self._known: dict[tuple[str, str], Sampled] = {}

    def _need(self, runs: ContrastRuns) -> None:
        """Note which tables the measures of a contrast need, of which runs."""
        run_ids = dict[str, None]()
        for pairs in runs.pairs.values():
            for pair in pairs:
                run_ids.update((run_id, None) for run_id in pair if run_id is not None)
        for measure in filter(None, (runs.contrast.measure, runs.contrast.of_theirs)):
            if measure in MEASURES or measure in OF_TWO:
                self._needed.setdefault(_table_of(measure), {}).update(run_ids)

    @cached_property
    def _columns(self) -> dict[str, dict[str, Any]]:
        return self._finished.runs.loc[self._run_ids].to_dict("index")  # type: ignore[return-value]

    def evidence(self, runs: ContrastRuns, claim: Claim) -> Evidence:
        """Return the evidence of the runs of a contrast."""
        values: dict[Replicate, float] = {}
        of_people = []
        for replicate, pairs in runs.pairs.items():
            differences = [self._difference(runs.contrast, *pair) for pair in pairs]
            mean = Sampled(*np.mean(differences, axis=0))
            values[replicate] = mean.value
            if np.isfinite(mean.value):
                of_people.append(mean.variance)
        evidence = evidence_of(
            *(runs.contrast, claim.says, claim.matters, values, runs.partitions),
            of_people=float(np.mean(of_people)) if of_people else 0.0,
        )
        if evidence.n:
            undefined = self._undefined(runs, values)
            missing = "; ".join(filter(None, (evidence.missing, runs.left_out, undefined)))
            return replace(evidence, missing=missing, as_tuned=runs.as_tuned)
        if runs.missing:
            return _nothing(runs.contrast, runs.missing)
        if runs.contrast.measure == "signal_to_noise_by_s":
            return _nothing(runs.contrast, _NO_FRAMES)
        return _nothing(runs.contrast, f"the runs have no {runs.contrast.measure}")

    def _undefined(self, runs: ContrastRuns, values: Mapping[Replicate, float]) -> str:
        """Return in words how many pairs of split and seed do not count, since a measure of theirs is undefined."""
        contrast = runs.contrast
        undefined = [replicate for replicate, value in values.items() if not np.isfinite(value)]
        if not undefined:
            return ""
        sides = zip(contrast.sides, (contrast.measure, contrast.of_theirs or contrast.measure), strict=True)
        whose: dict[str, int] = {}
        for number, (side, measure) in enumerate(sides):
            if side is None or contrast.measure in OF_TWO:
                continue
            for replicate in undefined:
                numbers = [self._number(measure, pair[number]).value for pair in runs.pairs[replicate]]
                if not np.isfinite(numbers).all():
                    phrase = f"{side.name} has no {measure}"
                    whose[phrase] = whose.get(phrase, 0) + 1
        reasons = [f"{phrase} in {count}" for phrase, count in whose.items()] or [f"no {contrast.measure}"]
        return f"{len(undefined)} of {len(values)} pairs of split and seed left out: {', '.join(reasons)}"

    def _difference(self, contrast: Contrast, ours: str | None, theirs: str | None) -> Sampled:
        if contrast.measure in OF_TWO and ours is not None and theirs is not None:
            table, function = OF_TWO[contrast.measure]
            return _measured(function, self._run(ours, table), self._run(theirs, table))
        one, other = self._number(contrast.measure, ours), self._number(contrast.of_theirs or contrast.measure, theirs)
        return Sampled(one.value - other.value, one.variance + other.variance)

    def _number(self, measure: str, run_id: str | None) -> Sampled:
        if run_id is None:
            return Sampled(0.0)
        if measure not in MEASURES:
            return Sampled(float(self._columns[run_id].get(measure, np.nan)))
        key = measure, run_id
        if key not in self._known:
            table, function = MEASURES[measure]
            self._known[key] = _measured(function, self._run(run_id, table))
        return self._known[key]

    def _run(self, run_id: str, table: TableName) -> RunTables:
        row = self._columns[run_id]
        if table == "runs":
            return RunTables(row, pd.DataFrame())
        if table not in self._tables:
            read = self._finished.store.read(table, list(self._needed[table]), _COLUMNS[table])
            self._tables[table] = {str(name): rows for name, rows in read.groupby("run_id", sort=False)}
        rows = self._tables[table].get(run_id, pd.DataFrame(columns=_COLUMNS[table]))
        return RunTables(row, rows, self._frames.get(str(row["data_hash"])))


_NO_FRAMES = "the prepared frames, of known length, are not at hand"
_COLUMNS: Mapping[TableName, list[str]] = {
    "r_matrix": ["run_id", "split", "trained_on", "evaluated_on", "task", "auc"],
    "curves": ["run_id", "epoch", "training_task", "task", "auc"],
    "instances": ["run_id", "task", "instance", "patient", "s", "beta"],
}


def _measured(function: Callable[..., float | Sampled], *runs: RunTables) -> Sampled:
    """Return a measure of a run; NaN if its tables lack the data, as tables of other programs may."""
    if any(run.rows.empty and not run.rows.columns.empty for run in runs):
        return Sampled(np.nan)
    try:
        measure = function(*runs)
    except (KeyError, IndexError, ValueError):
        return Sampled(np.nan)
    return measure if isinstance(measure, Sampled) else Sampled(measure)


def _table_of(measure: str) -> TableName:
    return (MEASURES.get(measure) or OF_TWO[measure])[0]


def _nothing(contrast: Contrast, missing: str) -> Evidence:
    return Evidence(contrast, np.nan, np.nan, 0, np.nan, np.nan, missing)
