"""Where the experiments of a dashboard come from: search-space files, or the store alone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pandas as pd

from clops_sweep.analysis.as_stored import recorded_experiments
from clops_sweep.analysis.collect import Experiment
from clops_sweep.analysis.search_trials import collect_with_searches, recorded_search
from clops_sweep.analysis.tracings import Frames
from clops_sweep.data.catalog import DataKey
from clops_sweep.data.prepared_folder import know
from clops_sweep.errors import BadInput
from clops_sweep.planning.asked import Asked
from clops_sweep.search.records import STUDIES, StudyRecord


class AskedSource:
    """Experiments of what is asked for, or, where nothing is, of everything that the store holds.

    Args:
        asked: search spaces, prepared data and the store.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._frames: dict[DataKey, Frames | None] = {}

    def experiments(self, runs: pd.DataFrame) -> list[tuple[Experiment, StudyRecord | None]]:
        """The experiments that runs, by run id, belong to."""
        store = self._asked.store
        if self._asked.selection.given:
            return collect_with_searches(self._asked.resolved_spaces(), store, runs=runs.reset_index(drop=True))
        found: list[tuple[Experiment, StudyRecord | None]] = []
        if self.mark():
            from clops_sweep.search.study import recorded_studies  # Optuna takes its time to be imported

            found = [(recorded_search(study, runs), study) for study in recorded_studies(store)]
        of_searches = {run_id for _, study in found if study for trial in study.trials for run_id in trial.run_ids}
        others = runs[~runs.index.isin(of_searches)].reset_index(drop=True)
        return [*((experiment, None) for experiment in recorded_experiments(others)), *found]

    def frames(self, experiments: Sequence[Experiment]) -> Sequence[Frames]:
        """The prepared frames that are at hand for them; looked for once."""
        for experiment in experiments:
            of_cells = experiment.runs[["cell", "split_seed"]].drop_duplicates()
            for cell, split in zip(of_cells["cell"], of_cells["split_seed"], strict=True):
                key = experiment.cells[cell].config.data_key._replace(split_seed=int(split))
                if key not in self._frames:
                    self._frames[key] = self._found(key)
        return [frames for frames in self._frames.values() if frames is not None]

    def mark(self) -> Hashable:
        """When the studies beside the store were last written to."""
        folder = self._asked.store.files.folder
        found = self._asked.store.files.mark(str(folder / STUDIES)) if folder is not None else None
        return tuple(found or ())

    def _found(self, key: DataKey) -> Frames | None:
        try:
            know(key.dataset, self._asked.data.root)
            return self._asked.data.frames(key) if self._asked.data.data_hash(key) is not None else None
        except (BadInput, OSError):  # tracings are an addition: whatever is wrong with them is told elsewhere
            return None
