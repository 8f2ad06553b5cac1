"""What the pending runs will cost, from finished runs of the same kind or from short runs that measure it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple

from clops_sweep.experiment.columns import PHASES
from clops_sweep.planning.cost_model import Kind, Load, Measured, modelled, units
from clops_sweep.planning.plan import PlannedRun
from clops_sweep.store.run_store import RunStore

CONFIDENCE = 0.9
"""So often the true cost is to lie in the interval."""

_PRIOR_SPREAD, _PRIOR_NOISE, _PRIOR_DRIFT = 0.25, 0.15, 0.2
"""Standard deviations of log(seconds) where hardly anything is known: of a configuration from what the model says, of a
run from others of its configuration, and of all runs of some hours from those of others, the machine being as busy."""

_PRIOR_RUNS = 2
"""So many observations weigh as much as these."""

_MOST_STRETCHES, _RUNS_A_STRETCH = 8, 8
"""Finished runs are parted into stretches of time, so many at most and each of so many at least, to see drifts."""

_MOST_READ = 200
"""Finished runs of a kind that are read; more would not make the estimate better."""


@dataclass(frozen=True)
class Estimate:
    """What pending runs will cost, where something is known about their kind.

    Attributes:
        hours: of a core, or of a GPU, that computes one run after another.
        low: the cost is above this ...
        high: ... and below this, as often as `CONFIDENCE` says.
        longest: hours of the dearest run; nothing that runs are shared out to is done before.
        known: pending runs that the estimate is about.
        unknown: pending runs of kinds of which nothing is known ...
        unknown_kinds: ... and these kinds.
        finished: finished runs that it rests on.
        measured: short runs that it rests on, for kinds that have no finished one.
        devices: what those were computed on: cpu, cuda, or both.
    """

    hours: float = 0.0
    low: float = 0.0
    high: float = 0.0
    longest: float = 0.0
    known: int = 0
    unknown: int = 0
    unknown_kinds: frozenset[Kind] = frozenset()
    finished: int = 0
    measured: int = 0
    devices: frozenset[str] = frozenset()

    def wall_hours(self, at_a_time: int) -> float:
        """Hours by the clock where so many runs are computed at a time."""
        return max(self.hours / at_a_time, self.longest)


def estimate(
    pending: Sequence[PlannedRun],
    finished: Sequence[PlannedRun],
    store: RunStore,
    measured: Iterable[Measured] = (),
    device: str | None = None,
) -> Estimate:
    """What pending runs will cost.

    Seconds are modelled phase by phase as work (`Load.work`) times what a unit of it took in finished runs of the same
    kind. A configuration of which there are finished runs is taken at their word, as far as they can be trusted. The
    interval has in it how much finished runs differ from the model, from each other and from those of other hours,
    and how few they are.

    Args:
        pending: the runs.
        finished: those that are asked for too and finished.
        store: where finished runs are; if those asked for do not tell of a kind, others of the store may.
        measured: short runs, for the kinds of which there is no finished one.
        device: on which the runs will be computed (cpu or cuda); None for the one that most of the known runs were.
    """
    loads = Counter(Load.of(run.config) for run in pending)
    kinds: dict[Kind, dict[Load, int]] = {}
    for load, count in loads.items():
        kinds.setdefault(load.kind, {})[load] = count
    known = _finished_of(kinds, finished, store, device)
    short: dict[Kind, list[Measured]] = {}
    for item in measured:
        if item.load.kind not in known and item.load.kind in kinds and device in (None, item.device):
            short.setdefault(item.load.kind, []).append(item)
    rows = known | short
    parts = [_of_kind(kinds[kind], of_kind) for kind, of_kind in rows.items()]
    about = sum(sum(kinds[kind].values()) for kind in rows)
    unknown = frozenset(kinds.keys() - rows.keys())
    if not parts:
        return Estimate(unknown=len(pending), unknown_kinds=unknown)
    total = sum(part.seconds for part in parts)
    variances = [variance for part in parts for variance in part.variances]
    variances.append(_drift([residual for part in parts for residual in part.residuals]).times(total**2))
    factor = math.exp(_quantile(variances) * math.sqrt(sum(variance.size for variance in variances)) / total)
    return Estimate(
        hours=total / 3600,
        low=total / factor / 3600,
        high=total * factor / 3600,
        longest=max(part.longest for part in parts) / 3600,
        known=about,
        unknown=len(pending) - about,
        unknown_kinds=unknown,
        finished=sum(map(len, known.values())),
        measured=sum(map(len, short.values())),
        devices=frozenset(row.device for of_kind in rows.values() for row in of_kind),
    )


class _Variance(NamedTuple):
    """A variance, and the degrees of freedom that it was estimated with."""

    size: float
    degrees: float

    def times(self, factor: float) -> _Variance:
        return _Variance(self.size * factor, self.degrees)


@dataclass(frozen=True)
class _Part:
    """The runs of one kind: seconds of all, of the dearest, what they are unsure by; and what known runs differ by."""

    seconds: float
    longest: float
    variances: tuple[_Variance, ...]
    residuals: Sequence[tuple[float, float]]


def _of_kind(pending: Mapping[Load, int], rows: Sequence[Measured]) -> _Part:
    """Pending runs of one kind from known ones: a random-effects model of log(seconds / model), cells being loads.

    With cell means m_c of n_c runs each, variance s^2 between cells and e^2 within: a cell's own mean counts with
    B_c = s^2 / (s^2 + e^2 / n_c), the mean of all cells with the rest.
    """
    per_unit = units(rows)
    cells: dict[Load, list[float]] = {}
    for row in rows:
        cells.setdefault(row.load, []).append(math.log(sum(row.seconds) / modelled(row.work, per_unit)))
    means = {load: fmean(values) for load, values in cells.items()}
    overall = fmean(means.values())
    within = sum((value - means[load]) ** 2 for load, values in cells.items() for value in values)
    noise = _with_prior(_PRIOR_NOISE, within, len(rows) - len(cells))
    per_mean = fmean(noise.size / len(values) for values in cells.values())
    between = sum((mean - overall) ** 2 for mean in means.values()) - (len(cells) - 1) * per_mean
    spread = _with_prior(_PRIOR_SPREAD, max(0.0, between), len(cells) - 1)
    seconds = longest = of_overall = of_cells = of_runs = 0.0
    for load, count in pending.items():
        trust = spread.size / (spread.size + noise.size / len(cells[load])) if load in cells else 0.0
        unknown = spread.size * (1 - trust)
        level = overall + trust * (means.get(load, overall) - overall) + (unknown + noise.size) / 2
        one = modelled(load.work, per_unit) * math.exp(level)
        longest = max(longest, one)
        seconds += count * one
        of_overall += count * one * (1 - trust)
        of_cells += (count * one) ** 2 * unknown
        of_runs += count * one**2
    between_cells = of_overall**2 * (spread.size + per_mean) / len(cells) + of_cells
    residuals = []
    for row in rows:
        if row.started is not None:
            level = means[row.load] if len(cells[row.load]) > 1 else overall
            value = math.log(sum(row.seconds) / modelled(row.work, per_unit))
            residuals.append((row.started, value - level))
    return _Part(seconds, longest, (_Variance(between_cells, spread.degrees), noise.times(of_runs)), residuals)


def _drift(residuals: Sequence[tuple[float, float]]) -> _Variance:
    """How much stretches of time differ, beyond what chance makes of the runs in them."""
    ordered = [value for _, value in sorted(residuals)]
    stretches = min(_MOST_STRETCHES, len(ordered) // _RUNS_A_STRETCH)
    if stretches < 2:
        return _with_prior(_PRIOR_DRIFT, 0.0, 0)
    edges = [len(ordered) * index // stretches for index in range(stretches + 1)]
    parts = [ordered[start:end] for start, end in pairwise(edges)]
    means = [fmean(part) for part in parts]
    within = sum((value - mean) ** 2 for part, mean in zip(parts, means, strict=True) for value in part)
    by_chance = within / (len(ordered) - stretches) * stretches / len(ordered)
    overall = fmean(means)
    between = sum((mean - overall) ** 2 for mean in means) - (stretches - 1) * by_chance
    return _with_prior(_PRIOR_DRIFT, max(0.0, between), stretches - 1)


def _with_prior(deviation: float, squares: float, degrees: int) -> _Variance:
    """A variance from a sum of squares, and from what is believed before anything is known."""
    return _Variance((_PRIOR_RUNS * deviation**2 + squares) / (_PRIOR_RUNS + degrees), _PRIOR_RUNS + degrees)


def _quantile(variances: Sequence[_Variance]) -> float:
    """The point of Student's t that the sum of variances asks for, its degrees after Welch and Satterthwaite."""
    from scipy.special import stdtrit

    together = sum(variance.size for variance in variances)
    degrees = together**2 / sum(variance.size**2 / variance.degrees for variance in variances)
    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2))


def _finished_of(
    kinds: Mapping[Kind, Mapping[Load, int]],
    finished: Sequence[PlannedRun],
    store: RunStore,
    device: str | None,
) -> dict[Kind, list[Measured]]:
    """Finished runs of the kinds: of those asked for, rather such as are also pending with other seeds."""
    chosen: dict[Kind, list[tuple[bool, str]]] = {}
    for run in finished:
        load = Load.of(run.config)
        if load.kind in kinds:
            chosen.setdefault(load.kind, []).append((load not in kinds[load.kind], str(run.run_id)))
    run_ids = [run_id for runs in chosen.values() for _, run_id in sorted(runs)[:_MOST_READ]]
    if len(chosen) < len(kinds):  # ids are hashes, so that the first ones are any
        asked = {str(run.run_id) for run in finished}
        others = sorted(run_id for run_id, status in store.statuses().items() if status == "finished")
        run_ids += [run_id for run_id in others if run_id not in asked][: 2 * _MOST_READ]
    known: dict[Kind, list[Measured]] = {}
    for row in store.rows("runs", [*Load._fields, *PHASES, "device", "started_at"], run_ids) if run_ids else ():
        measured = _measured(row)
        if measured is not None and measured.load.kind in kinds:
            known.setdefault(measured.load.kind, []).append(measured)
    of_device = {kind: _on_device(rows, device) for kind, rows in known.items()}
    return {kind: rows for kind, rows in of_device.items() if rows}


def _on_device(rows: Sequence[Measured], device: str | None) -> list[Measured]:
    """The rows of a device, or of the one that has most of them."""
    wanted = device or Counter(row.device for row in rows).most_common(1)[0][0]
    return [row for row in rows if row.device == wanted]


def _measured(row: Mapping[str, Any]) -> Measured | None:
    """A row of `runs`; None if it does not say what the run took."""
    train, acquire, evaluate = (row[phase] or 0.0 for phase in PHASES)
    if not 0 < train + acquire + evaluate < math.inf:
        return None
    load = Load(*(row[name] for name in Load._fields))
    started = None if row["started_at"] is None else row["started_at"].timestamp()
    device = str(row["device"] or "cpu").partition(":")[0]
    return Measured(load, load.work, (train, acquire, evaluate), device, started)
