from __future__ import annotations

import base64
import io
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from clops_sweep.analysis.drawing.style import SEQUENTIAL
from clops_sweep.analysis.report.page import RunEntry, RunList, Section, render_page
from clops_sweep.analysis.report.write import ReportPaths


@pytest.fixture(scope="module")
def page(chromium: Any, report: ReportPaths) -> Any:
    chromium.renew()
    chromium.address = report.index.as_uri()
    chromium.open(chromium.address)
    return chromium


def test_no_error_and_no_request_leaves_the_page(page: Any) -> None:
    page.run("new Promise(done => setTimeout(done, 200))")
    errors = [e for e in page.events if e["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]
    errors += [e for e in page.events if e["method"] == "Runtime.consoleAPICalled"]
    assert errors == []
    urls = {e["params"]["request"]["url"] for e in page.events if e["method"] == "Network.requestWillBeSent"}
    assert {url for url in urls if not url.startswith("data:")} == {page.address}


def test_every_figure_is_drawn_and_visible(page: Any) -> None:
    shown = page.run(
        "[...document.querySelectorAll('img, .drawing')].map(i => ({name: i.closest('figure').id,"
        " drawn: i.matches('.drawing') ? i.getBBox().width > 0 : i.complete && i.naturalWidth > 0,"
        " width: i.getBoundingClientRect().width, height: i.getBoundingClientRect().height}))"
    )
    assert len(shown) >= 8
    for image in shown:
        assert image["drawn"], image["name"]
        assert image["width"] > 250, image["name"]
        assert image["height"] > 60, image["name"]


def test_a_cell_of_a_figure_answers_to_a_pointer(page: Any) -> None:
    """A browser shows the title of the part that the pointer rests on, or of what it lies in."""
    page.run("document.getElementById('grid-heatmap-auc').scrollIntoView()")
    told = page.run(
        "[...document.querySelectorAll('#grid-heatmap-auc title')].map(title => {"
        " const box = title.parentElement.getBoundingClientRect();"
        " const under = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);"
        " return [title.textContent, title.parentElement.contains(under)]; })"
    )
    assert len(told) == 12
    assert all(found for _, found in told), "also where a number is written"
    assert sum(text.endswith(": no finished run yet") for text, _ in told) == 1
    assert sum(text.endswith(": 3 of 3 failed") for text, _ in told) == 1
    whole = re.compile(r"b = [\d.]+, a = [\d.]+: Average AUC 0\.\d{3} ± 0\.\d{3}, n = 3 of 3; runs( [0-9a-f]{24}){3}")
    assert sum(whole.fullmatch(text) is not None for text, _ in told) == 9


def test_a_click_sorts_and_another_turns_it_round(page: Any) -> None:
    def column() -> list[float]:
        values = page.run(
            "[...document.querySelector('#grid-results table').tBodies[0].rows].map(r => r.cells[4].dataset.sort)"
        )
        assert values[-1] == "", "the cell without a value stays last"
        return [float(value) for value in values if value]

    click = "document.querySelector('#grid-results').querySelectorAll('th button')[4].click()"
    page.run(click)
    falling = column()
    assert falling == sorted(falling, reverse=True)
    assert page.run("document.querySelectorAll('#grid-results th')[4].getAttribute('aria-sort')") == "descending"
    page.run(click)
    assert column() == falling[::-1]


def test_a_cell_opens_the_runs_behind_it(page: Any) -> None:
    page.run("document.querySelector('#grid-results td.value a').click()")
    page.run("new Promise(done => setTimeout(done, 100))")
    opened = page.run("[...document.querySelectorAll('details[open]')].map(d => d.id)")
    assert [name.rpartition("-")[0] for name in opened] == ["", "grid-runs"]
    assert page.run(f"document.querySelector('#{opened[1]} code').getBoundingClientRect().height") > 5


def test_a_page_of_many_experiments_is_folded_and_a_link_unfolds_what_it_leads_to(page: Any, tmp_path: Path) -> None:
    runs = RunList("third-runs-0", "a configuration", "1", (RunEntry("seed 0", "0123"),))
    sections = [
        Section(name, name, "1 of 1 runs finished.", (), (), (), (), (replace(runs, anchor=f"{name}-runs-0"),))
        for name in ("first", "second", "third", "fourth")
    ]
    for shown, folded in ((sections[:3], 0), (sections, 4)):
        (tmp_path / "page.html").write_text(render_page("many", "", None, shown, (), None, "results"))
        address = (tmp_path / "page.html").as_uri()
        page.open(address)
        assert page.run("document.querySelectorAll('details.experiment').length") == folded
    opened = "[...document.querySelectorAll('details[open]')].map(it => it.id || it.closest('section').id)"
    page.open(f"{address}#third-runs-0")
    assert page.run(opened) == ["third", "third", "third-runs-0"]
    page.run("document.querySelector('nav a[href=\"#second\"]').click()")
    page.run("new Promise(done => setTimeout(done, 100))")
    assert page.run(opened) == ["second", "third", "third", "third-runs-0"]
    page.run("dispatchEvent(new Event('beforeprint'))")
    assert len(page.run(opened)) == 12, "paper has no clicks"
    page.run("dispatchEvent(new Event('afterprint'))")
    assert len(page.run(opened)) == 4
    page.open(page.address)


def test_a_colour_bar_has_the_colours_of_its_cells(page: Any) -> None:
    """Each of its pixels, without those that it covers in part."""
    page.call("Emulation.setDeviceMetricsOverride", width=1280, height=1000, deviceScaleFactor=1, mobile=False)
    try:
        box = page.run(
            "(bar => { bar.scrollIntoView({block: 'center'}); return bar.getBoundingClientRect().toJSON(); })"
            "(document.querySelector('#grid-heatmap-auc image'))"
        )
        taken = base64.b64decode(page.call("Page.captureScreenshot")["data"])
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")
    pixels = np.asarray(Image.open(io.BytesIO(taken)).convert("RGB"), dtype=float)
    bar = pixels[math.ceil(box["top"]) : math.floor(box["bottom"]), round((box["left"] + box["right"]) / 2)]
    expected = 255 * mpl.colormaps[SEQUENTIAL](np.linspace(1, 0, len(bar)))[:, :3]
    assert len(bar) > 100
    assert np.abs(bar - expected).max() < 10


def test_the_first_screen_has_the_best_configurations_and_no_table_hides_n_or_p(page: Any) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False)
    try:
        assert page.run("document.querySelector('#best table').getBoundingClientRect().bottom + scrollY") < 800
        hidden = page.run(
            "[...document.querySelectorAll('main > figure .scroll, section > figure .scroll')]"
            ".filter(it => it.querySelector('table')).map(it => it.scrollWidth - it.clientWidth)"
        )
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")
    assert len(hidden) >= 3
    assert max(hidden) <= 0


def test_it_fits_a_phone(page: Any) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=2, mobile=True)
    try:
        assert page.run("document.documentElement.scrollWidth") <= 390
        assert page.run("parseFloat(getComputedStyle(document.body).fontSize)") >= 16
        frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        page.run(frames)
        for figure in ("grid-heatmap-auc", "grid-results"):
            assert page.run(f"getComputedStyle(document.querySelector('#{figure} .hint')).display") == "block"
        page.run("document.querySelector('#grid-results .scroll').scrollLeft = 150")
        name = page.run(
            "(cell => ({left: cell.getBoundingClientRect().left, width: cell.getBoundingClientRect().width,"
            " text: getComputedStyle(cell, '::before').content}))"
            "(document.querySelector('#grid-results td[data-name*=CLOPS]'))"
        )
        assert 0 <= name["left"] < 40, "the name of a row stays where the table is scrolled"
        assert name["width"] < 390 * 0.4
        assert "a\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}" in name["text"], "all labels of a row, not the first alone"
        page.run("(box => { box.scrollLeft = box.scrollWidth })(document.querySelector('#grid-results .scroll'))")
        page.run(frames)
        assert not page.run("document.querySelector('#grid-results .scroll').classList.contains('more')")
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


def test_it_prints(page: Any, tmp_path: Path) -> None:
    before = page.run("document.querySelectorAll('details[open]').length")
    pdf = base64.b64decode(page.call("Page.printToPDF", printBackground=True)["data"])
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") > 2
    assert page.run("document.querySelectorAll('details[open]').length") == before, "folded again after printing"


def test_on_paper_everything_fits_and_nothing_is_folded_away(page: Any) -> None:
    """A page that is wider than A4 would be printed smaller as a whole."""
    page.call("Emulation.setEmulatedMedia", media="print")
    page.call("Emulation.setDeviceMetricsOverride", width=703, height=1040, deviceScaleFactor=1, mobile=False)
    try:
        room = page.run("document.body.clientWidth")
        widths = page.run(
            "[...document.querySelectorAll('table, img, .drawing')].map(e => e.getBoundingClientRect().right)"
        )
        assert max(widths) <= room + 1
        page.run("dispatchEvent(new Event('beforeprint'))")
        heights = page.run("[...document.querySelectorAll('.runs li')].map(e => e.getBoundingClientRect().height)")
        assert len(heights) > 20
        assert min(heights) > 5
        assert page.run("getComputedStyle(document.querySelector('th button')).display") == "contents", (
            "Chromium repeats no head of a table that holds a button"
        )
        page.run("dispatchEvent(new Event('afterprint'))")
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")
        page.call("Emulation.setEmulatedMedia", media="")
