"""What does not fit is refused before anything is computed: searches and curves on data without a validation set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clops_sweep import (
    OptunaSearch,
    Recordings,
    RunConfig,
    SearchSpace,
    TuneOn,
    UsageError,
    dataset,
    sweep,
)
from clops_sweep.data.preparing.prepare import data_hash
from clops_sweep.execution.cluster import start_check
from clops_sweep.search.study import open_study
from clops_sweep.store.run_store import RunStore
from tests.data.declared_files import forget, waves


@pytest.fixture(autouse=True)
def _data_sets() -> Iterator[None]:
    """`two_parts` has training and test alone, `three_parts` a validation set."""

    def recordings(split: list[str]) -> Recordings:
        return Recordings(
            waves(80, 1, 2500), 500, ["II"], "mV", np.arange(80) % 4, list("abcd"), range(80), split=split
        )

    @dataset("two_parts", scenarios=("class_il",), one_recording_per_person=True)
    def two_parts(data_root: Path | None) -> Recordings:
        return recordings(["train"] * 60 + ["test"] * 20)

    @dataset("three_parts", scenarios=("class_il",), one_recording_per_person=True)
    def three_parts(data_root: Path | None) -> Recordings:
        return recordings(["train"] * 40 + ["validation"] * 20 + ["test"] * 20)

    yield
    forget("two_parts", "three_parts")


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Launches a space; raises `Starting` where workers would start."""
    monkeypatch.setattr(start_check, "check_ray_can_start", _start)

    def run(dataset: str, search: OptunaSearch | None = None, **settings: Any) -> None:
        space = SearchSpace("it", RunConfig(dataset=dataset, **settings), search=search)
        sweep(space, tmp_path / "results", prepared_root=tmp_path / "prepared")

    return run


class Starting(Exception):
    """Everything has been looked at."""


def _start(*arguments: object, **options: object) -> None:
    raise Starting


FRACTION = {"storage_fraction": (0.1, 0.5)}


@pytest.mark.parametrize("objective", ["auc", "bwt"])
@pytest.mark.parametrize("pruning", [False, True])
def test_a_search_does_not_choose_on_test_data(launched: Any, objective: str, pruning: bool) -> None:
    if pruning and objective != "auc":
        return
    search = OptunaSearch(FRACTION, n_trials=2, objectives={objective: "maximize"}, pruning=pruning)
    with pytest.raises(UsageError, match=r"'two_parts' has no validation set, .* give its base config validation=0\.2"):
        launched("two_parts", search)
    with pytest.raises(Starting):
        launched("two_parts", search, validation=0.2)


@pytest.mark.parametrize(
    ("tune_on", "sentence"),
    [
        (TuneOn(tasks=1), None),
        (
            TuneOn(tasks=2),
            r"TuneOn\(tasks=2\): class_il of three_parts has 2 tasks, and all of them are reported; expected",
        ),
        (
            TuneOn(tasks=9),
            r"TuneOn\(tasks=9\): class_il of three_parts has 2 tasks, and all of them are reported; expected",
        ),
        (TuneOn(splits=(3,)), "the tuning split has the same test people"),  # its split is published
        (
            TuneOn(dataset="two_parts"),
            "patient '4?[0-9]+' is evaluated, and is also in dataset 'two_parts'",
        ),
        (TuneOn(seeds=(7,)), None),
    ],
)
def test_tuning_on_what_is_reported_is_refused(launched: Any, tune_on: TuneOn, sentence: str | None) -> None:
    grid = OptunaSearch({"learning_rate": [1e-4, 1e-3]}, sampler="grid", tune_on=tune_on)
    optuna = OptunaSearch({"learning_rate": [1e-4, 1e-3]}, n_trials=2, tune_on=tune_on)
    expected = None if sentence is None else f"^search space 'it': .*{sentence}"
    for search in (grid, optuna):
        with pytest.raises(Starting if sentence is None else UsageError, match=expected):
            launched("three_parts", search)


@pytest.mark.parametrize(
    ("tasks", "sentence"),
    [
        (9, r"TuneOn\(tasks=9\): class_il of three_parts has 2 tasks, and all of them are reported; expected fewer"),
        (1, r"^search space 'it': its study in .* was made with base\.epochs_per_task 2 and not 1"),
    ],
)
def test_a_space_that_cannot_be_tuned_so_is_refused_before_its_study(
    launched: Any, tasks: int, sentence: str, tmp_path: Path
) -> None:
    """The study was named first, so that the space got another name and was refused then."""

    def search(tasks: int) -> OptunaSearch:
        return OptunaSearch({"learning_rate": [1e-4, 1e-3]}, n_trials=2, tune_on=TuneOn(tasks=tasks))

    with pytest.raises(Starting):
        launched("three_parts", search(1), epochs_per_task=2)
    before = SearchSpace("it", RunConfig(dataset="three_parts", epochs_per_task=2), search=search(1)).tuned
    assert before is not None
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    for phase in before.phases:
        open_study(phase, store, {})
    with pytest.raises(UsageError, match=sentence):
        launched("three_parts", search(tasks), epochs_per_task=1)


def test_other_seeds_of_a_tuned_space_need_the_seeds_of_its_tuning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error about the study proposes a `TuneOn` with which the study is continued."""
    monkeypatch.setattr(start_check, "check_ray_can_start", _start)
    base = RunConfig(dataset="three_parts", epochs_per_task=1)

    def search(**of_tuning: Any) -> OptunaSearch:
        return OptunaSearch({"learning_rate": [1e-4, 1e-3]}, n_trials=2, tune_on=TuneOn(tasks=1, **of_tuning))

    def launch(reported: list[int], **of_tuning: Any) -> None:
        space = SearchSpace("it", base, search=search(**of_tuning), seeds=reported)
        sweep(space, tmp_path / "results", prepared_root=tmp_path / "prepared")

    with pytest.raises(Starting):
        launch([3])
    before = SearchSpace("it", base, search=search(), seeds=[3]).tuned
    assert before is not None
    content = data_hash("three_parts", prepared_root=tmp_path / "prepared")
    assert content is not None
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    for phase in before.phases:
        open_study(phase, store, {"three_parts, split 0, normalize none": content})
    with pytest.raises(UsageError) as refused:
        launch([3, 4])
    assert "was made with seeds [3] and not [3, 4]; a study keeps its definition" in str(refused.value)
    assert str(refused.value).endswith("give it tune_on=TuneOn(tasks=1, seeds=(3,))")
    with pytest.raises(Starting):
        launch([3, 4], seeds=(3,))
