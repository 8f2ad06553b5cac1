"""Searches over what the frames of a trial depend on."""

from __future__ import annotations

from pathlib import Path

import pytest

from clops_sweep import IntDistribution, OptunaSearch, RunConfig, SearchSpace, sweep
from clops_sweep.experiment.spaces.selection import configs_at_bounds

RATES = [1e-6 * step for step in range(1, 1001)]
"""With four kinds of data 4,000 combinations: more than are checked one by one."""


@pytest.mark.nightly
def test_all_data_of_trials_are_prepared_with_any_number_of_choices(tmp_path: Path, prepared_root: Path) -> None:
    parameters = {"normalize": ["none", "zscore"], "leads": ["single", "all"], "learning_rate": RATES}
    search = OptunaSearch(parameters, n_trials=8, sampler="random", sampler_seed=0)
    space = SearchSpace(
        "data", RunConfig(strategy="finetune", network="linear", epochs_per_task=1), search=search, seeds=1
    )
    outcome = sweep(space, tmp_path / "results", prepared_root=prepared_root, ray=False)
    assert outcome.complete, outcome
    pairs = {(row.normalize, row.leads) for row in outcome.store.read("runs").itertuples()}
    assert len(pairs) == 4


def test_a_number_that_decides_the_data_is_combined_with_categories() -> None:
    base = RunConfig(dataset="synthetic", network="linear", encoder="minirocket")
    search = OptunaSearch({"lora_rank": IntDistribution(0, 4), "normalize": ["none", "zscore"]}, n_trials=1)
    found = {config.data_key for config in configs_at_bounds(SearchSpace("data", base, search=search, seeds=1))}
    assert len(found) == 4
