from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.results import result_table
from clops_sweep.analysis.selection import scenario_in_words
from clops_sweep.analysis.statistics import ALPHA, holm
from clops_sweep.analysis.tables.best import (
    best_configurations,
    best_sentences,
    best_text,
    corrected_with,
    unranked_in_words,
)
from clops_sweep.analysis.tables.comparisons import comparison_text, comparisons, levels_in_words, without_undecided
from clops_sweep.store.run_store import RunStore

AXES = {"storage_fraction": [0.1, 0.5, 1.0], "variant": {"CLOPS": {}, "Random": {"storage_order": "random"}}}
NOISE = [0.0, 0.011, -0.007, 0.004, 0.015]
P_VALUE = re.compile(r"\bp [=<] ")


def auc(config: RunConfig) -> float:
    """The best is b = 0.5; at b = 1 a run is missing."""
    noise = 0.5 * NOISE[config.seed] + 0.3 * NOISE[config.seed - 1] * (config.strategy == "clops")
    if config.strategy == "finetune":
        return 0.6 + noise
    of_b = {0.1: 0.7, 0.5: 0.8, 1.0: 0.9}[config.storage_fraction]
    return of_b - 0.05 * (config.storage_order == "random") + noise


def experiments(
    folder: Path, generated: ModuleType, seeds: int = 5, **tuned: object
) -> tuple[RunStore, list[SearchSpace], list[Experiment]]:
    spaces = [
        SearchSpace("grid", RunConfig(), AXES, seeds=range(seeds)),
        SearchSpace("tuned", RunConfig(strategy="finetune", **tuned), seeds=range(seeds)),
    ]
    store = RunStore(folder)
    configs = [request.config for space in spaces for request in space.requests()]
    there = [it for it in configs if it.strategy == "finetune" or it.storage_fraction < 1 or it.seed]
    generated.write_given_runs(store, [(it, {"auc": auc(it), "bwt": -auc(it)}) for it in there])
    return store, spaces, collect(spaces, store.read("runs"))


def test_the_best_of_each_variant_is_compared_with_fine_tuning(tmp_path: Path, generated: ModuleType) -> None:
    _, _, (grid, tuned) = experiments(tmp_path, generated)
    found = best_configurations(grid, [tuned])
    assert [it.name for it in found] == ["CLOPS, b = 0.5", "Random, b = 0.5"], "b = 1 is not finished yet"
    assert [it.of for it in found] == [4, 4]
    values = np.array([auc(RunConfig(storage_fraction=0.5, seed=seed)) for seed in range(5)])
    differences = values - [auc(RunConfig(strategy="finetune", seed=seed)) for seed in range(5)]
    mean = found[0].means["auc"]
    expected = stats.t.interval(0.95, 4, values.mean(), stats.sem(values))
    assert (mean.mean, mean.low, mean.high) == pytest.approx((values.mean(), *expected))
    above = found[0].above.differences["auc"]
    assert (above.mean, above.p) == pytest.approx((differences.mean(), stats.ttest_1samp(differences, 0).pvalue))
    assert found[0].above.corrected["auc"] > above.p, "corrected for the choice among four"
    rows = best_text(found, "best").data.to_dict("records")
    assert [row["metric"] for row in rows] == ["auc", "bwt"] * 2
    assert rows[0]["minus_fine_tuning"] == pytest.approx(differences.mean())


def test_one_comparison_has_one_p_on_a_page(tmp_path: Path, generated: ModuleType) -> None:
    methods = {"CLOPS": {}, "Random": {"storage_order": "random"}, "Fine-tuning": {"strategy": "finetune"}}
    space = SearchSpace("methods", RunConfig(storage_fraction=0.5), {"method": methods}, seeds=range(5))
    noise = np.random.default_rng(1).normal(0, 0.1, (3, 5))
    rows = []
    for request in space.requests():
        value = 0.7 + float(noise[list(methods).index(request.labels["method"]), request.config.seed])
        rows.append((request.config, {"auc": value, "bwt": -value}))
    store = RunStore(tmp_path)
    generated.write_given_runs(store, rows)
    (experiment,) = collect([space], store.read("runs"))
    found, (table,) = corrected_with(best_configurations(experiment), [comparisons(experiment)])
    shown = {row.name: row for row in table.rows if row.baseline == "Fine-tuning"}
    above = [it for it in found if it.above is not None]
    assert above
    for it in above:
        for metric in ("auc", "bwt"):
            assert it.above.corrected[metric] == shown[it.name].corrected[metric]
            assert it.above.differences[metric] == shown[it.name].differences[metric]
    widened = "Holm corrects 3 comparisons of the page and widens intervals, up to 98.33 %"
    assert widened in levels_in_words(table.rows)
    assert widened in " ".join(best_text(found, "best").notes), "all tables of a page say the same"
    p_values = [row.differences["auc"].p for row in table.rows]
    assert [row.corrected["auc"] for row in table.rows] == holm(p_values).tolist(), "three comparisons, each once"
    of_both = [(row.differences["auc"].excludes_zero, row.corrected["auc"] < ALPHA) for row in table.rows]
    assert all(excludes == significant for excludes, significant in of_both)


def test_notes_count_the_p_values_of_each_metric(tmp_path: Path, generated: ModuleType) -> None:
    """A pair whose differences are all equal has no p-value, so Holm does not count it."""
    methods = {"CLOPS": {}, "Random": {"storage_order": "random"}, "Fine-tuning": {"strategy": "finetune"}}
    space = SearchSpace("methods", RunConfig(storage_fraction=0.5), {"method": methods}, seeds=range(5))
    noise = np.random.default_rng(1).normal(0, 0.1, (3, 5))
    rows = []
    for request in space.requests():
        place, seed = list(methods).index(request.labels["method"]), request.config.seed
        bwt = -0.1 + float(noise[max(place, 1), seed])
        rows.append((request.config, {"auc": 0.7 + float(noise[place, seed]), "bwt": bwt}))
    store = RunStore(tmp_path)
    generated.write_given_runs(store, rows)
    (experiment,) = collect([space], store.read("runs"))
    found, (table,) = corrected_with(best_configurations(experiment), [comparisons(experiment)])
    tested = {metric: sum(np.isfinite(row.corrected[metric]) for row in table.rows) for metric in ("auc", "bwt")}
    assert tested == {"auc": 3, "bwt": 2}
    corrects = "Holm corrects comparisons of the page (3 in Average AUC; 2 in BWT) and widens intervals, up to 98.33 %"
    assert corrects in levels_in_words(table.rows)
    assert "Holm corrects 2 comparisons of the page and widens intervals, up to 97.5 %" in levels_in_words(
        table.rows, ["bwt"]
    )
    (mean, *_) = comparison_text(table, "c", "c").notes
    assert "]; without interval where all differences of a row are equal. " in mean
    (mean, *_) = comparison_text(table, "c", "c", ["auc"]).notes
    assert "without interval" not in mean
    assert corrects in " ".join(best_text(found, "best").notes)


@pytest.mark.parametrize(("seeds", "reason"), [(2, "; without interval below three pairs"), (3, "")])
def test_notes_say_why_few_pairs_have_no_interval(
    seeds: int, reason: str, tmp_path: Path, generated: ModuleType
) -> None:
    space = SearchSpace("two", RunConfig(), {"strategy": ["clops", "finetune"]}, seeds=range(seeds))
    rows = []
    for request in space.requests():
        gain = NOISE[request.config.seed] if request.config.strategy == "clops" else 0.0
        rows.append((request.config, {"auc": 0.7 + gain, "bwt": -0.1 - gain}))
    store = RunStore(tmp_path)
    generated.write_given_runs(store, rows)
    (mean, *_) = comparison_text(comparisons(collect([space], store.read("runs"))[0]), "c", "c").notes
    assert f"]{reason}. Metrics of" in mean


def test_means_of_bounded_metrics_have_bounded_intervals(tmp_path: Path, generated: ModuleType) -> None:
    space = SearchSpace("few", RunConfig(strategy="finetune"), seeds=range(3))
    store = RunStore(tmp_path)
    values = {0: 0.99, 1: 0.6, 2: 0.93}
    rows = [(request.config, {"auc": values[request.config.seed], "bwt": -0.5}) for request in space.requests()]
    generated.write_given_runs(store, rows)
    table = best_text(best_configurations(collect([space], store.read("runs"))[0]), "best")
    assert table.rows[0][2].text == "0.840 [0.318, 1.000]"


def test_two_units_have_neither_interval_nor_p(tmp_path: Path, generated: ModuleType) -> None:
    _, _, (grid, tuned) = experiments(tmp_path, generated, seeds=2)
    table = best_text(best_configurations(grid, [tuned]), "best")
    assert not any("[" in cell.text or cell.text.startswith("<") for row in table.rows for cell in row)
    assert table.header == (
        "configuration",
        "n",
        "validation AUC",
        "minus fine-tuning",
        "validation BWT",
        "minus fine-tuning",
    )
    assert table.rows[0][1].text == "2 seeds"
    assert "2 seeds where 3 are needed: not tested." in table.notes


def test_a_bold_row_is_also_best_after_the_correction_of_the_page(tmp_path: Path, generated: ModuleType) -> None:
    methods = {"CLOPS": {}, "Random": {"storage_order": "random"}, "Fine-tuning": {"strategy": "finetune"}}
    space = SearchSpace("methods", RunConfig(storage_fraction=0.5), {"method": methods}, seeds=range(5))
    below = 0.02 * np.array([[0, 0, 0, 0, 0], [-2, -1, 0, 1, 2], [2, -1, 1, 0, -2]])
    below[1:] += 0.0466  # p = 0.03 of both differences, 0.09 after Holm over three
    rows = []
    for request in space.requests():
        value = 0.8 - float(below[list(methods).index(request.labels["method"]), request.config.seed])
        rows.append((request.config, {"auc": value, "bwt": value - 1 + 0.3 * (value == 0.8)}))
    store = RunStore(tmp_path)
    generated.write_given_runs(store, rows)
    (experiment,) = collect([space], store.read("runs"))
    compared = comparisons(experiment)
    alone = result_table(experiment)
    shown = without_undecided(alone, compared)
    assert alone.rows[0].best_in >= {"auc", "bwt"}
    assert min(row.corrected["auc"] for row in compared.rows) > ALPHA > compared.rows[0].differences["auc"].p
    assert shown.rows[0].best_in == alone.rows[0].best_in - {"auc"}


def test_seeds_of_one_patient_split_give_no_p_value_in_the_sentence(tmp_path: Path, generated: ModuleType) -> None:
    _, _, (grid, tuned) = experiments(tmp_path, generated)
    values = [auc(RunConfig(storage_fraction=0.5, seed=seed)) for seed in range(5)]
    differences = np.array(values) - [auc(RunConfig(strategy="finetune", seed=seed)) for seed in range(5)]
    sentence = best_sentences(best_configurations(grid, [tuned]))[0]
    assert np.isfinite(best_configurations(grid, [tuned])[0].above.corrected["auc"])
    over_seeds = f"{differences.min():+.3f} to {differences.max():+.3f} over its 5 seeds"
    clause = f"above fine-tuning; one patient split: no interval over people, {over_seeds}"
    assert f"; {abs(differences.mean()):.3f} {clause}" in sentence
    assert not P_VALUE.search(sentence)
    assert P_VALUE.search(best_sentences(best_configurations(_over_splits(tmp_path / "splits", generated)))[0])


def _over_splits(folder: Path, generated: ModuleType) -> Experiment:
    """Return an experiment of fine-tuning and a better method on five patient splits."""
    axes = {"strategy": ["finetune", "er"], "split_seed": range(5)}
    space = SearchSpace("splits", RunConfig(), axes, seeds=range(1))
    rows = []
    for request in space.requests():
        config = request.config
        value = 0.7 + 0.01 * config.split_seed + (config.strategy == "er") * (0.1 + 0.002 * config.split_seed**2)
        rows.append((config, {"auc": value, "bwt": -value}))
    store = RunStore(folder)
    generated.write_given_runs(store, rows)
    (experiment,) = collect([space], store.read("runs"))
    return experiment


def test_the_sentence_says_whose_scores_are_best(tmp_path: Path, generated: ModuleType) -> None:
    _, _, (grid, tuned) = experiments(tmp_path, generated)
    assert "b = 0.5, validation AUC 0.804, n = 5 seeds; " in best_sentences(best_configurations(grid, [tuned]))[0]


def test_configurations_without_all_runs_are_named_with_their_means(tmp_path: Path, generated: ModuleType) -> None:
    """A method with the best mean must not vanish because one of its runs failed."""
    _, _, (grid, tuned) = experiments(tmp_path, generated)
    found = best_configurations(grid, [tuned])
    expected = (
        "not ranked, because runs are missing or failed: CLOPS, b = 1 (0.903 in 4 of 5 runs), Random, b = 1 (0.853 in "
        "4 of 5 runs)"
    )
    assert found[0].unranked == expected
    assert [it.unranked for it in found[1:]] == [""]
    assert best_sentences(found)[0].endswith(f"; {expected}.")
    assert f"{expected[0].upper()}{expected[1:]}." in best_text(found, "best").notes
    assert unranked_in_words(tuned) == ""


def test_a_ranking_by_the_runs_that_each_has_says_so(tmp_path: Path, generated: ModuleType) -> None:
    methods = {"CLOPS": {}, "Fine-tuning": {"strategy": "finetune"}}
    space = SearchSpace("methods", RunConfig(), {"method": methods}, seeds=range(4))
    rows = []
    for request in space.requests():
        if (request.config.strategy == "finetune") == (request.config.seed < 2):
            rows.append((request.config, {"auc": 0.7, "bwt": -0.1}))
    store = RunStore(tmp_path)
    generated.write_given_runs(store, rows)
    (experiment,) = collect([space], store.read("runs"))
    assert unranked_in_words(experiment) == "no configuration has all its runs: each is ranked by those that it has"


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        (
            {"method": {"CLOPS": {}, "longer": {"epochs_per_task": 8, "batch_size": 4}}},
            "Compared configurations also differ in training: epochs_per_task (8, 5), batch_size (4, 16).",
        ),
        ({"strategy": ["clops", "finetune"]}, ""),
        ({"epochs_per_task": [5, 8]}, ""),
    ],
)
def test_training_that_a_named_variant_changes_is_named(
    axes: dict[str, object], expected: str, tmp_path: Path, generated: ModuleType
) -> None:
    space = SearchSpace("methods", RunConfig(epochs_per_task=5), axes, seeds=range(3))
    store = RunStore(tmp_path)
    rows = [
        (request.config, {"auc": 0.7 + 0.01 * place, "bwt": -0.1}) for place, request in enumerate(space.requests())
    ]
    generated.write_given_runs(store, rows)
    notes = comparisons(collect([space], store.read("runs"))[0]).notes
    assert [note for note in notes if note.startswith("Compared")] == ([expected] if expected else [])


@pytest.mark.parametrize("axis", [{"dataset": ["mitbih", "synthetic"]}, {"scenario": ["class_il", "class_il_union"]}])
def test_scores_on_other_data_or_scenarios_are_neither_ranked_nor_compared_with_each_other(
    axis: dict[str, list[str]], tmp_path: Path, generated: ModuleType
) -> None:
    """A seed on one data set has nothing to do with that seed on another: such pairs had p-values."""
    (name, (first, second)) = next(iter(axis.items()))
    base = RunConfig(dataset="mitbih", network="small_cnn", epochs_per_task=5, learning_rate=0.001)
    space = SearchSpace("both", base, {**axis, "strategy": ["finetune", "er"]}, seeds=range(4))
    rows = []
    for request in space.requests():
        config, seed = request.config, request.config.seed
        replays = config.strategy == "er"
        value = 0.6 + 0.3 * (getattr(config, name) == second) + 0.003 * seed**2 + replays * (0.05 + 0.002 * seed)
        rows.append((config, {"auc": value, "bwt": -value}))
    store = RunStore(tmp_path)
    generated.write_given_runs(store, rows)
    (experiment,) = collect([space], store.read("runs"))
    assert [(row.name, row.baseline) for row in comparisons(experiment).rows] == [
        (f"{first}, er", f"{first}, finetune"),
        (f"{second}, er", f"{second}, finetune"),
    ]
    found = best_configurations(experiment)
    assert [it.name for it in found] == [f"{data}, {method}" for data in axis[name] for method in ("er", "finetune")]
    assert [it.of for it in found] == [2] * 4
    sentence = best_sentences(found)[0]
    assert sentence.count("Best on ") == 2
    assert f"{first}, er, validation AUC 0.663, n = 4 seeds; 0.053 above finetune (fine-tuning)" in sentence
    assert f"{second}, er, validation AUC 0.963, n = 4 seeds; 0.053 above finetune (fine-tuning)" in sentence
    assert "Configurations are ranked within each data set and scenario." in best_text(found, "best").notes
    bold = [row.name for row in result_table(experiment).rows if "auc" in row.best_in]
    assert bold == [f"{first}, er", f"{second}, er"]


def test_a_data_set_without_a_complete_configuration_is_ranked_beside_one_that_has_some(
    tmp_path: Path, generated: ModuleType
) -> None:
    base = RunConfig(dataset="mitbih", network="small_cnn", epochs_per_task=5, learning_rate=0.001)
    axes = {"dataset": ["mitbih", "synthetic"], "strategy": ["finetune", "er"]}
    space = SearchSpace("both", base, axes, seeds=range(4))
    rows = []
    for request in space.requests():
        config = request.config
        is_finished = config.seed < 3 or config.dataset == "mitbih"
        if is_finished:
            value = 0.6 + 0.003 * config.seed**2 + (config.strategy == "er") * (0.05 + 0.002 * config.seed)
            rows.append((config, {"auc": value, "bwt": -value}))
    store = RunStore(tmp_path)
    generated.write_given_runs(store, rows)
    (experiment,) = collect([space], store.read("runs"))
    found = best_configurations(experiment)
    assert [it.name for it in found] == ["mitbih, er", "mitbih, finetune", "synthetic, er", "synthetic, finetune"]
    expected = "on synthetic, class_il, no configuration has all its runs: each is ranked by those that it has"
    assert unranked_in_words(experiment) == expected


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"scenario": "class_il"}, "class-incremental with known tasks"),
        ({"scenario": "class_il_union"}, "class-incremental"),
        ({"scenario": "domain_il", "domain": "lead"}, "domain-incremental by lead"),
        ({"scenario": "time_il"}, "time-incremental"),
        ({"scenario": "subject_il"}, "subject-incremental"),
    ],
)
def test_captions_have_the_scenario_in_words(settings: dict[str, str], words: str) -> None:
    assert scenario_in_words(RunConfig(**settings)) == words
