"""Plans: which of the requested runs are finished, pending or failed. Imports neither torch nor Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from clops_sweep.data.catalog import DataKey
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.spaces.gc_paused import gc_paused
from clops_sweep.experiment.spaces.run_names import RunName, run_names
from clops_sweep.experiment.spaces.search_space import RunRequest
from clops_sweep.planning.curriculum import BY_DIFFICULTY, orders_by_difficulty, source_config
from clops_sweep.planning.shard import Shard
from clops_sweep.store.run_store import RunStore

FOR_ORDERS = RunName.of("for task orders")
"""Name of runs that are not requested, but whose s determines the task order of others."""

State = Literal["finished", "failed", "pending", "waiting"]


@dataclass(frozen=True)
class PlannedRun:
    """A requested run and its state.

    A run is waiting while its data are not prepared, or while its task order depends on an unfinished run. Its
    `run_id` is None then.

    Attributes:
        name: its name in the search space (see `run_names`), without the seed.
    """

    run_id: str | None
    config: RunConfig
    state: State
    name: RunName = field(default_factory=RunName)

    @property
    def is_to_come(self) -> bool:
        """Whether a search may still ask for it; its parameters are not known."""
        return self.run_id is None and self.state == "pending"


@dataclass(frozen=True)
class Plan:
    """Every requested run, once, in order, after the runs that some of them depend on.

    Attributes:
        first: runs that are not requested, but whose s determines the task order of others.
        asked: the requested runs.
        unprepared: requested data sets and encoder features that are not prepared on this machine.
        places: number of cells and seeds of search spaces; equivalent ones share one run.
        without_kept: number of pending runs that lack only the predictions or models to keep.
    """

    first: tuple[PlannedRun, ...]
    asked: tuple[PlannedRun, ...]
    unprepared: tuple[str, ...]
    places: int
    without_kept: int = 0

    def of(self, *states: State) -> list[PlannedRun]:
        """Return the runs in any of the given states, including those not requested."""
        return [run for run in (*self.first, *self.asked) if run.state in states]

    def count(self, *states: State) -> int:
        """Return the number of requested runs in any of the given states."""
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
        named = list(zip(wanted, run_names(wanted), strict=True))
        if shard is not None:
            named = [(it, name) for it, name in named if _is_in(shard, it.config, data_hash)]
        return _make_plan([it for it, _ in named], [name for _, name in named], store, data_hash)


def _is_in(shard: Shard, config: RunConfig, data_hash: Callable[[RunConfig], str | None]) -> bool:
    """Return whether a run is in a shard. A task order by difficulty counts as written, also once it is known."""
    content = data_hash(config)
    return content is None or shard.has(config.run_id(content))


def _make_plan(
    requests: Sequence[RunRequest],
    called: Sequence[RunName],
    store: RunStore,
    data_hash: Callable[[RunConfig], str | None],
) -> Plan:
    asked = [request.config for request in requests]
    orders = orders_by_difficulty(asked, store, data_hash)
    sources = [source_config(config) for config, resolved in orders.items() if resolved is None]
    statuses = store.statuses()
    runs: dict[str, PlannedRun] = {}
    contents: dict[DataKey, str | None] = {}
    resolved = [orders.get(config, config) or config for config in asked] if orders else asked
    names: dict[str, RunName] = {}
    for config, name in zip(resolved, called, strict=True):
        names.setdefault(config.identity, name)
    for config in (*sources, *resolved):
        identity, data = config.identity, config.data_key
        if identity in runs:
            continue
        name = names.get(identity, FOR_ORDERS)
        if data not in contents:
            contents[data] = data_hash(config)
        content = contents[data]
        if content is None or config.task_order in BY_DIFFICULTY:
            runs[identity] = PlannedRun(None, config, "waiting", name)
        else:
            run_id = config.run_id(content)
            runs[identity] = PlannedRun(run_id, config, statuses.get(run_id, "pending"), name)
    first = {config.identity for config in sources} - ({config.identity for config in asked} if sources else set())
    return Plan(
        tuple(run for identity, run in runs.items() if identity in first),
        tuple(run for identity, run in runs.items() if identity not in first),
        tuple(sorted({data.words for data, content in contents.items() if content is None})),
        len(asked),
        len({run.run_id for run in runs.values()} & store.without_kept()),
    )
