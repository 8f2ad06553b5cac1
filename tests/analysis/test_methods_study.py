"""The study of methods: what was chosen, and the tables of docs/methods.md, follow from the runs that lie beside it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.experiment.spaces.search_space import load_spaces, names_in, shipped_space

LATER = {"acil", "aser", "icarl", "ncm", "ranpac", "slda", "ts_acl", "flip_penalty"}
"""Built-in strategies that the study does not have."""

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def study(loaded: Callable[[str, Path], ModuleType]) -> ModuleType:
    return loaded("methods_study", DOCS / "methods" / "study.py")


@pytest.fixture(scope="module")
def runs(study: ModuleType) -> pd.DataFrame:
    return pd.read_parquet(study.RUNS)


def test_every_run_that_is_asked_for_is_there_once(study: ModuleType, runs: pd.DataFrame) -> None:
    asked = [
        (space.name, request.labels["method"], request.config.storage_fraction, request.config.split_seed, seed)
        for file in study.FILES
        for space in load_spaces(shipped_space(file))
        for request in space.requests()
        for seed in [request.config.seed]
    ]
    there = list(runs[["space", "method", "memory", "split_seed", "seed"]].itertuples(index=False, name=None))
    assert sorted(there) == sorted(asked)
    for file in (study.RUNS, study.SECONDS):
        assert file.stat().st_size < 1_000_000


def test_the_search_spaces_have_every_method_with_the_options_that_were_chosen(
    study: ModuleType, runs: pd.DataFrame
) -> None:
    spaces = {space.name: space for file in study.FILES for space in load_spaces(shipped_space(file))}
    for name in study.STUDIES:
        chosen = study.chosen(runs, name)
        asked = spaces[name].axes["method"]
        assert isinstance(asked, dict)
        union = "class_il" not in (spaces[name].base.scenario,)
        methods = {settings["strategy"] for settings in asked.values()}
        assert methods == set(STRATEGIES) - STRATEGIES.added.keys() - LATER - ({"er_ace"} if not union else set())
        for method, settings in asked.items():
            of = method.split(",")[0]
            assert {key: settings[key] for key in chosen.get(of, {})} == chosen.get(of, {})
    options = names_in(shipped_space("methods_mitbih"))["OPTIONS"]
    for name in study.STUDIES:  # three values of each were tried, on splits or seeds that the study does not report
        tried = runs[runs["space"] == f"{name}_selection"]
        methods = spaces[name].axes["method"]
        assert len(tried["method"].unique()) == 3 * len(options.keys() & methods.keys())
        reported = runs[runs["space"] == name]
        unit = study.STUDIES[name].unit
        assert not set(tried[unit]) & set(reported[unit])


def test_chosen_is_the_best_on_validation(study: ModuleType) -> None:
    rows = [("EWC, ewc_strength 4", 0.6, 0.9), ("EWC, ewc_strength 40", 0.8, 0.1), ("ER, replay_ratio 0.5", 0.7, 0.7)]
    runs = pd.DataFrame(rows, columns=["method", "auc", "test_auc"]).assign(space="methods_mitbih_selection")
    assert study.chosen(runs, "methods_mitbih") == {"EWC": {"ewc_strength": 40}, "ER": {"replay_ratio": 0.5}}


def test_differences_are_paired_over_splits(study: ModuleType, runs: pd.DataFrame) -> None:
    """One row of each table, worked out with pandas and scipy."""
    rows = {row.method: row for row in study.compared(runs, "methods_mitbih", "ER")}
    here = runs[runs["space"] == "methods_mitbih"]
    each = here.pivot_table("test_auc", ["split_seed", "seed"], "method")
    by_split = each.sub(each["ER"], axis=0).groupby("split_seed").mean().drop(columns="ER")  # GEM has one seed
    people = here.groupby("split_seed")[["patients_train", "patients_test"]].first()
    rho = (people["patients_test"] / people["patients_train"]).mean()
    assert rho == pytest.approx(0.406, abs=0.001)
    t = by_split.mean() / (by_split.std() * np.sqrt(1 / len(by_split) + rho))
    apart = dict(zip(t.index, 2 * stats.t.sf(t.abs(), len(by_split) - 1), strict=True))
    means = each.groupby("split_seed").mean()
    assert rows.keys() == apart.keys()
    least = min(apart, key=lambda name: apart[name])
    assert rows[least].corrected == pytest.approx(min(1, apart[least] * len(apart)))
    for name, row in rows.items():
        assert row.difference.p == pytest.approx(apart[name])
        assert row.difference.mean == pytest.approx(by_split[name].mean())
        half = stats.t.ppf(0.975, 9) * by_split[name].std() * np.sqrt(1 / 10 + rho)
        assert row.difference.high - row.difference.mean == pytest.approx(half)
        assert (row.value.mean, row.value.sd) == pytest.approx((means[name].mean(), means[name].std()))


def test_forgetting_is_measured_from_the_best_there_was(study: ModuleType) -> None:
    accuracy = np.array([[0.9, 0.1, 0.2], [0.95, 0.8, 0.3], [0.5, 0.6, 0.7]])
    rows = [("r", i + 1, j + 1, accuracy[i, j]) for i in range(3) for j in range(3)]
    matrix = pd.DataFrame(rows, columns=["run_id", "trained_on", "evaluated_on", "accuracy"])
    assert study.forgetting(matrix)["r"] == pytest.approx(((0.95 - 0.5) + (0.8 - 0.6)) / 2)


def test_the_document_has_the_tables_that_follow_from_the_runs(study: ModuleType, runs: pd.DataFrame) -> None:
    text = (DOCS / "methods.md").read_text()
    for table in study.tables(runs, study.seconds()):
        assert table in text
    assert "(methods/figure.png)" in text
    assert "(methods/profiles.png)" in text
    prose, _, below = text.partition(study.HEADING)
    said = re.findall(r"[+-]?0\.\d{3}", prose)
    assert said
    assert [number for number in said if number not in below] == []


def test_the_figure_draws(study: ModuleType, runs: pd.DataFrame) -> None:
    panels = study.figure(runs).axes
    assert [re.sub(r"\s+", " ", axes.get_title()) for axes in panels] == [
        it.title.replace(",", "") for it in study.STUDIES.values()
    ]
