"""The pages of the dashboard: what they say, where their links lead, and that nothing in a store is markup or code."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from colorsys import rgb_to_hsv
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl

import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from clops_sweep import RunConfig, SearchSpace, folds
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.dashboard.app import PAGES, Dashboard
from clops_sweep.analysis.dashboard.server import make_server
from clops_sweep.analysis.dashboard.snapshot import FollowedStore
from clops_sweep.analysis.dashboard.source import StoreSource
from clops_sweep.analysis.dashboard.update_reports import reports_of
from clops_sweep.analysis.formats import DASH, p_text, with_interval
from clops_sweep.analysis.leading import with_leading_scores
from clops_sweep.analysis.page_head import CRITERIA, PARTS
from clops_sweep.analysis.report.page import as_command
from clops_sweep.analysis.report.planned import Found
from clops_sweep.analysis.report.write import write_report
from clops_sweep.analysis.tables.best import best_configurations, best_text, corrected_with
from clops_sweep.experiment.events import Progress
from clops_sweep.search.records import StudyRecord, TrialRecord
from clops_sweep.store.launches import LaunchFile, UnderWay, request_id
from clops_sweep.store.run_logs import EpochScores, ScoresFile
from clops_sweep.store.run_store import RunStore
from tests.helpers.stores import record_failure, write_finished

HOSTILE = '<script>alert(1)</script><img src=x onerror=alert(2)>{{ 7 * 7 }}<a href="javascript:alert(3)">x</a>%{x}$x$'
ERROR = f"Traceback (most recent call last):\nValueError: \x1b[2J{HOSTILE}\n"
TASKS = ("<b>0-1</b>", "2-3\x1b[2J", "%{y}", "6-7")
RESULTS = "Experiments"
LEFT_ASIDE = "are of another edition of the data and left aside"
CLOPS = {"experiment": "synthetic class_il clops"}


def source_of(store: RunStore) -> StoreSource:
    return StoreSource(store, lambda key: None)


def dashboard_of(store: RunStore) -> Dashboard:
    return Dashboard(FollowedStore(store, source_of(store), 0))


@pytest.fixture(scope="module")
def dashboard(store: RunStore) -> Iterator[Dashboard]:
    dashboard = dashboard_of(store)
    yield dashboard
    dashboard.close()


class Element:
    """An element of a page, as a browser reads it."""

    def __init__(self, kind: str, attributes: dict[str, str]) -> None:
        self.kind, self.attributes = kind, attributes
        self.children: list[Element | str] = []

    def __iter__(self) -> Iterator[Element]:
        yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child

    @property
    def text(self) -> str:
        return "".join(it if isinstance(it, str) else it.text for it in self.children)

    def find(self, kind: str, **attributes: str) -> list[Element]:
        """The elements of a kind whose attributes have these values; `class_` is `class`, `aria_label` `aria-label`."""
        wanted = {name.strip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [it for it in self if it.kind == kind and wanted.items() <= it.attributes.items()]


class Reader(HTMLParser):
    """Elements of what it is fed; those that are not closed in their place are refused."""

    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("page", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(made)
        if tag not in ("meta", "link", "input", "img", "wbr", "br"):
            self.open.append(made)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().kind == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read(html: str) -> Element:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert [it.kind for it in reader.open] == ["page"]
    return reader.open[0]


def read_page(dashboard: Dashboard, path: str = "", given: Mapping[str, str] | None = None) -> Element:
    return read(dashboard.page(path, given or {}))


def followed_link(link: Element) -> tuple[str, dict[str, str]]:
    """The page and the parameters of a link."""
    path, _, query = link.attributes["href"].removeprefix("/").partition("?")
    return path, dict(parse_qsl(query))


def notices(page: Element) -> list[Element]:
    """The notices of a page; those of a section of the report are its own."""
    (content,) = page.find("main")
    there = [it for it in content.children if isinstance(it, Element)]
    return [it for it in there if it.kind == "p" and it.attributes.get("class") == "notice"]


def charts_of(page: Element) -> list[dict[str, Any]]:
    """The charts of a page, as Plotly takes them."""
    figures = [it.attributes["data-figure"] for it in page if "data-figure" in it.attributes]
    return [json.loads(figure) for figure in figures]


def words_of(element: Element) -> str:
    """Its text, with a space between elements."""
    return " ".join(" ".join(it if isinstance(it, str) else words_of(it) for it in element.children).split())


def cells_of(page: Element, table: str) -> list[list[str]]:
    """The texts of a table, its head first."""
    (found,) = page.find("table", aria_label=table)
    return [[words_of(cell) for cell in row.children if isinstance(cell, Element)] for row in found.find("tr")]


def test_a_finished_run_has_its_stored_curves(dashboard: Dashboard, store: RunStore) -> None:
    rows = store.read("curves")
    run = rows["run_id"].iloc[0]
    (chart,) = charts_of(read_page(dashboard, "run", {"id": run}))
    lines = chart["data"]
    of_run = rows[rows["run_id"] == run]
    for line in lines:
        assert line["y"] == of_run.loc[of_run["task"] == line["name"], "auc"].tolist()
    assert len(lines) == of_run["task"].nunique()


def test_curves_of_runs_have_the_colours_of_their_points(dashboard: Dashboard) -> None:
    """A run of the second method was drawn in the colour of the first one, because it was the best run."""
    given = {"experiment": "synthetic class_il clops", "view": "points", "colour": "storage_fraction"}
    points, curves = charts_of(read_page(dashboard, "compare", given))
    colours = {}
    for trace in points["data"]:
        colours |= dict.fromkeys(trace["customdata"], trace["marker"]["color"])
    lines = {trace["customdata"][0]: trace["line"] for trace in curves["data"]}
    assert len({(line["color"], line["dash"]) for line in lines.values()}) == len(lines) == 8
    for run, line in lines.items():
        hue, hue_of_point = (rgb_to_hsv(*to_rgb(it))[0] for it in (line["color"], colours[run]))
        assert hue == pytest.approx(hue_of_point, abs=0.02)
    assert colours.keys() >= lines.keys()
    first_of_hue = {colours[run]: line["color"] for run, line in reversed(lines.items())}
    assert all(shade == drawn for shade, drawn in first_of_hue.items()), "the best run of each has it unchanged"


def test_a_run_has_its_measures_by_split(dashboard: Dashboard, store: RunStore) -> None:
    row = store.read("runs").set_index("run_id", drop=False).query("status == 'finished'").iloc[0]
    page = read_page(dashboard, "run", {"id": row["run_id"]})
    assert cells_of(page, "Headline measures") == [
        ["measure", "validation", "test"],
        ["Average AUC", f"{row['auc']:.3f}", f"{row['test_auc']:.3f}"],
        ["BWT", f"{row['bwt']:.3f}", f"{row['test_bwt']:.3f}"],
        ["BWT_t", f"{row['bwt_t']:.3f}", f"{row['test_bwt_t']:.3f}"],
        ["BWT_lambda", f"{row['bwt_lambda']:.3f}", f"{row['test_bwt_lambda']:.3f}"],
    ]


def test_a_run_has_its_scores_by_task_and_its_r_matrix(dashboard: Dashboard, store: RunStore) -> None:
    rows = store.read("r_matrix")
    run = rows["run_id"].iloc[0]
    page = read_page(dashboard, "run", {"id": run})
    for split in ("test", "validation"):
        matrix = rows[(rows["run_id"] == run) & (rows["split"] == split)].pivot_table(
            "auc", "trained_on", "evaluated_on"
        )
        header, *lines = cells_of(page, f"R matrix, {split}")
        assert header == ["R: trained up to", "0-1", "2-3", "4-5", "6-7"]
        for line, expected in zip(lines, matrix.to_numpy(), strict=True):
            assert line[1:] == [f"{value:.3f}" for value in expected]
        _, *by_task = cells_of(page, f"AUC by task, {split}")
        first, last = matrix.iloc[0, 0], matrix.iloc[-1, 0]
        assert by_task[0] == ["0-1", f"{first:.3f}", f"{last:.3f}", f"{last - first:+.3f}"]


def test_a_run_leads_to_its_experiment_its_configuration_and_back_to_the_list(
    dashboard: Dashboard, store: RunStore
) -> None:
    listed = CLOPS | {"only-storage_fraction": "0.5", "sort": "-auc"}
    (link, *_) = (it for it in read_page(dashboard, "runs", listed).find("a") if "/run?" in it.attributes["href"])
    page = read_page(dashboard, *followed_link(link))
    (trail,) = page.find("nav", aria_label="Where this run belongs")
    back, overview, experiment, configuration = trail.find("a")
    assert followed_link(back) == ("runs", listed)
    assert overview.attributes["href"] == "/"
    assert experiment.attributes["href"].endswith("#of-synthetic-class-il-clops")
    assert len(read_page(dashboard).find("details", id="of-synthetic-class-il-clops")) == 1
    run = followed_link(link)[1]["id"]
    shown = dashboard.csv(followed_link(configuration)[1]).splitlines()[1:]
    (siblings,) = page.find("nav", aria_label="Runs of this configuration")
    ids = [followed_link(it)[1]["id"] for it in siblings.find("a")]
    assert run in ids
    assert {line.split(",")[0] for line in shown} == set(ids)


def test_a_failed_run_has_its_reason_in_the_list_and_its_traceback_a_click_away(dashboard: Dashboard) -> None:
    page = read_page(dashboard, "runs", CLOPS | {"status": "failed"})
    (table,) = page.find("table", aria_label="Runs")
    reasons = [words_of(it) for it in table.find("small", class_="failed")]
    assert reasons == ["ValueError: generated failure"] * 3
    (link, *_) = (it for it in table.find("a") if "/run?" in it.attributes["href"])
    run = read_page(dashboard, *followed_link(link))
    (traceback,) = run.find("details", id="traceback")
    assert "Traceback (most recent call last):" in words_of(traceback)
    assert "ValueError: generated failure" in [words_of(it) for it in run.find("p", class_="failed")]


def test_the_overview_counts_the_runs_of_another_edition_of_the_data(generated: ModuleType, tmp_path: Path) -> None:
    space = SearchSpace("own", RunConfig(), {"split_seed": [0, 1]}, seeds=[0])
    store = RunStore(tmp_path / "results")
    first, second = (request.config for request in space.requests())
    for config, prepared, days in ((first, "former", 0), (second, "former", 0), (first, "newer", 1)):
        values = {"auc": 0.5, "prepared_hash": prepared, "started_at": generated.START + timedelta(days=days)}
        generated.write_given_runs(store, [(config, values)], f"{prepared}{config.split_seed}")
    for here, said in ((None, True), ("former", False)):
        source = StoreSource(store, lambda key: None, lambda store: [space], present=lambda dataset, here=here: here)
        words = words_of(read_page(Dashboard(FollowedStore(store, source, 0))))
        sentence = "own: 1 run is of another edition of the data and left aside: it counts as missing, and a launch"
        assert (sentence in words) == said
        assert ("1 missing" in words) == said


def test_a_running_run_has_its_experiment_before_the_store_holds_a_run_on_its_data(
    generated: ModuleType, tmp_path: Path
) -> None:
    space = SearchSpace("own", RunConfig(), {"strategy": ["er", "finetune"]}, range(2))
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    source = StoreSource(store, lambda key: None, lambda store: [space])
    dashboard = Dashboard(FollowedStore(store, source, 0))
    version = read_page(dashboard).find("body")[0].attributes["data-version"]
    config = next(iter(space.requests())).config
    file = LaunchFile(store)
    file.begin(())
    running = UnderWay(config.run_id("generated0001"), "er, seed 0", request=request_id(config))
    file.write([running])
    page = read(dashboard.page("", {}, version))
    assert "Runs: 1 running, 3 missing." in words_of(page)
    _, row = cells_of(page, "Running now")
    assert (row[0], row[-1]) == ("er, seed 0", "own")
    _, line = cells_of(page, RESULTS)
    assert line[2] == "0 / 4 1 running 3 missing"
    of_run = read_page(dashboard, "run", {"id": running.run_id})
    assert "running" in words_of(of_run)
    (siblings,) = of_run.find("nav", aria_label="Runs of this configuration")
    assert words_of(siblings) == "Runs of this configuration: seed 0 (running) seed 1 (missing)"
    file.write([])
    assert "Runs: 4 missing." in words_of(read(dashboard.page("", {}, "earlier")))


def test_a_command_breaks_between_its_words_alone() -> None:
    folder = "/".join(["long-folder"] * 5)
    html = as_command(f"clops-sweep <a>.py --retry failed --results {folder}")
    words = ["clops-sweep", "&lt;a&gt;.py", "--retry", "failed", "--results"]
    kept = " ".join(f"<span>{word}</span>" for word in words)
    assert html == f'<code class="command">{kept} {folder}</code>'


def test_compare_opens_with_the_experiment_of_most_configurations(generated: ModuleType, tmp_path: Path) -> None:
    """Although the runs of another one ended last."""
    store = RunStore(tmp_path / "results")
    of_grid = [RunConfig(storage_fraction=fraction) for fraction in (0.1, 0.5)]
    last = RunConfig(strategy="finetune")
    for days, config in enumerate([*of_grid, last]):
        started = generated.START + timedelta(days=days)
        generated.write_given_runs(store, [(config, {"auc": 0.5 + days / 10, "started_at": started})])
    grid = SearchSpace("grid", RunConfig(), {"storage_fraction": [0.1, 0.5]}, seeds=1)
    single = SearchSpace("single", last, seeds=1)
    source = StoreSource(store, lambda key: None, lambda store: [grid, single], whole=False)
    dashboard = Dashboard(FollowedStore(store, source, 0))
    links = read_page(dashboard, "compare").find("a")
    current = [words_of(link) for link in links if link.attributes.get("aria-current") == "true"]
    assert "grid" in current
    assert "single" not in current


def test_compare_has_the_differences_from_the_best(generated: ModuleType, tmp_path: Path) -> None:
    space = SearchSpace("own", RunConfig(), {"strategy": ["er", "finetune"]}, range(2))
    store = RunStore(tmp_path / "results")
    scores = {"er": 0.8, "finetune": 0.7}
    given = [(it.config, {"auc": 0.7, "test_auc": scores[it.config.strategy]}) for it in space.requests()]
    generated.write_given_runs(store, given)
    source = StoreSource(store, lambda key: None, lambda store: [space])
    page = read_page(Dashboard(FollowedStore(store, source, 0)), "compare", {"experiment": "own"})
    header, *rows = cells_of(page, "Methods of own on synthetic, class_il")
    assert header[1:3] == ["test AUC ↑ [95 %]", "minus best [95 %]"]
    assert [row[2] for row in rows] == [DASH, "-0.100"]


def test_differences_from_the_best_are_those_of_the_report(generated: ModuleType, tmp_path: Path) -> None:
    """Their intervals were not corrected, so one excluded 0 where the p-value of the report was 0.4."""
    axes = {"strategy": ["er", "ewc", "lwf", "finetune"], "split_seed": range(4)}
    space = SearchSpace("own", RunConfig(), axes, range(1))
    store = RunStore(tmp_path / "results")
    scores = {"er": (0.8, 0.81, 0.8, 0.81), "ewc": (0.8, 0.79, 0.77, 0.78), "lwf": (0.7, 0.72, 0.74, 0.7)}
    scores["finetune"] = (0.6, 0.65, 0.6, 0.7)
    given = []
    for request in space.requests():
        score = scores[request.config.strategy][request.config.split_seed]
        given.append((request.config, {"auc": score, "test_auc": score}))
    generated.write_given_runs(store, given)
    source = StoreSource(store, lambda key: None, lambda store: [space])
    dashboard = Dashboard(FollowedStore(store, source, 0))
    header, *rows = cells_of(
        read_page(dashboard, "compare", {"experiment": "own"}), "Methods of own on synthetic, class_il"
    )
    assert header[2] == "minus best [95 %, corrected]"
    (experiment,) = with_leading_scores(collect([space], store.read("runs")))
    text = best_text(corrected_with(best_configurations(experiment), ())[0], "best")
    names = [row[0].text for row in text.rows]
    assert [row[0].split()[0] for row in rows] == names == ["er", "ewc", "lwf", "finetune"]
    (among,) = {id(best.among): best.among for best in best_configurations(experiment)}.values()
    assert among is not None
    for name, row in zip(names[1:], rows[1:], strict=True):
        (of_report,) = [it for it in among.rows if (it.name, it.baseline) == (name, "er")]
        difference, p = of_report.differences["test_auc"], of_report.corrected["test_auc"]
        interval = with_interval(difference.mean, difference.low, difference.high)
        assert row[2] == f"{interval} p = {p_text(p)}"
    dashboard.close()


@pytest.mark.parametrize("count", [6, 10, 30])
def test_learning_curves_of_a_few_configurations_are_all_shown(
    generated: ModuleType, tmp_path: Path, count: int
) -> None:
    """Five of six methods were shown, without a way to see the sixth."""
    rates = [0.001 * position for position in range(1, count + 1)]
    space = SearchSpace("own", RunConfig(), {"learning_rate": rates}, range(1))
    store = RunStore(tmp_path / "results")
    given = [(it.config, {"auc": 0.7 + it.config.learning_rate}) for it in space.requests()]
    generated.write_given_runs(store, given)
    source = StoreSource(store, lambda key: None, lambda store: [space])
    dashboard = Dashboard(FollowedStore(store, source, 0))
    page = read_page(dashboard, "compare", {"experiment": "own"})
    links = page.find("a", id="more-curves")
    if count == 6:
        assert not links
        assert "all 6 configurations." in words_of(page)
        assert len(page.find("ul", class_="keys")[0].find("li")) == 6
        return
    assert f"the best 8 of {count} configurations by the vertical axis." in words_of(page)
    assert words_of(links[0]) == {10: "Show all 10", 30: "Show the best 24"}[count]
    path, given_by_link = followed_link(links[0])
    everything = read_page(dashboard, path, {"experiment": "own"} | given_by_link)
    assert len(everything.find("ul", class_="keys")[0].find("li")) == min(count, 24)
    assert words_of(everything.find("a", id="more-curves")[0]) == "Show the best alone" or count > 24
    dashboard.close()


def test_picked_runs_stand_side_by_side_with_what_differs_alone(generated: ModuleType, tmp_path: Path) -> None:
    space = SearchSpace("own", RunConfig(), {"strategy": ["er", "finetune"], "split_seed": [0, 1]}, range(2))
    store = RunStore(tmp_path / "results")
    scores = {"er": 0.8, "finetune": 0.7}
    given = [(it.config, {"auc": 0.7, "test_auc": scores[it.config.strategy]}) for it in space.requests()]
    generated.write_given_runs(store, given)
    source = StoreSource(store, lambda key: None, lambda store: [space])
    dashboard = Dashboard(FollowedStore(store, source, 0))
    picked = [config for config, _ in given if (config.split_seed, config.seed) == (1, 0)]
    ids = [config.run_id("generated0001") for config in picked]
    page = read_page(dashboard, "compare", {"experiment": "own", "runs": ",".join(ids)})
    header, *rows = cells_of(page, "Picked runs side by side")
    assert header == ["run", "er, split 1, seed 0", "finetune, split 1, seed 0"]
    values = {row[0]: row[1:] for row in rows}
    assert values["strategy"] == ["er", "finetune"]
    assert values["replay ratio"][1] == DASH, "fine-tuning has none"
    assert values["test average AUC"] == ["0.800", "0.700"]
    assert not {"seed", "split seed", "data set", "epochs per task, τ"} & set(values), "equal in both"
    alone = read_page(dashboard, "compare", {"experiment": "own", "runs": ids[0]})
    assert not alone.find("table", aria_label="Picked runs side by side")
    dashboard.close()


def test_a_run_lists_the_settings_in_which_runs_differ_and_no_others(generated: ModuleType, tmp_path: Path) -> None:
    base = RunConfig(epochs_per_task=7)
    space = SearchSpace("own", base, {"strategy": ["er", "finetune"], "split": folds(3)}, range(1))
    store = RunStore(tmp_path / "results")
    generated.write_given_runs(store, [(it.config, {"auc": 0.7}) for it in space.requests()])
    source = StoreSource(store, lambda key: None, lambda store: [space])
    config = next(iter(space.requests())).config
    page = read_page(Dashboard(FollowedStore(store, source, 0)), "run", {"id": config.run_id("generated0001")})
    differing, equal, at_defaults = page.find("dl", class_="grid")[-3:]
    names = [words_of(it) for it in differing.find("dt")]
    assert {"strategy", "split"} <= set(names)
    assert not {"seed", "split_seed"} & set(names), "they are 0 in all runs"
    chosen = {words_of(it) for it in equal.find("dt")}
    assert chosen == {"dataset", "scenario", "network", "epochs_per_task"}
    (folded,) = page.find("details", id="defaults")
    assert "open" not in folded.attributes
    assert at_defaults in list(folded)
    defaults = {words_of(it) for it in at_defaults.find("dt")}
    assert {"seed", "split_seed", "learning_rate", "batch_size"} <= defaults
    assert words_of(folded.find("summary")[0]) == f"{len(defaults)} settings at their defaults"
    (siblings,) = page.find("nav", aria_label="Runs of this configuration")
    assert [words_of(it) for it in siblings.find("a")] == ["fold 1/3, seed 0", "fold 2/3, seed 0", "fold 3/3, seed 0"]


def test_the_title_of_a_run_says_each_setting_once(generated: ModuleType, tmp_path: Path) -> None:
    space = SearchSpace("own", RunConfig(strategy="er"), {"learning_rate": [0.001, 0.01]}, range(2))
    store = RunStore(tmp_path / "results")
    generated.write_given_runs(store, [(it.config, {"auc": 0.7}) for it in space.requests()])
    source = StoreSource(store, lambda key: None, lambda store: [space])
    config = next(iter(space.requests())).config
    page = read_page(Dashboard(FollowedStore(store, source, 0)), "run", {"id": config.run_id("generated0001")})
    assert words_of(page.find("h2")[0]) == "er, learning_rate = 0.001, seed 0"


def test_a_command_of_a_notice_breaks_between_its_words(store: RunStore) -> None:
    source = StoreSource(store, lambda key: None)
    notices = ["More: clops-sweep dashboard own.py --results <it>", "Nothing else"]
    page = read_page(Dashboard(FollowedStore(store, source, 0), notices))
    first, second = page.find("p", class_="notice")[:2]
    (command,) = first.find("code")
    assert words_of(first) == "More: clops-sweep dashboard own.py --results <it>"
    assert [words_of(it) for it in command.find("span")] == words_of(command).split()
    assert (words_of(second), second.find("code")) == ("Nothing else", [])


def test_a_run_of_two_experiments_names_both(generated: ModuleType, tmp_path: Path) -> None:
    first = SearchSpace("first", RunConfig(), {"strategy": ["er", "finetune"]}, range(1))
    second = SearchSpace("second", RunConfig(), {"strategy": ["er", "ewc"]}, range(1))
    store = RunStore(tmp_path / "results")
    config = next(iter(first.requests())).config
    generated.write_given_runs(store, [(config, {"auc": 0.7})])
    source = StoreSource(store, lambda key: None, lambda store: [first, second])
    page = read_page(Dashboard(FollowedStore(store, source, 0)), "run", {"id": config.run_id("generated0001")})
    assert "This run is also in second" in words_of(page)


def test_rows_of_runs_are_cards_on_a_phone(dashboard: Dashboard) -> None:
    (table,) = read_page(dashboard, "runs", CLOPS).find("table", aria_label="Runs")
    assert table.attributes["class"] == "cards"
    (body,) = table.find("tbody")
    assert all(cell.attributes["data-name"] for cell in body.find("td")), "a card names each of its values"


def test_no_method_is_called_the_best_before_a_result(generated: ModuleType, tmp_path: Path) -> None:
    done = SearchSpace("done", RunConfig(), {"strategy": ["er", "finetune"]}, range(1))
    begun = SearchSpace("begun", RunConfig(epochs_per_task=3), {"strategy": ["er", "finetune"]}, range(1))
    store = RunStore(tmp_path / "results")
    generated.write_given_runs(store, [(it.config, {"auc": 0.7}) for it in done.requests()])
    source = StoreSource(store, lambda key: None, lambda store: [done, begun])
    _, *rows = cells_of(read_page(Dashboard(FollowedStore(store, source, 0))), RESULTS)
    best = {row[0]: row[1].partition(" 0.")[0] for row in rows}
    assert best == {"done": "er, finetune", "begun": DASH}, "equal means are tied"


def test_filters_that_no_run_fits_lead_back_to_all_runs(dashboard: Dashboard) -> None:
    for name in ("runs", "compare"):
        (notice,) = notices(read_page(dashboard, name, CLOPS | {"only-seed": "99"}))
        (link,) = notice.find("a")
        path, given = followed_link(link)
        assert (path, given["experiment"]) == (name, CLOPS["experiment"])
        assert not notices(read_page(dashboard, path, given))


def test_an_empty_store_says_how_to_begin(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    dashboard = dashboard_of(store)
    (notice,) = notices(read_page(dashboard))
    assert f"Start a sweep with clops-sweep SPACE.py --results {tmp_path / 'results'}" in words_of(notice)
    dashboard.close()


def test_commands_name_the_files_of_the_dashboard(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    dashboard = Dashboard(FollowedStore(store, source_of(store), 0), files=["mine.py"])
    (notice,) = notices(read_page(dashboard))
    assert f"Start a sweep with clops-sweep mine.py --results {tmp_path / 'results'}" in words_of(notice)
    dashboard.close()


def test_the_table_of_runs_is_filtered_by_labels(dashboard: Dashboard, store: RunStore) -> None:
    given = CLOPS | {"only-storage_fraction": "0.5", "only-seed": "1"}
    page = read_page(dashboard, "runs", given)
    links = [followed_link(link) for link in page.find("main")[0].find("a")]
    shown = {given["id"] for path, given in links if path == "run"}
    rows = store.read("runs").set_index("run_id")
    there = rows[(rows["strategy"] == "clops") & (rows["storage_fraction"] == 0.5) & (rows["seed"] == 1)]
    assert shown == set(there.index)
    csv = dashboard.csv(given).splitlines()
    assert len(csv) == 1 + len(there)
    (by_auc,) = page.find("a", id="sort-auc")
    assert followed_link(by_auc)[1]["only-storage_fraction"] == "0.5", "the order of rows keeps the filters"


class TuningSource:
    """The experiments of a store; those of one strategy only chose configurations."""

    def __init__(self, store: RunStore, strategy: str) -> None:
        self._source = source_of(store)
        self._strategy = strategy

    def experiments(self, runs: pd.DataFrame, store: RunStore) -> list[Found]:
        found: list[Found] = []
        for experiment, _, _ in self._source.experiments(runs, store):
            of_strategy = experiment.cells[0].config.strategy == self._strategy
            run = experiment.runs["run_id"].iloc[0]
            trial = TrialRecord(
                0, "complete", {"storage_fraction": 0.1}, (0.75,), run_ids=(run,), edges={"storage_fraction": "lowest"}
            )
            study = StudyRecord(experiment.name, {"auc": "maximize"}, (trial,), (0,), is_phase=True)
            found.append((replace(experiment, is_tuning=of_strategy), None, study if of_strategy else None))
        return found

    def frames(self, experiments: object) -> list[Any]:
        return []

    def mark(self) -> None:
        return None


ON_TUNING = "Tuning trials: they choose a configuration"


def test_tuning_stands_apart_from_results(store: RunStore) -> None:
    dashboard = Dashboard(FollowedStore(store, TuningSource(store, "clops"), 0))
    page = read_page(dashboard)
    results, tuning = (page.find("table", aria_label=name)[0].text for name in (RESULTS, "Tuning"))
    assert "synthetic class_il finetune" in results
    assert CLOPS["experiment"] not in results
    assert CLOPS["experiment"] in tuning
    _, trials = cells_of(page, "Tuning")
    assert trials[1:3] == ["1 complete", "0.750 Average AUC"]
    assert f"On the edge of what was tried: storage_fraction of {CLOPS['experiment']} (lowest)" in words_of(page)
    for name in ("runs", "compare"):
        assert ON_TUNING not in words_of(read_page(dashboard, name))
        assert ON_TUNING in words_of(read_page(dashboard, name, CLOPS))
    points = charts_of(read_page(dashboard, "compare", CLOPS))[-1]["data"][0]
    assert points["y"] == [0.75]
    assert points["customdata"][0] in set(store.read("runs")["run_id"])
    dashboard.close()


class FoldedTuning:
    """The search of the method er of a tuned space, over three folds."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space

    def experiments(self, runs: pd.DataFrame, store: RunStore) -> list[Found]:
        (experiment,) = collect([self._space], runs.reset_index(drop=True))
        trials = tuple(TrialRecord(at, "complete", {"batch_size": 8 * (at + 1)}, (0.7 + 0.1 * at,)) for at in range(2))
        study = StudyRecord(experiment.name, {"auc": "maximize"}, trials, (1,), is_phase=True)
        return [(replace(experiment, is_tuning=True), None, study)]

    def frames(self, experiments: object) -> list[Any]:
        return []

    def mark(self) -> None:
        return None


def test_trials_over_folds_are_listed_by_method_and_fold(generated: ModuleType, tmp_path: Path) -> None:
    axes = {"batch_size": [8, 16], "split": folds(3)}
    space = SearchSpace("mine_selection_er", RunConfig(strategy="er"), axes, range(2))
    store = RunStore(tmp_path / "results")
    generated.write_given_runs(store, [(it.config, {"auc": 0.7}) for it in space.requests()])
    dashboard = Dashboard(FollowedStore(store, FoldedTuning(space), 0))
    header, row = cells_of(read_page(dashboard), "Tuning")
    assert dict(zip(header, row, strict=True)) | {"last change": ""} == {
        "method": "er",
        "trials": "2 complete",
        "best value so far": "0.800 Average AUC",
        "chosen so far": "batch size 16",
        "tried": "batch size: 8, 16; 3 folds; 2 seeds",
        "runs finished / asked": "12 / 12",
        "last change": "",
    }
    given = {"experiment": space.name}
    page = read_page(dashboard, "runs", given)
    _, *rows = cells_of(page, "Runs")
    groups = [at for at, row in enumerate(rows) if len(row) == 1]
    assert [rows[at] for at in groups] == [["fold 1/3"], ["fold 2/3"], ["fold 3/3"]]
    assert groups == [0, 5, 10], "two configurations with two seeds each"
    for at, row in enumerate(rows):
        if at not in groups:
            assert f", fold {at // 5 + 1}/3, " in row[0]
    _, *by_score = cells_of(read_page(dashboard, "runs", given | {"sort": "-auc"}), "Runs")
    assert all(len(row) > 1 for row in by_score), "another order has no groups"
    dashboard.close()


def test_overview_and_runs_say_whose_scores_they_show(dashboard: Dashboard) -> None:
    assert "Metrics of the validation set" in words_of(read_page(dashboard, "runs", CLOPS).find("main")[0])
    (table,) = read_page(dashboard).find("table", aria_label=f"Methods of {CLOPS['experiment']} on synthetic, class_il")
    header, *rows = table.find("tr")
    names = "method test AUC ↑ [95 %] minus best [95 %] test BWT ↑ [95 %] n runs failed"
    assert words_of(header).startswith(names)
    assert [bool(row.find("span", class_="mark")) for row in rows] == [True, False]
    (link,) = rows[0].find("a")[:1]
    path, given = followed_link(link)
    assert path == "runs"
    assert len(read_page(dashboard, path, given).find("table", aria_label="Runs")[0].find("tr")) > 1


def test_methods_are_shown_with_test_scores_of_the_configuration_that_validation_chose(
    dashboard: Dashboard, store: RunStore
) -> None:
    page = read_page(dashboard, "methods")
    header, *rows = cells_of(page, "Methods on synthetic, class_il")
    assert header[:3] == ["method", "test AUC ↑ [95 %]", "minus best of its experiment [95 %]"]
    assert header[3:5] == ["test BWT ↑ [95 %]", "n"]
    runs = store.read("runs").query("strategy == 'clops' and status == 'finished'")
    cells = runs.groupby(["storage_fraction", "acquisition_fraction", "storage_order"])
    best = cells["auc"].mean().idxmax()
    expected = cells["test_auc"].mean()[best]
    of_variant = [row for row in rows if row[1].startswith(f"{expected:.3f}")]
    assert len(of_variant) == 1
    first = [float(row[1].split()[0]) for row in rows if row[1] != DASH and "not ranked" not in row[0]]
    assert first == sorted(first, reverse=True)
    (link,) = (link for link in page.find("a") if link.text == of_variant[0][0].removesuffix(" best by validation"))
    path, given = followed_link(link)
    assert path == "runs"
    shown = dashboard.csv(given).splitlines()[1:]
    every = store.read("runs")
    of_store = every[(every["strategy"] == "clops") & (every["storage_order"] == best[2])]
    assert {line.split(",")[0] for line in shown} == set(of_store["run_id"])


@pytest.mark.nightly
def test_every_link_of_every_page_leads_to_a_page(dashboard: Dashboard) -> None:
    links: dict[str, Element] = {}  # most pages have those of the menu
    for name in PAGES:
        for link in read_page(dashboard, name, CLOPS).find("a")[:40]:
            links.setdefault(link.attributes["href"], link)
    for target, link in links.items():
        if target.startswith("/") and "csv" not in target:
            assert not notices(read_page(dashboard, *followed_link(link)))


@pytest.mark.nightly
def test_the_section_of_the_report_is_drawn_while_the_page_waits(store: RunStore) -> None:
    dashboard = dashboard_of(store)  # of its own: nothing is drawn yet
    deadline = time.monotonic() + 120
    with_tables_alone = 0
    while "drawing" in words_of(page := read_page(dashboard, "report", CLOPS)):
        assert time.monotonic() < deadline
        tables, figures = len(page.find("table")), len(page.find("svg"))
        with_tables_alone += bool(tables) and figures == 0
        assert tables or not figures, "tables come first"
        assert bool(page.find("p", class_="waiting")) <= bool(tables), "a figure that is not ready has its place"
        time.sleep(0.05)
    assert with_tables_alone, "tables do not wait for figures"
    assert not page.find("p", class_="waiting")
    drawn = [it.attributes["id"] for it in page.find("figure")]
    assert "synthetic-class_il-clops-heatmap-auc" in drawn
    assert "synthetic-class_il-clops-results" in drawn
    labels = [it.attributes["aria-label"] for it in page.find("svg")]
    assert any(it.startswith("Learning curves") for it in labels)
    assert not page.find("p", class_="files"), "a page of the dashboard has no files"
    assert "29 of 32 runs finished, 3 failed." in words_of(page)
    dashboard.close()


def test_runs_under_way_are_shown_with_task_epoch_and_time_left(tmp_path: Path, generated: ModuleType) -> None:
    space = SearchSpace("own", RunConfig(), {"storage_fraction": [0.1, 0.5]}, range(2))
    store = RunStore(tmp_path / "results")
    first, second, third, _ = (it.config for it in space.requests())
    generated.write_given_runs(store, [(first, {"auc": 0.7})])
    ids = [it.run_id("generated0001") for it in (second, third)]
    dashboard = Dashboard(FollowedStore(store, StoreSource(store, lambda key: None, lambda store: [space]), 0))
    page = read_page(dashboard)
    assert "Runs: 1 finished, 3 missing." in words_of(page)
    version = page.find("body")[0].attributes["data-version"]
    file = LaunchFile(store)
    file.begin(())
    ends_at = time.time() + 3601
    of_own = UnderWay(ids[0], "own: x", Progress(2, "b", 4, 3, 5), ends_at)
    file.write([of_own, UnderWay("c" * 24, HOSTILE), UnderWay(ids[1], "own: y")])
    page = read(dashboard.page("", {}, version))
    assert "Runs: 1 finished, 3 running, 1 missing." in words_of(page)
    _, one, two, _ = cells_of(page, "Running now")
    assert one == ["b = 0.5, seed 0", "60 min", "2 of 4", "3 of 5", "", "own"]
    assert two[:4] == [HOSTILE, "after some epochs", "starting", DASH]
    (link, *_) = (it for it in page.find("a") if it.text == one[0])
    run = read_page(dashboard, *followed_link(link))
    assert "running, task 2 of 4, epoch 3 of 5, time left: 60 min" in words_of(run)
    assert not charts_of(run)
    (store.log_folder / "logs").mkdir(parents=True)
    log = store.log_folder / "logs" / "1.log"
    log.write_text(f"[run {ids[0][:12]}] printed by the run\n")
    run = read_page(dashboard, *followed_link(link))
    assert "printed by the run" in words_of(run)
    assert not charts_of(run), "a log of an earlier version, without scores"
    task = "0-1, left (a)"
    ScoresFile(log).add([(ids[0], EpochScores(Progress(1, task, 4, 1, 5), "auc", {task: 0.5}))])
    (chart,) = charts_of(read_page(dashboard, *followed_link(link)))
    assert [(line["name"], line["x"], line["y"]) for line in chart["data"]] == [(task, [1], [0.5])]
    assert [cell for row in cells_of(read_page(dashboard, "runs"), "Runs") for cell in row].count("running") == 2
    file.write([])
    assert not read(dashboard.page("", {}, "earlier")).find("table", aria_label="Running now")


# --- nothing in a store is markup -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, generated: ModuleType) -> RunStore:
    store = RunStore(tmp_path_factory.mktemp("hostile"))
    for valid in (RunConfig(seed=seed, storage_fraction=b) for seed in (0, 1) for b in (0.1, 0.5)):
        acquisition = HOSTILE if valid.storage_fraction == 0.1 else "bald_mcd"
        config = RunConfig.model_construct(**(dict(valid) | {"acquisition": acquisition}))
        run_id = valid.run_id("generated0001")
        write_finished(store, run_id, generated.generated_tables(config, run_id, tasks=TASKS, instances=4, epochs=2))
    failed = RunConfig(seed=7)
    record_failure(store, {failed.run_id("generated0001"): failed}, ERROR, lambda _: "generated0001", {"host": HOSTILE})
    return store


@pytest.fixture(scope="module")
def dashboard_of_hostile(hostile: RunStore) -> Iterator[Dashboard]:
    dashboard = dashboard_of(hostile)
    yield dashboard
    dashboard.close()


@pytest.mark.parametrize("name", PAGES)
def test_what_a_store_says_is_text(name: str, dashboard_of_hostile: Dashboard) -> None:
    while "drawing …" in words_of(page := read_page(dashboard_of_hostile, name)):
        time.sleep(0.1)
    (content,) = page.find("main")
    seen = ""
    for it in content:
        assert it.kind not in ("script", "iframe", "object", "embed")
        assert not any(attribute.startswith("on") for attribute in it.attributes)
        assert str(it.attributes.get("href", "/")).startswith(("/", "#"))
        assert str(it.attributes.get("src", "data:image/png;base64,")).startswith("data:image/png;base64,")
        seen += "".join(child for child in it.children if isinstance(child, str))
    assert "\x1b" not in seen
    assert "<script>alert(1)</script>" in seen, "as it is, as text"


class Unprintable:
    """A notice that no page can show."""

    def __str__(self) -> str:
        raise LookupError("no text")


class FaultySource(StoreSource):
    """Experiments that cannot be computed."""

    def experiments(self, runs: pd.DataFrame, store: RunStore) -> list[Found]:
        raise LookupError("no experiment")


def test_a_fault_of_a_page_is_a_sentence_and_other_pages_are_shown(store: RunStore) -> None:
    server = make_server(store, source_of(store), host=None, port=0, token=None, notices=[Unprintable()])
    server.close()
    client = server.app.test_client()
    overview = client.get("/", headers={"Host": "localhost"}).get_data(as_text=True)
    fault = "This page cannot be shown: "
    assert f"{fault}LookupError: no text." in overview
    assert fault not in client.get("/runs", headers={"Host": "localhost"}).get_data(as_text=True)


def test_a_store_that_cannot_be_shown_at_the_start_is_named_in_a_sentence(
    store: RunStore, caplog: pytest.LogCaptureFixture
) -> None:
    server = make_server(store, FaultySource(store, lambda key: None), host=None, port=0, token=None)
    server.close()
    for path in PAGES:
        page = server.app.test_client().get(f"/{path}", headers={"Host": "localhost"}).get_data(as_text=True)
        assert "its last known content: LookupError: no experiment." in page
    (line,) = [it.getMessage() for it in caplog.records if it.levelname == "ERROR"]
    assert re.fullmatch(r"the store cannot be shown: LookupError: no experiment \(.*\.py, line \d+\)", line)


# --- who may see it ---------------------------------------------------------------------------------------------------


def served(store: RunStore, host: str | None, token: str | None) -> Any:
    """A client of the application of a server that has been made, and was not started."""
    pytest.importorskip("flask", reason="Flask is not installed: the dashboard is not served")
    server = make_server(store, source_of(store), host=host, port=0, token=token)
    server.close()
    return server, server.app.test_client()


@pytest.fixture(scope="module")
def client(store: RunStore) -> Any:
    """A client of the dashboard of the store on this machine."""
    _, client = served(store, None, None)
    return client


def test_on_loopback_only_this_machine_is_answered(store: RunStore) -> None:
    server, client = served(store, None, None)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", server.address)
    for name in ("127.0.0.1:8050", "localhost:9000", "[::1]:8050", "localhost"):
        assert client.get("/", headers={"Host": name}).status_code == 200
    for name in ("evil.example:8050", "127.0.0.1.evil.example", "localhost.evil.example:80"):
        assert client.get("/", headers={"Host": name}).status_code == 403
    answer = client.get("/")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "http" not in re.sub(r"sha256-[^ ]+", "", policy)
    assert "unsafe-inline" not in next(part for part in policy.split("; ") if part.startswith("script-src"))
    sources = re.findall(r'(?:src|href)="([^"]+)"', answer.get_data(as_text=True))
    assert sources
    assert all(it.startswith(("/", "?", "#", "data:,")) and not it.startswith("//") for it in sources)
    for it in sources:
        if it.startswith("/"):
            with client.get(it) as found:
                assert found.status_code == 200


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("/run?id=nothing", "an id that begins with &#39;nothing&#39;"),
        ("/run?id=%3Cb%3E", "an id that begins with &#39;&lt;b&gt;&#39;"),
        ("/runs?experiment=other", "Experiment &#39;other&#39; is not in this store; it has synthetic class_il"),
        ("/report?experiment=other", "Experiment &#39;other&#39; is not in this store"),
        ("/compare?experiment=other", "Experiment &#39;other&#39; is not in this store"),
        ("/runs.csv?experiment=other", "Experiment 'other' is not in this store"),
    ],
)
def test_an_address_of_nothing_is_not_found(client: Any, address: str, sentence: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 404
    assert sentence in answer.get_data(as_text=True)


def test_the_beginning_of_an_id_leads_to_its_run(store: RunStore, client: Any) -> None:
    ids = store.read("runs", columns=["run_id"])["run_id"]
    answer = client.get(f"/run?id={ids[0][:10]}")
    assert answer.status_code == 200
    assert ids[0] in answer.get_data(as_text=True)
    assert client.get("/run?id=").status_code == 200
    version = re.search('data-version="([^"]+)"', answer.get_data(as_text=True))
    assert version is not None
    again = client.get(f"/run?id={ids[0][:10]}", headers={"If-None-Match": version[1]})
    assert (again.status_code, again.data) == (304, b"")


def test_a_run_leads_to_its_update_reports_and_to_no_other_file(generated: ModuleType, tmp_path: Path) -> None:
    store = RunStore(tmp_path / "results")
    configs = [RunConfig(strategy="er", seed=seed) for seed in range(2)]
    generated.write_given_runs(store, [(config, {"auc": 0.7}) for config in configs])
    one, other = (config.run_id("generated0001") for config in configs)
    folder = tmp_path / "results" / "report"
    folder.mkdir()
    names = [f"update-{one}.html", f"update-{one}-against-{other}.html", f"update-{other}-2.html"]
    names += [f"update-{one}-folds.html", f"update-{one}-folds-2.html"]
    for name in (*names, f"update-{one}-sheets.html", "update-notes.html", "index.html"):
        (folder / name).write_text(f"<script>shown</script>{name}")
    _, client = served(store, None, None)
    page = read(client.get(f"/run?id={one}").get_data(as_text=True))
    links = [it for it in page.find("a") if it.attributes["href"].startswith("/update-report/")]
    assert {it.attributes["href"].rpartition("/")[2]: words_of(it) for it in links} == {
        names[0]: "after its last task",
        names[1]: f"{one[:8]} in place of {other[:8]}",
        names[3]: "all folds, after their last task",
        names[4]: "all folds, after their last task",
    }
    answer = client.get(links[0].attributes["href"])
    assert answer.get_data(as_text=True).endswith(links[0].attributes["href"].rpartition("/")[2])
    assert "sandbox allow-scripts;" in answer.headers["Content-Security-Policy"], "it must not read other pages"
    assert client.get(f"/update-report/{names[4]}").status_code == 200
    for name in (
        "update-notes.html",
        "index.html",
        "..%2Fruns",
        f"update-{one[:-1]}.html",
        f"update-{one}-sheets.html",
    ):
        assert client.get(f"/update-report/{name}").status_code == 404


def test_update_reports_on_runs_of_another_edition_of_the_data_are_listed_last(
    generated: ModuleType, tmp_path: Path
) -> None:
    space = SearchSpace("ward", RunConfig(strategy="er"), {}, seeds=[0, 1])
    store = RunStore(tmp_path / "results")
    config = next(iter(space.requests())).config
    of_other_space = RunConfig(dataset="cardiology", strategy="er")
    for days, data in enumerate(("former", "newer")):
        values = {"auc": 0.5, "prepared_hash": data, "started_at": generated.START + timedelta(days=days)}
        generated.write_given_runs(store, [(config, values)], data)
    generated.write_given_runs(store, [(of_other_space, {"auc": 0.5})], "elsewhere")
    former, newer = config.run_id("former"), config.run_id("newer")
    elsewhere = of_other_space.run_id("elsewhere")
    folder = tmp_path / "results" / "report"
    folder.mkdir()
    for age, run in enumerate((former, newer, elsewhere)):  # that of the former edition is the newest
        file = folder / f"update-{run}.html"
        file.write_text("<p>Report</p>")
        os.utime(file, (1000 - age, 1000 - age))
    source = StoreSource(store, lambda key: None, lambda store: [space], whole=False)
    dashboard = Dashboard(FollowedStore(store, source, 0))
    page = read_page(dashboard)
    _, *rows = cells_of(page, "Update reports")
    assert [row[1:3] for row in rows] == [
        ["seed 0", "ward"],
        ["er, seed 0", "ward, on another edition of the data"],
    ]
    assert f"/run?id={former}" in {it.attributes["href"] for it in page.find("a")}
    of_run = read_page(dashboard, "run", {"id": former})
    assert "This run was computed on another edition of the data." in words_of(notices(of_run)[0])
    assert not notices(read_page(dashboard, "run", {"id": newer}))


def test_the_overview_lists_update_reports_with_their_verdicts(generated: ModuleType, tmp_path: Path) -> None:
    store = RunStore(tmp_path / "results")
    config = RunConfig(strategy="er")
    generated.write_given_runs(store, [(config, {"auc": 0.7})])
    run = config.run_id("generated0001")
    dashboard = dashboard_of(store)
    page = dashboard.page("", {}) or ""
    tables = [it.attributes["aria-label"] for it in read(page).find("table")]
    assert tables == [RESULTS, "Methods of synthetic class_il er on synthetic, class_il"]
    (tmp_path / "results" / "report").mkdir()
    of_run = tmp_path / "results" / "report" / f"update-{run}.html"
    of_run.write_text('<p class="verdict failed" role="status">1 of 2 acceptance criteria not met: a &lt;b&gt;.</p>')
    (tmp_path / "results" / "report" / "update-notes.html").write_text("no report")
    version = re.search('data-version="([^"]+)"', page)
    assert version is not None
    new = dashboard.page("", {}, version[1])
    assert new is not None, "the page of a browser is outdated"
    _, *rows = cells_of(read(new), "Update reports")
    day = f"{datetime.fromtimestamp(of_run.stat().st_mtime, UTC):%Y-%m-%d %H:%M}"
    assert rows == [
        [
            "after its last task",
            "seed 0",
            "synthetic class_il er",
            day,
            "failed: 1 of 2 acceptance criteria not met: a <b>.",
        ]
    ]
    links = {it.attributes["href"] for it in read(new).find("a")}
    assert {f"/update-report/{of_run.name}", f"/run?id={run}"} <= links
    written = []
    for column, outcome in (("age", "met"), ("ward", "unjudged")):
        head = (
            f"""<meta name="{PARTS}" content='["acceptance criteria of SHA-256 0a1b2c3d", "subgroups by {column}"]'>"""
        )
        head += f"""<meta name="{CRITERIA}" content="{column} &amp; sex.toml">"""
        title = f"<title>St &lt;Anna&gt;: Update report {run[:8]}</title><style>{'a' * 100_000}</style>"
        page_of_column = of_run.with_name(f"update-{run}-{len(written) + 2}.html")
        page_of_column.write_text(
            f'{head}{title}<p class="verdict {outcome}">Said.</p><p class="verdict">Not this.</p>'
        )
        written.append(page_of_column)
    for age, file in enumerate((of_run, *written)):
        os.utime(file, (1000 - age, 1000 - age))
    _, *rows = cells_of(read(dashboard.page("", {}) or ""), "Update reports")
    assert [(row[0], row[-1].partition(":")[0]) for row in rows] == [
        ("after its last task", "failed"),
        ("after its last task, by age, criteria age & sex.toml 0a1b2c3d, St <Anna>", "passed"),
        ("after its last task, by ward, criteria ward & sex.toml 0a1b2c3d, St <Anna>", "not judged"),
    ]
    assert [row[3] for row in rows] == ["1970-01-01 00:16"] * 3
    assert rows[1][-1] == "passed: Said."
    of_run.write_text('<p class="verdict met">Mended.</p>')
    _, *mended = cells_of(read(dashboard.page("", {}) or ""), "Update reports")
    assert [row[-1] for row in mended if row[0] == "after its last task"] == ["passed: Mended."], "written anew"
    named = [title for _, title in reports_of(store, run)]
    assert sorted(named) == sorted(row[0] for row in rows), "the page of the run calls them alike"
    dashboard.close()


@pytest.mark.nightly
def test_the_overview_has_scores_by_domain_with_the_intervals_of_the_report(
    generated: ModuleType, tmp_path: Path
) -> None:
    base = RunConfig(scenario="domain_il", dataset="synthetic", domain="ward")
    space = SearchSpace("own", base, {"strategy": ["er", "finetune"], "split_seed": range(3)}, range(2))
    store = RunStore(tmp_path / "results")
    generated.write_generated_runs(store, [space], tasks=("A", "B"))
    source = StoreSource(store, lambda key: None, lambda store: [space])
    dashboard = Dashboard(FollowedStore(store, source, 0))
    header, *rows = cells_of(read_page(dashboard), "Test AUC by ward, own")
    assert header == ["method", "A ↑ [95 %]", "B ↑ [95 %]"]
    report = write_report([space], store, tmp_path / "report")
    table = pd.read_csv(next(it for it in report.tables if it.name == "own-by-task.csv"))
    latex = next(it for it in report.tables if it.name == "own-by-task.tex").read_text()
    matrix = store.read("r_matrix").query("split == 'test' and trained_on == 2")
    runs = store.read("runs").set_index("run_id")
    assert {row[0] for row in rows} == {"er", "finetune"}
    for row in rows:
        for text, task in zip(row[1:], "AB", strict=True):
            of_task = matrix[matrix["task"] == task].set_index("run_id")["auc"]
            splits = of_task[runs["strategy"] == row[0]].groupby(runs["split_seed"]).mean()
            (exact,) = table[(table["configuration"] == row[0]) & (table["task"] == task)].to_dict("records")
            assert exact["mean"] == pytest.approx(splits.mean())
            assert exact["n"] == 3
            assert text == f"{exact['mean']:.3f} [{exact['low']:.3f}, {exact['high']:.3f}]"
            assert text in latex
            assert exact["low"] < splits.mean() < exact["high"]
    header, *forgotten = cells_of(read_page(dashboard), "Forgetting by ward: change of test AUC, own")
    assert header == ["method", "A [95 %]"], "the last ward is not forgotten yet"
    changes = pd.read_csv(next(it for it in report.tables if it.name == "own-forgetting-by-task.csv"))
    assert list(changes["task"]) == ["A", "A"]
    of_ward = store.read("r_matrix").query("split == 'test' and task == 'A'").pivot_table("auc", "run_id", "trained_on")
    for strategy, text in forgotten:
        of_strategy = runs["strategy"] == strategy
        change = (of_ward[2] - of_ward[1])[of_strategy].groupby(runs["split_seed"]).mean()
        (exact,) = changes[changes["configuration"] == strategy].to_dict("records")
        assert exact["change"] == pytest.approx(change.mean())
        assert exact["change"] != 0, "the test can fail"
        assert (exact["low"] + exact["high"]) / 2 == pytest.approx(exact["change"])
        assert text == f"{exact['change']:+.3f} [{exact['low']:.3f}, {exact['high']:.3f}]"
    page = report.index.read_text()
    assert page.index("Test AUC by ward") < page.index("Set-up"), "in the contents"
    assert page.index('id="own-by-task"') < page.index('id="own-forgetting-by-task"') < page.index('id="setup"')
    assert page.index('id="own-by-task"') < page.index('id="setup"')
    dashboard.close()


def test_tasks_of_classes_have_no_table_of_their_scores(generated: ModuleType, tmp_path: Path) -> None:
    space = SearchSpace("own", RunConfig(), {"strategy": ["er", "finetune"]}, range(1))
    store = RunStore(tmp_path / "results")
    generated.write_generated_runs(store, [space])
    source = StoreSource(store, lambda key: None, lambda store: [space])
    page = read_page(Dashboard(FollowedStore(store, source, 0)))
    tables = [it.attributes["aria-label"] for it in page.find("table")]
    assert tables == [RESULTS, "Methods of own on synthetic, class_il"]


def test_missing_runs_beside_those_of_other_data_have_a_reason(generated: ModuleType, tmp_path: Path) -> None:
    space = SearchSpace("own", RunConfig(), {"strategy": ["er", "finetune"]}, range(2))
    store = RunStore(tmp_path / "results")
    generated.write_generated_runs(store, [space], data_hash="before")
    source = StoreSource(store, lambda key: None, lambda store: [space])
    dashboard = Dashboard(FollowedStore(store, source, 0), changes=lambda: ["data set own: its files changed"])
    page = words_of(read_page(dashboard))
    assert LEFT_ASIDE not in page
    assert "Data set own: its files changed." in page
    later = datetime(2040, 1, 1, tzinfo=UTC)
    first = [SearchSpace("own", RunConfig(), {"strategy": ["er"]}, range(1))]
    generated.write_generated_runs(store, first, data_hash="after", started_at=later)
    page = words_of(read(dashboard.page("", {}, "earlier")))
    assert f"own: 3 runs {LEFT_ASIDE}: they count as missing" in page
    dashboard.close()


def test_elsewhere_the_token_lets_in_and_then_its_cookie(store: RunStore) -> None:
    token = "a-token-of-some-length"
    server, client = served(store, "127.0.0.1", token)
    assert server.address.endswith(f"/?token={token}")
    for path in ("/", "/runs", "/assets/dashboard.css", "/runs.csv", f"/?token={token[:-1]}", "/?token=é"):
        assert client.get(path).status_code == 403
    assert client.post("/", json={}).status_code == 403
    answer = client.get(f"/runs?token={token}&sort=a&at=2")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/runs?sort=a&at=2")
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert client.get("/runs").status_code == 200
    assert client.get("/report").status_code == 200
