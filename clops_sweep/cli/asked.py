"""What a command line asks for: which runs, on which data, recorded where."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clops_sweep.data.catalog import DATASETS
from clops_sweep.errors import BadInput, one_line
from clops_sweep.experiment.config import DataKey, RunConfig
from clops_sweep.experiment.search_space import RunRequest, SearchSpace, all_requests, load_spaces
from clops_sweep.planning.curriculum import orders_by_difficulty
from clops_sweep.planning.plan import Plan, make_plan
from clops_sweep.store.run_store import RunStore

if TYPE_CHECKING:
    from clops_sweep.data.frames import FrameSet


@dataclass(frozen=True)
class Asked:
    """The options that every command about search spaces takes.

    Attributes:
        files: search-space files.
        results: folder or URI of the store.
        data_root: the publishers' files, if anywhere.
        prepared_root: the prepared frames.
        settings: NAME=VALUE texts that override the base configs.
        seeds: seeds 0 .. seeds - 1 instead of the files'.
        limit: only so many runs; of a search, only so many trials.
        where: a pandas expression over config fields; not for searches.
    """

    files: tuple[Path, ...]
    results: str
    data_root: Path | None
    prepared_root: Path
    settings: tuple[str, ...] = ()
    seeds: int | None = None
    limit: int | None = None
    where: str | None = None

    @cached_property
    def spaces(self) -> list[SearchSpace]:
        """The files' search spaces, as the options change them, but for those that are left out."""
        spaces = [space.overridden(self._overrides) for space in self._loaded if space not in self.left_out]
        return [space.with_seeds(self.seeds) for space in spaces] if self.seeds else spaces

    @cached_property
    def left_out(self) -> list[SearchSpace]:
        """Of several search spaces those whose scenario is none of the data set that is set for all of them."""
        dataset = self._overrides.get("dataset")
        if not isinstance(dataset, str) or dataset not in DATASETS or "scenario" in self._overrides:
            return []
        unfit = [space for space in self._loaded if space.base.scenario not in DATASETS[dataset].scenarios]
        return unfit if len(unfit) < len(self._loaded) else []

    @cached_property
    def _overrides(self) -> dict[str, Any]:
        return dict(_setting(text) for text in self.settings)

    @cached_property
    def _loaded(self) -> list[SearchSpace]:
        return [space for file in self.files for space in load_spaces(file)]

    @cached_property
    def requests(self) -> list[RunRequest]:
        """The runs asked for, in order."""
        requests = all_requests(self.spaces)
        if self.where and requests:
            requests = _filtered(requests, self.where)
        if not requests and not self.searches:
            raise BadInput(f"{' '.join(map(str, self.files))}: no run is left to ask for")
        return requests[: self.limit]

    @cached_property
    def searches(self) -> list[SearchSpace]:
        """The search spaces with a search in the place of axes."""
        found = [(space, space.search) for space in self.spaces if space.search is not None]
        if found and self.where:
            raise BadInput(
                f"--where keeps some of a list of runs, and search space {found[0][0].name!r} has none before it is "
                "run; bound its distributions instead"
            )
        trials = [search.n_trials if self.limit is None else min(self.limit, search.n_trials) for _, search in found]
        return [
            replace(space, search=replace(search, n_trials=n)) for (space, search), n in zip(found, trials, strict=True)
        ]

    @cached_property
    def configs(self) -> list[RunConfig]:
        """The configs asked for; of a search, those at its bounds."""
        searched = [config for space in self.searches for config in self.configs_of(space)]
        return [request.config for request in self.requests] + searched

    def configs_of(self, space: SearchSpace) -> list[RunConfig]:
        """The configs at the bounds of a search, which need all the data that its trials may need."""
        if space.search is None:
            return []
        settings = [space.search.settings(corner) for corner in space.search.corners()]
        return [space.base.replace(**setting, seed=space.seeds[0]) for setting in settings]

    @cached_property
    def store(self) -> RunStore:
        """Where results are."""
        return RunStore.named(self.results)

    @property
    def work_folder(self) -> Path:
        """Logs: beside tables that are in a folder, else in this user's cache."""
        if self.store.files.folder is not None:
            return self.store.files.folder / ".work"
        from platformdirs import user_cache_path

        return user_cache_path("clops-sweep") / "work"

    @property
    def report_folder(self) -> Path:
        """Where the report goes if nothing else is said."""
        base = Path("report") if self.store.files.folder is None else self.store.files.folder / "report"
        return base / ("+".join(file.stem for file in self.files) or "everything")

    @property
    def varying(self) -> list[str]:
        """The config fields, but for the seed, that tell the runs apart."""
        return [
            name
            for name in RunConfig.model_fields
            if name != "seed" and len({getattr(request.config, name) for request in self.requests}) > 1
        ]

    def plan(self) -> Plan:
        """How the runs asked for stand, and those that have to come first."""
        return make_plan(self.requests, self.store, self.data_hash)

    def resolved_spaces(self) -> list[SearchSpace]:
        """The spaces with task orders by difficulty replaced by permutations, as far as these are known."""
        resolved = orders_by_difficulty([r.config for r in self.requests], self.store, self.data_hash)
        return [replace(space, resolve=lambda config: resolved.get(config) or config) for space in self.spaces]

    @property
    def data_hash(self) -> Callable[[RunConfig], str | None]:
        """The content hash of the data that a config runs on, looked up once; None where they are not prepared."""
        from clops_sweep.data.prepare import data_hash

        known: dict[DataKey, str | None] = {}

        def content(config: RunConfig) -> str | None:
            key = config.data_key
            if key not in known:
                dataset, split_seed, normalize = key
                known[key] = data_hash(
                    dataset, prepared_root=self.prepared_root, split_seed=split_seed, normalize=normalize
                )
            return known[key]

        return content

    def data_hashes(self) -> set[str]:
        """The content hashes of the data that the runs asked for are computed on, as far as they are prepared here."""
        content = self.data_hash
        configs = {config.data_key: config for config in self.configs}
        return {found for config in configs.values() if (found := content(config)) is not None}

    def prepare(self) -> None:
        """Prepares the data that the runs need and that are not prepared yet."""
        from clops_sweep.data.prepare import prepare

        for name in dict.fromkeys(config.dataset for config in self.configs):
            prepare(name, prepared_root=self.prepared_root, data_root=self.data_root, progress=True)

    def frames_at_hand(self, configs: Sequence[RunConfig]) -> list[FrameSet]:
        """The data of some configs, as far as they are prepared here."""
        data_hash = self.data_hash
        different = {config.data_key: config for config in configs}
        return [self.frames_of(config) for config in different.values() if data_hash(config) is not None]

    def frames_of(self, config: RunConfig) -> FrameSet:
        """The prepared data of a config.

        Raises:
            BadInput: they are not prepared.
        """
        from clops_sweep.data.prepare import open_frames

        dataset, split_seed, normalize = config.data_key
        return open_frames(dataset, prepared_root=self.prepared_root, split_seed=split_seed, normalize=normalize)

    def frames(self, configs: Sequence[RunConfig]) -> Mapping[DataKey, FrameSet]:
        """The prepared data of some configs.

        Raises:
            BadInput: data and scenario do not fit, for any of them.
        """
        from clops_sweep.data.scenarios import build_scenario

        frames: dict[DataKey, FrameSet] = {}
        checked = set()
        for config in configs:
            key = config.data_key
            if key not in frames:
                frames[key] = self.frames_of(config)
            what = (key, config.scenario, config.task_order)
            if what not in checked:
                checked.add(what)
                build_scenario(frames[key], config.scenario, config.task_order)
        return frames


def _setting(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator:
        raise BadInput(f"--set {text!r}: expected NAME=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _filtered(requests: Sequence[RunRequest], where: str) -> list[RunRequest]:
    """The runs for which a pandas expression over config fields is true."""
    import pandas as pd

    table = pd.DataFrame([request.config.model_dump() for request in requests])
    try:
        kept = table.eval(where, engine="python")
        if not isinstance(kept, pd.Series) or kept.dtype != bool:
            raise TypeError("neither true nor false for a run")
    except Exception as error:  # pandas raises whatever the expression makes it raise
        reason = one_line(error)
        if re.search(r"(?<![=!<>])=(?!=)", where):
            reason = "a condition compares with == and not with ="
        fields = ", ".join(RunConfig.model_fields)
        raise BadInput(f"--where {where!r}: {reason}; expected a condition on config fields ({fields})") from None
    return [request for request, keep in zip(requests, kept, strict=True) if keep]
