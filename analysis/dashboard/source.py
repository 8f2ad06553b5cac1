"""The experiments of a dashboard: those of search spaces, and the other runs of a store."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import pandas as pd

from clops_sweep.data.catalog import DataKey
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.planning.launched import launched_mark
from clops_sweep.search.records import STUDIES
from clops_sweep.store.run_store import RunStore

from ..as_stored import data_keys, recorded_experiments
from ..collect import Experiment, requested_ids
from ..editions import Present
from ..figures.frames import Frames
from ..report.planned import Found
from ..search_trials import collect_with_searches, tuning_experiments
from .followed_data import FollowedData


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
    ) -> None:
        self._store = store
        self._data = data
        self._mark_of_data: Hashable = None
        self._spaces, self._whole, self._present = spaces, whole, present
        self._find = frames
        self._frames: dict[DataKey, Frames | None] = {}

    def experiments(self, runs: pd.DataFrame, store: RunStore) -> list[Found]:
        """Return the experiments of runs, given by run id, in the store at one moment."""
        runs = runs.reset_index(drop=True)
        spaces = self._spaces(store)
        collected = collect_with_searches(spaces, store, runs=runs, present=self._present)
        found: list[Found] = [(it, space, study) for space, (it, study) in zip(spaces, collected, strict=True)]
        if self._whole:
            tuning = tuning_experiments(store, runs)
            of_tuning = {run_id for experiment, _ in tuning for run_id in experiment.runs["run_id"]}
            rest = runs[~runs["run_id"].isin(of_tuning | requested_ids(spaces, runs))]
            others = recorded_experiments(rest, beside=bool(spaces), present=self._present)
            found += [(it, None, None) for it in others]
            found += [(experiment, None, record) for experiment, record in tuning]
        return found

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
