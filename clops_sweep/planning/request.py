"""A request: a selection of runs, the prepared data and the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.prepared.prepared_folder import know
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError, shown
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.network_input import check_frames
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.experiment.tasks import with_tasks
from clops_sweep.planning.curriculum import orders_by_difficulty
from clops_sweep.planning.launched import launched_spaces, unknown_spaces
from clops_sweep.planning.plan import Plan, make_plan
from clops_sweep.planning.shard import Shard
from clops_sweep.store.run_store import RunStore

if TYPE_CHECKING:
    from clops_sweep.data.frames import FrameSet


@dataclass(frozen=True)
class Request:
    """A selection of runs, the prepared data and the store.

    Attributes:
        selection: the runs.
        data: the prepared data.
        store: the store for the results.
        shard: the part of the runs to compute; None for all.

    Raises:
        UsageError: a shard is requested for a search, whose trials depend on each other.
    """

    selection: Selection
    data: PreparedData
    store: RunStore
    shard: Shard | None = None

    def __post_init__(self) -> None:
        if self.shard is not None and self.selection.searches:
            name = self.selection.searches[0].name
            raise UsageError(
                f"--shard {self.shard}: {name!r} is an Optuna search, whose trials depend on each other; expected grids"
            )

    def pretraining(self, *configs: RunConfig) -> Request:
        """Return the request of some configs, by default all that are encoders of these, which keeps their models."""
        spaces = [
            SearchSpace(f"pretraining_{n}", it, seeds=[it.seed])
            for n, it in enumerate(configs or self.selection.pretraining, 1)
        ]
        store = RunStore(self.store.files.uri, keep={*self.store.keep, "models"})
        return Request(Selection(tuple(spaces)), self.data, store).with_pretrained()

    def with_pretrained(self) -> Request:
        """Return the request with `run:RUN_ID` in place of each encoder that is a finished run.

        Raises:
            UsageError: a config is an encoder elsewhere than in base or axes.
        """
        if not (first := self.selection.pretraining):
            return self
        if left := self._with_encoders(dict.fromkeys(first, f"run:{0:024}")).selection.pretraining:
            raise UsageError(f"encoder = {shown(left[0])}: expected it in base or axes of the search space")
        runs = {it: self.pretraining(it).plan().asked[0] for it in first}
        return self._with_encoders({it: f"run:{run.run_id}" for it, run in runs.items() if run.state == "finished"})

    def _with_encoders(self, stored: Mapping[RunConfig, str]) -> Request:
        given = tuple(space.with_encoders(stored) for space in self.selection.given)
        return replace(self, selection=replace(self.selection, given=given, reported=()))

    def as_launched(self) -> Request:
        """Return the request; without search spaces, that of all spaces that launches on the store had."""
        if self.selection.files:
            return self
        known = partial(know, prepared_root=self.data.root)
        return replace(self, selection=Selection(launched_spaces(self.store, known)))

    def unknown_spaces(self) -> dict[str, str]:
        """Return the search spaces of launches that `as_launched` leaves out, with reasons; none with files."""
        if self.selection.files:
            return {}
        return unknown_spaces(self.store, partial(know, prepared_root=self.data.root))

    def data_hash(self, config: RunConfig) -> str | None:
        """Return the content hash of a config's data; None if they are not prepared."""
        return self.data.data_hash(config.data_key)

    def data_hashes(self) -> set[str]:
        """Return the content hashes of the prepared data of the requested runs."""
        keys = {config.data_key for config in self.selection.configs}
        return {content for key in keys if (content := self.data.data_hash(key)) is not None}

    def plan(self) -> Plan:
        """Return the state of the requested runs and of the runs that they depend on."""
        return make_plan(self.selection.requests, self.store, self.data_hash, self.shard)

    def resolved_spaces(self) -> list[SearchSpace]:
        """Return the spaces with known task orders by difficulty replaced by permutations."""
        configs = [request.config for request in self.selection.requests]
        resolved = orders_by_difficulty(configs, self.store, self.data_hash)
        return [
            replace(space, resolve=lambda config: resolved.get(config) or config) for space in self.selection.spaces
        ]

    def frames(self, configs: Sequence[RunConfig]) -> Mapping[DataKey, FrameSet]:
        """Return the prepared data of some configs.

        Raises:
            UsageError: the data of a config are not prepared or do not fit its scenario and network.
        """
        frames = {key: self.data.frames(key) for key in dict.fromkeys(config.data_key for config in configs)}
        for config in configs:
            check_frames(config, frames[config.data_key])
        for _ in with_tasks(configs, frames):
            pass  # each is checked
        return frames
