"""A tuned space from its first trial to its report, and how often a command reads the store meanwhile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from clops_sweep.analysis.dashboard import server
from clops_sweep.analysis.drawing.pictures import Sketch
from clops_sweep.analysis.report.marks import DRAWN_FROM
from clops_sweep.cli.commands import command
from clops_sweep.cli.drawn_report import drawn_from, is_current
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State
from clops_sweep.search.records import STUDIES
from clops_sweep.store.files import Files
from clops_sweep.store.run_store import RunStore
from tests.data.declared_files import forget
from tests.helpers.unpainted import unpainted

STUDY = """
import numpy as np
from clops_sweep import OptunaSearch, Recordings, RunConfig, SearchSpace, TuneOn, dataset
from tests.data.declared_files import waves

N = 96


@dataset("ward", scenarios=("class_il",))
def ward(data_root):
    return Recordings(
        waves(N, 1, 100), 50, ("II",), "mV", np.arange(N) % 4, ("rest", "walk", "run", "stairs"), np.arange(N) // 4
    )


METHODS = {"er": {"learning_rate": [1e-4, 1e-2]}, "finetune": {"learning_rate": [1e-4, 1e-2]}}
BASE = RunConfig(dataset="ward", network="linear", epochs_per_task=1)
SEARCH = OptunaSearch(sampler="grid", methods=METHODS, tune_on=TuneOn(tasks=1))
SPACE = [
    SearchSpace("grid", BASE, {"strategy": ["ewc", "finetune"]}, seeds=1),
    SearchSpace("tuned", BASE, search=SEARCH, seeds=2),
]
"""
TRIALS, REPORTED = 2 * 2 * 2, 2 * 2
"""Runs of the trials, and of the chosen configurations."""


@pytest.fixture(scope="module", autouse=True)
def _without_figures() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sketch, "drawn", unpainted)
        yield


@dataclass(frozen=True)
class Sweep:
    """A folder with the file of a study and its results."""

    folder: Path

    def says(self, name: str, *options: object) -> str:
        """What a command prints."""
        places = ("--results", self.folder / "results", "--prepared-root", self.folder / "prepared")
        words = [name, self.folder / "study.py", *places, *options]
        done = CliRunner().invoke(command, [*map(str, words)], standalone_mode=False)
        assert done.exception is None, done.output
        return str(done.output)

    def launches(self, *options: object) -> str:
        """What a launch prints."""
        return self.says("launch", "--no-ray", *options)

    @property
    def runs(self) -> pd.DataFrame:
        """The rows of its runs."""
        return RunStore(self.folder / "results").read("runs").set_index("run_id")


@pytest.fixture
def sweep(tmp_path: Path) -> Iterator[Sweep]:
    """A study that was never launched."""
    (tmp_path / "study.py").write_text(STUDY)
    yield Sweep(tmp_path)
    forget()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sweep]:
    """A study whose sweep is finished, with a report."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "study.py").write_text(STUDY)
    swept = Sweep(folder)
    swept.launches()
    yield swept
    forget()


def test_a_launch_computes_what_its_trials_choose(finished: Sweep) -> None:
    runs = finished.runs
    of_tuning = runs[runs["first_tasks"] == 1]
    reported = runs[runs["first_tasks"].isna() & (runs["strategy"] != "ewc")]
    assert len(of_tuning) == TRIALS
    for strategy, rows in of_tuning.groupby("strategy"):
        best = rows.groupby("learning_rate")["auc"].mean().idxmax()
        chosen = reported[(reported["strategy"] == strategy) & (reported["learning_rate"] == best)]
        assert len(chosen) == 2
    assert "0 pending" in finished.says("status").splitlines()[0]


def test_a_launch_with_nothing_to_do_draws_no_report_again(finished: Sweep) -> None:
    page = finished.folder / "results" / "report" / "study" / "index.html"
    files = [page, *(page.parent / "figures").iterdir(), *(page.parent / "tables").iterdir()]
    before = [path.stat().st_mtime_ns for path in files]
    assert f"report: {page}" in finished.launches()
    assert [path.stat().st_mtime_ns for path in files] == before
    page.unlink()
    finished.launches()
    assert page.is_file()  # a deleted page is drawn again


def trials_by_method(output: str) -> dict[str, int]:
    """Return the number of trials of each method from the table of the tuning at the end of a launch."""
    _, *rows = output.partition("\nmethod ")[2].splitlines()
    pattern = re.compile(r"(\w+) .*?  +(\d+) ")
    found = [pattern.match(row) for row in rows[:2]]
    return {row[1]: int(row[2]) for row in found if row is not None}


@pytest.mark.nightly
def test_another_launch_continues_a_search_and_reports_what_it_chooses(sweep: Sweep) -> None:
    first = sweep.launches("--limit", 1, "--no-report")
    before = sweep.runs
    assert (before["first_tasks"] == 1).sum() == TRIALS / 2
    assert trials_by_method(first) == {"er": 1, "finetune": 1}
    again = sweep.launches("--no-report")
    runs = sweep.runs
    assert runs.loc[before.index, "started_at"].equals(before["started_at"])  # nothing is computed twice
    of_tuning = runs[runs["first_tasks"] == 1]
    assert len(of_tuning) == TRIALS
    assert trials_by_method(again) == {"er": 2, "finetune": 2}
    for strategy, rows in of_tuning.groupby("strategy"):
        best = rows.groupby("learning_rate")["auc"].mean().idxmax()
        reported = runs[runs["first_tasks"].isna() & (runs["strategy"] == strategy)]
        assert best in set(reported["learning_rate"])


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the table `runs` is listed, and the journal of the studies read."""
    counted: Counter[str] = Counter()
    names, read = Files.names, Files.read

    def counted_names(files: Files, folder: str, *more: Any) -> list[str]:
        counted["listings"] += folder == f"{files.root}/runs"
        return names(files, folder, *more)

    def counted_read(files: Files, path: str) -> Any:
        counted["journals"] += path == f"{files.root}/{STUDIES}"
        return read(files, path)

    monkeypatch.setattr(Files, "names", counted_names)
    monkeypatch.setattr(Files, "read", counted_read)
    return counted


@pytest.mark.parametrize(
    ("name", "listings", "journals"),
    [("status", 3, 1), ("plan", 3, 1), ("launch", 4, 1), ("report", 3, 1), ("checklist", 3, 1)],
)
def test_a_command_reads_a_finished_store_once(
    finished: Sweep, reads: Counter[str], name: str, listings: int, journals: int
) -> None:
    """A folder is listed until two listings are equal, and once before for the format; a launch looks for damage."""
    finished.says(name, *(["--no-ray"] if name == "launch" else []))
    assert reads["listings"] <= listings
    assert reads["journals"] <= journals


@pytest.mark.nightly
def test_a_sweep_of_seven_rounds_reads_at_most_so_often(sweep: Sweep, reads: Counter[str]) -> None:
    sweep.launches("--no-report")
    # Each flush lists the folder, too, and once more before it removes the files of replaced parts.
    assert reads["listings"] <= 68
    assert reads["journals"] <= 7  # 2 of them open a study for writing


@pytest.mark.nightly
def test_a_dashboard_that_opens_reads_at_most_so_often(
    finished: Sweep, reads: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.Server, "serve", lambda self: self.close())
    finished.says("dashboard", "--port", 0)
    assert reads["listings"] <= 5
    assert reads["journals"] <= 1


def test_what_a_report_is_drawn_from(finished: Sweep) -> None:
    file = finished.folder / "study.py"

    def digest(**options: Any) -> str:
        store = RunStore(finished.folder / "results")
        request = Request(Selection.of(file, **options), PreparedData.found(finished.folder / "prepared"), store)
        return drawn_from(State.of(request))

    first = digest()
    assert digest() == first
    assert digest(seeds=2) != first
    file.write_text(f"{STUDY}\n# a comment")
    assert digest() != first
    file.write_text(STUDY)
    journal = finished.folder / "results" / STUDIES
    content = journal.read_bytes()
    journal.write_bytes(content + content.splitlines(keepends=True)[-1])
    assert digest() != first
    journal.write_bytes(content)
    assert digest() == first
    folder = finished.folder / "results" / "report" / "study"
    assert is_current(folder, first) == is_current(folder, digest())
    (folder / DRAWN_FROM).unlink(missing_ok=True)
    assert not is_current(folder, first)
