"""Claims about the methods of a tuned space, from a launch of a user's file: methods are compared as tuned."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

import clops_sweep
from clops_sweep.analysis.claims.claim_runs import FinishedRuns
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.drawing.pictures import Sketch
from clops_sweep.cli.commands import command
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State
from clops_sweep.store.run_store import RunStore
from tests.data.declared_files import forget
from tests.helpers.unpainted import unpainted

HEAD = """
import numpy as np
from clops_sweep import Claim, Contrast, OptunaSearch, Recordings, RunConfig, SearchSpace, Side, TuneOn, dataset
from tests.data.declared_files import waves

N = 96


@dataset("ward", scenarios=("class_il",))
def ward(data_root):
    return Recordings(
        waves(N, 1, 100), 50, ("II",), "mV", np.arange(N) % 4, ("rest", "walk", "run", "stairs"), np.arange(N) // 4
    )


BASE = RunConfig(dataset="ward", network="linear", epochs_per_task=2)
ER, FINETUNE = Side("ER", {"strategy": "er"}), Side("fine-tuning", {"strategy": "finetune"})
CLAIMS = [Claim("er_is_better", "ER is above fine-tuning", Contrast(ER, FINETUNE, "test_auc"), matters=0.3)]
"""
TUNED = """
METHODS = {"er": {"learning_rate": [1e-4, 1e-2], "replay_ratio": [0.5, 1]}, "finetune": {"learning_rate": [3e-3, 5e-3]}}
SPACE = SearchSpace(
    "fair",
    BASE,
    {"split_seed": range(4)},
    search=OptunaSearch(sampler="grid", methods=METHODS, tune_on=TuneOn(tasks=1)),
    seeds=2,
)
"""

GRID = """
METHODS = {"ER": {"strategy": "er", "learning_rate": 0.01}, "f": {"strategy": "finetune", "learning_rate": 0.003}}
SPACE = SearchSpace("fair", BASE, {"method": METHODS, "split_seed": range(4)}, seeds=2)
"""


@pytest.fixture(scope="module", autouse=True)
def _without_figures() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sketch, "drawn", unpainted)
        yield


def said(folder: Path, name: str, file: str, *options: str) -> str:
    """Return what a command prints."""
    words = [name, folder / file, "--results", folder / "results", "--prepared-root", folder / "prepared", *options]
    done = CliRunner().invoke(command, [*map(str, words)], standalone_mode=False)
    assert done.exception is None, done.output
    return str(done.stdout)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the file of a tuned space whose methods chose other learning rates, and its results."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "fair.py").write_text(HEAD + TUNED)
    said(folder, "claims", "fair.py", "--seal")
    said(folder, "launch", "fair.py", "--no-ray", "--no-report")
    yield folder
    forget()


@pytest.fixture(scope="module")
def reported(study: Path) -> pd.DataFrame:
    runs = RunStore(study / "results").read("runs")
    return runs[runs["first_tasks"].isna()]


def claim_of(study: Path, file: str) -> dict[str, Any]:
    (claim,) = json.loads(said(study, "claims", file, "--json"))["claims"]
    return dict(claim)


@pytest.mark.usefixtures("unpainted")
def test_methods_with_other_choices_are_compared_and_their_choices_named(study: Path, reported: pd.DataFrame) -> None:
    rates = reported.groupby("strategy")["learning_rate"].unique().map(list)
    assert [len(rates["er"]), len(rates["finetune"])] == [1, 1]
    assert rates["er"] != rates["finetune"]
    as_tuned = f"learning_rate {rates['er'][0]:g} of ER, {rates['finetune'][0]:g} of fine-tuning"
    (ratio,) = reported["replay_ratio"].dropna().unique()
    as_tuned += f"; replay_ratio {ratio:g} of ER"  # fine-tuning has none
    by_split = reported.pivot_table(index="split_seed", columns="strategy", values="test_auc")
    claim = claim_of(study, "fair.py")
    assert claim["difference"] == pytest.approx((by_split["er"] - by_split["finetune"]).mean())
    assert (claim["n"], claim["missing"], claim["as_tuned"]) == (4, "", as_tuned)
    assert claim["low"] is not None or claim["high"] is not None

    where = {"prepared_root": study / "prepared"}
    with pytest.warns(UserWarning, match="epochs_per_task") as warned:
        table = clops_sweep.claims(study / "fair.py", study / "results", **where)
    in_doubt = json.loads(said(study, "claims", "fair.py", "--json"))["in_doubt"]
    assert in_doubt
    assert [str(warning.message) for warning in warned] == in_doubt
    assert re.fullmatch(r"sealed on [\d-]+ at [\d:]+ UTC, before the first run", table.attrs["seal"])
    row = table.iloc[0]
    assert [row[name] for name in ("verdict", "difference", "n", "as_tuned")] == [
        *(claim["verdict"], claim["difference"], 4, as_tuned)
    ]
    terminal = " ".join(said(study, "claims", "fair.py").split())
    assert f"4 splits ER is above fine-tuning (as tuned: {as_tuned})" in terminal
    assert f" {claim['verdict']} {claim['difference']:+.3f}" in terminal
    index = Path(said(study, "report", "fair.py").splitlines()[-1].removeprefix("report: "))
    page = index.read_text()
    lead = page.partition('<div class="lead">')[2].partition("</div>")[0]
    assert f"ER is above fine-tuning: {claim['verdict']} (test AUC " in lead
    assert ", n = 4 splits; " in lead
    assert f"; as tuned: {as_tuned})." in lead
    assert f"Compared as tuned: ER is above fine-tuning: {as_tuned}." in page
    assert "Methods are compared as tuned: learning_rate " in page
    assert "also differ in training" not in page


@pytest.mark.parametrize(
    ("space", "why"),
    [
        (TUNED.replace('"er": {', '"er": {"epochs_per_task": 3, '), "ER has epochs_per_task 3, fine-tuning 2"),
        (GRID, "ER has learning_rate 0.01, fine-tuning 0.003"),
    ],
)
def test_fields_that_no_search_chose_hinder_a_comparison(study: Path, space: str, why: str) -> None:
    """Settings that a method fixes, and variants of a grid with the same values, are no choices of tuning."""
    (study / "other.py").write_text(HEAD + space.replace('"fair"', '"other"'))
    said(study, "launch", "other.py", "--no-ray", "--no-report")
    claim = claim_of(study, "other.py")
    assert (claim["verdict"], claim["n"], claim["as_tuned"]) == ("undecided", 0, "")
    assert claim["missing"] == f"the runs of the two sides differ in fields that neither names: {why}"


def test_claims_of_the_paper_are_about_equal_settings(study: Path) -> None:
    store = RunStore(study / "results")
    request = Request(Selection.of(study / "fair.py"), PreparedData.found(study / "prepared"), store)
    state = State.of(request)
    grids = [space for space in state.spaces if space.search is None]
    finished = FinishedRuns(collect(grids, store.read("runs")), store)
    claims = request.selection.claims
    counts = []
    for of_paper in (False, True):
        (claim_runs,) = finished.about(claims, of_paper=of_paper)["ward"]
        counts.append(len(claim_runs.run_ids))
    assert counts == [16, 0]
