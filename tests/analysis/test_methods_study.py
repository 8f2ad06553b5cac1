"""The study of methods: what was chosen and the tables of docs/results/methods.md follow from the stored runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.experiment.spaces.search_space import SearchSpace, in_words, load_spaces, names_in, shipped_space

LATER = {"acil", "aser", "icarl", "ncm", "ranpac", "slda", "ts_acl", "flip_penalty"}
"""Built-in strategies that the study does not have."""

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def study(loaded: Callable[[str, Path], ModuleType]) -> ModuleType:
    return loaded("methods_study", DOCS / "methods" / "study.py")


@pytest.fixture(scope="module")
def runs(study: ModuleType) -> pd.DataFrame:
    return pd.read_parquet(study.RUNS)


def spaces_of(study: ModuleType) -> dict[str, SearchSpace]:
    return {space.name: space for file in study.FILES for space in load_spaces(shipped_space(file))}


def test_the_search_spaces_ask_for_the_runs_of_the_study(study: ModuleType, runs: pd.DataFrame) -> None:
    hashes = {}
    for space, split, content in zip(runs["space"], runs["split_seed"], runs["data_hash"], strict=True):
        hashes[next(it for it in ("mitbih", "cinc2017", "uci_har") if it in space), split] = content

    def run_id(config: RunConfig) -> str:
        return config.run_id(hashes[config.dataset, config.split_seed])

    asked = []
    for name, space in spaces_of(study).items():
        chosen = study.chosen(runs, name.removesuffix("_memory"))
        for phase in () if name.endswith("_memory") else space.phases:  # that of memory is the same tuning
            assert phase.search is not None
            for point in phase.search.points():
                base = phase.base.replace(**phase.search.settings(point))
                label = f"{phase.name.partition('_selection_')[2]}, {in_words(point)}"
                asked += [(f"{name}_selection", label, run_id(base.replace(**it))) for it in phase.replicates()]
        reported = space.reported({it.name: chosen.get(it.name, {}) for it in space.methods})
        asked += [(name, it.labels["method"], run_id(it.config)) for it in reported.requests()]
    there = list(runs[["space", "method", "run_id"]].itertuples(index=False, name=None))
    assert sorted(there) == sorted(asked)
    for file in (study.RUNS, study.SECONDS):
        assert file.stat().st_size < 1_000_000


def test_the_search_spaces_have_every_method_and_tune_three_values_of_each(
    study: ModuleType, runs: pd.DataFrame
) -> None:
    spaces = spaces_of(study)
    options = names_in(shipped_space("methods_mitbih"))["OPTIONS"]
    for name in study.STUDIES:
        methods = spaces[name].methods
        union = spaces[name].base.scenario == "class_il_union"
        strategies = {it.fixed["strategy"] for it in methods}
        assert strategies == set(STRATEGIES) - STRATEGIES.added.keys() - LATER - ({"er_ace"} if not union else set())
        tried = runs[runs["space"] == f"{name}_selection"]  # on splits or seeds that the study does not report
        assert len(tried["method"].unique()) == 3 * len(options.keys() & {it.name for it in methods})
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
    text, prose = (DOCS / "results" / "methods.md").read_text(), (DOCS / "methods.md").read_text()
    for table in study.tables(runs, study.seconds()):
        assert table in text
    assert "(methods/figure.png)" in prose
    assert "(methods/profiles.png)" in prose
    said = re.findall(r"[+-]?0\.\d{3}", prose)
    assert said
    assert [number for number in said if number not in text] == []


def test_the_figure_draws(study: ModuleType, runs: pd.DataFrame) -> None:
    panels = study.figure(runs).axes
    assert [re.sub(r"\s+", " ", axes.get_title()) for axes in panels] == [
        it.title.replace(",", "") for it in study.STUDIES.values()
    ]
