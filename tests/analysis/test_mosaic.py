"""Heatmaps of so many cells that there is no room for their values."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from clops_sweep.analysis import mosaic
from clops_sweep.analysis.heatmaps import Heatmap, Panel
from clops_sweep.analysis.metrics import METRICS
from clops_sweep.analysis.mosaic import draw_mosaic
from clops_sweep.analysis.style import DPI, as_png
from clops_sweep.analysis.svg import Told, as_svgs

ROWS, COLUMNS = (0.1, 0.5, 1.0), (0.25, 0.5)


def panel(title: str, mean: np.ndarray, first: int) -> Panel:
    n = np.where(np.isfinite(mean), 2, 0)
    best = divmod(int(np.nanargmax(mean)), mean.shape[1])
    cells = first + np.arange(mean.size).reshape(mean.shape)
    asked = np.full(mean.shape, 2)
    asked[0, 0] = 0
    return Panel(title, mean, mean * 0 + 0.01, n, asked, 0 * n, best, cells, marked=mean > 0.85)


@pytest.fixture
def record() -> Heatmap:
    means = [np.array([[np.nan, 0.6], [0.7, np.nan], [0.8, 0.9 + i / 1000]]) for i in range(40)]
    panels = tuple(panel(f"T = {i}", mean, 6 * i) for i, mean in enumerate(means))
    return Heatmap(
        "many", METRICS["auc"], "storage_fraction", "acquisition_fraction", ROWS, COLUMNS, panels, (0.6, 1.0)
    )


def test_every_cell_has_its_colour_and_says_its_value(record: Heatmap, overlaps: ModuleType) -> None:
    figure = draw_mosaic(record)
    axes = figure.axes[0]
    field = np.asarray(axes.images[0].get_array().filled(np.nan))
    shown = field[np.isfinite(field)]
    np.testing.assert_array_equal(np.sort(shown), np.sort([v for it in record.panels for v in it.mean.flat if v == v]))
    (told,) = (it for it in axes.artists if isinstance(it, Told))
    assert len(told.texts) == 40 * 5, "a cell that nobody has asked for says nothing"
    corners = told.places[told.texts.index("b = 1, a = 0.5: Average AUC 0.939 ± 0.010, n = 2 of 2")]
    column, row = corners.min(axis=0).astype(int)
    assert field[row, column] == pytest.approx(0.939)
    hatched = [patch for patch in axes.patches if patch.get_hatch()]
    assert [len(patch.get_path().to_polygons()) for patch in hatched] == [40]
    texts = [text.get_text() for text in axes.texts]
    assert texts.count("★") == 1
    assert {"T = 0", "T = 39"} <= set(texts)
    (dots,) = axes.lines
    assert len(dots.get_xdata()) == 40
    assert [text for text in overlaps.texts_in_each_other(figure) if "★" not in text] == []
    assert as_png(figure).startswith(b"\x89PNG")
    outlines, text = as_svgs(figure, most_texts=10)
    assert outlines.count(b"<title>") == 200
    assert text == b""


def test_a_figure_is_no_higher_than_a_file_may_be(record: Heatmap, monkeypatch: pytest.MonkeyPatch) -> None:
    assert mosaic._HIGHEST * DPI < 2**16, "Agg draws no more rows of pixels"
    monkeypatch.setattr(mosaic, "_WIDTH", 1.0)
    high = draw_mosaic(record).get_figheight()
    monkeypatch.setattr(mosaic, "_HIGHEST", 2.0)
    assert high > 4 > draw_mosaic(record).get_figheight()
    assert not record.is_large
    assert replace(record, panels=record.panels * 20).is_large
