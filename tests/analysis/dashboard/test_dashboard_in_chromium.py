"""The dashboard in a browser: clicked, walked through with a keyboard, read out, and followed while a store grows."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from clops_sweep import SearchSpace
from clops_sweep.analysis.dashboard.server import make_server
from clops_sweep.analysis.dashboard.source import StoreSource
from clops_sweep.experiment.columns import config_from_row
from clops_sweep.store.run_store import RunStore
from tests.stores import record_failure, write_finished

TOKEN = "a-token-of-some-length"
BROKEN = """
[...document.querySelectorAll("#content th, #content td, #content h2")].flatMap(cell => {
  const words = [], walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    for (const { 0: word, index } of walker.currentNode.data.matchAll(/[\\w.]+/g)) {
      const range = new Range();
      range.setStart(walker.currentNode, index);
      range.setEnd(walker.currentNode, index + word.length);
      if (new Set([...range.getClientRects()].map(it => it.top)).size > 1) words.push(word);
    }
  }
  return words;
})
"""
"""Words of tables and headings that go over more than one line."""

CURVES = "document.querySelectorAll('#content .js-plotly-plot .scatterlayer .trace').length"


class Browsed:
    """A page of the dashboard in a browser, the store that it follows, and a run that is not in there yet."""

    def __init__(self, page: Any, address: str, store: RunStore) -> None:
        self.page, self.address, self.store = page, address, store

    def run(self, expression: str) -> Any:
        return self.page.run(expression)

    def until(self, expression: str) -> Any:
        """Waits for something to be true in the page; half a minute, for a machine that has other things to do."""
        deadline = time.monotonic() + 60
        while not (value := self.run(expression)):
            assert time.monotonic() < deadline, (expression, self.run("document.body.innerText"))
            time.sleep(0.05)
        return value

    def open(self, page: str) -> None:
        """Goes to a page, whatever other tests have left."""
        self.run(f"document.getElementById('page-{page}').click()")
        self.until(f"document.querySelector('#page-{page}[aria-current]') && document.body.ariaBusy !== 'true'")

    def press(self, key: str, code: int, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            extra = {"text": text} if text and kind == "keyDown" else {}
            self.page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **extra)

    def mouse(self, kind: str, place: dict[str, float], **given: Any) -> None:
        self.page.call("Input.dispatchMouseEvent", type=kind, **place, **given)

    def named(self) -> dict[str, set[str]]:
        """What a screen reader finds: names by role."""
        found: dict[str, set[str]] = {}
        for node in self.page.call("Accessibility.getFullAXTree")["nodes"]:
            if not node.get("ignored"):
                role, name = (node.get(part, {}).get("value", "") for part in ("role", "name"))
                found.setdefault(role, set()).add(name)
        return found


@pytest.fixture(scope="module")
def browsed(
    chromium: Any, generated: ModuleType, spaces: list[SearchSpace], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Browsed]:
    """The first runs of a sweep, on a page that looks for others every fifth of a second."""
    pytest.importorskip("flask", reason="Flask is not installed: the dashboard is not opened in a browser")
    folder = tmp_path_factory.mktemp("browsed")
    store = RunStore(folder / "results")
    generated.write_generated_runs(store, spaces, fails=lambda it: it.seed == 2 and it.storage_fraction == 0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clops_sweep.analysis.dashboard.server._SECONDS", 0.2)
        server = make_server(store, StoreSource(store, lambda key: None), host="127.0.0.1", port=0, token=TOKEN)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        chromium.renew()
        chromium.call("Emulation.setDeviceMetricsOverride", width=1200, height=900, deviceScaleFactor=1, mobile=False)
        chromium.call("Page.navigate", url=server.address)
        browsed = Browsed(chromium, server.address.partition("?")[0], store)
        browsed.until("document.readyState === 'complete' && document.querySelector('#links a') !== null")
        yield browsed
    finally:
        server.stop()
        thread.join(20)


def test_the_first_view_is_how_the_sweep_stands(browsed: Browsed) -> None:
    browsed.until("document.querySelectorAll('#content progress').length === 2")
    assert browsed.run("location.href") == browsed.address, "the token is in a cookie now"
    named = browsed.named()
    assert "synthetic class_il clops: 32 of 36 runs finished" in named["progressbar"]
    assert {"Experiments and their best configurations"} <= named["table"]
    assert {"Pages"} <= named["navigation"]
    pages = {"Overview", "Runs", "Compare", "Heatmap", "Parallel coordinates", "Run", "Instances", "Search"}
    assert pages <= named["link"]
    browsed.run("document.querySelector('#content summary').click()")
    assert browsed.run("document.querySelector('#content details[open] pre').innerText").startswith("Traceback")


def test_a_cell_is_clicked_and_left_out_by_keyboard(browsed: Browsed) -> None:
    browsed.run("document.getElementById('page-heatmap').click()")
    cells = browsed.until("[...document.querySelectorAll('.heatmap td a')].map(cell => cell.id)")
    browsed.run(f"document.getElementById('{cells[0]}').click()")
    browsed.until(f"{CURVES} > 0")
    lines = browsed.run(CURVES)
    assert (
        browsed.run("[...document.querySelectorAll('.heatmap td a')].filter(cell => cell.tabIndex === 0).length") == 1
    )
    assert browsed.run(BROKEN) == [], "words are not broken by letters"
    browsed.run(f"document.getElementById('{cells[0]}').focus()")
    browsed.press("ArrowRight", 39)
    assert browsed.run("document.activeElement.id") == cells[1]
    browsed.press("Enter", 13, "\r")
    browsed.until(f"{CURVES} === {2 * lines}")
    assert browsed.run("document.activeElement.id") == cells[1], "a keyboard stays where it is"
    assert browsed.run(BROKEN) == []
    assert browsed.run("new URLSearchParams(location.search).getAll('cells').length") == 2
    named = browsed.named()
    assert {"Experiment", "Metric", "Rows", "Columns", "storage order"} <= named["combobox"]
    assert any(name.endswith(", chosen") and "n = " in name for name in named["link"])
    images = named.get("image", set()) | named.get("img", set())
    assert any(name.startswith("Learning curves") for name in images), named.keys()
    browsed.press("Enter", 13, "\r")
    browsed.until(f"{CURVES} === {lines}")


def test_a_list_is_changed_by_keyboard_and_the_address_opens_the_same_view(browsed: Browsed) -> None:
    browsed.open("heatmap")
    browsed.until("document.getElementById('choose-metric')")
    browsed.run("document.getElementById('choose-metric').focus()")
    browsed.press("ArrowDown", 40)
    browsed.until("document.querySelector('.heatmap').ariaLabel.startsWith('BWT by')")
    assert browsed.run("document.activeElement.id") == "choose-metric"
    browsed.run("history.back()")
    browsed.until("document.querySelector('.heatmap').ariaLabel.startsWith('Average AUC by')")
    browsed.run("history.forward()")
    browsed.until("document.querySelector('.heatmap').ariaLabel.startsWith('BWT by')")
    shown = "document.getElementById('content').innerText"
    before, address = browsed.run(shown), browsed.run("location.href")
    browsed.page.call("Page.navigate", url="about:blank")
    browsed.page.call("Page.navigate", url=address)
    browsed.until(f"document.querySelector('#content .heatmap') && {shown}.length === {len(before)}")
    assert browsed.run(shown) == before


def test_rows_are_selected_and_the_first_column_stays(browsed: Browsed) -> None:
    browsed.run("document.getElementById('page-runs').click()")
    picks = browsed.until("[...document.querySelectorAll('.pick input:not(:disabled)')].map(it => it.id)")
    names = browsed.named()
    assert not any(name == "Details" for role in names.values() for name in role)
    assert {"Average over all but: nothing: single runs"} <= names["DisclosureTriangle"]
    browsed.run("document.querySelector('a#clear')?.click()")
    browsed.until("document.querySelectorAll('.pick input:checked').length === 0")
    for number in (0, 1):
        browsed.run(f"document.getElementById('{picks[number]}').click()")
        browsed.until(f"document.querySelectorAll('#overlay .scatterlayer .trace').length === {number + 1}")
    assert browsed.run("document.querySelectorAll('.pick input:checked').length") == 2
    left = "document.querySelector('.runs tbody th').getBoundingClientRect().left"
    before = browsed.run(left)
    scrolled = browsed.run(
        "(it => { it.scrollLeft = 300; return it.scrollLeft; })(document.querySelector('.runs').parentElement)"
    )
    assert scrolled > 0
    assert browsed.run(left) == before
    browsed.run("document.getElementById('clear').click()")
    browsed.until("document.getElementById('overlay') === null")


def test_tags_and_notes_stay_in_the_browser(browsed: Browsed) -> None:
    browsed.open("runs")
    run = browsed.until("document.querySelector('[data-tags]')?.dataset.tags")
    browsed.run("document.querySelector('.runs tbody th a').click()")
    for field, text in (("tags-of-run", "odd, again"), ("note-of-run", "look at <b>this</b>")):
        browsed.until(f"document.getElementById('{field}') !== null")
        browsed.run(f"document.getElementById('{field}').focus()")
        browsed.page.call("Input.insertText", text=text)
    browsed.run("document.activeElement.blur()")
    assert "page=run" in browsed.run("location.search"), "a note leads nowhere"
    browsed.page.call("Page.reload")
    browsed.until("document.getElementById('tags-of-run')?.value === 'odd, again'")
    browsed.run("document.getElementById('page-runs').click()")
    browsed.until(f"document.querySelector('[data-tags=\"{run}\"]')?.textContent === 'odd, again ✎'")
    browsed.run("[...document.querySelectorAll('#tags a')].find(it => it.textContent === 'odd').click()")
    browsed.until("document.querySelectorAll('.runs tbody tr').length === 1")
    assert browsed.run("document.querySelector('[data-tags]').dataset.tags") == run
    browsed.run("localStorage.clear()")
    browsed.run("history.back()")
    browsed.until("document.querySelectorAll('.runs tbody tr').length === 36")
    assert browsed.run("document.getElementById('tags').hidden")


def test_runs_are_searched_while_the_words_are_typed(browsed: Browsed) -> None:
    browsed.run("document.getElementById('page-instances').click()")
    browsed.until("document.getElementById('find') !== null")
    browsed.run("document.getElementById('find').focus()")
    for part in ("top se", "ed 1"):
        browsed.page.call("Input.insertText", text=part)
    browsed.until("document.querySelectorAll('.matches a').length > 0")
    browsed.until("document.querySelector('.matches a')?.textContent.match(/^top.*seed 1$/)")
    assert browsed.run("document.activeElement.id + document.activeElement.value") == "findtop seed 1"
    browsed.run("document.querySelector('.matches a').click()")
    browsed.until(
        "document.querySelector('.matches') === null && document.querySelector('h2').textContent.includes('seed 1')"
    )


def test_what_takes_long_is_said_to_load(browsed: Browsed) -> None:
    browsed.run(
        "window.real = window.fetch;"
        "window.fetch = (...it) => it[0] !== location.href ? real(...it)"  # the page also asks for the version
        " : new Promise(go => { window.answer = () => go(real(...it)); })"
    )
    browsed.run("document.getElementById('page-heatmap').click()")
    browsed.until("document.body.ariaBusy === 'true'")
    assert browsed.run("getComputedStyle(document.body, '::before').animationName") == "busy"
    browsed.run("window.fetch = window.real; window.answer()")
    browsed.until(
        "document.body.ariaBusy === 'false' && document.getElementById('page-heatmap').ariaCurrent === 'page'"
    )


def test_runs_are_filtered_averaged_and_sorted(browsed: Browsed) -> None:
    browsed.run("document.getElementById('page-runs').click()")
    rows = "document.querySelectorAll('.runs tbody tr').length"
    browsed.until(f"{rows} === 36")
    assert {"Only runs where"} <= browsed.named()["textbox"]
    browsed.run("document.querySelector('#controls input[type=text]').focus()")
    browsed.page.call("Input.insertText", text='storage_fraction == 0.5 and status == "finished"')
    browsed.press("Enter", 13, "\r")
    browsed.until(f"{rows} === 12")
    browsed.run("document.getElementById('grouping').click()")
    browsed.until(f"{rows} === 4")
    browsed.run("document.getElementById('sort-auc').click()")
    browsed.until("document.querySelector('th[aria-sort=descending]') !== null")
    column = browsed.run(
        "[...document.querySelectorAll('.runs tbody tr')].map(row => row.innerText.match(/0\\.\\d+ ±/)[0])"
    )
    assert column == sorted(column, reverse=True)


def test_a_line_of_the_parallel_coordinates_is_clicked(browsed: Browsed) -> None:
    browsed.run("document.getElementById('page-parallel').click()")
    deadline, hovered = time.monotonic() + 60, False
    while not hovered:  # the page may move while it is drawn
        assert time.monotonic() < deadline
        place = browsed.until(
            "(line => line && (box => ({x: box.right - 1, y: box.top + 1}))(line.getBoundingClientRect()))"
            "([...document.querySelectorAll('#content path.js-line')].at(-1))"
        )
        browsed.mouse("mouseMoved", place)
        time.sleep(0.05)
        hovered = browsed.run("document.querySelector('#content .hoverlayer .hovertext') !== null")
    for kind in ("mousePressed", "mouseReleased"):
        browsed.mouse(kind, place, button="left", clickCount=1)
    browsed.until("document.querySelector('#page-heatmap').ariaCurrent === 'page'")


def test_a_sweep_that_goes_on_elsewhere_is_followed(browsed: Browsed, generated: ModuleType) -> None:
    browsed.run("document.getElementById('page-overview').click()")
    browsed.until("document.querySelectorAll('#content progress').length === 2")
    browsed.run("document.querySelector('#content details:not([open]) summary')?.click()")
    row = next(row for row in browsed.store.rows("runs") if row["status"] == "failed")
    made = generated.generated_tables(config_from_row(row), row["run_id"], instances=2, epochs=1)
    write_finished(browsed.store, row["run_id"], made)
    browsed.until("document.querySelector('#content progress').ariaLabel.includes('33 of 36')")
    assert browsed.run("document.getElementById('said').innerText") == "36 runs finished, 3 failed."
    assert browsed.run("document.querySelectorAll('#content details[open]').length") == 1, "what was unfolded stays so"


def test_what_a_store_says_is_text_in_the_page_too(browsed: Browsed) -> None:
    config = config_from_row(browsed.store.rows("runs")[0]).replace(seed=9)
    said = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    error = f"Traceback (most recent call last):\nValueError: {said}\n"
    record_failure(browsed.store, {config.run_id("generated0001"): config}, error, lambda config: "generated0001", {})
    browsed.until("document.getElementById('content').textContent.includes('<script>alert(2)')")
    assert browsed.run("document.querySelectorAll('#content img, #content script').length") == 0


def test_it_fits_a_phone_and_nothing_went_wrong(browsed: Browsed) -> None:
    browsed.page.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=2, mobile=True)
    for page in ("overview", "compare", "parallel", "run", "heatmap", "runs", "instances"):
        browsed.run(f"document.getElementById('page-{page}').click()")
        browsed.until(f"document.getElementById('page-{page}').ariaCurrent === 'page'")
        browsed.until("!document.querySelector('.graph:not(.js-plotly-plot)')")
        browsed.until("document.documentElement.scrollWidth <= 390")
        assert browsed.run("document.getElementById('content').getBoundingClientRect().top") < 420, "controls are short"
        here = browsed.run(
            "(it => [it.left, it.right])(document.querySelector('#links .here').getBoundingClientRect())"
        )
        assert 0 <= here[0] < here[1] <= 390, "the page's own tab is in view"
    events = browsed.page.events
    wrong = [
        e for e in events if e["method"] in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
    ]
    assert wrong == []
    urls = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
    elsewhere = {url for url in urls if not url.startswith((browsed.address, "data:", "blob:", "about:"))}
    assert elsewhere == set(), "nothing comes from the network"
