"""A store and search spaces full of markup and script, in a browser: report and dashboard show it as text."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.as_stored import stored_experiments
from clops_sweep.analysis.dashboard.app import PAGES
from clops_sweep.analysis.dashboard.server import make_server
from clops_sweep.analysis.dashboard.source import StoreSource
from clops_sweep.analysis.report.write import write_report
from clops_sweep.store.run_store import RunStore
from tests.helpers.stores import record_failure, write_finished

TRAP = "document.documentElement.dataset.trapped=1"
HOSTILE = [
    f"<script>{TRAP}</script>",
    f'"><img src=x onerror="{TRAP}">',
    f"' onmouseover='{TRAP}",
    f"<svg onload={TRAP}>",
    f'<a href="javascript:{TRAP}">here</a>',
    f"javascript:{TRAP}",
    f"</title></style></script><script>{TRAP}</script>",
    f"--><script>{TRAP}</script><!--",
    "{{ 7 * 7 }}",
]
COLUMNS = {"dataset": 0, "strategy": 1, "network": 2, "host": 3, "task": 4, "label": 5, "patient": 6}
"""Columns of the tables to which of these texts a store of somebody else has in them."""

TRAPPED = (
    "[document.documentElement.dataset.trapped ?? '',"
    " ...[...document.querySelectorAll('[href], [src]')].flatMap(it =>"
    "  ['href', 'src', 'xlink:href'].map(name => it.getAttribute(name) ?? ''))"
    "  .filter(it => /^\\s*javascript:/i.test(it)),"
    " ...[...document.querySelectorAll('*')].flatMap(it =>"
    "  [...it.attributes].filter(({name}) => name.startsWith('on')).map(({name}) => name)),"
    " ...[...document.querySelectorAll('main script, main img[src=x], main iframe')].map(it => it.outerHTML)"
    "].filter(it => it)"
)


@pytest.fixture(scope="module")
def spaces() -> list[SearchSpace]:
    """Search spaces whose names, axes and labels are hostile."""
    variants = {label: {"mc_samples": 5 + number} for number, label in enumerate(HOSTILE)}
    grid = SearchSpace(name=HOSTILE[1], base=RunConfig(epochs_per_task=5), axes={HOSTILE[0]: variants}, seeds=range(1))
    return [grid, SearchSpace(name=HOSTILE[3], base=RunConfig(strategy="finetune", epochs_per_task=5), seeds=range(1))]


@pytest.fixture(scope="module")
def hostile(spaces: list[SearchSpace], tmp_path_factory: pytest.TempPathFactory, generated: ModuleType) -> RunStore:
    """A store of their runs, of failures, and of runs whose columns are hostile."""
    store = RunStore(tmp_path_factory.mktemp("hostile") / "results")
    generated.write_generated_runs(store, spaces, keep=lambda it: it.mc_samples != 6, tasks=HOSTILE[:3], instances=4)
    for config in [RunConfig(mc_samples=6, epochs_per_task=5)]:
        error = "Traceback (most recent call last):\n" + "\n".join(f"ValueError: {it}" for it in HOSTILE) + "\n"
        facts = {"host": HOSTILE[0]}
        record_failure(store, {config.run_id("generated0001"): config}, error, lambda _: "generated0001", facts)
    for number in range(2):
        run_id = f"{number + 1:024x}"
        tables = generated.generated_tables(RunConfig(seed=number), run_id, tasks=HOSTILE[4:7], instances=4)
        write_finished(store, run_id, {name: _with_hostile_columns(table) for name, table in tables.items()})
    return store


def _with_hostile_columns(table: pa.Table) -> pa.Table:
    for name, number in COLUMNS.items():
        if name in table.column_names and name != "task":
            column = pa.array([HOSTILE[number]] * len(table), pa.string())
            table = table.set_column(table.column_names.index(name), table.schema.field(name), column)
    return table


@pytest.fixture(scope="module")
def browser(chromium: Any) -> Any:
    chromium.renew()
    chromium.call("Emulation.setDeviceMetricsOverride", width=1200, height=900, deviceScaleFactor=1, mobile=False)
    return chromium


def trapped(page: Any) -> list[Any]:
    """What has run or would run: scripts, dialogs, errors, addresses and attributes with code."""
    page.run("document.querySelectorAll('details').forEach(it => { it.open = true; })")
    page.run(
        "document.querySelectorAll('main *, section *').forEach(it => {"
        " for (const kind of ['mouseover', 'focus', 'error']) it.dispatchEvent(new Event(kind)); })"
    )
    page.run("new Promise(done => setTimeout(done, 50))")
    wrong = ("Page.javascriptDialogOpening", "Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
    return [*page.run(TRAPPED), *(event for event in page.events if event["method"] in wrong)]


def test_the_trap_works(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    page = tmp_path_factory.mktemp("trap") / "page.html"
    for text in (HOSTILE[0], HOSTILE[3], HOSTILE[4], f"<div {HOSTILE[2][2:]}'>x</div>", f'<p title="{HOSTILE[1]}'):
        page.write_text(f"<!DOCTYPE html><main>{text}</main>")
        browser.open("about:blank")
        browser.open(page.as_uri())
        assert trapped(browser), text
        browser.events.clear()


def test_a_report_shows_text(browser: Any, hostile: RunStore, spaces: list[SearchSpace], tmp_path: Path) -> None:
    _, as_stored = stored_experiments(hostile.read("runs"))
    assert len(as_stored) == 1
    browser.open(write_report(spaces, hostile, tmp_path, as_stored=as_stored).index.as_uri())
    assert trapped(browser) == []
    text = browser.run("document.body.textContent")
    assert [it for it in HOSTILE if it not in text] == []


@pytest.mark.parametrize("whole", [False, True], ids=["of search spaces", "of the whole store"])
def test_the_dashboard_shows_text(whole: bool, browser: Any, hostile: RunStore, spaces: list[SearchSpace]) -> None:
    pytest.importorskip("flask", reason="Flask is not installed: the dashboard is not opened in a browser")
    source = StoreSource(hostile, lambda key: None, None if whole else lambda: spaces)
    server = make_server(hostile, source, host=None, port=0, token=None)
    names = [f"{HOSTILE[0]} class_il {HOSTILE[1]}"] if whole else [space.name for space in spaces]
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    text = ""
    browser.open("about:blank")  # a page of an earlier server would report that it cannot reach it
    browser.events.clear()
    try:
        for name in names:
            for page, more in [*((it, {}) for it in PAGES), ("runs", {"status": HOSTILE[0], "sort": HOSTILE[5]})]:
                browser.call("Page.navigate", url=f"{server.address}{page}?{urlencode({'experiment': name, **more})}")
                drawn = "!document.body.innerText.includes('drawing …')"
                _until(
                    browser,
                    f"document.readyState === 'complete' && {drawn} && document.querySelector('main table, dl')",
                )
                assert trapped(browser) == [], (page, name)
                text += browser.run("document.body.textContent")
    finally:
        server.stop()
        thread.join(20)
    expected = HOSTILE[:7] if whole else HOSTILE
    assert [it for it in expected if it not in text] == []


def _until(browser: Any, expression: str) -> None:
    deadline = time.monotonic() + 60
    while not browser.run(f"Boolean({expression})"):
        assert time.monotonic() < deadline, (browser.run("location.href"), browser.run("document.body.innerText"))
        time.sleep(0.02)
