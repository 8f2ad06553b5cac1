"""A run goes on from a checkpoint only with the code that wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clops_sweep import ContinualRun
from clops_sweep.data.origins import ORIGINS
from clops_sweep.execution.jobs import Job, Workplace
from clops_sweep.execution.reports import Computed, Running
from clops_sweep.execution.worker.run_runner import RunRunner
from clops_sweep.experiment.plugins.registry import REGISTRIES
from clops_sweep.experiment.spaces.space_files import load_spaces
from clops_sweep.store.run_store import RunStore
from clops_sweep.testing import tiny_config, tiny_frames
from tests.helpers.registries import only_built_in

SPACE = """
from torch import nn
from clops_sweep import RunConfig, SearchSpace, network

@network("mine")
def mine(channels, samples, outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * samples, 4), nn.ReLU(), nn.Linear(4, outputs))

SPACE = SearchSpace("mine", RunConfig(network="mine"), seeds=1)
"""


@pytest.fixture(autouse=True)
def _as_if_new() -> Iterator[None]:
    before = dict(ORIGINS)
    with only_built_in(*REGISTRIES.values()):
        yield
    ORIGINS.clear()
    ORIGINS.update(before)


def test_a_run_whose_code_was_edited_starts_anew_and_with_the_same_code_it_goes_on(tmp_path: Path) -> None:
    frames = tiny_frames("class_il")
    store = RunStore(tmp_path / "results")
    store.open_for_writing()

    def declare(text: str) -> None:
        (tmp_path / "space.py").write_text(text)
        load_spaces(tmp_path / "space.py")

    def begun() -> RunRunner:
        workplace = Workplace({config.data_key: frames}, {config.data_key: frames.data_hash}, store.uri, {}, {}, 0)
        runner = RunRunner(workplace, store, lambda report: None)
        runner.begin(Job(config.run_id(frames.data_hash), config))
        return runner

    declare(SPACE)
    config = tiny_config("class_il", strategy="finetune", network="mine", epochs_per_task=2)
    first = begun()
    assert isinstance(first.step(lambda: True), Running)
    first.stop()
    declare(SPACE.replace("seeds=1", "seeds=2"))
    again = begun().step(lambda: True)
    assert isinstance(again, Running)
    assert again.resumed

    declare(SPACE.replace("ReLU", "Tanh"))
    last = begun().step(lambda: False)
    assert isinstance(last, Computed), "the state of one network fits the other, so it could go on from it"
    whole = ContinualRun(config, frames).run()
    assert last.tables["runs"]["auc"][0].as_py() == whole.runs["auc"].item()
    assert last.tables["curves"]["loss"].to_pylist() == whole.curves["loss"].tolist()
