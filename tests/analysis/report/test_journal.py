"""Figures in the format of journals: widths in mm, fonts and panel letters, read from the files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import pypdf
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from clops_sweep.analysis.drawing import journal, style
from clops_sweep.analysis.drawing.pictures import Picture, sketch
from clops_sweep.analysis.drawing.style import new_figure, panels, styled
from tests.helpers import quick_fonts


@styled
def draw(size: Sequence[float]) -> Figure:
    width, count = size
    figure = new_figure(width, 2)
    for axes in panels(figure, 1, int(count), int(count))[0]:
        axes.set_title("panel of text")
    return figure


@pytest.fixture(autouse=True)
def bundled_font(monkeypatch: pytest.MonkeyPatch) -> None:
    """A font that matplotlib brings along instead of one that a machine may lack."""
    monkeypatch.setattr(journal, "FONTS", ("no such font", "DejaVu Serif"))


def letters_in(picture: Picture) -> list[str]:
    texts = (text.strip() for text in ElementTree.fromstring(picture.svg).itertext())
    return [text for text in texts if len(text) == 1 and text.isalpha()]


def for_journals(width: float, count: int = 2) -> Picture:
    return sketch(draw, (width, count), "name", "Title", "").for_journals()


@pytest.mark.parametrize(
    ("inches", "mm", "points"), [(4, 89, 7.0), (4.6, 89, None), (6, 120, 7.0), (9, 183, 7.0), (12, 183, None)]
)
def test_files_are_as_wide_as_columns_and_text_has_seven_points_or_less(
    inches: float, mm: float, points: float | None
) -> None:
    picture = for_journals(inches)
    (page,) = pypdf.PdfReader(io.BytesIO(picture.pdf)).pages
    scale = 7 / 9 if points else mm / 25.4 / inches
    assert float(page.mediabox.width) / 72 * 25.4 == pytest.approx(mm, abs=1e-4)
    assert float(page.mediabox.height) / 72 == pytest.approx(2 * scale, abs=1e-4)
    sizes: list[float] = []
    page.extract_text(
        visitor_text=lambda text, cm, tm, font, size: sizes.append(size * cm[0]) if text.strip() else None
    )
    assert max(sizes) == pytest.approx(9 * scale, abs=0.01)
    image = Image.open(io.BytesIO(picture.png))
    assert image.size == (round(mm / 25.4 * 300), pytest.approx(2 * scale * 300, abs=1))
    assert image.info["dpi"] == pytest.approx((300, 300), abs=0.1)
    assert f'width="{mm / 25.4 * 72:.2f}pt"' in picture.svg
    assert 'class="drawing journal"' in picture.svg, "the page keeps the font in which it was laid out"
    assert picture.is_wide == (mm > 89)


def test_text_is_in_the_font_and_several_panels_have_letters() -> None:
    picture = for_journals(6, 3)
    (page,) = pypdf.PdfReader(io.BytesIO(picture.pdf)).pages
    resources: Any = page["/Resources"]
    fonts = {
        str(font.get_object()["/BaseFont"] if "/BaseFont" in font.get_object() else font.get_object()["/Name"])
        for font in resources["/Font"].values()
    }
    assert fonts
    assert all("DejaVuSerif" in font for font in fonts)
    assert (letters_in(picture), letters_in(for_journals(6, 1))) == (["a", "b", "c"], [])
    assert picture == for_journals(6, 3), "equal records give equal files"


@styled
def _draw_high_titles(pad: float) -> Figure:
    figure = new_figure(6, 2)
    for axes in panels(figure, 1, 2, 2)[0]:
        axes.set_title("panel of text", loc="left", pad=pad)
    return figure


def test_letters_stand_on_the_line_of_titles() -> None:
    """Learning curves have a strip of tasks between a title and its panel."""
    figure = _draw_high_titles(30)
    journal.letter_panels(figure)
    figure.canvas.draw()
    for axes, letter in zip(figure.axes, "ab", strict=True):
        texts = {text.get_text(): text.get_window_extent() for text in axes.findobj(Text)}
        title, of_letter = texts["panel of text"], texts[letter]
        assert title.y0 <= of_letter.y0 <= title.y1
        assert of_letter.x1 < title.x0


def test_without_a_font_of_journals_the_shipped_one_is_used_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert journal.font_notice() == ""
    monkeypatch.setattr(journal, "FONTS", ("no such font",))
    assert "use DejaVu Sans, since none of the fonts no such font is installed" in journal.font_notice()
    (page,) = pypdf.PdfReader(io.BytesIO(for_journals(4).pdf)).pages
    fonts: Any = page["/Resources"]["/Font"]
    assert all("DejaVuSans" in str(font.get_object()) for font in fonts.values())


@pytest.mark.parametrize("inches", [4.0, 5.0, 5.4, 7.2, 8.9])
def test_no_file_is_half_empty(inches: float) -> None:
    width = journal.JournalWidth.of(new_figure(inches, 2))
    assert width.margin <= 0.16 * width.width
    assert width.scale >= 6 / 9


def test_fonts_of_reports_are_embedded_as_true_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text stays text, as journals require; PDF files of other tests have fonts that are made faster."""
    monkeypatch.setitem(style.RC, "pdf.fonttype", quick_fonts.OF_REPORTS)
    figure = new_figure(2, 2)
    figure.text(0.5, 0.5, "Average AUC")
    content = style.as_pdf(figure)
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
