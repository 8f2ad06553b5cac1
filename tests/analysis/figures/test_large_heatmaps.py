"""Heatmaps of so many cells that there is no room for their values."""

from __future__ import annotations

from types import ModuleType

import matplotlib as mpl
import numpy as np
import pytest

from clops_sweep.analysis.drawing.style import SCREEN, SEQUENTIAL, as_png
from clops_sweep.analysis.drawing.svg import as_svg
from clops_sweep.analysis.figures import heatmaps
from clops_sweep.analysis.figures.heatmaps import Heatmap, Panel, draw_heatmap
from clops_sweep.analysis.metrics import METRICS

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


def test_every_cell_has_its_colour_and_says_its_value(
    record: Heatmap, overlaps: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heatmaps, "MOST_WRITTEN", 200)
    figure = draw_heatmap(record)
    axes = figure.axes[0]
    known, hatched = axes.collections[-2:]
    assert [len(it.get_paths()) for it in axes.collections] == [4, 1] * 40, "what was not asked for is not there"
    cell = known.get_urls().index("b = 1, a = 0.5: Average AUC 0.939 ± 0.010, n = 2 of 2")
    colour = mpl.colormaps[SEQUENTIAL]((0.939 - 0.6) / (1.0 - 0.6))
    np.testing.assert_allclose(known.get_facecolors()[cell], colour)
    assert hatched.get_hatch()
    texts = [text.get_text() for text in axes.texts]
    assert texts.count("★") == 1
    assert {"T = 0", "T = 39"} <= set(texts)
    assert [len(dots.get_xdata()) for dots in axes.lines] == [1] * 40
    assert [text for text in overlaps.texts_in_each_other(figure) if "★" not in text] == []
    assert as_png(figure).startswith(b"\x89PNG")
    assert as_svg(figure, "many", "").count("<title>") == 200


def test_a_figure_is_no_higher_than_a_file_may_be(record: Heatmap, monkeypatch: pytest.MonkeyPatch) -> None:
    assert heatmaps._HIGHEST * SCREEN < 2**16, "Agg draws no more rows of pixels"
    assert not record.is_large
    monkeypatch.setattr(heatmaps, "MOST_WRITTEN", 200)
    monkeypatch.setattr(heatmaps, "_WIDTH", 1.0)
    high = draw_heatmap(record).get_figheight()
    monkeypatch.setattr(heatmaps, "_HIGHEST", 2.0)
    assert high > 4 > draw_heatmap(record).get_figheight()
    assert record.is_large
