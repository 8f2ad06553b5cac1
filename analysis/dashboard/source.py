"""The experiments of a dashboard: those of search spaces, and the other runs of a store."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

import pandas as pd

from clops_sweep.data.catalog import DataKey
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.planning.launched import LaunchedOn, launched_mark
from clops_sweep.search.records import STUDIES, StudyRecord
from clops_sweep.store.run_store import RunStore

from ..as_stored import data_keys, recorded_experiments
from ..collect import Experiment, requested_ids
from ..editions import Present
from ..figures.frames import Frames
from ..report.planned import Found
from ..search_trials import collect_with_searches, tuning_experiments
from .followed_data import FollowedData
from .launched_editions import launched_editions


class StoreSource:
    """Experiments of search spaces, and of the other runs of a store.

    Args:
        store: the store.
        frames: returns the prepared frames of a key, or None; called once per key.
        spaces: returns the search spaces for the store at one moment; called at every refresh, as task orders by
            difficulty become known.
        whole: whether to show all other runs of the store as well.
        present: see `Preparations`.
        data: the prepared data sets, which may be prepared again; None: they are not followed.
        launched: returns what a store remembers of the launches of the search spaces, by name: each is shown on the
            edition that it was last launched on.
    """

    def __init__(
        self,
        store: RunStore,
        frames: Callable[[DataKey], Frames | None],
        spaces: Callable[[RunStore], Sequence[SearchSpace]] = lambda store: (),
        *,
        whole: bool = True,
        present: Present = lambda dataset: None,
        data: FollowedData | None = None,
        launched: Callable[[RunStore], Mapping[str, LaunchedOn]] = lambda store: {},
    ) -> None:
        self._store = store
        self._launched = launched
        self._data = data
        self._mark_of_data: Hashable = None
        self._spaces, self._whole, self._present = spaces, whole, present
        self._find = frames
        self._frames: dict[DataKey, Frames | None] = {}

    def experiments(self, runs: pd.DataFrame, store: RunStore) -> list[Found]:
        """Return the experiments of runs, given by run id, in the store at one moment."""
        runs = runs.reset_index(drop=True)
        spaces = self._spaces(store)
        collected = self._collected(spaces, runs, store)
        found: list[Found] = [(it, space, study) for space, (it, study) in zip(spaces, collected, strict=True)]
        if self._whole:
            tuning = tuning_experiments(store, runs)
            of_tuning = {run_id for experiment, _ in tuning for run_id in experiment.runs["run_id"]}
            rest = runs[~runs["run_id"].isin(of_tuning | requested_ids(spaces, runs))]
            others = recorded_experiments(rest, beside=bool(spaces), present=self._present)
            found += [(it, None, None) for it in others]
            found += [(experiment, None, record) for experiment, record in tuning]
        return found

    def _collected(
        self, spaces: Sequence[SearchSpace], runs: pd.DataFrame, store: RunStore
    ) -> list[tuple[Experiment, StudyRecord | None]]:
        """Return the experiments of search spaces, each on the edition of the data that it was launched on."""
        editions = launched_editions(self._launched(store), runs)
        alike: dict[Hashable, list[int]] = {}
        for position, space in enumerate(spaces):
            alike.setdefault(frozenset(editions.get(space.name, {}).items()), []).append(position)
        collected: dict[int, tuple[Experiment, StudyRecord | None]] = {}
        for positions in alike.values():
            of_one = [spaces[position] for position in positions]
            present = _present_of(editions.get(of_one[0].name, {}), self._present)
            experiments = collect_with_searches(of_one, store, runs=runs, present=present)
            collected.update(zip(positions, experiments, strict=True))
        return [collected[position] for position in range(len(spaces))]

    def frames(self, experiments: Sequence[Experiment]) -> Sequence[Frames]:
        """Return their available prepared frames."""
        for key in data_keys(experiments):
            if key not in self._frames:
                self._frames[key] = self._find(key)
        return [frames for frames in self._frames.values() if frames is not None]

    def mark(self) -> Hashable:
        """Return when studies, launched search spaces and prepared data were last written."""
        of_data = self._data.mark() if self._data is not None else None
        if of_data != self._mark_of_data:
            self._frames.clear()
            self._mark_of_data = of_data
        folder = self._store.files.folder
        of_studies = self._store.files.mark(str(folder / STUDIES)) if folder is not None else None
        return tuple(of_studies or ()), launched_mark(self._store), of_data


def _present_of(launched: Mapping[str, str], present: Present) -> Present:
    """Return the editions of a launch, and else those that are present."""
    return lambda dataset: launched.get(dataset) or present(dataset)
