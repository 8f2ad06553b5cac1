"""The charts that compare runs, as data for Plotly: against the store's own numbers."""

from __future__ import annotations

import colorsys
import itertools
import json
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from scipy import stats

from clops_sweep import SearchSpace
from clops_sweep.analysis.collect import Experiment, collect, label_text
from clops_sweep.analysis.dashboard.app import Dashboard
from clops_sweep.analysis.dashboard.chart_parts import epoch_axis, number_axis, score_axis
from clops_sweep.analysis.dashboard.charts import parallel, scatter
from clops_sweep.analysis.dashboard.choice import Choice
from clops_sweep.analysis.dashboard.curve_charts import curves, history
from clops_sweep.analysis.dashboard.line_styles import line_styles
from clops_sweep.analysis.dashboard.means_charts import configurations, curve_styles, mean_curves, means_chart
from clops_sweep.analysis.dashboard.runs import RunsTable, kept_labels, run_names, runs_table
from clops_sweep.analysis.dashboard.snapshot import FollowedStore
from clops_sweep.analysis.dashboard.source import StoreSource
from clops_sweep.analysis.drawing.style import colour
from clops_sweep.analysis.results import mean_of
from clops_sweep.search.records import StudyRecord, TrialRecord
from clops_sweep.store.run_store import RunStore


@pytest.fixture(scope="module")
def experiment(spaces: list[SearchSpace], store: RunStore) -> Experiment:
    return collect(spaces[:1], store.read("runs"))[0]


@pytest.fixture(scope="module")
def table(experiment: Experiment) -> RunsTable:
    return runs_table(experiment, frozenset())


def points_of(experiment: Experiment, table: RunsTable, **given: str) -> dict[str, tuple[object, object]]:
    """The point of each run in a scatter."""
    choice = Choice.of(given, table, experiment)
    shown = choice.of_table(table)
    names = run_names(experiment, experiment.runs.iloc[shown.index])
    chart = json.loads(json.dumps(scatter(shown, names, choice, [])))
    points = {}
    for trace in chart["data"]:
        points |= dict(zip(trace["customdata"], zip(trace["x"], trace["y"], strict=True), strict=True))
    return points


def test_a_scatter_has_the_numbers_of_the_store(experiment: Experiment, table: RunsTable, store: RunStore) -> None:
    points = points_of(experiment, table, x="storage_fraction", y="bwt")
    rows = store.read("runs", list(points)).set_index("run_id")
    assert set(points) == set(experiment.runs.loc[experiment.runs["status"] == "finished", "run_id"])
    for run, (x, y) in points.items():
        assert float(x) == rows.loc[run, "storage_fraction"]
        assert y == rows.loc[run, "bwt"]


def test_only_the_labels_that_are_chosen_are_drawn(experiment: Experiment, table: RunsTable, store: RunStore) -> None:
    chosen = {"only-variant": "Random storage", "only-seed": "1", "colour": "storage_fraction"}
    points = points_of(experiment, table, **chosen)
    rows = store.read("runs", list(points))
    assert set(rows["storage_order"]) == {"random"}
    assert set(rows["seed"]) == {1}
    assert len(points) < len(points_of(experiment, table))


def test_means_are_those_of_each_configuration_with_the_interval_of_the_report(
    experiment: Experiment, table: RunsTable
) -> None:
    choice = Choice.of({"x": "storage_fraction", "y": "auc", "colour": "variant"}, table, experiment)
    assert choice.view == "means", "single runs are a click away"
    shown = choice.of_table(table)
    points = configurations(experiment, shown, "auc")
    assert [point.mean.mean for point in points] == sorted((point.mean.mean for point in points), reverse=True)
    drawn = {}
    for trace in means_chart(experiment, points, choice)["data"]:
        heights = zip(trace["y"], trace["error_y"]["arrayminus"], trace["error_y"]["array"], strict=True)
        drawn |= dict(zip(trace["customdata"], heights, strict=True))
    assert len(drawn) == shown.groupby(["storage_fraction", "acquisition_fraction", "variant"], observed=True).ngroups
    for point in points:
        expected = mean_of(experiment, point.cell, "auc")
        height, below, above = drawn[point.address]
        assert height == pytest.approx(expected.mean)
        if np.isfinite(expected.low):
            assert (height - below, height + above) == pytest.approx((expected.low, expected.high))
        else:
            assert (below, above) == (0, 0), "two runs have no interval"


def test_categories_are_sorted_by_score_and_points_have_the_colours_of_their_curves(
    experiment: Experiment, table: RunsTable, store: RunStore
) -> None:
    chosen = {"only-storage_fraction": "0.5", "only-acquisition_fraction": "0.5", "x": "variant", "colour": "variant"}
    choice = Choice.of(chosen | {"y": "auc"}, table, experiment)
    points = configurations(experiment, choice.of_table(table), "auc")
    assert len(points) > 1
    chart = means_chart(experiment, points, choice)
    best_first = [label_text(experiment.cells[point.cell].labels["variant"]) for point in points]
    assert chart["layout"]["xaxis"]["ticktext"] == best_first
    colours = {trace["name"]: trace["marker"]["color"] for trace in chart["data"]}
    styles = curve_styles(experiment, points, choice)
    rows = store.read("curves", experiment.runs["run_id"][experiment.runs["status"] == "finished"].tolist())
    curves = mean_curves(experiment, rows, points, "auc", "validation", "", styles)
    lines = [trace["line"]["color"] for trace in curves["data"] if trace.get("customdata")]
    assert [[line] for line in lines] == [colours[label] for label in best_first]


def test_lines_of_one_label_share_its_hue_and_differ_in_shade_and_dash() -> None:
    labels = ["er", "mine", *["er"] * 11]
    styles = line_styles(labels, ["mine", "er"])
    assert len(set(styles)) == len(labels)
    hues = [colorsys.rgb_to_hsv(*to_rgb(style.colour))[0] for style in styles]
    of_er = [hue for hue, label in zip(hues, labels, strict=True) if label == "er"]
    assert max(of_er) - min(of_er) < 0.02
    assert hues[1] not in of_er
    assert [styles[1].colour, styles[0].colour] == [colour(0), colour(1)], "the colours of their points"


def test_lines_of_different_labels_beyond_the_palette_differ() -> None:
    without_labels = line_styles([""] * 24, [""])
    assert len(set(without_labels)) == 24
    assert [style.colour for style in without_labels[:8]] == [colour(position) for position in range(8)]


def test_a_configuration_has_the_symbol_of_its_point_and_the_dash_of_its_curve(
    experiment: Experiment, table: RunsTable
) -> None:
    choice = Choice.of({"x": "storage_fraction", "y": "auc", "colour": "variant"}, table, experiment)
    points = configurations(experiment, choice.of_table(table), "auc")
    styles = curve_styles(experiment, points, choice)
    assert len(set(styles)) == len(points) > 2
    drawn = {}
    for trace in means_chart(experiment, points, choice)["data"]:
        looks = zip(trace["marker"]["color"], trace["marker"]["symbol"], strict=True)
        drawn |= dict(zip(trace["customdata"], looks, strict=True))
    for point, style in zip(points, styles, strict=True):
        assert drawn[point.address] == (style.colour, style.symbol)


def test_means_are_those_of_the_runs_that_filters_keep(experiment: Experiment, table: RunsTable) -> None:
    choice = Choice.of({"y": "auc", "only-seed": "1"}, table, experiment)
    shown = choice.of_table(table)
    of_seed = dict(zip(experiment.runs.iloc[shown.index]["cell"], shown["auc"], strict=True))
    assert {point.cell: point.mean.mean for point in configurations(experiment, shown, "auc")} == of_seed


def test_a_click_on_a_configuration_lists_its_runs(experiment: Experiment, table: RunsTable) -> None:
    choice = Choice.of({"y": "auc"}, table, experiment)
    point = configurations(experiment, choice.of_table(table), "auc")[0]
    given = dict(parse_qsl(urlsplit(point.address).query))
    kept = table.only(kept_labels(given, table)).frame
    assert given["experiment"] == experiment.name
    assert set(kept["run_id"]) == set(experiment.runs.query(f"cell == {point.cell}")["run_id"])


def test_mean_curves_have_the_interval_over_seeds(experiment: Experiment, table: RunsTable, store: RunStore) -> None:
    choice = Choice.of({"y": "auc"}, table, experiment)
    point = next(it for it in configurations(experiment, choice.of_table(table), "auc") if it.n == "3 seeds")
    rows = store.read("curves", list(experiment.run_ids(point.cell)))
    band, curve = mean_curves(experiment, rows, [point], "auc", "validation", "")["data"]
    by_epoch = rows.groupby(["epoch", "run_id"])["auc"].mean().groupby("epoch")
    np.testing.assert_allclose(curve["y"], by_epoch.mean())
    half = stats.t.ppf(0.975, 2) * by_epoch.std() / np.sqrt(3)
    highs = band["y"][: len(curve["y"])]
    np.testing.assert_allclose(highs, np.minimum(by_epoch.mean() + half, 1))
    assert band["fill"] == "toself"
    assert band.get("visible", True) is True  # a trace without the key is shown


def test_bands_of_many_curves_are_hidden_until_the_mouse_is_on_one(
    experiment: Experiment, table: RunsTable, store: RunStore
) -> None:
    choice = Choice.of({"y": "auc"}, table, experiment)
    points = [it for it in configurations(experiment, choice.of_table(table), "auc") if it.n == "3 seeds"][:3]
    ids = [run for point in points for run in experiment.run_ids(point.cell)]
    lines = mean_curves(experiment, store.read("curves", ids), points, "auc", "validation", "")["data"]
    assert [line.get("visible", True) for line in lines] == [False, True] * 3
    assert {line["meta"] for line in lines[::2]} == {"hidden band"}


def test_parallel_coordinates_have_a_line_for_each_run(experiment: Experiment, table: RunsTable) -> None:
    choice = Choice.of({"y": "auc", "colour": "none", "view": "parallel"}, table, experiment)
    shown = choice.of_table(table)
    names = run_names(experiment, experiment.runs.iloc[shown.index])
    chart = parallel(shown, names, choice, ["storage_fraction", "variant"])
    auc = shown.set_index("run_id")["auc"]
    last = {}
    for trace in chart["data"]:
        for x, y, run in zip(trace["x"], trace["y"], trace["customdata"], strict=True):
            if x == 2:
                last[run] = y
    assert set(last) == set(auc.index)
    for run, height in last.items():
        assert height == pytest.approx((auc[run] - auc.min()) / (auc.max() - auc.min()))
    assert chart["layout"]["xaxis"]["ticktext"] == ["storage fraction, b", "variant", "Average AUC"]
    ticks = [(it["x"], it["text"]) for it in chart["layout"]["annotations"]]
    assert {text for x, text in ticks if x == 1} == set(shown["variant"])


def test_parallel_coordinates_of_a_phone_have_an_axis_below_the_other(experiment: Experiment, table: RunsTable) -> None:
    choice = Choice.of({"y": "auc", "view": "parallel"}, table, experiment)
    shown = choice.of_table(table)
    names = run_names(experiment, experiment.runs.iloc[shown.index])
    narrow = parallel(shown, names, choice, table.varied)["layout"]["meta"]["narrow"]
    headings = [it for it in narrow["annotations"] if it["text"].startswith("<b>")]
    assert [it["y"] for it in headings] == list(range(len(table.varied) + 1)), "the first axis is at the top"
    first, last = narrow["yaxis"]["range"]
    assert first > last
    for place in range(len(headings)):
        texts = [it for it in narrow["annotations"] if it["y"] == place and it not in headings]
        assert texts
        ends = [_ends_of(it) for it in texts]
        assert all(right <= left for (_, right), (left, _) in itertools.pairwise(ends)), "no text covers another"
        assert min(ends)[0] >= 0
        assert max(right for _, right in ends) <= 1


def _ends_of(annotation: dict[str, object]) -> tuple[float, float]:
    """Left and right end of a text of 11 pixels, whose characters are 6 pixels wide, in a chart of 350 pixels."""
    width = len(unescape(str(annotation["text"]))) * 6 / 350
    place = float(str(annotation["x"]))
    left = {"left": place, "center": place - width / 2, "right": place - width}[str(annotation["xanchor"])]
    return left, left + width


def test_the_page_says_what_it_does_not_show(store: RunStore) -> None:
    dashboard = Dashboard(FollowedStore(store, StoreSource(store, lambda key: None), 0))
    page = dashboard.page("compare", {"experiment": "synthetic class_il clops"})
    assert "Runs that have not finished (3 failed)." in page
    dashboard.close()


def test_columns_that_do_not_exist_are_replaced(experiment: Experiment, table: RunsTable) -> None:
    choice = Choice.of({"x": "nothing", "y": "<b>", "colour": "auc"}, table, experiment)
    assert (choice.x, choice.y) == ("storage_fraction", "auc")
    assert choice.colour in table.labels


def test_curves_are_the_means_over_tasks(store: RunStore) -> None:
    rows = store.read("curves")
    run = str(rows["run_id"].iloc[0])
    (line,) = curves(rows, {run: "<i>a</i>"}, "auc", "validation", "")["data"]
    of_run = rows[rows["run_id"] == run]
    expected = [of_run.loc[of_run["epoch"] == epoch, "auc"].mean() for epoch in line["x"]]
    np.testing.assert_allclose(line["y"], expected)
    assert line["name"] == "&lt;i&gt;a&lt;/i&gt;"
    task = str(rows["task"].iloc[0])
    (of_task,) = curves(rows, {run: "a"}, "auc", "validation", task)["data"]
    first = of_run[(of_run["task"] == task) & (of_run["epoch"] == of_task["x"][0])]
    assert of_task["y"][0] == pytest.approx(first["auc"].item())


def test_the_history_of_a_search() -> None:
    trials = [TrialRecord(at, "complete", {"b": at}, (value,)) for at, value in enumerate((0.6, 0.8, 0.7))]
    (chart,) = history(StudyRecord("tuned", {"auc": "maximize"}, tuple(trials), (1,)))
    assert [trace["y"] for trace in chart["data"]] == [[0.6, 0.8, 0.7], [0.6, 0.8, 0.8]]
    assert history(StudyRecord("tuned", {"auc": "maximize"}, (), ())) == []


def test_the_page_shows_the_best_runs_or_those_picked(store: RunStore) -> None:
    dashboard = Dashboard(FollowedStore(store, StoreSource(store, lambda key: None), 0))
    runs = store.read("runs")
    clops = runs[(runs["strategy"] == "clops") & (runs["status"] == "finished")].sort_values("auc")
    given = {"experiment": "synthetic class_il clops", "y": "auc", "view": "points"}
    best = dashboard.page("compare", given)
    assert f"The best 8 of {len(clops)} runs by the vertical axis" in best
    for run in clops["run_id"].iloc[-8:]:
        assert f'href="/run?id={run}"' in best
    worst = clops["run_id"].iloc[0]
    picked = dashboard.page("compare", given | {"runs": f"{worst},unknown"})
    assert "1 picked run" in picked
    assert f'href="/run?id={worst}"' in picked
    assert f'href="/run?id={clops["run_id"].iloc[-1]}"' not in picked
    dashboard.close()


def test_missing_numbers_are_no_points(experiment: Experiment, table: RunsTable) -> None:
    frame = table.frame.assign(auc=np.nan)
    emptied = RunsTable(frame, table.labels, table.measured)
    points = points_of(experiment, emptied, y="auc")
    assert {y for _, y in points.values()} == {None}


def test_no_tick_is_between_two_epochs() -> None:
    assert epoch_axis([1, 2, 3]) == {"dtick": 1}
    assert epoch_axis(range(1, 200)) == {}, "a tick at each would be too many"
    assert epoch_axis([]) == {}


def test_ticks_do_not_cover_each_other() -> None:
    """Two learning rates of a search that were nearly equal had their numbers one upon the other."""
    rates = [0.00088, 0.00091, 0.0012, 0.0098]
    assert number_axis(rates)["tickvals"] == [0.00088, 0.0012, 0.0098]
    decades = [0.0001, 0.00011, 0.001, 0.01]
    assert number_axis(decades) == {
        "type": "log",
        "tickvals": [0.0001, 0.001, 0.01],
        "ticktext": ["0.0001", "0.001", "0.01"],
    }
    assert number_axis([1.0, 2.0])["tickvals"] == [1.0, 2.0]


def test_almost_equal_scores_do_not_fill_their_axis() -> None:
    low, high = score_axis("test_auc", [0.8510, 0.8512, None])["range"]
    assert (round(low, 4), round(high, 4)) == (0.8411, 0.8611)
    assert score_axis("test_auc", [0.7, 0.8]) == {}
    assert score_axis("seconds", [1.0, 1.001]) == {}, "only scores have a scale of their own"
    assert score_axis("test_auc", [None]) == {}
