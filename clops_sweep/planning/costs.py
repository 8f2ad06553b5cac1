"""Cost of runs: the mean seconds of the finished runs of the same kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from clops_sweep.planning.plan import PlannedRun
from clops_sweep.store.run_store import RunStore

Kind = tuple[Any, ...]
"""Values of `FIELDS`: runs of one kind are taken to cost the same."""

FIELDS = (
    *("dataset", "scenario", "domain", "leads", "first_tasks", "network", "lora_rank", "strategy", "batch_size"),
    *("epochs_per_task", "early_stopping", "stream", "steps_per_batch"),
)

_MOST_READ = 200
"""Maximum number of finished runs that are read per kind."""


def kind_of(fields: Mapping[str, Any]) -> Kind:
    """Return the kind of a run with these config fields or columns of `runs`."""
    return tuple(fields[name] for name in FIELDS)


class Costs:
    """Mean seconds of the runs of each kind, over the runs added so far."""

    def __init__(self) -> None:
        self._seconds: defaultdict[Kind | None, float] = defaultdict(float)
        self._runs: Counter[Kind | None] = Counter()

    def add(self, kind: Kind, seconds: float) -> None:
        """Add a run."""
        for key in (kind, None):
            self._seconds[key] += seconds
            self._runs[key] += 1

    def seconds(self, kind: Kind | None) -> float | None:
        """Return the mean seconds of a run of a kind, or of any kind for None; None if no such run was added."""
        return self._seconds[kind] / self._runs[kind] if self._runs[kind] else None


class CostEstimate(NamedTuple):
    """Expected cost of pending runs, in hours of one core or GPU that computes one run at a time.

    `longest` is the duration of the longest run. The estimate covers `known` runs; `unknown` runs have no finished run
    of their kind. It is based on `finished` runs, computed on `devices`: cpu, cuda, or both.
    """

    hours: float = 0.0
    longest: float = 0.0
    known: int = 0
    unknown: tuple[PlannedRun, ...] = ()
    finished: int = 0
    devices: frozenset[str] = frozenset()


def estimate(
    pending: Sequence[PlannedRun], finished: Sequence[PlannedRun], store: RunStore, device: str | None = None
) -> CostEstimate:
    """Estimate the cost of pending runs by the mean cost of finished ones (`Costs`).

    Args:
        pending: the runs to estimate.
        finished: the finished runs among those requested. A kind without any uses other runs in the store.
        store: the store with the finished runs.
        device: ``cpu`` or ``cuda``; None for both.
    """
    kinds = [kind_of(vars(run.config)) for run in pending]
    costs, devices, count = Costs(), frozenset[str](), 0
    for row in _rows_of(set(kinds), finished, store):
        of = str(row["device"] or "cpu").partition(":")[0]
        if kind_of(row) in kinds and device in (None, of) and 0 < (row["seconds"] or 0) < inf:
            costs.add(kind_of(row), row["seconds"])
            devices, count = devices | {of}, count + 1
    expected = [costs.seconds(kind) for kind in kinds]
    unknown = tuple(run for run, seconds in zip(pending, expected, strict=True) if seconds is None)
    known = [seconds / 3600 for seconds in expected if seconds is not None]
    return CostEstimate(sum(known), max(known, default=0), len(known), unknown, count, devices)


def _rows_of(kinds: set[Kind], finished: Sequence[PlannedRun], store: RunStore) -> Sequence[Mapping[str, Any]]:
    """Return rows of finished runs: some requested ones of each kind, and others in the store for kinds without any."""
    of_kind = defaultdict(list)
    for run in finished:
        of_kind[kind_of(vars(run.config))].append(str(run.run_id))
    # Run ids are hashes, so the first ones are a random sample.
    run_ids = [run_id for kind in kinds & of_kind.keys() for run_id in sorted(of_kind[kind])[:_MOST_READ]]
    if not kinds <= of_kind.keys():
        run_ids += sorted(run for run, status in store.statuses().items() if status == "finished")[: 2 * _MOST_READ]
    return store.rows("runs", [*FIELDS, "device", "seconds"], list(dict.fromkeys(run_ids))) if run_ids else []
