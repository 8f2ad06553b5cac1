"""The runs that are said to be under way follow from what workers report."""

from __future__ import annotations

from pathlib import Path

import pytest

from clops_sweep import RunConfig
from clops_sweep.execution.feeding.under_way import RunsUnderWay
from clops_sweep.execution.jobs import Job
from clops_sweep.execution.reports import Running
from clops_sweep.experiment.events import Progress
from clops_sweep.experiment.spaces.run_names import RunName
from clops_sweep.store.launches import UnderWay, request_id, runs_under_way
from clops_sweep.store.run_store import RunStore

JOB = Job("a" * 24, RunConfig(seed=1), name=RunName.of("CLOPS"))
REQUEST = request_id(RunConfig(seed=1))


def told(under_way: RunsUnderWay, store: RunStore) -> tuple[UnderWay, ...]:
    """What is read after the thread has written."""
    Path(store.work_folder, "launches").mkdir(parents=True, exist_ok=True)
    under_way.write()
    return runs_under_way(store)


def test_a_run_is_told_with_its_place_and_its_end(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    under_way = RunsUnderWay(store, (), tmp_path / "1.log")
    under_way.started(JOB)
    assert told(under_way, store) == (UnderWay(JOB.run_id, "CLOPS, seed 1", request=REQUEST),)
    under_way.report(JOB, Running(Progress(1, "a", 2, 1, 10)), 100.0)
    (run,) = told(under_way, store)
    assert run == UnderWay(JOB.run_id, "CLOPS, seed 1", Progress(1, "a", 2, 1, 10), request=REQUEST), (
        "one epoch says nothing"
    )
    under_way.report(JOB, Running(Progress(1, "a", 2, 5, 10)), 108.0)
    (run,) = told(under_way, store)
    assert run.progress == Progress(1, "a", 2, 5, 10)
    assert run.ends_at == pytest.approx(108 + 15 * 2), "four epochs took 8 s, and 15 are left"
