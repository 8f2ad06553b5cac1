"""The paper's claims as data: what they are about is in the search spaces that are shipped, and is found there."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from clops_sweep import Contrast, RunConfig, SearchSpace, Side
from clops_sweep.analysis.claims.claim_runs import ClaimRuns, FinishedRuns
from clops_sweep.analysis.claims.run_measures import MEASURES, OF_TWO
from clops_sweep.analysis.claims.verdicts import claims_of_paper
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.report.write import ReportPaths
from clops_sweep.cli.commands import command
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.config import SEMANTICS_VERSION
from clops_sweep.experiment.spaces.claims import OF_TABLES, Claim
from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_space
from clops_sweep.experiment.spaces.where import Where
from clops_sweep.store.run_store import RunStore


def rows_of(spaces: list[SearchSpace], data_hash: str = "x", day: int = 5) -> pd.DataFrame:
    """Every run of some spaces, finished: a table `runs` without numbers."""
    configs = {r.config.identity: r.config for space in spaces for r in space.requests()}
    common = {
        "status": "finished",
        "data_hash": data_hash,
        "semantics_version": SEMANTICS_VERSION,
        "started_at": pd.Timestamp(f"2026-01-{day:02}", tz="UTC"),
    }
    return pd.DataFrame([{"run_id": c.run_id(data_hash), **config_row(c), **common} for c in configs.values()])


@pytest.fixture(scope="module")
def paper() -> list[SearchSpace]:
    return load_spaces(shipped_space("paper_claims"))


@pytest.fixture(scope="module")
def of_paper(paper: list[SearchSpace], tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], ClaimRuns]:
    """The runs of each claim on each data set, by the claim's key and the data set."""
    runs = FinishedRuns(collect(paper, rows_of(paper)), RunStore(tmp_path_factory.mktemp("empty")))
    return {
        (it.claim.key, data): it for data, found in runs.about(claims_of_paper(), of_paper=True).items() for it in found
    }


@pytest.mark.parametrize("claim", claims_of_paper(), ids=lambda claim: claim.key)
def test_the_paper_s_search_spaces_hold_the_runs_of_every_claim(claim: Claim, of_paper: dict[Any, ClaimRuns]) -> None:
    dataset = {"class_il": "cardiology", "time_il": "chapman", "domain_il": "physionet2020"}[claim.scenario]
    found = of_paper[claim.key, dataset]
    assert found.departures == {}
    for contrast in found.contrasts:
        assert len(contrast.pairs) == 5, "five seeds, as the paper has them"
        assert {len(pairs) for pairs in contrast.pairs.values()} == {len(contrast.contrast.places)}


def test_a_claim_that_names_its_data_is_listed_for_no_other_data(tmp_path: Path) -> None:
    spaces = [
        SearchSpace(dataset, RunConfig(dataset=dataset), {"strategy": ["er", "finetune"]}, seeds=range(2))
        for dataset in ("synthetic", "mitbih")
    ]
    runs = FinishedRuns(collect(spaces, rows_of(spaces)), RunStore(tmp_path))

    def claim(key: str, **data: str) -> Claim:
        sides = (Side(strategy, {"strategy": strategy} | data) for strategy in ("er", "finetune"))
        return Claim(key, "ER is above fine-tuning", Contrast(*sides))

    claims = [claim("anywhere"), claim("here", dataset="mitbih"), claim("nowhere", dataset="chapman")]
    by_dataset = {data: [it.claim.key for it in about] for data, about in runs.about(claims).items()}
    assert by_dataset == {"mitbih": ["anywhere", "here", "nowhere"], "synthetic": ["anywhere", "nowhere"]}
    assert [it.claim.key for it in runs.about(claims)["mitbih"] if it.run_ids] == ["anywhere", "here"]


def test_claims_can_name_every_measure_that_is_computed_from_tables() -> None:
    assert {*MEASURES, *OF_TWO} == OF_TABLES


def test_the_condition_selects_the_runs_of_a_claim_and_no_other(
    paper: list[SearchSpace], of_paper: dict[Any, ClaimRuns]
) -> None:
    configs = {request.config for space in paper for request in space.requests()}
    for found in [it for it in of_paper.values() if it.run_ids][::4]:
        holds = Where(found.condition)
        selected = {config.run_id("x") for config in configs if holds(config)}
        assert set(found.run_ids) == selected, found.claim.key


def test_the_condition_leaves_out_runs_that_the_verdict_does_not_count(tmp_path: Path, generated: ModuleType) -> None:
    """A side that also has other seeds, splits and batch sizes counts with its paired runs alone."""
    both = SearchSpace("both", RunConfig(), {"strategy": ["er", "finetune"], "split_seed": [0, 1]}, seeds=range(2))
    more = SearchSpace("more", RunConfig(strategy="er"), {"split_seed": [0, 2]}, seeds=range(4))
    other = SearchSpace("other", RunConfig(strategy="er", batch_size=4), seeds=range(2))
    spaces = [both, more, other]
    store = RunStore(tmp_path / "results")
    configs = {request.config for space in spaces for request in space.requests()}
    failing = next(it for it in configs if (it.strategy, it.split_seed, it.seed) == ("finetune", 1, 1))
    generated.write_given_runs(store, [(it, {"auc": 0.5 + 0.1 * it.seed}) for it in configs if it != failing])
    sides = Side("ER", {"strategy": "er"}), Side("FT", {"strategy": "finetune"})
    claim = Claim("above", "ER is above fine-tuning", Contrast(*sides))
    runs = FinishedRuns(collect(spaces, store.read("runs")), store)
    ((found,),) = runs.about([claim]).values()
    assert len(found.run_ids) == 6
    columns = store.read("runs")
    holds = Where(found.condition, list(columns))
    selected = [row["run_id"] for row in columns.to_dict("records") if holds(row)]
    assert sorted(selected) == sorted(found.run_ids)
    listed = CliRunner().invoke(
        command, ["runs", "--results", str(tmp_path / "results"), "--where", found.condition, "--json"]
    )
    assert json.loads(listed.stdout)["matched"] == 6


@pytest.mark.parametrize("there", [True, False])
def test_the_condition_lists_values_in_their_order(there: bool, tmp_path: Path, generated: ModuleType) -> None:
    """Run ids, which order the rows of a store, are no order to read."""
    given = [10, 2, 7, 0, 1, 5]
    axes = {"strategy": ["er", "finetune"], "split_seed": given}
    space = SearchSpace("one", RunConfig(), axes, seeds=[0])
    more = SearchSpace("more", RunConfig(strategy="er"), {"split_seed": [3, 4]}, seeds=[0])
    store = RunStore(tmp_path)
    configs = [request.config for of_space in (space, more) for request in of_space.requests()]
    generated.write_given_runs(store, [(config, {"auc": 0.5}) for config in (configs if there else configs[:1])])
    places = ({},) if there else tuple({"split_seed": split_seed} for split_seed in given)
    contrast = Contrast(Side("ER", {"strategy": "er"}), Side("FT", {"strategy": "finetune"}), places=places)
    runs = FinishedRuns(collect([space, more], store.read("runs")), store)
    ((found,),) = runs.about([Claim("c", "c", contrast)]).values()
    assert bool(found.run_ids) == there
    assert "split_seed in [0, 1, 2, 5, 7, 10]" in found.condition


def test_the_condition_leaves_out_trials_on_fewer_tasks(tmp_path: Path, generated: ModuleType) -> None:
    """Reported runs do not set `first_tasks`, so their condition says what it is not."""
    sides = {"strategy": ["er", "finetune"]}
    space, tried = SearchSpace("one", RunConfig(), sides, [0]), SearchSpace("two", RunConfig(first_tasks=2), sides, [0])
    store = RunStore(tmp_path)
    configs = [request.config for of_space in (space, tried) for request in of_space.requests()]
    generated.write_given_runs(store, [(config, {"auc": 0.5}) for config in configs])
    contrast = Contrast(Side("ER", {"strategy": "er"}), Side("FT", {"strategy": "finetune"}))
    ((found,),) = FinishedRuns(collect([space], store.read("runs")), store).about([Claim("c", "c", contrast)]).values()
    assert "not first_tasks == 2" in found.condition
    runs = store.read("runs")
    holds = Where(found.condition, list(runs))
    assert {row["run_id"] for row in runs.to_dict("records") if holds(row)} == set(found.run_ids)
    assert len(found.run_ids) == 2


def test_runs_of_the_same_config_on_other_data_are_told_by_their_ids(tmp_path: Path, generated: ModuleType) -> None:
    space = SearchSpace("one", RunConfig(), {"strategy": ["er", "finetune"]}, seeds=range(2))
    store = RunStore(tmp_path)
    values = [(request.config, {"auc": 0.5}) for request in space.requests()]
    for data_hash in ("former", "newer"):
        generated.write_given_runs(store, values, data_hash)
    sides = Side("ER", {"strategy": "er"}), Side("FT", {"strategy": "finetune"})
    runs = FinishedRuns(collect([space], store.read("runs")), store)
    ((found,),) = runs.about([Claim("above", "ER is above fine-tuning", Contrast(*sides))]).values()
    assert found.condition == f"run_id in {json.dumps(sorted(found.run_ids))}"
    assert len(found.run_ids) == 4
    assert len(store.read("runs")) == 8


def test_pairs_of_several_spaces_are_of_one_preparation(tmp_path: Path, generated: ModuleType) -> None:
    """Each space shows one edition; a mean over both must not mix them, though no patient split has both."""
    axes = {"strategy": ["er", "finetune"]}
    first = SearchSpace("first", RunConfig(), {**axes, "split_seed": [0, 1]}, seeds=[0])
    second = SearchSpace("second", RunConfig(), {**axes, "split_seed": [2, 3, 4]}, seeds=[0])
    store = RunStore(tmp_path)
    for space, prepared, day in ((first, "newer", 1), (second, "former", 0)):
        for request in space.requests():
            values = {"prepared_hash": prepared, "started_at": generated.START + timedelta(days=day), "auc": 0.5}
            generated.write_given_runs(store, [(request.config, values)], f"{prepared}{request.config.split_seed}")
    sides = Side("ER", {"strategy": "er"}), Side("FT", {"strategy": "finetune"})
    runs = FinishedRuns(collect([first, second], store.read("runs")), store)
    ((found,),) = runs.about([Claim("above", "ER is above fine-tuning", Contrast(*sides))]).values()
    assert set(store.read("runs", list(found.run_ids))["split_seed"]) == {0, 1}
    assert found.contrasts[0].left_out.startswith("3 pairs of split and seed left out: runs of other prepared data")


# --- in the report ----------------------------------------------------------------------------------------------------


def test_the_report_ends_with_the_claims_that_have_runs(report: ReportPaths, store: RunStore) -> None:
    page = report.index.read_text()
    assert page.index('<section id="claims">') > page.index('<section id="grid">')
    assert "Storing at random costs average AUC" in page
    assert re.search(r'<a href="#grid-heatmap-auc">Figure \d+ with these runs.</a>', page)
    assert '<figure id="grid-heatmap-auc"' in page
    csv = pd.read_csv(report.index.parent / "tables" / "claims.csv").set_index("claim")
    cells = ["storage_order", "storage_fraction", "acquisition_fraction", "seed"]
    auc = store.read("runs").query("status == 'finished' and strategy == 'clops'").set_index(cells)["auc"]
    difference = (auc["top"] - auc["random"]).dropna().drop(index=2, level="seed")  # it lacks a place that others have
    assert len(difference) == 8
    assert csv.loc["storage_costs", "difference"] == pytest.approx(difference.mean())
    assert csv.loc["storage_costs", "n"] == 2
    missing = "compared at 4 of 16 places; 1 of 3 pairs of split and seed left out: it lacks runs that others have"
    assert csv.loc["storage_costs", "missing"] == f"2 seeds where 3 are needed; {missing}"
    assert csv.loc["class_il_clops_above_mir", "missing"].tolist() == ["no finished run of CLOPS and MIR"] * 2


def test_a_comparison_is_on_one_edition_of_the_data_if_spaces_show_several(tmp_path: Path) -> None:
    axes = {"strategy": ["er", "finetune"]}
    former, newer = (SearchSpace(name, RunConfig(), axes, seeds) for name, seeds in (("one", [0]), ("two", [1, 2])))
    rows = pd.concat([rows_of([former], "x", 5), rows_of([newer], "y", 6)], ignore_index=True)
    contrast = Contrast(Side("ER", {"strategy": "er"}), Side("FT", {"strategy": "finetune"}))
    claim = Claim("above", "ER is above fine-tuning", contrast)

    def compared(*spaces: SearchSpace) -> tuple[set[int], str]:
        runs = FinishedRuns(collect(spaces, rows), RunStore(tmp_path))
        ((found,),) = runs.about([claim]).values()
        (of_contrast,) = found.contrasts
        return {seed for _, seed in of_contrast.pairs}, of_contrast.left_out

    assert compared(former) == ({0}, "")
    assert compared(newer) == ({1, 2}, "")
    sentence = "1 pair of split and seed left out: runs of other prepared data or another semantics version"
    assert compared(former, newer) == compared(newer, former) == ({1, 2}, sentence)
