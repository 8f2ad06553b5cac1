"""Reports and dashboards of a study that tunes on its first task, from a launch of a user's file."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure
from matplotlib.text import Text

from clops_sweep import analysis
from clops_sweep import write_report as written_from_python
from clops_sweep.analysis.dashboard.methods import methods_by_experiment
from clops_sweep.analysis.dashboard.overview import Progress, progress
from clops_sweep.analysis.dashboard.snapshot import FollowedStore
from clops_sweep.analysis.dashboard.source import StoreSource
from clops_sweep.analysis.drawing.pictures import Sketch
from clops_sweep.analysis.report.write import write_report
from clops_sweep.analysis.search_trials import tuning_experiments
from clops_sweep.analysis.tables.tuning import budgets_in_words
from clops_sweep.cli.commands import command
from clops_sweep.cli.report import commands_for
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.experiment.spaces.space_files import load_spaces
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State
from clops_sweep.store.run_store import RunStore
from tests.data.declared_files import forget
from tests.helpers.at_night import mostly_at_night
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


METHODS = {"er": {"learning_rate": [1e-4, 1e-3, 1e-2]}, "finetune": {"learning_rate": [1e-4, 1e-2]}}
SPACE = SearchSpace(
    "first ward",
    RunConfig(dataset="ward", network="linear", epochs_per_task=2),
    search=OptunaSearch(sampler="grid", methods=METHODS, tune_on=TuneOn(tasks=1)),
    seeds=2,
)
"""

FEW_SEEDS = """
from clops_sweep import OptunaSearch, RunConfig, SearchSpace, TuneOn

METHODS = {"er": {"learning_rate": [1e-4, 1e-2]}}
SEARCH = OptunaSearch(sampler="grid", methods=METHODS, tune_on=TUNE_ON)
SPACE = SearchSpace("few", RunConfig(), {"split_seed": [0, 1]}, search=SEARCH, seeds=[0])
"""


@pytest.fixture(scope="module", autouse=True)
def _without_figures() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sketch, "drawn", unpainted)
        yield


def said(*words: object) -> str:
    done = CliRunner().invoke(command, [*map(str, words)], standalone_mode=False)
    assert done.exit_code == 0, done.output
    assert done.exception is None
    return str(done.output)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the file of the study, its store and its report."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.py").write_text(STUDY)
    prepared = ("--prepared-root", folder / "prepared")
    said("launch", folder / "study.py", "--no-ray", "--no-report", "--results", folder / "results", *prepared)
    yield folder
    forget()


def best(report: Path) -> list[dict[str, str]]:
    (path,) = (report / "tables").glob("best*.csv")
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.mark.parametrize("known", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_a_report_ranks_reported_runs_alone(study: Path, tmp_path: Path, known: bool) -> None:
    file = [study / "study.py"] if known else ["--plugins", study / "study.py"]
    said("report", *file, "--results", study / "results", "--output", tmp_path, "--prepared-root", study / "prepared")
    rows = best(tmp_path)
    assert {row["search_space"] for row in rows} == {"first ward"}
    runs = RunStore(study / "results").read("runs")
    reported = runs[runs["first_tasks"].isna()].groupby("strategy")["test_auc"].mean()
    means = {row["configuration"]: float(row["mean"]) for row in rows if row["metric"] == "test_auc"}
    assert means == pytest.approx(reported.to_dict()), "scores of test people, which tuning has not used"
    page = (tmp_path / "index.html").read_text()
    lead = page.partition('<div class="lead">')[2].partition("</div>")[0]
    assert re.match(r"\s*<p>(Best|Tied for the best): .*, test AUC [01].", lead)
    assert ("Tuning chose the configurations by Average AUC on validation people (TuneOn(tasks=1))" in lead) == known
    if known:
        assert "(tuned)</td>" in page, "the learning rate"
        assert "<h1>first ward</h1>" in page
        assert "<h2>Runs of first ward" in page
        assert "<h2>Tuning of er</h2>" in page
        assert "4 of 4 reported runs are finished, and" in lead
        assert re.search(r"\d+ of \d+ tuning runs are finished\.", lead)
        assert page.index('<figure id="setup"') < page.index('id="first-ward"') < page.index('<section id="tuning"')
        assert page.index('<section id="tuning"') < page.index("<h2>Tuning of er</h2>")
    assert ("over patient splits, each the mean over its seeds" in page) == known  # the table of tuning
    assert ("reported runs</th>" in re.sub("<(?!/th).*?>", "", page)) == known
    for title in (
        ("Optimisation history by method", "The best trials of first ward_selection_er", "Slices by method")
        if known
        else ()
    ):
        _, caption = re.split(rf"<strong>(?:\w+ \d+: )?{title}\.</strong>", page, maxsplit=1)
        assert "Metrics of the validation set." in caption[:600], title
    assert page.count("Tuning trials: they choose a configuration and are no results.") == 2
    assert page.index('<section id="first-ward"') < page.index('<section id="first-ward_selection_er"')


def test_the_table_of_methods_has_the_chosen_values_and_one_name_for_each(study: Path, tmp_path: Path) -> None:
    """The values stood in the table of tuning alone, and finetune was fine-tuning in headings and sentences."""
    given = (study / "study.py", "--results", study / "results", "--prepared-root", study / "prepared")
    said("report", *given, "--output", tmp_path)
    header, _, *rows = (tmp_path / "tables" / "best.md").read_text().splitlines()[2:6]
    headings = [cell.strip() for cell in header.strip("|").split("|")]
    assert headings[:3] == ["configuration", "learning rate", "n"]
    assert "minus finetune" in headings
    runs = RunStore(study / "results").read("runs")
    rates = runs[runs["first_tasks"].isna()].groupby("strategy")["learning_rate"].first()
    for row in rows:
        name, rate, *_ = (cell.strip() for cell in row.strip("|").split("|"))
        assert rate == f"{rates[name]:.3g}"
    assert {row["configuration"]: float(row["learning_rate"]) for row in best(tmp_path)} == rates.to_dict()
    page = (tmp_path / "index.html").read_text()
    lead = page.partition('<div class="lead">')[2].partition("</div>")[0]
    assert "finetune" in lead
    assert set(re.findall(r"minus ([a-z-]+)", page.lower())) == {"finetune"}


def test_figures_of_tuning_are_in_a_folder_of_their_own(study: Path, tmp_path: Path) -> None:
    given = (study / "study.py", "--results", study / "results", "--prepared-root", study / "prepared")
    said("report", *given, "--output", tmp_path)
    figures = tmp_path / "figures"
    of_tuning = {path.stem for path in (figures / "tuning").iterdir()}
    assert {"tuning-first-ward-history", "tuning-first-ward-slices"} <= of_tuning
    assert not [name for name in of_tuning if re.search("_selection_.*-(history|slices)", name)], "drawn together"
    assert not [path for path in figures.glob("*.*") if "selection" in path.name or path.name.startswith("tuning")]
    page = (tmp_path / "index.html").read_text()
    links = re.findall(r'href="(figures/[^"]+)"', page)
    assert links
    assert all((tmp_path / link).is_file() for link in links)
    earlier = figures / "first-ward_selection_er-history.png"
    earlier.write_bytes(b"")
    (figures / "mine.png").write_bytes(b"")
    said("report", *given, "--output", tmp_path)
    assert not earlier.exists(), "of an earlier version"
    assert (figures / "mine.png").exists()


def test_a_report_of_tuning_alone_names_no_best(study: Path, tmp_path: Path) -> None:
    store = RunStore(study / "results")
    spaces = [experiment for experiment, _ in tuning_experiments(store, store.read("runs"))]
    page = write_report([], store, tmp_path, experiments=spaces).index.read_text()
    assert "No result yet: the reported runs wait for the choices of the tuning." in page
    assert not list((tmp_path / "tables").glob("best*"))


@pytest.mark.parametrize("known", [True, False])
def test_the_overview_of_a_dashboard_has_no_best_tuning_trial(study: Path, known: bool) -> None:
    store = RunStore(study / "results")
    request = Request(Selection.of(study / "study.py"), PreparedData.found(study / "prepared"), store)
    resolved = State.of(request).resolved
    spaces = resolved.selection.spaces if known else ()
    snapshot = FollowedStore(store, StoreSource(store, lambda key: None, lambda store: spaces), 0).snapshot
    found: list[Progress] = progress(snapshot)
    tuning = [it.name for it in found if it.is_tuning]
    assert sorted(tuning) == ["first ward_selection_er", "first ward_selection_finetune"]
    reported = {it.name for it in found if not it.is_tuning}
    methods = methods_by_experiment(snapshot)
    assert methods.keys() == reported
    best = [row for tables in methods.values() for table in tables for row in table.rows if row.is_best]
    assert {row.experiment for row in best} <= reported
    assert sum(it.finished for it in found if not it.is_tuning) == 4


def test_report_terminal_and_folder_have_the_name_of_the_space(study: Path) -> None:
    output = said("report", study / "study.py", "--results", study / "results", "--prepared-root", study / "prepared")
    index = study / "results" / "report" / "first-ward" / "index.html"
    assert f"report: {index.resolve()}" in output
    page = index.read_text()
    assert "<h1>first ward</h1>" in page
    assert "<title>first ward</title>" in page
    assert "tuning of 'first ward'" in said(
        *("status", study / "study.py", "--results", study / "results", "--prepared-root", study / "prepared")
    )


def test_runs_lists_the_reported_runs_and_tuning_runs_apart(study: Path) -> None:
    def listed(*words: str) -> list[str]:
        found = json.loads(said("runs", "--results", study / "results", "--limit", 1000, "--json", *words))
        return [run["run_id"] for run in found["runs"]]

    runs = RunStore(study / "results").read("runs")
    assert set(listed()) == set(runs.loc[runs["first_tasks"].isna(), "run_id"])
    assert set(listed("--tuning")) == set(runs.loc[runs["first_tasks"] == 1, "run_id"])
    assert "--tuning lists them" in said("runs", "--results", study / "results")


def test_the_reported_score_needs_no_prepared_data(study: Path, tmp_path: Path) -> None:
    given = ("status", study / "study.py", "--results", study / "results", "--json", "--prepared-root")
    there, elsewhere = (json.loads(said(*given, root))["tuned"] for root in (study / "prepared", tmp_path))
    assert [row["n"] for row in there] == [2, 2]
    for row, other in zip(there, elsewhere, strict=True):
        assert [row[name] for name in ("n", "reported", "optimism")] == [
            other[name] for name in ("n", "reported", "optimism")
        ]


OF_REPORTED = mostly_at_night(
    ["methods", "metrics", "learning_curves", "r_matrices", "forgetting", "cost_frontier"],
    ("methods", "learning_curves").__contains__,
)


def drawn(figure: Figure) -> set[str]:
    """Return all texts of a figure."""
    return {text.get_text() for text in figure.findobj(Text)}


@pytest.mark.parametrize("kind", OF_REPORTED)
def test_figures_of_a_tuned_space_show_its_reported_runs(study: Path, kind: str) -> None:
    plot = getattr(analysis, f"plot_{kind}")
    figure = plot(study / "study.py", study / "results")
    texts = " ".join(drawn(figure))
    assert "er" in texts
    assert "finetune" in texts
    named = plot(study / "study.py", study / "results", name="first ward")
    assert drawn(named) == drawn(figure)


@pytest.mark.parametrize(
    "plot", [analysis.plot_optimization_history, pytest.param(analysis.plot_slices, marks=pytest.mark.nightly)]
)
def test_figures_of_searches_name_those_of_a_tuned_space(study: Path, plot: Callable[..., Figure]) -> None:
    names = [f"first ward_selection_{method}" for method in ("er", "finetune")]
    for given in ({}, {"name": "first ward"}):
        with pytest.raises(UsageError, match=f"^name: expected one of {', '.join(names)}; a figure shows one$"):
            plot(study / "study.py", study / "results", **given)
    for name in names:
        figure = plot(study / "study.py", study / "results", name=name)
        of_method = plot(study / "study.py", study / "results", name=name.rpartition("_")[2])
        assert drawn(figure) == drawn(of_method), "a method is a name, too"
    known = ", ".join(("first ward", *names, "er", "finetune"))
    with pytest.raises(UsageError, match=f"^name = 'ewc': no such search space; there are {known}$"):
        plot(study / "study.py", study / "results", name="ewc")


def test_the_only_search_of_a_tuned_space_needs_no_name(study: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.py"
    one.write_text((study / "study.py").read_text().replace(', "finetune": {"learning_rate": [1e-4, 1e-2]}', ""))
    named = analysis.plot_slices(study / "study.py", study / "results", name="first ward_selection_er")
    assert drawn(analysis.plot_slices(one, study / "results")) == drawn(named)


@pytest.mark.parametrize("given", [{}, {"name": "first ward"}])
def test_a_tuned_space_without_a_choice_has_no_reported_runs(
    study: Path, tmp_path: Path, given: dict[str, str]
) -> None:
    RunStore(tmp_path).open_for_writing()
    with pytest.raises(UsageError, match=r"'first ward' has no reported runs, .*: first ward_selection_er, first"):
        analysis.plot_metrics(study / "study.py", tmp_path, **given)
    with pytest.raises(UsageError, match="'first ward_selection_er' has no trial of a search: expected"):
        analysis.plot_slices(study / "study.py", tmp_path, name="first ward_selection_er")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("tune_on", "offered"), [("TuneOn(tasks=1)", False), ("TuneOn(tasks=1, seeds=(0,))", True), ('"same"', False)]
)
def test_more_seeds_are_offered_only_where_tuning_keeps_its_own(
    tmp_path: Path, prepared_root: Path, tune_on: str, offered: bool
) -> None:
    """A study keeps its seeds: without `seeds` in TuneOn, the launch of five seeds was refused."""
    (tmp_path / "few.py").write_text(FEW_SEEDS.replace("TUNE_ON", tune_on))
    selection = Selection.of_files([tmp_path / "few.py"])
    request = Request(selection, PreparedData(prepared_root), RunStore(tmp_path / "results"))
    assert ("Compute 5 seeds" in dict(commands_for(request, []))) == offered


@pytest.mark.nightly
def test_a_report_from_python_has_the_title_of_the_command(study: Path, tmp_path: Path) -> None:
    """It was "first ward · first ward_selection_er · first ward_selection_finetune"."""
    prepared_root = study / "prepared"
    of_file = written_from_python(study / "study.py", study / "results", tmp_path / "file", prepared_root=prepared_root)
    (space,) = load_spaces(study / "study.py")
    of_space = written_from_python(space, study / "results", tmp_path / "space", prepared_root=prepared_root)
    for paths in (of_file, of_space):
        assert "<h1>first ward</h1>" in paths.index.read_text()


UNEQUAL = "Tuning was unequal: er, finetune were tuned on 3 and 2 configurations; more configurations favour a method"


def test_unequal_tuning_is_said_beside_the_methods_and_in_the_terminal(study: Path, tmp_path: Path) -> None:
    """Whoever reads that a method won should know that it had more tries."""
    given = (study / "study.py", "--results", study / "results", "--prepared-root", study / "prepared")
    assert UNEQUAL in said("status", *given)
    before = (study / "study.py", "--results", tmp_path / "none", "--prepared-root", study / "prepared")
    assert "tuning of 'first ward' is unequal, which favours methods with more trials: er 3, finetune 2;" in said(
        "plan", *before
    )
    said("report", *given, "--output", tmp_path)
    for table in ("best", "tuning-first-ward"):
        assert f"{UNEQUAL}." in (tmp_path / "tables" / f"{table}.md").read_text(), table
    page = (tmp_path / "index.html").read_text()
    assert page.count(UNEQUAL) == 2
    assert budgets_in_words({"er": 2, "ewc": 2}) == ""
    assert budgets_in_words({"": 2}) == ""


def test_a_checklist_has_the_reported_runs_the_choices_and_the_tuning_of_each_method(study: Path) -> None:
    """Items 5d to 5f: what the store knows is not left to the authors."""
    given = (study / "study.py", "--results", study / "results", "--prepared-root", study / "prepared")
    text = said("checklist", *given)
    runs = RunStore(study / "results").read("runs")
    rates = runs[runs["first_tasks"].isna()].groupby("strategy")["learning_rate"].first()
    choices = []
    for method, tried in {"er": 3, "finetune": 2}.items():
        choices.append(f"  - final choice for {method}: learning_rate {rates[method]:g}, of {tried} configurations")
    assert [line for line in text.splitlines() if line.startswith("  - ") and "final choice" in line] == choices
    assert "  - reported: all 4 finished runs of the chosen configurations\n" in text
    assert "  - not reported: 10 runs of trials, which only choose\n" in text
    assert "  - reported runs by method: er 2, finetune 2\n" in text
    assert "  - runs of trials by method: er 6, finetune 4\n" in text
    assert f"  - {UNEQUAL}\n" in text


def test_a_checklist_without_files_leaves_reported_runs_and_choices_to_the_authors(study: Path) -> None:
    given = ("--plugins", study / "study.py", "--prepared-root", study / "prepared")
    text = said("checklist", "--results", study / "results", *given)
    assert "  - runs by method: er 8, finetune 6\n" in text
    assert "**To be filled in**: which of the runs are reported, and why" in text
    assert "**To be filled in**: the final choice" in text
