"""Plans: which of the requested runs are finished, pending or failed. Imports neither torch nor Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from clops_sweep.data.catalog import DataKey
from clops_sweep.experiment.config import BY_DIFFICULTY, RunConfig
from clops_sweep.experiment.spaces.gc_paused import gc_paused
from clops_sweep.experiment.spaces.grid import RunRequest
from clops_sweep.experiment.spaces.run_names import RunName, run_names
from clops_sweep.planning.curriculum import orders_by_difficulty, source_config
from clops_sweep.planning.shard import Shard
from clops_sweep.store.parts import Status
from clops_sweep.store.run_store import RunStore

FOR_ORDERS = RunName.of("for task orders")
"""Name of runs that are not requested, but whose s determines the task order of others."""

RunState = Literal["finished", "failed", "pending", "waiting"]


@dataclass(frozen=True)
class PlannedRun:
    """A requested run and its state.

    A run is waiting while its data are not prepared, or while its task order depends on an unfinished run.

    Attributes:
        run_id: its id; None as long as `has_no_id_yet`.
        name: its name in the search space (see `run_names`), without the seed.
    """

    run_id: str | None
    config: RunConfig
    state: RunState
    name: RunName = field(default_factory=RunName)

    @property
    def has_no_id_yet(self) -> bool:
        """Whether it is waiting or to come: its data, task order or parameters are not known."""
        return self.run_id is None

    @property
    def is_to_come(self) -> bool:
        """Whether a search may still ask for it; its parameters are not known."""
        return self.has_no_id_yet and self.state == "pending"


@dataclass(frozen=True)
class Plan:
    """Every requested run, once, in order, after the runs that some of them depend on.

    Attributes:
        first: runs that are not requested, but whose s determines the task order of others.
        asked: the requested runs.
        unprepared: requested data sets and encoder features that are not prepared on this machine.
        cells_and_seeds: number of cells and seeds of search spaces; equivalent ones share one run.
        without_kept: number of pending runs that lack only the predictions or models to keep.
    """

    first: tuple[PlannedRun, ...]
    asked: tuple[PlannedRun, ...]
    unprepared: tuple[str, ...]
    cells_and_seeds: int
    without_kept: int = 0

    def of(self, *states: RunState) -> list[PlannedRun]:
        """Return the runs in any of the given states: `first` and `asked`."""
        return [run for run in (*self.first, *self.asked) if run.state in states]

    def count_asked(self, *states: RunState) -> int:
        """Return the number of requested runs in any of the given states, without `first`."""
        return sum(run.state in states for run in self.asked)


def make_plan(
    requests: Iterable[RunRequest],
    store: RunStore,
    data_hash: Callable[[RunConfig], str | None],
    shard: Shard | None = None,
) -> Plan:
    """Look up the state of each requested run in the store; a run requested several times counts once.

    Configs with equal identity (`RunConfig.identity`) are one run; the first of them is computed.

    Args:
        requests: the requested runs, in order.
        store: the store to look in.
        data_hash: returns the content hash of a config's data, None if they are not prepared.
        shard: keeps the runs in this shard. Runs on data that are not prepared are in every shard.
    """
    with gc_paused():
        wanted = list(requests)
        kept = []
        for request, name in zip(wanted, run_names(wanted), strict=True):
            if shard is None or _is_in(shard, request.config, data_hash):
                kept.append((request.config, name))
        return _make_plan(kept, store, data_hash)


def _is_in(shard: Shard, config: RunConfig, data_hash: Callable[[RunConfig], str | None]) -> bool:
    """Return whether a run is in a shard. A task order by difficulty counts as written, also once it is known."""
    content = data_hash(config)
    return content is None or shard.has(config.run_id(content))


def _make_plan(
    requested: Sequence[tuple[RunConfig, RunName]], store: RunStore, data_hash: Callable[[RunConfig], str | None]
) -> Plan:
    """Return the plan of the requested configs, each with its name."""
    orders = orders_by_difficulty([config for config, _ in requested], store, data_hash)
    look_up = _LookUp(store.statuses(), data_hash)
    asked: dict[str, PlannedRun] = {}
    for config, name in requested:
        if config.task_order in BY_DIFFICULTY:
            config = orders[config] or config
        if config.identity not in asked:
            asked[config.identity] = look_up.run(config, name)
    first: dict[str, PlannedRun] = {}
    for config, resolved in orders.items():
        if resolved is None:
            source = source_config(config)
            if source.identity not in asked:
                first[source.identity] = look_up.run(source, FOR_ORDERS)
    run_ids = {run.run_id for run in (*first.values(), *asked.values())}
    return Plan(
        tuple(first.values()),
        tuple(asked.values()),
        look_up.unprepared,
        len(requested),
        len(run_ids & store.without_kept()),
    )


class _LookUp:
    """Looks up the state of runs."""

    def __init__(self, statuses: Mapping[str, Status], data_hash: Callable[[RunConfig], str | None]) -> None:
        self._statuses = statuses
        self._data_hash = data_hash
        self._contents: dict[DataKey, str | None] = {}

    def run(self, config: RunConfig, name: RunName) -> PlannedRun:
        """Return a run with its state."""
        key = config.data_key
        if key not in self._contents:
            self._contents[key] = self._data_hash(config)
        content = self._contents[key]
        if content is None or config.task_order in BY_DIFFICULTY:
            return PlannedRun(None, config, "waiting", name)
        run_id = config.run_id(content)
        return PlannedRun(run_id, config, self._statuses.get(run_id, "pending"), name)

    @property
    def unprepared(self) -> tuple[str, ...]:
        """The data sets and features of the runs so far that are not prepared."""
        missing = {key.words for key, content in self._contents.items() if content is None}
        return tuple(sorted(missing))
