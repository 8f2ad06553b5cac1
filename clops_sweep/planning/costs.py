"""Cost of runs: the mean seconds of the finished runs of the same kind."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from operator import itemgetter
from typing import Any, NamedTuple

from clops_sweep.data.splits.fold_names import fold_of
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.fields import OF_COST, facts_of
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.planning.plan import PlannedRun
from clops_sweep.store.run_store import RunStore

_MOST_READ = 200
"""Maximum number of finished runs that are read per kind."""


class Kind(NamedTuple):
    """Runs of one kind are taken to cost the same.

    Attributes:
        fields: values of `OF_COST`, and the number of folds.
        options: the options of its plug-ins that decide the cost, with their values.
    """

    fields: tuple[Any, ...]
    options: frozenset[tuple[str, Any]]

    @property
    def of_any_options(self) -> Kind:
        """The kind without options: runs whose costs are similar at best."""
        return Kind(self.fields, frozenset())


def kind_of(config: RunConfig) -> Kind:
    """Return the kind of the runs of a config."""
    fields = vars(config)
    classes = fields["task_classes"]
    if classes is not None:
        fields = fields | {"task_classes": json.dumps(classes)}  # as in a column
    return _kind(fields, config.options)


def kind_of_row(row: Mapping[str, Any]) -> Kind:
    """Return the kind of a row of `runs`, which has the columns `columns_of_kind`."""
    return _kind(row, {name: row[name] for name in OPTIONS if name in row})


def columns_of_kind(there: Iterable[str]) -> list[str]:
    """Return the columns of `runs` that `kind_of_row` reads, among those that a store has."""
    present = set(there)
    return [*OF_COST, "split", *(name for name in OPTIONS if name in present and not facts_of(name).equal_cost)]


_values_of = itemgetter(*OF_COST)


def _kind(fields: Mapping[str, Any], options: Mapping[str, Any]) -> Kind:
    split = fields["split"]
    folds = None if split is None else fold_of(split)[1]  # of k folds, each has as many people as another
    deciding = []
    for name, value in options.items():
        if value is not None and not facts_of(name).equal_cost:
            deciding.append((name, value))
    return Kind((*_values_of(fields), folds), frozenset(deciding))


class Costs:
    """Mean seconds of the runs of each kind, over the runs added so far."""

    def __init__(self) -> None:
        self._seconds: defaultdict[Kind | None, float] = defaultdict(float)
        self._runs: Counter[Kind | None] = Counter()

    def add(self, kind: Kind, seconds: float) -> None:
        """Add a run."""
        for key in {kind, kind.of_any_options, None}:
            self._seconds[key] += seconds
            self._runs[key] += 1

    def seconds(self, kind: Kind | None) -> float | None:
        """Return the mean seconds of a run of a kind, or of any kind for None; None if no such run was added."""
        return self._seconds[kind] / self._runs[kind] if self._runs[kind] else None

    def guess(self, kind: Kind) -> float | None:
        """Return the mean seconds of the most similar runs: of its kind, or else of the kind with any options."""
        exact = self.seconds(kind)
        return self.seconds(kind.of_any_options) if exact is None else exact


class CostEstimate(NamedTuple):
    """Expected cost of pending runs, in hours of one core or GPU that computes one run at a time.

    `longest` is the duration of the longest run. The estimate covers `known` runs; `unknown` runs have no finished run
    of their kind. It is based on `finished` runs, computed on `devices`: cpu, cuda, or both. `other_data` of these are
    on another edition of the data, whose tasks and people may be more or fewer.
    """

    hours: float = 0.0
    longest: float = 0.0
    known: int = 0
    unknown: tuple[PlannedRun, ...] = ()
    finished: int = 0
    devices: frozenset[str] = frozenset()
    other_data: int = 0


class _Known(NamedTuple):
    """Costs of finished runs: their number, those on another edition of the data, and their devices."""

    costs: Costs
    finished: int
    other_data: int
    devices: frozenset[str]


def estimate(
    pending: Sequence[PlannedRun],
    finished: Sequence[PlannedRun],
    store: RunStore,
    device: str | None = None,
    present: Callable[[str], str | None] = lambda dataset: None,
) -> CostEstimate:
    """Estimate the cost of pending runs by the mean cost of finished ones (`Costs`).

    The parameters of a run that a search may still ask for are not known: it takes the mean over the options.

    Args:
        pending: the runs to estimate.
        finished: the finished runs among those requested. A kind without any uses other runs in the store.
        store: the store with the finished runs.
        device: ``cpu`` or ``cuda``; None for both.
        present: returns the `prepared_hash` of the data that runs are to be computed on; None if it is not known.
    """
    kinds = _kinds_of(pending)
    found = _known(kinds, finished, store, device, present)
    expected = [found.costs.seconds(kind) for kind in kinds]
    unknown = tuple(run for run, seconds in zip(pending, expected, strict=True) if seconds is None)
    known = [seconds / 3600 for seconds in expected if seconds is not None]
    longest = max(known, default=0)
    return CostEstimate(sum(known), longest, len(known), unknown, found.finished, found.devices, found.other_data)


def known_costs(
    pending: Sequence[PlannedRun], finished: Sequence[PlannedRun], store: RunStore, device: str | None = None
) -> Costs:
    """Return the costs of finished runs of the kinds of pending ones; for the arguments see `estimate`."""
    return _known(_kinds_of(pending), finished, store, device).costs


def _kinds_of(pending: Sequence[PlannedRun]) -> list[Kind]:
    kinds = []
    for run in pending:
        kind = kind_of(run.config)
        kinds.append(kind.of_any_options if run.is_to_come else kind)
    return kinds


def _known(
    kinds: Sequence[Kind],
    finished: Sequence[PlannedRun],
    store: RunStore,
    device: str | None,
    present: Callable[[str], str | None] = lambda dataset: None,
) -> _Known:
    """Return the costs of finished runs of some kinds; for the other arguments see `estimate`."""
    costs, devices, count, other_data = Costs(), frozenset[str](), 0, 0
    wanted = set(kinds)
    for row in _rows_of(wanted, finished, store):
        kind = kind_of_row(row)
        of = str(row["device"] or "cpu").partition(":")[0]
        needed = kind in wanted or kind.of_any_options in wanted
        if needed and device in (None, of) and 0 < (row["seconds"] or 0) < inf:
            costs.add(kind, row["seconds"])
            devices, count = devices | {of}, count + 1
            here, then = present(row["dataset"]), row["prepared_hash"]
            other_data += here is not None and then is not None and here != then
    return _Known(costs, count, other_data, devices)


def _rows_of(kinds: set[Kind], finished: Sequence[PlannedRun], store: RunStore) -> Sequence[Mapping[str, Any]]:
    """Return rows of finished runs: some requested ones of each kind, and others in the store for kinds without any."""
    of_kind = defaultdict(list)
    for run in finished:
        exact = kind_of(run.config)
        for kind in {exact, exact.of_any_options} & kinds:
            of_kind[kind].append(str(run.run_id))
    # Run ids are hashes, so the first ones are a random sample.
    run_ids = [run_id for of_it in of_kind.values() for run_id in sorted(of_it)[:_MOST_READ]]
    if not kinds <= of_kind.keys():
        run_ids += sorted(run for run, status in store.statuses().items() if status == "finished")[: 2 * _MOST_READ]
    if not run_ids:
        return []
    columns = columns_of_kind(store.columns())
    return store.rows("runs", [*columns, "device", "seconds", "prepared_hash"], list(dict.fromkeys(run_ids)))
