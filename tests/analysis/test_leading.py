"""Which scores lead, and which columns are shown of each configuration."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.formats import DASH
from clops_sweep.analysis.leading import heading, is_choice, leading_columns, with_leading_scores
from clops_sweep.analysis.tables.best import best_of_page, best_sentences, best_text, corrected_with
from clops_sweep.analysis.tables.best_terminal import (
    BestOfSpace,
    in_order_of_validation,
    notes_on_all,
    proposed_in_words,
)
from clops_sweep.analysis.tables.comparisons import comparisons
from clops_sweep.analysis.tables.latex import to_latex
from clops_sweep.store.run_store import RunStore

METHODS = {"strategy": ["finetune", "er"]}
GRID = {"storage_fraction": [0.1, 0.5], "strategy": ["clops", "replay"]}


def scores(config: RunConfig) -> dict[str, float]:
    """Validation and test scores rank configurations in opposite orders."""
    place = ("finetune", "er", "clops", "replay").index(config.strategy) + 10 * config.storage_fraction
    noise = 0.001 * (config.seed - 1.5) ** 3 * (1 + 0.1 * place)  # 0 on average over four seeds
    auc, test = 0.5 + 0.02 * place + noise, 0.9 - 0.02 * place + noise
    return {"auc": auc, "bwt": -auc, "test_auc": test, "test_bwt": -test}


def experiments(folder: Path, generated: ModuleType, **axes: dict[str, list[object]]) -> list[Experiment]:
    spaces = [SearchSpace(name, RunConfig(), of_space, seeds=range(4)) for name, of_space in axes.items()]
    store = RunStore(folder)
    configs = [request.config for space in spaces for request in space.requests()]
    generated.write_given_runs(store, [(config, scores(config)) for config in configs])
    return collect(spaces, store.read("runs"))


def test_test_scores_lead_where_nothing_is_chosen(tmp_path: Path, generated: ModuleType) -> None:
    judged = with_leading_scores(experiments(tmp_path, generated, methods=METHODS))
    assert [is_choice(experiment) for experiment in judged] == [False]
    columns = leading_columns(judged[0])
    assert (columns.ranks, columns.shown, columns.results) == (
        "test_auc",
        ("test_auc", "auc", "test_bwt"),
        ("test_auc", "test_bwt"),
    )
    best = best_of_page(judged)
    assert [row.name for row in best] == ["finetune", "er"], "by test scores"
    assert best_text(best, "best").header == (
        *("configuration", "n", "test AUC", "minus finetune", "p"),
        *("validation AUC", "test BWT", "minus finetune", "p"),
    )
    assert best_sentences(best)[0].startswith("Best: finetune, test AUC 0.")


def test_a_report_is_proposed_on_the_method_with_the_best_validation_score(
    tmp_path: Path, generated: ModuleType
) -> None:
    (methods,) = with_leading_scores(experiments(tmp_path, generated, methods=METHODS))
    by_test = best_of_page([methods], compares=False)
    proposed = in_order_of_validation(by_test)
    assert [row.name for row in by_test] == ["finetune", "er"]
    assert [row.name for row in proposed] == ["er", "finetune"]
    mean = np.mean([scores(RunConfig(strategy="er", seed=seed))["auc"] for seed in range(4)])
    assert proposed_in_words(proposed[0], proposed) == (
        f"er has the best validation AUC ({mean:.3f}); test scores do not choose the proposed run"
    )
    assert proposed_in_words(proposed[0], proposed[:1]) == "", "there is nothing to choose"


def test_without_validation_people_a_report_is_proposed_on_the_first_method(
    tmp_path: Path, generated: ModuleType
) -> None:
    space = SearchSpace("own", RunConfig(), {"strategy": ["er", "finetune"]}, seeds=range(3))
    store = RunStore(tmp_path)
    runs = []
    for request in space.requests():
        score = {"er": 0.6, "finetune": 0.8}[request.config.strategy]
        runs.append((request.config, {"test_auc": score, "test_bwt": 0.0}))
    generated.write_given_runs(store, runs)
    (own,) = with_leading_scores(collect([space], store.read("runs")))
    by_test = best_of_page([own], compares=False)
    assert [row.name for row in by_test] == ["finetune", "er"]
    proposed = in_order_of_validation(by_test)
    assert [row.name for row in proposed] == ["er", "finetune"]
    assert proposed_in_words(proposed[0], proposed) == (
        "er comes first in the search space; test scores do not choose the proposed run"
    )


def test_each_search_space_has_a_sentence(tmp_path: Path, generated: ModuleType) -> None:
    judged = with_leading_scores(experiments(tmp_path, generated, grid=GRID, methods=METHODS))
    best = best_of_page(judged, judged)
    in_grid, of_methods = best_sentences(best)
    assert in_grid.startswith("Best in grid by validation AUC: replay, b = 0.5, ")
    assert of_methods.startswith("Best in methods by validation AUC: er, ")
    many = []
    for number in range(2):
        copies = {
            name: replace(row.experiment, name=f"{name} {number}") for row in best for name in [row.experiment.name]
        }
        many += [replace(row, experiment=copies[row.experiment.name]) for row in best]
    *_, last = best_sentences(many)
    assert len(best_sentences(many)) == 3
    assert last.endswith(" 1 more search space: in the table."), last


def test_a_grid_is_ranked_by_validation_and_has_test_scores(tmp_path: Path, generated: ModuleType) -> None:
    """A choice by test scores would make the chosen one look better than it is."""
    judged = with_leading_scores(experiments(tmp_path, generated, grid=GRID, methods=METHODS))
    assert [is_choice(experiment) for experiment in judged] == [True, False]
    assert {leading_columns(experiment).ranks for experiment in judged} == {"auc"}, "on the whole page"
    best = best_of_page(judged, judged)
    assert [row.name for row in best] == ["replay, b = 0.5", "clops, b = 0.5", "er", "finetune"], "by validation scores"
    table = best_text(best, "best")
    assert table.header[:4] == ("search space", "configuration", "n", "validation AUC")
    assert "test AUC" in table.header
    assert "test BWT" in table.header
    assert "Ranked by validation AUC: the best of many test scores would be partly luck." in table.notes
    assert best[0].means["test_auc"].mean == pytest.approx(0.9 - 0.02 * (3 + 5))
    differences = best[0].above.differences
    assert set(differences) == {"test_auc", "test_bwt"}, "the chosen one is compared by what did not choose it"


def test_reported_runs_of_a_tuned_space_lead_with_test_beside_a_grid(tmp_path: Path, generated: ModuleType) -> None:
    judged = with_leading_scores(experiments(tmp_path, generated, grid=GRID, methods=METHODS), {"methods"})
    assert [leading_columns(experiment).ranks for experiment in judged] == ["auc", "test_auc"]


def test_all_configurations_are_listed_where_none_is_chosen(tmp_path: Path, generated: ModuleType) -> None:
    many = {"acquisition": ["bald_mcd", "entropy", "random"], "storage_order": ["top", "random", "bottom"]}
    (experiment,) = with_leading_scores(experiments(tmp_path, generated, many=many))
    assert len(best_of_page([experiment])) == 9


def test_headings_name_the_split(tmp_path: Path, generated: ModuleType) -> None:
    (experiment,) = experiments(tmp_path, generated, methods=METHODS)
    names = [heading(column, [experiment]) for column in ("auc", "test_auc", "forgetting", "test_bwt", "seconds")]
    assert names == ["validation AUC", "test AUC", "validation forgetting", "test BWT", "seconds"]


def test_undefined_values_are_counted(tmp_path: Path, generated: ModuleType) -> None:
    """A run whose metric is undefined is finished, but no value stands behind the mean."""
    space = SearchSpace("few", RunConfig(strategy="er"), seeds=range(4))
    store = RunStore(tmp_path)
    rows = []
    for request in space.requests():
        known = scores(request.config)
        rows.append((request.config, known if request.config.seed else {"auc": known["auc"], "bwt": known["bwt"]}))
    generated.write_given_runs(store, rows)
    (best,) = best_of_page(with_leading_scores(collect([space], store.read("runs"))))
    assert best.n == "3 seeds (3 of 4 runs)"
    assert best_text([best], "best").rows[0][1].text == "3 seeds (3 of 4 runs)"


def test_tuned_fine_tuning_is_the_baseline_although_it_was_trained_otherwise(
    tmp_path: Path, generated: ModuleType
) -> None:
    """Tuning may choose another learning rate for each method."""
    methods = {"ER": {"strategy": "er"}, "fine-tuning": {"strategy": "finetune", "learning_rate": 0.0003}}
    judged = with_leading_scores(experiments(tmp_path, generated, tuned={"method": methods}), {"tuned"})
    best = best_of_page(judged)
    replay = next(row for row in best if row.name == "ER")
    assert replay.above.differences["test_auc"].mean == pytest.approx(-0.02)
    notes = best_text(best, "best").notes
    assert any(note.startswith("Compared configurations also differ in training: learning_rate") for note in notes)
    assert not any(note.startswith("Not compared where no fine-tuning run") for note in notes)


def test_what_tuning_chose_is_named_apart_from_other_differences(tmp_path: Path, generated: ModuleType) -> None:
    methods = {
        "ER": {"strategy": "er", "epochs_per_task": 3},
        "fine-tuning": {"strategy": "finetune", "learning_rate": 0.0003},
    }
    (experiment,) = experiments(tmp_path, generated, tuned={"method": methods})
    cells = []
    for cell in experiment.cells:
        cells.append(replace(cell, tuned=frozenset({"learning_rate"} if cell.label("method") == "ER" else ())))
    (judged,) = with_leading_scores([replace(experiment, cells=tuple(cells))], {"tuned"})
    notes = best_text(best_of_page([judged]), "best").notes
    (as_tuned,) = (note for note in notes if note.startswith("Methods are compared as tuned: "))
    assert as_tuned == "Methods are compared as tuned: learning_rate 0.001 of ER, 0.0003 of fine-tuning."
    (other,) = (note for note in notes if note.startswith("Compared configurations also differ in training: "))
    assert re.fullmatch(r"Compared configurations also differ in training: epochs_per_task \([\d, ]+\)\.", other)


def test_one_sentence_has_the_choices_of_all_methods(tmp_path: Path, generated: ModuleType) -> None:
    """Each configuration of the table of the best has comparisons of its own, with other values."""
    rates = {"er": 0.001, "clops": 0.003, "replay": 0.001, "finetune": 0.0003}
    methods = {name: {"strategy": name, "learning_rate": rate} for name, rate in rates.items()}
    spaces = experiments(tmp_path, generated, one={"method": methods}, two={"method": dict(list(methods.items())[2:])})
    tuned = []
    for space in spaces:
        cells = tuple(replace(cell, tuned=frozenset({"learning_rate"})) for cell in space.cells)
        tuned.append(replace(space, cells=cells))
    judged = with_leading_scores(tuned, {"one", "two"})
    alone = [note for note in best_text(best_of_page(judged[:1]), "best").notes if "as tuned" in note]
    (said,) = alone
    assert said.startswith("Methods are compared as tuned: learning_rate ")
    texts = said.rstrip(".").partition("learning_rate ")[2].split(", ")
    assert {text.partition(" of ")[0]: {*text.partition(" of ")[2].split(" and ")} for text in texts} == {
        "0.001": {"er", "replay"},
        "0.003": {"clops"},
        "0.0003": {"finetune"},
    }
    both = [note for note in best_text(best_of_page(judged), "best").notes if "as tuned" in note]
    assert [note.partition(" are ")[0] for note in both] == ["Methods of one", "Methods of two"]


def test_the_headline_names_no_baseline_of_another_sweep(tmp_path: Path, generated: ModuleType) -> None:
    ours, others = experiments(tmp_path, generated, ours={"strategy": ["er"]}, others={"strategy": ["finetune"]})
    (judged,) = with_leading_scores([ours])
    best = best_of_page([judged], elsewhere=[others])
    assert best[0].above is not None
    baseline = "fine-tuning"
    assert baseline in best_text(best, "best").header[3]
    assert baseline in best_sentences(best_of_page([judged], [others]))[0]
    assert baseline not in best_sentences(best)[0]
    assert baseline not in best_sentences(best_of_page([judged]))[0], "nothing is said of runs that do not exist"


def _two_methods(folder: Path, generated: ModuleType, spread: float) -> Experiment:
    """Return an experiment without fine-tuning whose second method is 0.05 better in the mean."""
    space = SearchSpace(
        "two", RunConfig(), {"method": {"A": {"strategy": "er"}, "B": {"strategy": "derpp"}}}, seeds=range(4)
    )
    noise = [spread, -spread, 2 * spread, -2 * spread]
    rows = []
    for request in space.requests():
        config = request.config
        value = 0.7 if config.strategy == "er" else 0.75 + noise[config.seed]
        rows.append((config, {"test_auc": value, "test_bwt": -value, "auc": value, "bwt": -value}))
    store = RunStore(folder)
    generated.write_given_runs(store, rows)
    (experiment,) = with_leading_scores(collect([space], store.read("runs")))
    return experiment


def test_the_headline_says_how_far_the_best_is_ahead(tmp_path: Path, generated: ModuleType) -> None:
    best = best_of_page([_two_methods(tmp_path, generated, 0.1)])
    assert "0.050 above A, one patient split: no interval over people" in best_sentences(best, compares=False)[0]


def test_without_fine_tuning_configurations_are_compared_with_the_best(tmp_path: Path, generated: ModuleType) -> None:
    experiment = _two_methods(tmp_path, generated, 0.1)
    found, (pairs,) = corrected_with(best_of_page([experiment]), [comparisons(experiment)])
    table = best_text(found, "best")
    assert table.header[2:5] == ("test AUC", "minus best", "p")
    assert [row[0].text for row in table.rows] == ["B", "A"]
    assert table.rows[0][3].text == DASH
    assert table.rows[1][3].value == pytest.approx(-0.05)
    (row,) = pairs.rows
    assert (row.name, row.baseline) == ("B", "A")
    of_second = table.data[table.data["configuration"] == "A"].set_index("metric").loc["test_auc"]
    assert of_second["minus_best"] == pytest.approx(-row.differences["test_auc"].mean)
    assert of_second["p_holm"] == row.corrected["test_auc"], "one comparison has one p on a page"
    assert not any(note.startswith("Not compared where no fine-tuning run") for note in table.notes)


def test_the_columns_behind_the_headings_are_named(tmp_path: Path, generated: ModuleType) -> None:
    table = best_text(best_of_page([_two_methods(tmp_path, generated, 0.1)]), "best")
    assert table.notes[-1] == "Columns of runs: test_auc, auc, test_bwt."


def test_without_a_validation_set_the_columns_are_those_that_have_the_numbers(
    tmp_path: Path, generated: ModuleType
) -> None:
    store = RunStore(tmp_path)
    space = SearchSpace("plain", RunConfig(), {"strategy": ["er", "gem"]}, seeds=range(2))
    values = {"test_auc": 0.7, "test_bwt": -0.1, "auc": np.nan, "bwt": np.nan}
    generated.write_given_runs(store, [(request.config, values) for request in space.requests()])
    experiments = with_leading_scores(collect([space], store.read("runs")))
    best = best_of_page(experiments)
    table = best_text(best, "best")
    assert ("test AUC" in table.header, "test BWT" in table.header) == (True, True)
    assert table.notes[-1] == "Columns of runs: test_auc, test_bwt."
    in_terminal = notes_on_all([BestOfSpace(experiments[0], False, tuple(best))])
    assert in_terminal[-1] == "Columns of runs: test_auc, test_bwt"


def test_the_caption_of_a_manuscript_names_data_scenario_and_n(tmp_path: Path, generated: ModuleType) -> None:
    experiment = _two_methods(tmp_path, generated, 0.1)
    config = experiment.cells[0].config
    text = to_latex(best_text(best_of_page([experiment]), "best"))
    assert config.scenario == "class_il"
    caption = f"Test scores (1 of 2): {config.dataset}, class-incremental with known tasks, n = 4 seeds."
    assert rf"\caption{{{caption}}}" in text
    scores, differences = text.split(r"\end{table*}")[:2]
    validation = r"\shortstack[c]{validation\\AUC}"
    assert ("minus" in scores, validation in scores) == (False, True), "means first, then differences"
    assert ("minus" in differences, validation in differences) == (True, False)
