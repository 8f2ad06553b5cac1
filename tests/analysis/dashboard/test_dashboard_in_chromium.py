"""The dashboard in a browser: charts fit a phone, and a click on a point or a line opens its run."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from clops_sweep.analysis.dashboard.server import make_server
from clops_sweep.analysis.dashboard.source import StoreSource
from clops_sweep.store.run_store import RunStore

EXPERIMENT = "experiment=synthetic+class_il+clops"

CENTRE = "(box => [box.x + box.width / 2, box.y + box.height / 2])"
POINTS = f"""[...document.querySelectorAll("#chart-runs-points .point")]
    .map(point => {CENTRE}(point.getBoundingClientRect()))"""
END_OF_LINE = """(line => {
    const end = line.getPointAtLength(line.getTotalLength()).matrixTransform(line.getScreenCTM());
    return [end.x, end.y];
})(document.querySelector("#chart-curves .js-line"))"""


@pytest.fixture(scope="module")
def address(store: RunStore, chromium: Any) -> Iterator[str]:
    server = make_server(store, StoreSource(store, lambda key: None), host=None, port=0, token=None)
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield server.address
    chromium.open("about:blank")  # the page would go on asking a server that has ended
    chromium.events.clear()
    server.stop()
    thread.join(timeout=20)


@pytest.fixture(params=[1280, 390])
def screen(request: pytest.FixtureRequest, chromium: Any) -> Iterator[Any]:
    """The browser with a screen of a laptop or of a phone."""
    width = request.param
    chromium.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
    )
    chromium.events.clear()
    chromium.width = width
    yield chromium
    chromium.call("Emulation.clearDeviceMetricsOverride")


def opened(screen: Any, address: str, query: str, chart: str) -> None:
    screen.open(f"{address}{query}")
    until(lambda: screen.run(f"!!document.querySelector('#{chart} .main-svg')"))
    screen.run(f"document.getElementById('{chart}').scrollIntoView({{block: 'center'}})")
    screen.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def until(holds: Any) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def click(screen: Any, place: list[float]) -> None:
    x, y = place
    screen.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    time.sleep(0.2)  # Plotly answers the mouse after a pause
    for kind in ("mousePressed", "mouseReleased"):
        screen.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


def run_of_the_page(screen: Any) -> str:
    until(lambda: screen.run("location.pathname") == "/run")
    return parse_qs(urlsplit(screen.run("location.href")).query)["id"][0]


def test_charts_fit_the_screen_without_an_error(screen: Any, address: str) -> None:
    for view in ("points", "means"):
        opened(screen, address, f"compare?{EXPERIMENT}&view={view}", f"chart-runs-{view}")
        assert screen.run("document.documentElement.scrollWidth") <= screen.width
        wide = "[...document.querySelectorAll('.chart')].map(it => it.querySelector('.main-svg').clientWidth)"
        assert max(screen.run(wide)) <= screen.width
    opened(screen, address, f"compare?{EXPERIMENT}&view=parallel", "chart-runs-parallel")
    assert screen.run("document.documentElement.scrollWidth") <= screen.width
    if screen.width == 390:
        box = "document.getElementById('chart-runs-parallel')"
        assert screen.run(f"{box}.closest('.scroll').scrollWidth") <= screen.width, "nothing to scroll sideways"
        places = (
            "[...document.querySelectorAll('#chart-runs-parallel .annotation')].map(it => it.getBoundingClientRect())"
        )
        assert screen.run(f"Math.min(...{places}.map(it => it.left))") >= 0
        assert screen.run(f"Math.max(...{places}.map(it => it.right))") <= screen.width
    errors = [it for it in screen.events if it["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]
    assert errors == []


def test_a_click_on_a_point_opens_its_run(screen: Any, address: str, store: RunStore) -> None:
    opened(screen, address, f"compare?{EXPERIMENT}&view=points&x=auc&y=bwt&colour=none", "chart-runs-points")
    trace = screen.run(
        "(it => ({x: it.x, y: it.y, run: it.customdata}))(document.getElementById('chart-runs-points').data[0])"
    )
    at = max(range(len(trace["x"])), key=lambda place: trace["x"][place])  # no other point is near it
    click(screen, screen.run(POINTS)[at])
    run = run_of_the_page(screen)
    row = store.read("runs", [run]).iloc[0]
    assert (row["auc"], row["bwt"]) == (trace["x"][at], trace["y"][at])


def test_a_click_on_a_line_opens_its_run(screen: Any, address: str) -> None:
    opened(screen, address, f"compare?{EXPERIMENT}&view=points", "chart-curves")
    run = screen.run("document.getElementById('chart-curves').data[0].customdata[0]")
    click(screen, screen.run(END_OF_LINE))
    assert run_of_the_page(screen) == run


def test_the_line_of_a_name_is_found(screen: Any, address: str) -> None:
    opened(screen, address, f"compare?{EXPERIMENT}&view=points", "chart-curves")
    key = "document.querySelectorAll('.keys a')[2]"
    screen.run(f"{key}.focus()")
    seen = "document.getElementById('chart-curves').data.map(it => [it.customdata[0], it.opacity])"
    until(lambda: screen.run(seen)[0][1] is not None)
    run = screen.run(f"new URL({key}.href).searchParams.get('id')")
    assert {line: opacity == 1 for line, opacity in screen.run(seen)} == {
        line: line == run for line, _ in screen.run(seen)
    }
    screen.run(f"{key}.blur()")
    until(lambda: {opacity for _, opacity in screen.run(seen)} == {1})


def test_a_click_on_a_configuration_lists_its_runs(screen: Any, address: str) -> None:
    opened(screen, address, f"compare?{EXPERIMENT}&y=auc&colour=none", "chart-runs-means")
    trace = "document.getElementById('chart-runs-means').data[0]"
    listed = screen.run(f"{trace}.customdata[0]")
    click(screen, screen.run(POINTS.replace("chart-runs-points", "chart-runs-means"))[0])
    until(lambda: screen.run("location.pathname") == "/runs")
    assert screen.run("location.pathname + location.search") == listed


def test_pages_fit_the_screen_and_say_when_the_store_was_read(screen: Any, address: str) -> None:
    for page in ("", "methods", f"runs?{EXPERIMENT}", "run", f"report?{EXPERIMENT}"):
        screen.open(f"{address}{page}")
        until(lambda: "this page updates by itself" in screen.run("document.getElementById('read').textContent"))
        intervals = "[...document.querySelectorAll(':is(span, small).whole')]"
        whole = f"{intervals}.filter(it => it.checkVisibility() && it.textContent)"
        assert screen.run(f"{whole}.every(it => it.getClientRects().length === 1)"), "an interval is on one line"
        if page.startswith("report"):
            until(lambda: screen.run("!!document.querySelector('figure.whole figcaption')"))
        if page == "methods":
            screen.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            assert screen.run("document.querySelectorAll('.scroll.more').length") == 0, "no column is hidden"
            assert screen.run(f"{whole}.length") > 0
        assert screen.run("document.documentElement.scrollWidth") <= screen.width
