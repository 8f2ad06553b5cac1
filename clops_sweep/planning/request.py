"""A request: a selection of runs, the prepared data and the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.prepared.prepared_folder import register_prepared
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError, option
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.prepared_tasks import checked_frames
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.launched import LeftOutSpace, left_out_spaces
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
        read_on: content hashes of another edition of the data, on which stored runs are looked up instead of the
            prepared one. Only to read: a launch uses the prepared data.
        shown: the `prepared_hash` of that edition by data set.

    Raises:
        UsageError: a shard is requested for a search, whose trials depend on each other.
    """

    selection: Selection
    data: PreparedData
    store: RunStore
    shard: Shard | None = None
    read_on: Mapping[DataKey, str] = field(default_factory=dict, hash=False)
    shown: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.shard is not None and self.selection.searches:
            name = self.selection.searches[0].name
            raise UsageError(
                f"{option('shard', str(self.shard))}: {name!r} is an Optuna search, whose trials depend on each other; "
                "expected grids"
            )

    def left_out_spaces(self) -> list[LeftOutSpace]:
        """Return the search spaces of launches that cannot be shown here; none with files."""
        if self.selection.files:
            return []
        return left_out_spaces(self.store, partial(register_prepared, prepared_root=self.data.root))

    def plan(self) -> Plan:
        """Look up the state of each requested run in the store."""
        return make_plan(self.selection.requests, self.store, self.data_hash, self.shard)

    def check_samplers(self) -> None:
        """Check the samplers of all searches with Optuna.

        Raises:
            UsageError: Optuna refuses the options of a sampler.
        """
        for space in self.selection.searches:
            from clops_sweep.search.study import check_sampler

            check_sampler(space)

    def data_hash(self, config: RunConfig) -> str | None:
        """Return the content hash of a config's data; None if they are not prepared and no other edition is read."""
        return self.read_on.get(config.data_key) or self.data.data_hash(config.data_key)

    def edition(self, dataset: str) -> str | None:
        """Return the `prepared_hash` of the edition of a data set that tables show first; None without one."""
        return self.shown.get(dataset) or self.data.prepared_hash(dataset)

    def data_hashes(self) -> set[str]:
        """Return the content hashes of the prepared data of the requested runs."""
        keys = {config.data_key for config in self.selection.configs}
        return {content for key in keys if (content := self.data.data_hash(key)) is not None}

    def frames(self, configs: Sequence[RunConfig]) -> Mapping[DataKey, FrameSet]:
        """Return the prepared data of some configs.

        Raises:
            UsageError: the data of a config are not prepared or do not fit its scenario and network.
        """
        return checked_frames(configs, self.data, self.selection.base_of)
