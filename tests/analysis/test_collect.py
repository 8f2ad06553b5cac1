from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from clops_sweep import RunConfig, SearchSpace, folds
from clops_sweep.analysis.as_stored import stored_experiments
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.editions import left_aside_in_words, replaced_in_words
from clops_sweep.analysis.figures.task_titles import TaskTitles
from clops_sweep.analysis.report.sections import same_splits_in_words
from clops_sweep.analysis.report.setup_table import Shown, setup_text
from clops_sweep.analysis.results import result_table
from clops_sweep.analysis.statistics import Fold
from clops_sweep.analysis.tables.comparisons import comparisons
from clops_sweep.errors import UsageError
from clops_sweep.store.run_store import RunStore

SPACE = SearchSpace("two", RunConfig(), {"storage_fraction": [0.1, 0.5]}, seeds=range(2))


def test_values_stand_at_their_cell_and_seed(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path)
    configs = [r.config for r in SPACE.requests()]
    generated.write_given_runs(store, [(c, {"auc": c.storage_fraction + c.seed}) for c in configs[:3]])
    (experiment,) = collect([SPACE], store.read("runs"))
    np.testing.assert_equal(experiment.by_replicate("auc"), [[0.1, 1.1], [0.5, np.nan]])
    assert experiment.run_ids(1) == (configs[1].run_id("generated0001"),)
    assert experiment.counts("missing").tolist() == [0, 1]
    assert experiment.number_axes == ("storage_fraction",)


def test_infinite_and_undefined_values_count_as_none(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path)
    first, second, *_ = (r.config for r in SPACE.requests())
    generated.write_given_runs(store, [(first, {"auc": np.nan}), (second, {"auc": np.inf})])
    (experiment,) = collect([SPACE], store.read("runs"))
    assert np.isnan(experiment.by_replicate("auc")).all()
    assert experiment.counts("finished").tolist() == [1, 1]


def test_editions_are_never_mixed(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path)
    later = generated.START + timedelta(days=1)
    sizes = {"epochs": 1, "instances": 2}
    generated.write_generated_runs(store, [SPACE], data_hash="aaaa", **sizes)
    generated.write_generated_runs(
        store, [SPACE], data_hash="bbbb", started_at=later, keep=lambda c: c.seed == 0, **sizes
    )
    runs = store.read("runs")

    (newest,) = collect([SPACE], runs)
    assert [e.data_hash for e in newest.shown] == ["bbbb"]
    assert [(e.data_hash, e.runs) for e in newest.left_aside] == [("aaaa", 4)]
    assert newest.counts("finished").tolist() == [1, 1]
    assert newest.replaced == 2
    assert set(newest.runs["data_hash"].dropna()) == {"bbbb"}
    assert newest.data_hashes == {0: ["bbbb"], 1: ["bbbb"]}, "a missing run records none"

    (asked,) = collect([SPACE], runs, ["aa"])
    assert [e.data_hash for e in asked.shown] == ["aaaa"]
    assert asked.counts("finished").tolist() == [2, 2]
    for wanted, found in (
        ("cc", "no edition whose data hash begins"),
        ("", "several editions whose data hashes begin"),
    ):
        with pytest.raises(UsageError, match=f"{found} so; it has aaaa of synthetic, bbbb of synthetic"):
            collect([SPACE], runs, [wanted])


def prepared_twice(store: RunStore, generated: ModuleType, later: dict[int, str]) -> SearchSpace:
    """Three splits on a first preparation, then some on others, each on a later day; split 0 has two cells."""
    space = SearchSpace("splits", RunConfig(), {"split_seed": [0, 1, 2], "storage_fraction": [0.1, 0.5]}, seeds=[0])
    configs = [request.config for request in space.requests()]
    for day, (split, prepared) in enumerate([*((split, "former") for split in range(3)), *later.items()]):
        of_split = [config for config in configs if config.split_seed == split]
        started_at = generated.START + timedelta(days=day)
        values = {"auc": 0.5, "prepared_hash": prepared, "started_at": started_at}
        generated.write_given_runs(store, [(config, values) for config in of_split], f"{prepared}{split}")
    return space


@pytest.mark.parametrize("later", [{0: "newer"}, {0: "newer", 1: "newer"}, {3: "newer"}])
def test_runs_of_one_preparation_are_shown(tmp_path: Path, generated: ModuleType, later: dict[int, str]) -> None:
    """As soon as one run of a data set that was prepared anew exists, also if it is on a split that had none before."""
    store = RunStore(tmp_path)
    space = prepared_twice(store, generated, later)
    if 3 in later:
        space = SearchSpace(
            "more", RunConfig(), {"split_seed": [0, 1, 2, 3], "storage_fraction": [0.1, 0.5]}, seeds=[0]
        )
        config = RunConfig(split_seed=3, storage_fraction=0.1)
        values = {"auc": 0.5, "prepared_hash": "newer", "started_at": generated.START + timedelta(days=9)}
        generated.write_given_runs(store, [(config, values)], "newer3")
    (experiment,) = collect([space], store.read("runs"))
    ((stored,), _) = stored_experiments(store.read("runs"))
    for found in (experiment, stored):
        finished = found.runs[found.runs["status"] == "finished"]
        assert set(finished["prepared_hash"]) == {"newer"}
        assert set(finished["split_seed"]) == set(later)
        former = [it for it in found.left_aside if it.prepared_hash == "former"]
        assert sum(it.runs for it in former) == 6, "what is left aside stays in the store, and is counted"
        assert found.replaced == 2 * len({0, 1, 2} - set(later)), "a run that was computed anew is not missing"
        assert found.judged_by(["auc"]).replaced == found.replaced
    if later == {0: "newer", 1: "newer"}:
        assert replaced_in_words(experiment.replaced) == (
            "2 runs are of another edition of the data and left aside: they count as missing, and a launch computes "
            "them anew"
        )


def test_of_several_preparations_that_of_this_machine_is_shown(tmp_path: Path, generated: ModuleType) -> None:
    """Whoever goes back to the former files has nothing to compute, and sees the former runs."""
    store = RunStore(tmp_path)
    space = prepared_twice(store, generated, {0: "newer"})
    runs = store.read("runs")
    for here, shown in (("former", "former"), ("newer", "newer"), ("not launched yet", "newer"), (None, "newer")):
        (experiment,) = collect([space], runs, present=lambda dataset, here=here: here)
        assert {it.prepared_hash for it in experiment.shown} == {shown}
        ((stored,), _) = stored_experiments(runs, present=lambda dataset, here=here: here)
        assert {it.prepared_hash for it in stored.shown} == {shown}
    for wanted in ("former1", "former", "form"):
        (former,) = collect([space], runs, [wanted])
        assert {it.prepared_hash for it in former.shown} == {"former"}, "a hash stands for its whole edition"
        assert former.replaced == 0
    (phrase, data_hash), *others = left_aside_in_words(collect([space], runs)[0].left_aside)
    assert phrase == "6 runs of another edition of the data (synthetic, class_il)"
    assert data_hash.startswith("former")
    assert others == []


def test_runs_that_record_no_preparation_count_with_any(tmp_path: Path, generated: ModuleType) -> None:
    """Runs of earlier versions do not record it: a sweep that began with one goes on."""
    space = SearchSpace("splits", RunConfig(), {"split_seed": [0, 1]}, seeds=[0])
    before, after = [request.config for request in space.requests()]
    store = RunStore(tmp_path)
    generated.write_given_runs(store, [(before, {"auc": 0.5})], "split0")
    generated.write_given_runs(store, [(after, {"auc": 0.5, "prepared_hash": "newer"})], "split1")
    (experiment,) = collect([space], store.read("runs"))
    assert experiment.counts("finished").tolist() == [2]
    assert (experiment.left_aside, experiment.replaced) == ((), 0)


def test_networks_and_optimisers_of_other_revisions_are_one_edition(tmp_path: Path, generated: ModuleType) -> None:
    axes = {"network": ["clops_cnn", "small_cnn"], "optimizer": ["adam", "sgd"]}
    space = SearchSpace("revisions", RunConfig(), axes, seeds=[0])
    configs = [request.config for request in space.requests()]
    assert [config.network_revision for config in configs] == [0, 1, 1, 1]
    store = RunStore(tmp_path)
    generated.write_given_runs(store, [(config, {"auc": 0.5}) for config in configs])
    (experiment,) = collect([space], store.read("runs"))
    assert experiment.counts("finished").tolist() == [1, 1, 1, 1]
    assert experiment.left_aside == ()


def test_newer_semantics_win_over_later_runs(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path)
    sizes = {"epochs": 1, "instances": 2}
    generated.write_generated_runs(store, [SPACE], semantics_version=2, **sizes)
    generated.write_generated_runs(
        store, [SPACE], semantics_version=1, started_at=generated.START + timedelta(days=1), **sizes
    )
    (experiment,) = collect([SPACE], store.read("runs"))
    assert [e.semantics_version for e in experiment.shown] == [2]
    assert [e.semantics_version for e in experiment.left_aside] == [1]


def test_every_patient_split_has_its_own_data_but_all_share_one_semantics_version(
    tmp_path: Path, generated: ModuleType
) -> None:
    space = SearchSpace("splits", RunConfig(), {"split_seed": [0, 1], "storage_fraction": [0.1, 0.5]}, seeds=[0])
    store = RunStore(tmp_path)
    sizes = {"epochs": 1, "instances": 2}
    for split, version in ((0, 1), (1, 1), (1, 2)):
        keep = lambda c, split=split: c.split_seed == split  # noqa: E731
        generated.write_generated_runs(
            store, [space], data_hash=f"hash{split}", semantics_version=version, keep=keep, **sizes
        )
    (both,) = collect([space], store.read("runs").query("semantics_version == 1"))
    assert {(e.data.split_seed, e.data_hash) for e in both.shown} == {(0, "hash0"), (1, "hash1")}
    assert both.counts("finished").tolist() == [2, 2]
    (newest,) = collect([space], store.read("runs"))
    assert {(e.data.split_seed, e.semantics_version) for e in newest.shown} == {(1, 2)}
    assert {(e.data.split_seed, e.semantics_version) for e in newest.left_aside} == {(0, 1), (1, 1)}
    assert newest.counts("finished").tolist() == [1, 1]


def test_runs_with_and_without_adapters_are_shown_together(tmp_path: Path, generated: ModuleType) -> None:
    """Features and adapted signals of one encoder have hashes of their own."""
    base = RunConfig(encoder="minirocket", network="linear")
    space = SearchSpace("adapters", base, {"lora_rank": [0, 4, 8]}, seeds=range(2))
    store = RunStore(tmp_path)
    for adapted in (False, True):
        configs = [it.config for it in space.requests() if (it.config.lora_rank > 0) == adapted]
        generated.write_given_runs(store, [(it, {"auc": 0.5}) for it in configs], f"hash{adapted}")
    (experiment,) = collect([space], store.read("runs"))
    assert experiment.counts("finished").tolist() == [2, 2, 2]
    assert [(it.data_hash, it.runs) for it in experiment.shown] == [("hashFalse", 2), ("hashTrue", 4)]
    ((stored,), _) = stored_experiments(store.read("runs"))
    assert [(it.data_hash, it.runs) for it in stored.shown] == [("hashFalse", 2), ("hashTrue", 4)]


def test_folds_have_data_of_their_own_and_all_are_shown(tmp_path: Path, generated: ModuleType) -> None:
    axes = {"split": [*folds(3), None], "storage_fraction": [0.1, 0.5]}
    space = SearchSpace("folds", RunConfig(), axes, seeds=[0])
    store = RunStore(tmp_path)
    for split in axes["split"]:
        keep = lambda c, split=split: c.split == split  # noqa: E731
        generated.write_generated_runs(store, [space], data_hash=f"hash{split}", keep=keep, epochs=1, instances=2)
    (experiment,) = collect([space], store.read("runs"))
    assert experiment.counts("finished").tolist() == [4] * 2, "folds repeat a cell, as split seeds do"
    assert experiment.replicates == ((0, 0), *((Fold(0, part, 3), 0) for part in (1, 2, 3)))
    assert {(it.data.split, it.data_hash) for it in experiment.shown} == {
        *((name, f"hash{name}") for name in folds(3)),
        (None, "hashNone"),
    }
    assert experiment.left_aside == ()
    assert "synthetic (class_il, patient split 0, fold:2/3)" in str(experiment.shown[2])
    with pytest.raises(UsageError, match="random splits and 3 folds"):
        comparisons(experiment)


def test_without_a_validation_set_metrics_are_of_the_test_set(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path)
    configs = [r.config for r in SPACE.requests()]
    values = {"test_auc": 0.7, "test_bwt": -0.1, "auc": np.nan, "seconds": 3.0}
    generated.write_given_runs(store, [(c, values | {"test_auc": 0.7 + c.seed}) for c in configs])
    (experiment,) = collect([SPACE], store.read("runs"))
    assert experiment.on_test
    np.testing.assert_equal(experiment.by_replicate("auc"), [[0.7, 1.7]] * 2)
    np.testing.assert_equal(experiment.by_replicate("bwt"), [[-0.1, -0.1]] * 2)
    np.testing.assert_equal(experiment.by_replicate("test_auc"), experiment.by_replicate("auc"))
    np.testing.assert_equal(experiment.by_replicate("seconds"), [[3.0, 3.0]] * 2)


def test_a_run_with_a_validation_set_is_not_put_beside_test_metrics(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path)
    first, second, *_ = (r.config for r in SPACE.requests())
    generated.write_given_runs(store, [(first, {"auc": 0.8, "test_auc": 0.7}), (second, {"test_auc": 0.7})])
    (experiment,) = collect([SPACE], store.read("runs"))
    assert not experiment.on_test
    np.testing.assert_equal(experiment.by_replicate("auc"), [[0.8, np.nan]] * 1 + [[np.nan, np.nan]])


def test_a_mean_gives_each_split_one_weight(tmp_path: Path, generated: ModuleType) -> None:
    """Three seeds of one split and one of another: the mean is over two splits, and so are best values."""
    space = SearchSpace("uneven", RunConfig(), {"split_seed": [0, 1]}, seeds=range(3))
    configs = [r.config for r in space.requests()]
    store = RunStore(tmp_path)
    generated.write_given_runs(store, [(c, {"auc": 0.5 + 0.4 * c.split_seed}) for c in configs[:4]])
    (experiment,) = collect([space], store.read("runs"))
    np.testing.assert_allclose(experiment.by_split("auc"), [[0.5, 0.9]])
    assert result_table(experiment).rows[0].estimates["auc"].mean == pytest.approx(0.7)


def test_split_seeds_of_the_same_people_are_one_split(tmp_path: Path, generated: ModuleType) -> None:
    """The deviation over three equal splits was 0 with n = 3."""
    space = SearchSpace("given", RunConfig(), {"split_seed": [3, 4, 5]}, seeds=range(2))
    store = RunStore(tmp_path)
    rows = []
    for request in space.requests():
        rows.append((request.config, {"auc": 0.5 + 0.4 * request.config.seed, "split_hash": "same"}))
    generated.write_given_runs(store, rows)
    (experiment,) = collect([space], store.read("runs"))
    np.testing.assert_allclose(experiment.by_split("auc"), [[0.5, 0.9]])
    assert experiment.repetitions == ((3, 0), (3, 1))
    (row,) = result_table(experiment).rows
    assert (row.estimates["auc"].n, row.estimates["auc"].sd) == (2, pytest.approx(0.4 / 2**0.5))
    of_seeds = dict(zip(experiment.runs["run_id"], experiment.runs["seed"], strict=True))
    curves = experiment.in_units(store.read("runs")[["run_id"]])
    assert curves["unit"].nunique() == 2
    assert curves.groupby("unit")["run_id"].agg(lambda ids: {of_seeds[run_id] for run_id in ids}).map(len).tolist() == [
        1,
        1,
    ]
    (sentence,) = same_splits_in_words(experiment)
    assert sentence.startswith(
        "Patient splits 3, 4, 5 have the same people in training, validation and test: they count"
    )
    facts = {str(row[0].text): str(row[1].text) for row in setup_text([Shown(experiment, TaskTitles())], "set-up").rows}
    assert facts["repetitions"] == "2 seeds, 1 patient split, 6 runs"


def test_splits_with_other_people_stay_apart(tmp_path: Path, generated: ModuleType) -> None:
    space = SearchSpace("random", RunConfig(), {"split_seed": [0, 1, 2]})
    store = RunStore(tmp_path)
    hashes = ["a", "b", None]
    configs = [request.config for request in space.requests()]
    generated.write_given_runs(store, [(c, {"auc": 0.5, "split_hash": hashes[c.split_seed]}) for c in configs])
    (experiment,) = collect([space], store.read("runs"))
    assert experiment.by_split("auc").shape == (1, 3)
    assert list(same_splits_in_words(experiment)) == []


def test_an_unknown_metric_names_the_tuned_space_and_not_the_experiment_of_its_tuning(
    tmp_path: Path, generated: ModuleType
) -> None:
    (experiment,) = collect([SPACE], RunStore(tmp_path).read("runs"))
    for name in ("study_selection_ER-KD (ours)", "study_selection"):
        tuning = replace(experiment, name=name, is_tuning=True)
        with pytest.raises(UsageError, match=r"^metric 'aucc': not known .*; the tuning runs of 'study' \("):
            tuning.judged_by(["aucc"])
