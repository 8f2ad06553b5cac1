"""The sizes of memories that `plan` prints, against those of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from clops_sweep import ContinualRun, RunConfig, SearchSpace
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.memories import Memories, memories
from clops_sweep.planning.request import Request
from clops_sweep.store.run_store import RunStore

BASE = RunConfig(epochs_per_task=1, mc_samples=1)


def planned(space: SearchSpace, prepared_root: Path, folder: Path) -> Memories:
    data = PreparedData.found(prepared_root, None)
    (of_runs,) = memories(Request(Selection((space,)), data, RunStore(folder)))
    return of_runs


def test_memories_of_equal_size_are_one_line(prepared_root: Path, tmp_path: Path) -> None:
    space = SearchSpace("equal", BASE, {"strategy": ["finetune", "clops", "er"]})
    of_runs = planned(space, prepared_root, tmp_path)
    assert of_runs.words == "memory of clops, er on synthetic, class_il: 162 of 648 training instances"
    assert not of_runs.differ


def test_memories_of_other_sizes_are_listed_by_method(prepared_root: Path, tmp_path: Path) -> None:
    axes = {"strategy": ["clops", "er"], "storage_fraction": [0.1, 0.25]}
    of_runs = planned(SearchSpace("other", BASE, axes), prepared_root, tmp_path)
    assert of_runs.words == "memories differ on synthetic, class_il, of 648 training instances: clops 60 to 162, er 162"


@pytest.mark.parametrize("settings", [{"strategy": "clops", "storage_fraction": 0.1}, {"strategy": "er"}])
def test_a_run_holds_what_is_planned(settings: dict[str, object], prepared_root: Path, tmp_path: Path) -> None:
    config = BASE.replace(**settings)
    of_runs = planned(SearchSpace("one", config), prepared_root, tmp_path)
    frames = PreparedData.found(prepared_root, None).frames(config.data_key)
    held = ContinualRun(config, frames).run().runs["memory_instances"].item()
    assert of_runs.held == (held, held)
