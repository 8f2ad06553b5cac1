"""What is left of pruned trials after a real search."""

from __future__ import annotations

from pathlib import Path

from clops_sweep import FloatDistribution, OptunaSearch, RunConfig, SearchSpace, sweep


def test_checkpoints_of_pruned_trials_go_with_the_end_of_their_search(tmp_path: Path, prepared_root: Path) -> None:
    parameters = {"learning_rate": FloatDistribution(1e-4, 1e-2, log=True)}
    search = OptunaSearch(parameters, n_trials=5, pruning=True, max_concurrent=1)
    space = SearchSpace("it", RunConfig(strategy="finetune", epochs_per_task=1), search=search, seeds=1)
    outcome = sweep(space, tmp_path / "results", prepared_root=prepared_root, ray=False)
    record = outcome.searches[0].record
    assert record is not None
    pruned = [run_id for trial in record.of("pruned") for run_id in trial.run_ids]
    assert pruned
    assert [run_id for run_id in pruned if outcome.store.has_checkpoint(run_id)] == []
