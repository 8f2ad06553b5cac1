"""Lengths of scale bars are round numbers of a readable size."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clops_sweep.analysis.drawing.scale_bars import bar_length
from clops_sweep.analysis.update.figures import draw_tracing_of_flip
from clops_sweep.analysis.update.people import Flip, FlipTracing


@pytest.mark.parametrize(
    ("span", "length"), [(2.1, 1), (1.11, 0.5), (4, 2), (0.5, 0.2), (99, 20), (100, 50), (3e-4, 1e-4), (0.2, 0.1)]
)
def test_a_bar_is_the_largest_round_number_within_half_the_span(span: float, length: float) -> None:
    assert bar_length(span) == pytest.approx(length)


@pytest.mark.parametrize("span", [0.0, math.nan, math.inf])
def test_flat_signals_have_no_bar(span: float) -> None:
    assert bar_length(span) == 0


@pytest.mark.parametrize(("unit", "bars"), [("mV", 1), ("mV, bpm", 0)])
def test_a_tracing_of_an_update_report_has_a_bar_in_its_unit(unit: str, bars: int) -> None:
    flip = Flip(0, "ward A", "AF", "AF", "SR", "wrong", 0.9, 0.2, "ward A")
    signal = np.stack([np.linspace(-1, 1.2, 50), np.zeros(50)])
    (axes,) = draw_tracing_of_flip(FlipTracing("P1", flip, signal, ("I", "II"), 5.0, unit)).axes
    drawn = [line.get_ydata() for line in axes.lines[2:]]
    assert len(drawn) == bars
    assert [text.get_text() for text in axes.texts] == ["1 mV"] * bars
    for ends in drawn:
        assert np.ptp(ends) == pytest.approx(1), "the signals are drawn in their unit"
