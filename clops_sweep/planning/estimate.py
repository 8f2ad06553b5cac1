"""The cost of pending runs, estimated from finished runs of the same kind."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

from clops_sweep.experiment.columns import fields_from_row
from clops_sweep.planning.costs import Costs, Kind, Settings, kind_of, settings_of
from clops_sweep.planning.plan import PlannedRun
from clops_sweep.store.run_store import RunStore

CONFIDENCE = 0.9
"""Share of estimates whose interval contains the true cost, if pending runs are like finished ones."""

_QUANTILE = 1.645
"""Two-sided quantile of the normal distribution for `CONFIDENCE`."""

_OF_HOURS, _OF_RUNS = 0.2, 0.25
"""Standard deviations of log(seconds): between hours on one machine, and between runs of a kind with fewer than three
finished runs."""

_MOST_READ = 200
"""Maximum number of finished runs that are read per kind."""


class Estimate(NamedTuple):
    """Estimated cost of pending runs, in hours of one core or GPU that computes one run at a time.

    `low` and `high` bound the `CONFIDENCE` interval; `longest` is the duration of the longest run. The estimate covers
    `known` runs; `unknown` runs have no finished run of their kind. It is based on `finished` runs, computed on
    `devices`: cpu, cuda, or both.
    """

    hours: float = 0.0
    low: float = 0.0
    high: float = 0.0
    longest: float = 0.0
    known: int = 0
    unknown: tuple[PlannedRun, ...] = ()
    finished: int = 0
    devices: frozenset[str] = frozenset()


class _Known(NamedTuple):
    """A finished run."""

    kind: Kind
    seconds: float
    device: str


def estimate(
    pending: Sequence[PlannedRun], finished: Sequence[PlannedRun], store: RunStore, device: str | None = None
) -> Estimate:
    """Estimate the cost of pending runs by the mean cost of finished ones (`Costs`).

    Args:
        pending: the runs to estimate.
        finished: the finished runs among those requested. A kind without any uses other runs in the store.
        store: the store with the finished runs.
        device: ``cpu`` or ``cuda``; by default the device of most finished runs of a kind.
    """
    kinds = [kind_of(vars(run.config)) for run in pending]
    rows = _finished_of({kind.settings for kind in kinds}, finished, store)
    rows = [row for row in rows if device in (None, row.device)]
    counts = Counter((row.kind.settings, row.device) for row in rows)
    usual = dict(sorted(counts, key=lambda each: counts[each]))  # the last device of a kind has most of its rows
    rows = [row for row in rows if row.device == usual[row.kind.settings]]
    costs = Costs()
    for row in rows:
        costs.add(row.kind, row.seconds)
    expected = [costs.seconds(kind) for kind in kinds]
    unknown = tuple(run for run, seconds in zip(pending, expected, strict=True) if seconds is None)
    known = [seconds / 3600 for seconds in expected if seconds is not None]
    if not known:
        return Estimate(unknown=unknown)
    total, factor = sum(known), math.exp(_QUANTILE * _deviation(rows, costs, len(known)))
    devices = frozenset(usual.values())
    return Estimate(total, total / factor, total * factor, max(known), len(known), unknown, len(rows), devices)


def _deviation(rows: Sequence[_Known], costs: Costs, pending: int) -> float:
    """Return the standard deviation of log(total): variation between hours, of finished runs, and of pending runs."""
    off = [math.log(row.seconds / (costs.seconds(row.kind) or row.seconds)) for row in rows]
    of_runs = math.sqrt(sum(each**2 for each in off) / (len(off) - 1)) if len(off) > 2 else _OF_RUNS
    return math.sqrt(_OF_HOURS**2 + of_runs**2 * (1 / len(off) + 1 / pending))


def _finished_of(kinds: Set[Settings], finished: Sequence[PlannedRun], store: RunStore) -> list[_Known]:
    """Return finished runs of some kinds: requested ones, or others in the store for kinds without any."""
    asked = sorted((str(run.run_id), settings_of(vars(run.config))) for run in finished)
    # Run ids are hashes, so the first ones are a random sample.
    run_ids = [run_id for kind in kinds for run_id in [run_id for run_id, of in asked if of == kind][:_MOST_READ]]
    if not kinds <= {kind for _, kind in asked}:
        run_ids += sorted(run for run, status in store.statuses().items() if status == "finished")[: 2 * _MOST_READ]
    rows: Sequence[Mapping[str, Any]] = store.rows("runs", None, run_ids) if run_ids else []
    return [
        _Known(kind_of(fields_from_row(row)), row["seconds"], str(row["device"] or "cpu").partition(":")[0])
        for row in rows
        if settings_of(row) in kinds and row["seconds"] is not None and 0 < row["seconds"] < math.inf
    ]
