"""Pairs of runs that a verdict does not count are counted in words: survivors alone may be the easy splits."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from clops_sweep import Claim, Contrast, RunConfig, SearchSpace, Side
from clops_sweep.analysis.claims.verdicts import Verdict, verdicts
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.report.claims_section import claims_in_words, claims_text
from clops_sweep.store.run_store import RunStore

ER, FINETUNE = (Side(name, {"strategy": name}) for name in ("er", "finetune"))
NOISE = (0.011, -0.007, 0.004, 0.015, 0.002)


def verdict(
    folder: Path,
    generated: ModuleType,
    spaces: list[SearchSpace],
    aucs: dict[tuple[str, int, int], float] | None = None,
    failed: set[tuple[str, int, int]] | None = None,
) -> Verdict:
    """Return the verdict on ER above fine-tuning on runs by (strategy, split seed, seed); others have an AUC."""
    store = RunStore(folder)
    finished = []
    for request in [request for space in spaces for request in space.requests()]:
        config = request.config
        key = config.strategy, config.split_seed, config.seed
        if key in (failed or set()):
            continue
        usual = 0.7 + NOISE[config.seed] + (0.1 + NOISE[config.split_seed]) * (config.strategy == "er")
        finished.append((config, {"auc": (aucs or {}).get(key, usual + 0.1 * NOISE[config.seed - 1])}))
    generated.write_given_runs(store, finished)
    for request in [request for space in spaces for request in space.requests()]:
        config = request.config
        if (config.strategy, config.split_seed, config.seed) in (failed or set()):
            generated.write_failed_run(store, config, config.run_id("generated0001"))
    claim = Claim("er_helps", "ER is above fine-tuning", Contrast(ER, FINETUNE), scenario="class_il")
    (found,) = verdicts(collect(spaces, store.read("runs")), store, claims=[claim])
    return found


def methods(splits: int = 5, seeds: int = 1) -> SearchSpace:
    axes = {"strategy": ["finetune", "er"], "split_seed": list(range(splits))}
    return SearchSpace("methods", RunConfig(), axes, seeds=range(seeds))


def test_pairs_of_which_one_run_failed_are_counted(tmp_path: Path, generated: ModuleType) -> None:
    found = verdict(tmp_path, generated, [methods()], failed={("er", 1, 0), ("er", 3, 0)})
    said = "2 of 5 pairs of split and seed left out: er failed in 2"
    assert (found.missing, found.evidence[0].n) == (said, 3)
    assert f"; {said})." in claims_in_words([found])[0]
    assert f"Limits of the comparison: ER is above fine-tuning: {said}." in claims_text([found], "not sealed").notes


def test_pairs_of_which_a_metric_is_undefined_are_counted(tmp_path: Path, generated: ModuleType) -> None:
    aucs = {("er", 1, 0): np.nan, ("finetune", 2, 0): np.inf, ("er", 2, 0): np.nan}
    found = verdict(tmp_path, generated, [methods()], aucs)
    said = "2 of 5 pairs of split and seed left out: er has no auc in 2, finetune has no auc in 1"
    assert (found.missing, found.evidence[0].n) == (said, 3)


def test_runs_without_a_counterpart_in_another_space_are_counted(tmp_path: Path, generated: ModuleType) -> None:
    spaces = []
    for strategy, splits in (("er", 5), ("finetune", 3)):
        config = RunConfig(strategy=strategy)
        spaces.append(SearchSpace(strategy, config, {"split_seed": list(range(splits))}, seeds=[0]))
    found = verdict(tmp_path, generated, spaces)
    assert found.missing == "2 of 5 pairs of split and seed left out: finetune has no run in 2"


def test_seeds_that_splits_do_not_share_are_counted(tmp_path: Path, generated: ModuleType) -> None:
    failed = {("er", 4, 2), ("finetune", 4, 2)}
    found = verdict(tmp_path, generated, [methods(seeds=3)], failed=failed)
    assert found.missing == (
        "seeds differ between splits: 4 of 14 pairs of split and seed left out; "
        "1 of 15 pairs of split and seed left out: er failed in 1, finetune failed in 1"
    )


def test_a_configuration_of_which_every_run_failed_is_counted(tmp_path: Path, generated: ModuleType) -> None:
    axes = {"strategy": ["finetune", "er"], "epochs_per_task": [2, 3], "split_seed": [0, 1, 2]}
    space = SearchSpace("methods", RunConfig(), axes, seeds=[0])
    store = RunStore(tmp_path)
    finished = []
    for request in space.requests():
        config = request.config
        auc = 0.7 + NOISE[config.split_seed] * (1 + (config.strategy == "er"))
        if (config.strategy, config.epochs_per_task) == ("er", 3):
            generated.write_failed_run(store, config, config.run_id("generated0001"))
        else:
            finished.append((config, {"auc": auc}))
    generated.write_given_runs(store, finished)
    claim = Claim("er_helps", "ER is above fine-tuning", Contrast(ER, FINETUNE), scenario="class_il")
    (found,) = verdicts(collect([space], store.read("runs")), store, claims=[claim])
    assert found.missing == "1 of 2 configurations left out, without a pair of finished runs"


@pytest.mark.parametrize("seeds", [1, 3])
def test_nothing_is_said_if_every_pair_counts(seeds: int, tmp_path: Path, generated: ModuleType) -> None:
    found = verdict(tmp_path, generated, [methods(seeds=seeds)])
    assert (found.missing, found.evidence[0].n) == ("", 5)
