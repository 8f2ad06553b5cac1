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
from clops_sweep.store.run_store import RunStore

TOKEN = "a-token-of-some-length"


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
        self.until(
            f"document.readyState === 'complete' && document.querySelector('#page-{page}[aria-current]') !== null"
        )

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
        browsed.until("document.readyState === 'complete' && document.querySelector('.pages a') !== null")
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
    assert {"Overview", "Runs", "Run", "Report"} <= named["link"]
    browsed.run("document.querySelector('#content summary').click()")
    assert browsed.run("document.querySelector('#content details[open] pre').innerText").startswith("Traceback")


def test_the_section_is_drawn_and_its_tables_sort(browsed: Browsed) -> None:
    browsed.open("report")
    browsed.until("document.querySelectorAll('#content table.sortable').length > 0")
    assert browsed.run("document.querySelectorAll('#content svg.drawing').length") >= 5
    images = browsed.named()
    assert any(name.startswith("Learning curves") for name in images.get("image", set()) | images.get("img", set()))
    browsed.run("document.querySelector('#content table.sortable th.value:last-child button').click()")
    assert browsed.run("document.querySelector('#content th[aria-sort]').getAttribute('aria-sort')") == "descending"
