from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from clops_sweep import SearchSpace
from clops_sweep.analysis.drawing.pictures import Sketch
from clops_sweep.analysis.report.write import ReportPaths, write_report
from clops_sweep.store.run_store import RunStore
from tests.helpers.unpainted import unpainted


@pytest.fixture(scope="module")
def page(chromium: Any, report: ReportPaths) -> Any:
    chromium.address = report.index.as_uri()
    chromium.events.clear()  # of pages that other tests opened
    chromium.open(chromium.address)
    return chromium


def test_no_error_and_no_request_leaves_the_page(page: Any) -> None:
    page.run("new Promise(done => setTimeout(done, 200))")
    errors = [e for e in page.events if e["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]
    errors += [e for e in page.events if e["method"] == "Runtime.consoleAPICalled"]
    assert errors == []
    urls = {e["params"]["request"]["url"] for e in page.events if e["method"] == "Network.requestWillBeSent"}
    assert {url for url in urls if not url.startswith("data:")} == {page.address}


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


def test_it_fits_a_phone(page: Any) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=2, mobile=True)
    try:
        assert page.run("document.documentElement.scrollWidth") <= 390
        assert page.run("parseFloat(getComputedStyle(document.body).fontSize)") >= 16
        frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        page.run(frames)
        for figure in ("grid-heatmap-auc", "grid-results"):
            assert page.run(f"getComputedStyle(document.querySelector('#{figure} .hint')).display") == "block"
        wide = "[...document.querySelectorAll('figure .drawing')].filter(it => it.getBoundingClientRect().width > 390)"
        assert page.run(f"{wide}.length") == 0, "figures are as wide as the screen"
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


def test_a_tap_enlarges_a_figure_on_a_phone(page: Any) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=2, mobile=True)
    frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    drawing = "document.querySelector('#grid-heatmap-auc .drawing')"
    click = f"{drawing}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))"
    try:
        page.run(frames)
        natural = page.run(f"parseFloat(getComputedStyle({drawing}).getPropertyValue('--natural'))")
        assert natural > 480
        page.run(click)
        page.run(frames)
        assert page.run(f"{drawing}.getBoundingClientRect().width") == pytest.approx(natural, abs=1)
        assert page.run("document.documentElement.scrollWidth") <= 390, "the figure scrolls, the page does not"
        page.run(click)
        page.run(frames)
        assert page.run(f"{drawing}.getBoundingClientRect().width") <= 390
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")
    page.run(frames)
    hints = "[...document.querySelectorAll('.tap')].filter(hint => getComputedStyle(hint).display != 'none')"
    assert page.run(f"{hints}.length") == 0, "a wide window needs no tap"


def test_the_figure_of_methods_fits_a_phone(page: Any) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=2, mobile=True)
    try:
        page.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        box = "document.querySelector('#methods-with-intervals .scroll')"
        assert page.run(f"{box}.scrollWidth <= {box}.clientWidth")
        text = page.run(f"{box}.querySelector('svg text').getBoundingClientRect().height")
        assert text >= 8, "its labels can be read"
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


def test_a_table_that_is_a_little_too_wide_becomes_smaller_instead_of_being_cut_off(page: Any) -> None:
    frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    box = "document.querySelector('#grid-results .scroll')"
    hidden = f"{box}.scrollWidth - {box}.clientWidth"
    try:
        page.call("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False)
        page.run(frames)
        natural = page.run(f"{box}.querySelector('table').style.minWidth = ({box}.clientWidth + 40) / 14.08 + 'em', 0")
        assert natural == 0
        page.call("Emulation.setDeviceMetricsOverride", width=1279, height=800, deviceScaleFactor=1, mobile=False)
        page.run(frames)
        assert page.run(f"{box}.classList.contains('tight')")
        assert page.run(hidden) <= 2, "smaller letters are enough"
        assert page.run("getComputedStyle(document.querySelector('#grid-results .hint')).display") == "none"
        page.run(f"{box}.querySelector('table').style.minWidth = '200em', 0")
        page.call("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False)
        page.run(frames)
        assert page.run(hidden) > 2
        assert page.run("getComputedStyle(document.querySelector('#grid-results .hint')).display") == "block"
        page.run(f"{box}.querySelector('table').style.minWidth = '', 0")
        page.call("Emulation.setDeviceMetricsOverride", width=1279, height=800, deviceScaleFactor=1, mobile=False)
        page.run(frames)
        assert not page.run(f"{box}.classList.contains('tight')"), "a table that fits keeps its size"
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


def test_a_page_that_was_moved_with_its_store_names_the_store_where_it_is_now(
    page: Any, spaces: list[SearchSpace], store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sketch, "drawn", unpainted)
    before, after = tmp_path / "before", tmp_path / "after"
    shutil.copytree(store.files.root, before)
    write_report(spaces, RunStore(before), before / "report" / "grid", commands=[("Draw", "clops-sweep report")])
    before.rename(after)
    page.open((after / "report" / "grid" / "index.html").as_uri())
    commands = page.run("document.querySelector('#reproduce').textContent")
    assert f"--results {after}" in commands
    assert str(before) not in commands
