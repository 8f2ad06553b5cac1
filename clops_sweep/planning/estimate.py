"""What the pending runs will cost, from finished runs of the same kind or from short runs that measure it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence, Set
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clops_sweep.experiment.columns import PHASES, fields_from_row
from clops_sweep.experiment.config import RunConfig
from clops_sweep.planning.cost_model import Kind, Load, Measured, kind_of, modelled, units_of
from clops_sweep.planning.plan import PlannedRun
from clops_sweep.store.run_store import RunStore

CONFIDENCE = 0.9
"""So often the true cost is to lie in the interval."""

_PRIOR, _WEIGHT = np.array([0.25, 0.15, 0.2]), 2
"""Standard deviations of log(seconds) that are believed beforehand: of a load from what the model says, of a run from
others of its load, of runs of some hours from those of others; and as how many observations each of them counts."""

_STRETCH, _MOST_READ = 8, 200
"""Runs in a row whose mean shows a drift; and finished runs of a kind that are read, as more would change little."""


class Estimate(NamedTuple):
    """What pending runs will cost, in hours of a core or a GPU that computes one after another.

    As often as `CONFIDENCE` says, it is between `low` and `high`; `longest` is what the longest run takes. It is about
    `known` runs, and nothing is known of the kinds of the `unknown` ones. It rests on so many `finished` runs and, for
    kinds that have none, on so many short ones that were `measured`; on these `devices`: cpu, cuda, or both.
    """

    hours: float = 0.0
    low: float = 0.0
    high: float = 0.0
    longest: float = 0.0
    known: int = 0
    unknown: tuple[PlannedRun, ...] = ()
    finished: int = 0
    measured: int = 0
    devices: frozenset[str] = frozenset()


def estimate(
    pending: Sequence[PlannedRun],
    finished: Sequence[PlannedRun],
    store: RunStore,
    measured: Sequence[Measured] = (),
    device: str | None = None,
) -> Estimate:
    """What pending runs will cost: their work (`Load`) times what a unit of it took in known runs of their kind.

    Known are finished runs, of those asked for or else of others in the store; of kinds of which there are none, those
    `measured`. They are of the given device (cpu or cuda), or of the one that most known runs of their kind are of.
    """
    loads = _loads(run.config for run in pending)
    kinds = {load.kind for load in loads}
    found = [row for row in _finished_of(kinds, finished, store) if device in (None, row.device)]
    missing = kinds - {row.load.kind for row in found}
    rows = found + [row for row in measured if row.load.kind in missing and device in (None, row.device)]
    counts = Counter((row.load.kind, row.device) for row in rows)
    usual = dict(sorted(counts, key=lambda each: counts[each]))  # the last device of a kind is that of most of its rows
    rows = [row for row in rows if row.device == usual[row.load.kind]]
    units = {kind: units_of([row for row in rows if row.load.kind == kind]) for kind in usual}
    unknown = tuple(run for run, load in zip(pending, loads, strict=True) if load.kind not in units)
    if not units:
        return Estimate(unknown=unknown)
    about = [load for load in loads if load.kind in units]
    every, n = about + [row.load for row in rows], len(about)
    of_load = {load: modelled(load.work, units[load.kind]) / 3600 for load in set(every)}
    hours = np.array([of_load[load] for load in every])
    total, longest = float(hours[:n].sum()), float(hours[:n].max())
    short, devices = sum(row.load.kind in missing for row in rows), frozenset(usual.values())
    factor = math.exp(_deviation(every, hours, np.array([sum(row.seconds) / 3600 for row in rows])))
    return Estimate(total, total / factor, total * factor, longest, n, unknown, len(rows) - short, short, devices)


_SEEDS = ("seed", "split_seed", "weight_seed")


def _loads(configs: Iterable[RunConfig]) -> list[Load]:
    """The load of each run; runs that differ in seeds alone have one of them between them."""
    known: dict[tuple[tuple[str, Any], ...], Load] = {}
    of_config: dict[int, tuple[RunConfig, Load]] = {}  # by address: the trials of a search have one config a seed
    loads = []
    for config in configs:
        if id(config) not in of_config:
            key = tuple((name, value) for name, value in config.model_dump().items() if name not in _SEEDS)
            if key not in known:
                known[key] = Load.of(config.model_dump(mode="json"))
            of_config[id(config)] = config, known[key]
        loads.append(of_config[id(config)][1])
    return loads


def _numbered(keys: Iterable[Hashable]) -> NDArray[np.int64]:
    """A number for each, from 0, the same for those that are equal."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys])


def _deviation(loads: Sequence[Load], hours: NDArray[np.float64], taken: NDArray[np.float64]) -> float:
    """How far log(total hours) of the n pending runs may be off, so that in one case of ten it is off by more.

    log(taken / modelled hours) of a run is the sum of an effect of its load, one of the run and one of the time when it
    was computed, with variances that all kinds share. The total is off by the last, and by the mean of the others over
    all runs, weighted by modelled hours: known runs count negatively, as much in each kind as the pending ones do.
    `loads` and `hours` [n + k] are those of the pending runs and, in the order of time, the known ones; `taken` [k].
    """
    from scipy.special import stdtrit

    n, cell, kind = len(loads) - len(taken), _numbered(loads), _numbered(load.kind for load in loads)
    scale = np.bincount(kind[:n], hours[:n]) / np.bincount(kind[n:], hours[n:])
    weights, known = np.append(hours[:n], -scale[kind[n:]] * hours[n:]) / hours[:n].sum(), cell[n:]
    off = np.log(taken / hours[n:])
    means = np.bincount(known, off) / np.maximum(1, np.bincount(known))
    drifts = off[: len(off) // _STRETCH * _STRETCH].reshape(-1, _STRETCH).mean(1)
    cells = len(np.unique(known))
    degrees = _WEIGHT + np.array([cells - len(np.unique(kind)), len(off) - cells, max(0, len(drifts) - 1)])
    squares = [(means**2).sum(), ((off - means[known]) ** 2).sum(), (drifts**2).sum()]
    shares = [(np.bincount(cell, weights) ** 2).sum(), (weights**2).sum(), 1.0]
    sizes = (_WEIGHT * _PRIOR**2 + squares) / degrees * shares
    # Student's t, its degrees of freedom after Welch and Satterthwaite.
    return float(stdtrit(sizes.sum() ** 2 / (sizes**2 / degrees).sum(), (1 + CONFIDENCE) / 2) * math.sqrt(sizes.sum()))


def _finished_of(kinds: Set[Kind], finished: Sequence[PlannedRun], store: RunStore) -> list[Measured]:
    """Finished runs of some kinds in the order in which they began: of those asked for, or else of others."""
    asked = sorted((str(run.run_id), kind_of(vars(run.config))) for run in finished)
    # Ids are hashes, so that the first ones are any.
    run_ids = [run_id for kind in kinds for run_id in [run_id for run_id, of in asked if of == kind][:_MOST_READ]]
    if not kinds <= {kind for _, kind in asked}:
        run_ids += sorted(run for run, status in store.statuses().items() if status == "finished")[: 2 * _MOST_READ]
    rows = store.rows("runs", None, run_ids) if run_ids else []  # all columns: which options a work needs, it knows
    return [
        Measured(
            Load.of(fields_from_row(row)),
            [row[phase] or 0.0 for phase in PHASES],
            str(row["device"] or "cpu").partition(":")[0],
        )
        for row in sorted(rows, key=lambda row: str(row["started_at"]))
        if kind_of(row) in kinds and 0 < sum(row[phase] or 0.0 for phase in PHASES) < math.inf
    ]
