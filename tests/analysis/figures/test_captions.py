"""Captions of figures by task say over how many patient splits or seeds their means are."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.figures.asked import Asked
from clops_sweep.analysis.figures.task_figures import task_figures
from clops_sweep.analysis.figures.task_titles import TaskTitles
from clops_sweep.analysis.statistics import counted_in_words
from clops_sweep.store.run_store import RunStore

BASE = RunConfig(epochs_per_task=2)


@pytest.mark.parametrize(
    ("axes", "seeds", "curves", "r_matrix", "forgetting"),
    [
        (
            {"split_seed": range(4)},
            2,
            "epoch: mean over 4 patient splits, with one standard deviation. Coloured",
            "mean ± standard deviation over 4 patient splits, one colour",
            "means over 4 patient splits; on the right their difference, mean ± one standard deviation.",
        ),
        (
            {},
            2,
            "epoch: mean over 2 seeds of one patient split. Coloured",
            "mean ± standard deviation over 2 seeds of one patient split, one colour",
            "means over 2 seeds of one patient split; on the right their difference, mean ±",
        ),
        (
            {},
            1,
            "epoch: values of single runs. Coloured",
            "values of single runs, one colour",
            "values of single runs; on the right their difference.",
        ),
    ],
)
def test_captions_state_the_number_and_what_it_counts(
    tmp_path: Path,
    generated: ModuleType,
    axes: dict[str, range],
    seeds: int,
    curves: str,
    r_matrix: str,
    forgetting: str,
) -> None:
    space = SearchSpace("captions", BASE, axes, seeds=seeds)
    store = RunStore(tmp_path / "results")
    generated.write_generated_runs(store, [space])
    (experiment,) = collect([space], store.read("runs"))
    captions = [it.caption for it in task_figures(Asked(experiment, store, "it", TaskTitles()))]
    for said, caption in zip((curves, r_matrix, forgetting), captions, strict=True):
        assert said in caption


def test_different_numbers_are_a_range() -> None:
    assert counted_in_words([(2, "patient splits"), (5, "patient splits")]) == "2 to 5 patient splits"
    assert counted_in_words([(5, "folds"), (3, "seeds")]) == "5 folds or 3 seeds of one patient split"
    assert counted_in_words([(1, "patient splits")] * 2) == "1 patient split"
