"""What every case finds in its folder: search-space files, a store with two finished runs and a study, prepared data."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

from clops_sweep import ContinualRun
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.experiment.spaces.search_space import load_spaces
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.request import Request
from clops_sweep.search.standing import data_hashes
from clops_sweep.search.study import SearchStudy
from clops_sweep.store.run_store import RunStore
from tests.stores import record_result

HEAD = """
import numpy as np
from clops_sweep import *
base = RunConfig(strategy="replay", epochs_per_task=1)
"""
SPACE = HEAD + "SPACE = SearchSpace('s', base, {'storage_fraction': [0.1, 0.5]}, seeds=[0])\n"
SEARCH = HEAD + (
    "SPACE = SearchSpace('t', base, search=OptunaSearch({'learning_rate': FloatDistribution(1e-5, 1e-2, log=True)}, "
    "n_trials=2), seeds=[0])\n"
)
FILES = {
    "space.py": SPACE,
    "search.py": SEARCH,
    "raises.py": "raise RuntimeError('first line\\nsecond line')\n",
    "empty.py": "",
    "binary.py": "\x00\x01",
}


def make(template: Path, prepared: Path) -> None:
    """Makes the folder that every case gets a copy of, and the prepared data that all of them see.

    In a process of its own: none of its threads is there when cases are forked.
    """
    process = multiprocessing.get_context("fork").Process(target=_make, args=(template, prepared))
    process.start()
    process.join()
    assert process.exitcode == 0


def _make(template: Path, prepared: Path) -> None:
    prepare("synthetic", prepared_root=prepared, data_root=None, workers=1)
    frames = open_frames("synthetic", prepared_root=prepared)
    template.mkdir(parents=True)
    for name, text in FILES.items():
        (template / name).write_text(text)
    store = RunStore(template / "results")
    store.open_for_writing()
    for request in load_spaces(template / "space.py")[0].requests():
        result = ContinualRun(request.config, frames).run()
        runs = {request.config.run_id(frames.data_hash): request.config}
        record_result(store, runs, result, lambda config: frames.data_hash, {"host": "here", "device": "cpu"})
    asked = Request(Selection.of(template / "search.py"), PreparedData.found(prepared, None), store)
    (space,) = asked.selection.searches
    study = SearchStudy(space, store, data_hashes(asked, space))
    trial = study.ask()
    trial.record_runs(sorted(store.statuses())[:1])
    trial.complete([0.5])
