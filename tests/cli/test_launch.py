"""What a launch does once its runs have run: here they are recorded without Ray, and something happened meanwhile."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from clops_sweep.cli.command import main
from clops_sweep.execution.display.live import Display
from clops_sweep.execution.feeding.retries import Retries
from clops_sweep.execution.reports import Finished
from clops_sweep.store.run_store import RunStore
from tests.helpers.stores import write_finished

Tables = Callable[..., dict[str, pa.Table]]
Launch = Callable[..., int]

GRID_AND_SEARCH = """
from clops_sweep import FloatDistribution, OptunaSearch, RunConfig, SearchSpace

RATES = {"learning_rate": FloatDistribution(1e-4, 1e-2, log=True)}
SPACE = [
    SearchSpace("grid", RunConfig(), seeds=[0]),
    SearchSpace("search", RunConfig(), search=OptunaSearch(RATES, n_trials=2), seeds=[0]),
]
"""

DAMAGED = "20260101T000000-00000000-000001-0000000000000000.parquet"


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepared_root: Path, finished_tables: Tables) -> Launch:
    """A launch during whose runs something happens; its exit status."""
    (tmp_path / "space.py").write_text(GRID_AND_SEARCH)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(prepared_root))

    def start(happens: Callable[[RunStore, Display], None], *options: str) -> int:
        def run_feeds(
            feeds: Any, pending: object, frames: object, store: RunStore, resources: object, display: Display
        ) -> None:
            for feed in feeds(Retries(store, 0, lambda config: None, {}), Path("log")):
                while (job := feed.next_job(1)) is not None:
                    for run_id, config in job.runs.items():
                        write_finished(store, run_id, finished_tables(run_id, config))
                    feed.report(job, Finished({}))
                    feed.returned(job)
                happens(store, display)
                if display.interrupted:
                    return

        monkeypatch.setattr(importlib.import_module("clops_sweep.execution.driver"), "run_feeds", run_feeds)
        with pytest.raises(SystemExit) as ended:
            main(["space.py", "--no-report", *options])
        assert isinstance(ended.value.code, int)
        return ended.value.code

    return start


def test_a_launch_whose_time_is_up_stops_as_on_an_interrupt(launch: Launch, capsys: pytest.CaptureFixture[str]) -> None:
    stopped: list[bool] = []

    def look(store: RunStore, display: Display) -> None:
        stopped.append(display.interrupted)

    assert launch(look, "--stop-after", "0.001s", "--stop-status", "75") == 75
    assert stopped == [True]
    assert "interrupted; resume with: clops-sweep" in capsys.readouterr().out


def test_a_store_that_is_damaged_meanwhile_is_no_wrong_input(
    launch: Launch, capsys: pytest.CaptureFixture[str]
) -> None:
    def damage(store: RunStore, display: Display) -> None:
        Path(store.folder("runs"), DAMAGED).write_bytes(b"PAR1 and nothing more")

    assert launch(damage) == 1
    told = capsys.readouterr().err
    assert "clops-sweep: stopped: " in told
    assert DAMAGED in told
    assert "once this is fixed, resume with: clops-sweep" in told
