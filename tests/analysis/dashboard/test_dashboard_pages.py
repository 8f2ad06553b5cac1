"""The pages of the dashboard: what they say, where their links lead, and that nothing in a store is markup or code."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clops_sweep import FloatDistribution, OptunaSearch, RunConfig, SearchSpace
from clops_sweep.analysis.dashboard.figures import colours, plain
from clops_sweep.analysis.dashboard.pages import Pages
from clops_sweep.analysis.dashboard.server import make_server
from clops_sweep.analysis.dashboard.snapshot import FollowedStore
from clops_sweep.analysis.dashboard.source import StoreSource
from clops_sweep.analysis.dashboard.view import PAGES, View
from clops_sweep.analysis.formats import DASH
from clops_sweep.analysis.metrics import metric_named
from clops_sweep.errors import UsageError
from clops_sweep.search.study import SearchStudy
from clops_sweep.store.launches import LaunchFile, UnderWay
from clops_sweep.store.run_store import RunStore
from tests.stores import record_failure, write_finished

HOSTILE = '<script>alert(1)</script><img src=x onerror=alert(2)>{{ 7 * 7 }}<a href="javascript:alert(3)">x</a>%{x}$x$'
ERROR = f"Traceback (most recent call last):\nValueError: \x1b[2J{HOSTILE}\n"
TASKS = ("<b>0-1</b>", "2-3\x1b[2J", "%{y}", "6-7")


def source_of(store: RunStore) -> StoreSource:
    return StoreSource(store, lambda key: None)


def pages_of(store: RunStore) -> Pages:
    return Pages(FollowedStore(store, source_of(store), 0))


@pytest.fixture(scope="module")
def pages(store: RunStore) -> Pages:
    return pages_of(store)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory, generated: ModuleType) -> RunStore:
    """A search of four trials with two seeds each, beside its store."""
    store = RunStore(tmp_path_factory.mktemp("searched"))
    search = OptunaSearch(
        {
            "storage_fraction": FloatDistribution(0.1, 0.9),
            "storage": {"by beta": {}, HOSTILE: {"storage_order": "random"}},
        },
        n_trials=6,
    )
    space = SearchSpace(name="tuned", base=RunConfig(), search=search, seeds=range(2))
    study = SearchStudy(space, store, {})
    given = []
    for number in range(5):
        trial = study.ask()
        configs = [space.base.replace(**search.settings(trial.labels), seed=seed) for seed in (0, 1)]
        trial.record_runs([config.run_id("generated0001") for config in configs])
        values = [0.6 + 0.3 * float(trial.labels["storage_fraction"]) + 0.001 * config.seed for config in configs]
        given += [(config, {"auc": value}) for config, value in zip(configs, values, strict=True)]
        if number < 4:
            trial.complete([float(np.mean(values))])
        else:
            trial.fail(HOSTILE)
    generated.write_given_runs(store, given)
    return store


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

    @property
    def figure(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.attributes["data-figure"])
        return found


class Reader(HTMLParser):
    """Elements of what it is fed; those that are not closed in their place are refused."""

    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("page", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(made)
        if tag not in ("meta", "link", "input", "img"):
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


def whole(pages: Pages, query: str) -> Element:
    """The parts of a page that differ from view to view."""
    page, parts = read(pages.show(query)), Element("page", {})
    parts.children += [it for it in page if it.attributes.get("id") in ("links", "controls", "content", "said")]
    return parts


CLOPS = "?experiment=synthetic+class_il+clops"


# --- what is there ----------------------------------------------------------------------------------------------------


def test_the_first_page_counts_and_says_why_runs_have_failed(pages: Pages) -> None:
    page = whole(pages, "")
    (bar, _) = page.find("progress")
    assert bar.attributes["aria-label"] == "synthetic class_il clops: 29 of 32 runs finished"
    assert "ValueError: generated failure" in page.find("summary")[0].text
    assert page.find("pre")[0].text.startswith("Traceback (most recent call last):")
    (here,) = page.find("a", aria_current="page")
    assert here.text == "Overview"


def test_a_link_of_the_heatmap_shows_curves_and_r(pages: Pages) -> None:
    page = whole(pages, f"{CLOPS}&page=heatmap&slice=storage_order%3Dtop")
    cells = [link for link in page.find("a") if str(link.attributes.get("id")).startswith("cell-")]
    assert len(cells) == 5
    best = next(link for link in cells if "best of the panel" in link.attributes["aria-label"])
    assert re.fullmatch(
        r"(0\.\d{3}) at 1, 0\.5: \1 ± 0\.\d{3}, n = 2 of 2, best of the panel", best.attributes["aria-label"]
    )
    chosen = whole(pages, best.attributes["href"])
    (graph,) = chosen.find("div", class_="graph")
    lines = [trace for trace in graph.figure["data"] if "fill" not in trace]
    assert [trace["name"] for trace in lines] == ["0-1", "2-3", "4-5", "6-7"]
    assert "clops-sweep rerun" in chosen.text
    again = next(link for link in chosen.find("a") if link.attributes.get("id") == best.attributes["id"])
    assert again.attributes["aria-label"].endswith(", chosen")
    assert View.read(again.attributes["href"]).cells == ()
    assert sum(link.text == "failed" for link in whole(pages, f"{CLOPS}&page=heatmap").find("td")) == 1


def test_a_list_leads_to_the_view_of_each_of_its_options(pages: Pages) -> None:
    page = whole(pages, f"{CLOPS}&page=heatmap")
    (metric,) = page.find("select", id="choose-metric")
    assert [it.text for it in metric.find("option")][:4] == ["Average AUC", "BWT", "BWT_t", "BWT_lambda"]
    bwt = metric.find("option")[1].attributes["value"]
    assert "BWT by storage fraction" in whole(pages, bwt).text
    labelled = {label.attributes["for"] for label in page.find("label")}
    assert {select.attributes["id"] for select in page.find("select")} <= labelled


def test_runs_are_averaged_over_seeds_by_a_link(pages: Pages) -> None:
    page = whole(pages, f"{CLOPS}&page=runs")
    (link,) = page.find("a", id="grouping")
    assert (len(page.find("tr")) - 1, link.text) == (32, "Average over seeds")
    averaged = whole(pages, link.attributes["href"])
    assert len(averaged.find("tr")) - 1 == 11
    assert re.search(r"0\.\d{3} ± 0\.\d{3}", averaged.text)
    (sort,) = averaged.find("a", id="sort-auc")
    falling = whole(pages, sort.attributes["href"])
    assert [head.attributes["aria-sort"] for head in falling.find("th") if head.find("a", id="sort-auc")] == [
        "descending"
    ]


def test_a_condition_that_is_wrong_is_a_sentence_on_the_page(pages: Pages) -> None:
    for page in ("runs", "parallel"):
        shown = whole(pages, View(page=page, experiment="synthetic class_il clops", where="acu > 1").address())
        assert shown.find("p", class_="notice")[0].text == (
            "condition 'acu > 1': there is no column 'acu' (did you mean 'auc'?)."
        )


def test_boxes_and_conditions_lead_to_addresses(pages: Pages) -> None:
    page = whole(pages, f"{CLOPS}&page=runs&at=3&group=storage_fraction")
    groups = {it.attributes["id"]: it.attributes["value"] for it in page.find("input", type="checkbox")}
    assert View.read(groups["choice-group-storage_fraction"]).group == (), "ticked already"
    other = View.read(groups["choice-group-acquisition_fraction"])
    assert (set(other.group), other.at) == ({"storage_fraction", "acquisition_fraction"}, 1)
    (form,) = page.find("form")
    given = {it.attributes["name"]: it.attributes["value"] for it in form.find("input")}
    assert given.pop("metric") == "auc"
    assert given == {
        "page": "runs", "experiment": "synthetic class_il clops", "rows": "storage_fraction",
        "columns": "acquisition_fraction", "group": "storage_fraction", "where": "",
    }  # fmt: skip


def test_every_link_of_every_page_leads_to_a_page(pages: Pages) -> None:
    for name in PAGES:
        for link in whole(pages, f"{CLOPS}&page={name}").find("a")[len(PAGES) : len(PAGES) + 3]:
            assert whole(pages, link.attributes["href"]).children


def test_instances_say_why_there_is_no_tracing(pages: Pages) -> None:
    page = whole(pages, f"{CLOPS}&page=instances")
    (link, *_) = (it for it in page.find("a") if str(it.attributes.get("id")).startswith("instance-"))
    assert "the prepared frames of this run are not available" in whole(pages, link.attributes["href"]).text


def test_a_search_shows_history_trials_and_importance_without_its_file(searched: RunStore) -> None:
    pages = pages_of(searched)
    assert "4 complete, 1 failed" in whole(pages, "").text
    page = whole(pages, "?page=search")
    assert "5 trials: 4 complete, 0 pruned, 1 failed, 0 running." in page.text
    (graph,) = page.find("div", class_="graph")
    dots, best = graph.figure["data"]
    assert dots["x"] == [0, 1, 2, 3]
    assert best["y"] == np.maximum.accumulate(dots["y"]).tolist()
    (asked,) = page.find("div", id="importance")
    part = read(pages.importance(asked.attributes["data-src"].removeprefix("/importance")))
    assert part.find("div", class_="graph") or "importance" in part.text
    heatmap = whole(pages, "?page=heatmap&experiment=tuned")
    assert len(heatmap.find("a")) > 4


def words_of(element: Element) -> str:
    """Its text, with a space between elements."""
    return " ".join(" ".join(it if isinstance(it, str) else words_of(it) for it in element.children).split())


def cells_of(page: Element, table: str) -> list[list[str]]:
    """The texts of a table, its head first."""
    (found,) = page.find("table", aria_label=table)
    return [[words_of(cell) for cell in row.children if isinstance(cell, Element)] for row in found.find("tr")]


def test_the_overview_begins_with_the_best_configurations(pages: Pages) -> None:
    page = whole(pages, "")
    (table, *_) = page.find("table")
    assert table.attributes["aria-label"] == "Experiments and their best configurations"
    head, clops, finetune = cells_of(page, table.attributes["aria-label"])
    assert head[:5] == ["experiment", "Average AUC", "95 % interval", "n", "best configuration"]
    assert clops[0] == "synthetic class_il clops"
    mean, low, high = map(float, re.findall(r"0\.\d{3}", f"{clops[1]} {clops[2]}"))
    assert low < mean < high
    assert clops[3] == "3"
    assert finetune[3] == "3"
    (link,) = (it for it in table.find("a") if it.text == clops[4])
    assert View.read(link.attributes["href"]).page == "heatmap"
    assert "Learning curves" in str([it.attributes for it in whole(pages, link.attributes["href"])])
    graph = next(it for it in page.find("div", class_="graph") if it.attributes["id"] == "over-runs")
    dots, best = graph.figure["data"]
    assert best["y"] == np.maximum.accumulate(dots["y"]).tolist()


def test_runs_under_way_are_shown_with_task_epoch_and_time_left(tmp_path: Path, generated: ModuleType) -> None:
    space = SearchSpace("own", RunConfig(), {"storage_fraction": [0.1, 0.5]}, range(2))
    store = RunStore(tmp_path / "results")
    first, second, third, _ = (it.config for it in space.requests())
    generated.write_given_runs(store, [(first, {"auc": 0.7})])
    ids = [it.run_id("generated0001") for it in (second, third)]
    followed = FollowedStore(store, StoreSource(store, lambda key: None, lambda: [space]), 0)
    pages = Pages(followed)
    before = pages.refresh("?page=overview"), pages.refresh("?page=runs")
    assert "Running now" not in whole(pages, "").text
    file = LaunchFile(store)
    file.begin(())
    ends_at = time.time() + 3601
    file.write([UnderWay((ids[0],), "own: x", 2, 4, 3, 5, ends_at), UnderWay((ids[1], "c" * 24), HOSTILE)])
    assert pages.refresh("?page=overview") != before[0]
    assert pages.refresh("?page=runs") == before[1], "nothing that this page shows has changed"
    page = whole(pages, "")
    assert "1 run finished, 3 running, 0 missing." in words_of(page)
    _, one, two = cells_of(page, "Running now")
    assert one[:4] == ["b = 0.5, seed 0", "60 min", "2 of 4", "3 of 5"]
    assert one[5] == "own"
    assert two[:4] == [HOSTILE, DASH, "starting", DASH]
    (link, *_) = (it for it in page.find("a") if it.text == one[0])
    assert "running, task 2 of 4, epoch 3 of 5, 60 min left" in words_of(whole(pages, link.attributes["href"]))
    assert [cell for row in cells_of(whole(pages, "?page=runs"), "Runs") for cell in row].count("running") == 2
    file.write([])
    pages.refresh()
    assert "Running now" not in whole(pages, "").text


def test_the_counts_of_a_page_are_those_of_its_head(tmp_path: Path, generated: ModuleType) -> None:
    space = SearchSpace("own", RunConfig(), {"storage_fraction": [0.1, 0.5, 0.9]}, range(8))
    store = RunStore(tmp_path / "results")
    done = [it.config for it in space.requests()][:9]
    generated.write_given_runs(store, [(it, {"auc": 0.7}) for it in done])
    pages = Pages(FollowedStore(store, StoreSource(store, lambda key: None, lambda: [space]), 0))
    text = words_of(whole(pages, "?page=runs"))
    assert "9 runs finished, 15 missing." in text
    assert "24 runs: 9 finished, 15 missing" in text


def test_runs_without_curves_are_said_to_have_none(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path / "results")
    configs = [
        RunConfig(acquisition=acquisition, seed=seed) for acquisition in ("bald_mcd", "entropy") for seed in (0, 1)
    ]
    generated.write_given_runs(store, [(it, {"auc": 0.7}) for it in configs])
    pages = pages_of(store)
    run = configs[0].run_id("generated0001")
    for page in ("heatmap", "runs", "compare"):
        shown = whole(pages, View(page=page, cells=(run,)).address())
        assert "no finished run" not in shown.text
        assert any(re.search("recorded no|no learning curves", it.text) for it in shown.find("p", class_="notice"))
        assert "Bald_mcd" not in shown.text
        assert "bald_mcd" in shown.text


def test_a_row_is_selected_and_its_curves_are_drawn(pages: Pages) -> None:
    page = whole(pages, f"{CLOPS}&page=runs")
    boxes = [it for it in page.find("input", type="checkbox") if "pick-" in it.attributes.get("id", "")]
    assert len(boxes) == 29, "finished runs can be picked"
    one = whole(pages, boxes[0].attributes["value"])
    (graph,) = one.find("div", id="overlay")
    assert len([it for it in graph.figure["data"] if "fill" not in it]) == 1
    again = next(it for it in one.find("input") if it.attributes.get("id") == boxes[0].attributes["id"])
    assert "checked" in again.attributes
    other = next(it for it in one.find("input") if it.attributes.get("id") == boxes[1].attributes["id"])
    two = whole(pages, other.attributes["value"])
    (graph,) = two.find("div", id="overlay")
    assert len([it for it in graph.figure["data"] if "fill" not in it]) == 2
    grouped = whole(
        pages, View(**{**vars(View.read(other.attributes["value"])), "group": ("storage_fraction",)}).address()
    )
    (graph,) = grouped.find("div", id="overlay")
    (line,) = [it for it in graph.figure["data"] if "fill" not in it]
    assert line["name"].startswith("b = 0.1 (n = "), "both runs are in one row now"
    (clear,) = two.find("a", id="clear")
    assert not whole(pages, clear.attributes["href"]).find("div", id="overlay")


def test_a_selection_spans_experiments(pages: Pages, store: RunStore) -> None:
    page = whole(pages, f"{CLOPS}&page=runs")
    (box, *_) = (it for it in page.find("input", type="checkbox") if "pick-" in it.attributes.get("id", ""))
    selected = whole(pages, box.attributes["value"])
    (experiments,) = selected.find("select", id="choose-experiment")
    finetune = whole(pages, experiments.find("option")[1].attributes["value"])
    (box, *_) = (it for it in finetune.find("input", type="checkbox") if "pick-" in it.attributes.get("id", ""))
    both = View.read(box.attributes["value"])
    assert len(both.cells) == 2
    compared = whole(pages, View(page="compare", cells=both.cells).address())
    _, *rows = cells_of(compared, "Comparison")
    assert [row[-1] for row in rows] == ["synthetic class_il clops", "synthetic class_il finetune"]
    assert rows[1][-2] == "reference"
    assert re.fullmatch(r"\+0\.\d{3} \[-?0\.\d{3}, 0\.\d{3}\]", rows[0][-2])
    (clear,) = compared.find("a", id="clear")
    assert "The best configuration of each experiment" in whole(pages, clear.attributes["href"]).text


def test_every_column_of_the_runs_sorts_and_metrics_come_first(pages: Pages) -> None:
    page = whole(pages, f"{CLOPS}&page=runs")
    (table,) = page.find("table", aria_label="Runs")
    heads = table.find("th", scope="col")
    assert [words_of(it).rstrip(" ↑↓") for it in heads[:5]] == ["run", "Average AUC", "BWT", "BWT_t", "BWT_lambda"]
    assert [words_of(it) for it in heads if not it.find("a")] == ["tags"], "which only the browser knows"
    for head in heads[:-1]:
        (link,) = head.find("a")
        whole(pages, link.attributes["href"])
    (csv,) = page.find("a", id="csv")
    assert csv.attributes["href"].startswith("/runs.csv?")
    lines = pages.csv(csv.attributes["href"].removeprefix("/runs.csv")).splitlines()
    assert len(lines) == 33


def test_a_heatmap_has_a_list_for_each_other_axis_and_one_tab_stop(pages: Pages) -> None:
    page = whole(pages, f"{CLOPS}&page=heatmap")
    (choice,) = (it for it in page.find("select") if it.attributes["id"].startswith("slice-"))
    assert [it.text for it in choice.find("option")] == ["random", "top"]
    top = whole(pages, choice.find("option")[1].attributes["value"])
    (chosen,) = (it for it in top.find("select") if it.attributes["id"].startswith("slice-"))
    assert [it.text for it in chosen.find("option") if "selected" in it.attributes] == ["top"]
    links = [it for it in top.find("a") if it.attributes.get("id", "").startswith("cell-")]
    assert [it.attributes["tabindex"] for it in links].count("0") == 1
    assert re.fullmatch(r"0\.\d{3} ± 0\.\d{3} n = \d( of 3)?", words_of(links[0]))


def test_instances_open_on_a_run_that_has_some_and_others_are_searched(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path / "results")
    plain = [RunConfig(strategy="clops", storage_fraction=b, seed=seed) for b in (0.1, 0.5) for seed in range(3)]
    generated.write_given_runs(store, [(it, {"auc": 0.7}) for it in plain])
    with_some = RunConfig(strategy="clops", storage_fraction=0.9)
    run = with_some.run_id("generated0001")
    write_finished(store, run, generated.generated_tables(with_some, run, instances=4, epochs=1))
    generated.write_given_runs(store, [(RunConfig(strategy="agem", seed=seed), {"auc": 0.7}) for seed in range(3)])
    pages = pages_of(store)
    page = whole(pages, "?page=instances")
    assert "16 training instances" in page.text, "though agem comes first and has none"
    assert [it.attributes["id"] for it in page.find("select")] == ["choose-experiment", "choose-task"]
    found = whole(pages, View(page="instances", experiment="synthetic class_il clops", find="0.5 SEED").address())
    (matches,) = found.find("ul", class_="matches")
    assert [it.text for it in matches.find("a")] == [f"b = 0.5, seed {seed}" for seed in range(3)]
    assert "3 of 7 runs" in matches.text
    by_id = whole(pages, View(page="run", experiment="synthetic class_il clops", find=run[:8]).address())
    assert [it.text for it in by_id.find("ul", class_="matches")[0].find("a")] == ["b = 0.9, seed 0"]
    none = whole(pages, matches.find("a")[0].attributes["href"])
    assert "this run has recorded no instances" in none.text


def test_a_run_has_its_log_its_error_and_its_settings(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path / "results")
    config = RunConfig(seed=3)
    run = config.run_id("generated0001")
    generated.write_failed_run(store, config, run)
    log = store.log_folder / "logs" / "20260101-000000-1.log"
    log.parent.mkdir(parents=True)
    log.write_text(f"[run {run[:12]}] epoch 1 {HOSTILE}\n[run {'f' * 12}] of another\n")
    text = words_of(whole(pages_of(store), "?page=run"))
    for part in (f"{run} : failed", "ValueError: generated failure", HOSTILE, "storage_fraction 0.25"):
        assert " ".join(part.split()) in text
    assert "of another" not in text
    assert "../" not in words_of(whole(pages_of(store), "?page=run&run=../../etc/passwd")).replace(
        "../../etc/passwd", ""
    )


def test_controls_that_unfold_are_named(pages: Pages) -> None:
    for name in PAGES:
        for it in whole(pages, f"{CLOPS}&page={name}").find("details"):
            first = next(child for child in it.children if isinstance(child, Element))
            assert first.kind == "summary", "else a browser calls it Details"
            assert words_of(first)


def test_an_empty_store_says_so_on_every_page(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    pages = pages_of(store)
    for name in PAGES:
        assert whole(pages, f"?page={name}").find("p", class_="notice")


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


@pytest.mark.parametrize("name", PAGES)
def test_what_a_store_says_is_text(name: str, hostile: RunStore) -> None:
    pages = pages_of(hostile)
    page = whole(pages, View(page=name).address())
    if name == "heatmap":
        links = [link.attributes["href"] for link in page.find("a") if "cell-" in str(link.attributes.get("id"))]
        page = whole(pages, View(page=name, cells=tuple(View.read(it).cells[0] for it in links)).address())
    seen = ""
    for it in page:
        assert it.kind not in ("script", "iframe", "object", "embed")
        assert not any(attribute.startswith("on") for attribute in it.attributes)
        assert str(it.attributes.get("href", "?")).startswith(("?", "/runs.csv?"))
        assert str(it.attributes.get("src", "data:image/png;base64,")).startswith("data:image/png;base64,")
        seen += "".join(child for child in it.children if isinstance(child, str))
        if "data-figure" in it.attributes:
            for text in texts_of(it.figure):
                assert re.findall(r"<(?!br>)", text) == [], "Plotly takes this for markup"
                assert "hovertemplate" not in it.figure
    assert "\x1b" not in seen
    if name in ("overview", "runs", "heatmap", "run"):
        assert "<script>alert(1)</script>" in seen, "as it is, as text"


def texts_of(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for value in data.values():
            yield from texts_of(value)
    elif isinstance(data, list):
        for value in data:
            yield from texts_of(value)


def test_text_for_plotly_is_escaped_once() -> None:
    assert plain("<b>a & b</b>\x1b") == "&lt;b&gt;a &amp; b&lt;/b&gt;\\x1b"
    assert plain("\"quotes\" 'stay'") == "\"quotes\" 'stay'"


def test_colours_are_those_of_the_report() -> None:
    assert colours([0, 1, np.nan], (0, 1), metric_named("auc"))[:2] == ["#440154", "#fde725"]
    assert colours([[-1, 1]], (-1, 1), metric_named("bwt")) == ["#7f3b08", "#2d004b"]


# --- who may see it ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["flask", "plotly", "waitress"])
def test_without_its_packages_a_sentence_says_what_to_install(
    missing: str, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    says = (
        r"^the dashboard needs Flask, Plotly and waitress; install them with: pip install 'clops-sweep\[dashboard\]'$"
    )
    with pytest.raises(UsageError, match=says):
        make_server(store, source_of(store), host=None, port=0, token=None)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"host": "0.0.0.0", "token": None}, "needs a token of at least 16 characters"),
        ({"host": "0.0.0.0", "token": "short"}, "needs a token of at least 16 characters"),
        (
            {"host": "256.256.256.256", "token": "x" * 20},
            r"--host '256.256.256.256': .*; expected a name or an address",
        ),
        ({"port": None}, r"port \d+ of 127.0.0.1: .*; name another with --port"),
        ({"store": "nowhere"}, "there is no such folder"),
    ],
)
def test_what_cannot_be_served_is_a_sentence(given: dict[str, Any], says: str, store: RunStore, tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1] if "port" in given else 0
        chosen = RunStore(tmp_path / "nowhere") if "store" in given else store
        arguments = {"host": None, "token": None} | {
            name: it for name, it in given.items() if name in ("host", "token")
        }
        with pytest.raises(UsageError, match=says):
            make_server(chosen, source_of(chosen), port=port, **arguments)


def served(store: RunStore, host: str | None, token: str | None) -> Any:
    """A client of the application of a server that has been made, and was not started."""
    pytest.importorskip("flask", reason="Flask is not installed: the dashboard is not served")
    server = make_server(store, source_of(store), host=host, port=0, token=token)
    server.close()
    return server, server.app.test_client()


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
    assert client.get("/plotly.js").status_code == 200
    assert client.get("/version").get_data(as_text=True) == "1.0"
    assert client.get("/version?page=runs").get_data(as_text=True) == "1"


def test_elsewhere_the_token_lets_in_and_then_its_cookie(store: RunStore) -> None:
    token = "a-token-of-some-length"
    server, client = served(store, "127.0.0.1", token)
    assert server.address.endswith(f"/?token={token}")
    for path in ("/", "/version", "/assets/dashboard.css", "/plotly.js", f"/?token={token[:-1]}", "/?token=é"):
        assert client.get(path).status_code == 403
    assert client.post("/", json={}).status_code == 403
    answer = client.get(f"/?page=runs&token={token}&cells=a&cells=b")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/?page=runs&cells=a&cells=b")
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert client.get("/?page=runs").status_code == 200
    assert client.get("/version").status_code == 200


def test_runs_that_have_all_failed_are_shown_on_every_page(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path / "results")
    for seed in (0, 1):
        config = RunConfig(seed=seed)
        generated.write_failed_run(store, config, config.run_id("generated0001"))
    pages = pages_of(store)
    for name in PAGES:
        page = whole(pages, f"?page={name}")
        assert "This page cannot be shown" not in page.text
        assert "cannot be read" not in page.text
    assert "2 failed" in whole(pages, "?page=heatmap").text
    assert [cell.text for cell in whole(pages, "?page=heatmap").find("td", class_="empty")] == ["failed"]
