"""Figures as files."""

from __future__ import annotations

import base64
import io
import re

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import Normalize
from PIL import Image

from clops_sweep.analysis.drawing import style
from clops_sweep.analysis.drawing.cells import add_colour_bar
from clops_sweep.analysis.drawing.style import SEQUENTIAL, as_pdf, as_png, new_figure, styled
from clops_sweep.analysis.drawing.svg import as_svg


def test_a_pdf_has_text_in_truetype_and_no_date(pdf_fonttype: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(style._RC, "pdf.fonttype", pdf_fonttype)
    figure = styled(new_figure)(2, 1)
    figure.text(0.5, 0.5, "BWT_lambda")
    first = as_pdf(figure)
    assert first.startswith(b"%PDF")
    assert b"/FontFile2" in first
    assert b"/Type3" not in first
    assert b"Date" not in first
    assert as_pdf(figure) == first


@pytest.mark.parametrize("height", [1.0, 1.37, 2.2])
def test_a_colour_bar_has_every_shade_of_the_scale(height: float) -> None:
    """matplotlib's own has as many shades as it is pixels high."""
    figure = styled(new_figure)(2, height)
    add_colour_bar(figure, figure.subplots(), Normalize(0.2, 0.9), SEQUENTIAL, "Average AUC")
    as_png(figure)
    (encoded,) = re.findall(r'href="data:image/png;base64,\s*([^"]+)"', as_svg(figure, "bar", ""))
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(encoded))).convert("RGBA"))
    shades = 255 * mpl.colormaps[SEQUENTIAL](np.arange(256))
    np.testing.assert_allclose(pixels[:, 0], shades, atol=1)
