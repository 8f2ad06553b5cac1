from __future__ import annotations

import math
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.drawing.style import DIVERGING, SEQUENTIAL, as_png, luminance, readable_on, spread
from clops_sweep.analysis.drawing.svg import as_svg
from clops_sweep.analysis.figures.heatmaps import draw_heatmap, heatmap, place_in_words
from clops_sweep.errors import UsageError
from clops_sweep.store.run_store import RunStore

SPACE = SearchSpace(
    "by hand",
    RunConfig(),
    {
        "storage_fraction": [0.1, 0.5],
        "order": {"Top": {}, "Bottom": {"storage_order": "bottom"}},
        "acquisition_fraction": [0.25, 1.0],
    },
    seeds=range(2),
)


@pytest.fixture
def by_hand(tmp_path: Path, generated: ModuleType) -> Experiment:
    store = RunStore(tmp_path)
    rows = []
    for request in SPACE.requests():
        c = request.config
        if c.storage_order == "bottom" and (c.storage_fraction == 0.1 or c.seed == 1):
            continue
        auc = 0.6 + c.storage_fraction / 10 + c.acquisition_fraction / 100 + 0.02 * c.seed
        rows.append((c, {"auc": auc - 0.2 * (c.storage_order == "bottom"), "bwt": -auc / 10}))
    generated.write_given_runs(store, rows)
    return collect([SPACE], store.read("runs"))[0]


def test_record_by_hand(by_hand: Experiment) -> None:
    record = heatmap(by_hand)
    top, bottom = record.panels
    assert (record.row_axis, record.column_axis) == ("storage_fraction", "acquisition_fraction")
    assert (top.title, bottom.title) == ("Top", "Bottom")
    np.testing.assert_allclose(top.mean, [[0.6225, 0.63], [0.6625, 0.67]])
    np.testing.assert_allclose(top.sd, np.full((2, 2), 0.02 / math.sqrt(2)))
    np.testing.assert_allclose(bottom.mean, [[math.nan, math.nan], [0.4525, 0.46]])
    assert bottom.n.tolist() == [[0, 0], [1, 1]]
    assert bottom.asked.tolist() == [[2, 2], [2, 2]]
    assert (top.best, bottom.best, record.best_panel) == ((1, 1), (1, 1), 0)
    assert record.limits == pytest.approx((0.4525, 0.67))


def test_signed_metrics_are_centred_on_zero(by_hand: Experiment) -> None:
    low, high = heatmap(by_hand, "bwt").limits
    assert -low == high == pytest.approx(0.067)


def test_axes_can_be_chosen_and_swapped(by_hand: Experiment) -> None:
    swapped = heatmap(by_hand, axes=("acquisition_fraction", "storage_fraction"))
    np.testing.assert_allclose(swapped.panels[0].mean, heatmap(by_hand).panels[0].mean.T)
    by_variant = heatmap(by_hand, axes=("order", "storage_fraction"))
    assert [panel.title for panel in by_variant.panels] == [
        "acquisition fraction, a = 0.25",
        "acquisition fraction, a = 1",
    ]


@pytest.mark.parametrize(
    ("metric", "axes", "message"),
    [
        ("bwtt", None, r"metric 'bwtt': expected a numeric column of runs, .* \(did you mean 'bwt_t'\?\)"),
        ("git_commit", None, "metric 'git_commit': expected a numeric column of runs, such as auc, bwt"),
        ("auc", ("storage_fraction", "depth"), "no axis 'depth'; it has storage_fraction, order"),
        ("auc", ("order", "order"), "named twice"),
    ],
)
def test_wrong_choices_end_in_a_sentence(
    by_hand: Experiment, metric: str, axes: tuple[str, str] | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        heatmap(by_hand, metric, axes)


def test_drawing_shows_values_gaps_and_counts(by_hand: Experiment) -> None:
    record = heatmap(by_hand)
    figure = draw_heatmap(record)
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert {"0.670", "0.460", "n = 1 of 2", "★"} <= set(texts)
    hatched = [cells for axes in figure.axes for cells in axes.collections if cells.get_hatch()]
    assert [len(cells.get_paths()) for cells in hatched] == [2]


def test_zero_has_no_sign(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path)
    generated.write_given_runs(store, [(request.config, {"bwt": -0.0002}) for request in SPACE.requests()])
    record = heatmap(collect([SPACE], store.read("runs"))[0], "bwt")
    texts = [text.get_text() for text in draw_heatmap(record).axes[0].texts]
    assert "-0.000" not in texts
    assert "0.000" in texts


def test_files_are_the_same_each_time(by_hand: Experiment) -> None:
    first, second = (draw_heatmap(heatmap(by_hand)) for _ in range(2))
    assert as_png(first) == as_png(second)
    assert as_svg(first, "grid", "") == as_svg(second, "grid", "")


def test_the_users_settings_are_left_alone(by_hand: Experiment) -> None:
    with mpl.rc_context({"font.size": 31.0}):
        draw_heatmap(heatmap(by_hand))
        assert mpl.rcParams["font.size"] == 31.0


@pytest.mark.parametrize("name", [SEQUENTIAL, DIVERGING])
def test_ink_is_readable_on_every_colour(name: str) -> None:
    for background in mpl.colormaps[name](np.linspace(0, 1, 101)):
        light, dark = sorted((luminance(background), luminance(readable_on(background))), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_labels_are_moved_apart_and_stay_in_order() -> None:
    placed = spread([0.5, 0.5, 0.9, 0.52], gap=0.1, low=0.0, high=1.0)
    assert [round(p, 6) for p in placed] == pytest.approx([0.406667, 0.506667, 0.9, 0.606667], abs=1e-5)
    crowded = spread([1.0] * 5, gap=0.2, low=0.0, high=1.0)
    assert crowded == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert spread([], 0.1, 0, 1) == []


def test_a_drawing_says_what_a_cell_holds_and_keeps_its_text(spaces: list[SearchSpace], store: RunStore) -> None:
    (grid, _) = collect(spaces, store.read("runs"))
    record = heatmap(grid, "auc")
    panel = record.panels[0]
    cell = int(panel.cells[1, 1])
    values = grid.by_replicate("auc")[cell]
    ids = " ".join(grid.run_ids(cell))
    expected = f"b = 0.5, a = 0.5: Average AUC {values.mean():.3f} ± {values.std(ddof=1):.3f}, n = 3 of 3; runs {ids}"
    assert place_in_words(record, panel, (1, 1)) == expected
    assert place_in_words(record, panel, (0, 0)) == "b = 0.1, a = 0.25: no finished run yet"
    figure = draw_heatmap(record)
    as_png(figure)
    drawing = as_svg(figure, "grid", 'what "it" shows <b>')
    assert f"<title>{expected}</title>" in drawing
    assert drawing.count("<title>") == 12
    assert ElementTree.fromstring(drawing).tag.endswith("svg")
    assert "<a" not in drawing  # a click on a cell leads nowhere
    assert 'aria-label="what &quot;it&quot; shows &lt;b&gt;"' in drawing
    assert re.search(r"<text[^>]*>0\.\d{3}</text>", drawing)
    assert not re.search(r' [dxy]="[^"]*\.\d{3}', drawing), "places have two decimals"
