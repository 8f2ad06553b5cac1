"""Sources of a dashboard's experiments: search spaces, or the store alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import pandas as pd

from clops_sweep.data.catalog import DataKey
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.search.records import STUDIES, StudyRecord
from clops_sweep.store.run_store import RunStore

from ..as_stored import data_keys, recorded_experiments
from ..collect import Experiment
from ..figures.tracings import Frames
from ..search_trials import collect_with_searches, search_experiment


class StoreSource:
    """Experiments of search spaces, or without any, of everything in a store.

    Args:
        store: the store.
        frames: returns the prepared frames of a key, or None; called once per key.
        spaces: returns the search spaces; called at every refresh, as task orders by difficulty become known.
    """

    def __init__(
        self,
        store: RunStore,
        frames: Callable[[DataKey], Frames | None],
        spaces: Callable[[], Sequence[SearchSpace]] | None = None,
    ) -> None:
        self._store = store
        self._spaces = spaces
        self._find = frames
        self._frames: dict[DataKey, Frames | None] = {}

    def experiments(self, runs: pd.DataFrame) -> list[tuple[Experiment, StudyRecord | None]]:
        """Return the experiments of runs, given by run id."""
        if self._spaces is not None:
            return collect_with_searches(self._spaces(), self._store, runs=runs.reset_index(drop=True))
        found: list[tuple[Experiment, StudyRecord | None]] = []
        if self.mark():
            from clops_sweep.search.study import recorded_studies  # importing Optuna is slow

            found = [(search_experiment(study, runs), study) for study in recorded_studies(self._store)]
        of_searches = {run_id for _, study in found if study for trial in study.trials for run_id in trial.run_ids}
        others = runs[~runs.index.isin(of_searches)].reset_index(drop=True)
        return [*((experiment, None) for experiment in recorded_experiments(others)), *found]

    def frames(self, experiments: Sequence[Experiment]) -> Sequence[Frames]:
        """Return their available prepared frames."""
        for key in data_keys(experiments):
            if key not in self._frames:
                self._frames[key] = self._find(key)
        return [frames for frames in self._frames.values() if frames is not None]

    def mark(self) -> Hashable:
        """Return when the studies beside the store were last written; empty without studies."""
        folder = self._store.files.folder
        found = self._store.files.mark(str(folder / STUDIES)) if folder is not None else None
        return tuple(found or ())
