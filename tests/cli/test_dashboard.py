"""`clops-sweep dashboard`: what it refuses in a sentence, and that it serves what it says until it is interrupted."""

from __future__ import annotations

import threading
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from clops_sweep import RunConfig
from clops_sweep.analysis.dashboard.server import Server
from clops_sweep.cli.commands import command
from clops_sweep.cli.dashboard import TOKEN
from clops_sweep.store.run_store import RunStore
from tests.conftest import Tables
from tests.helpers.stores import write_finished


@pytest.mark.parametrize("host", [None, "127.0.0.1"])
def test_it_serves_until_it_is_interrupted(
    host: str | None, tmp_path: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("flask", reason="Flask is not installed: the dashboard is not served")
    store = RunStore(tmp_path / "results")
    config = RunConfig()
    write_finished(store, config.run_id("a"), finished_tables(config.run_id("a"), config))
    monkeypatch.setenv(TOKEN, "a-token-of-some-length")
    plain, got = Server.serve, []

    def asked_once(self: Server) -> None:
        thread = threading.Thread(target=plain, args=(self,))
        thread.start()
        with urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(self.address, timeout=60) as page:
            got.append((page.status, page.read().decode()))
        self.stop()
        thread.join()
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve", asked_once)
    options = ["--host", host] if host else []
    done = CliRunner().invoke(command, ["dashboard", "--results", str(tmp_path / "results"), "--port", "0", *options])
    assert done.exit_code == 0, done.exception
    assert done.stdout.startswith("dashboard: http://127.0.0.1:")
    assert ("?token=a-token-of-some-length" in done.stdout) is (host is not None)
    ((status, page),) = got
    assert status == 200
    assert "<title>Overview · clops-sweep</title>" in page


SPACE = """
from clops_sweep import RunConfig, SearchSpace

SPACE = SearchSpace("first", RunConfig(), seeds=1)
"""


def test_every_page_says_that_a_file_was_edited(
    tmp_path: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("flask", reason="Flask is not installed: the dashboard is not served")
    store = RunStore(tmp_path / "results")
    config = RunConfig()
    write_finished(store, config.run_id("a"), finished_tables(config.run_id("a"), config))
    file = tmp_path / "space.py"
    file.write_text(SPACE)
    pages = []

    def edited_between(self: Server) -> None:
        client = self.app.test_client()
        for seeds in (1, 2):
            file.write_text(SPACE.replace("seeds=1", f"seeds={seeds}"))
            with client.get("/runs", base_url=self.address) as answer:
                pages.append(answer.text)
        self.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve", edited_between)
    words = ["dashboard", str(file), "--results", store.uri, "--port", "0", "--prepared-root", str(tmp_path)]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.exception
    before, after = pages
    assert "edited after this dashboard began" not in before
    assert f"{file} was edited after this dashboard began" in after
