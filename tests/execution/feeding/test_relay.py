"""Why runs could not be recorded, as a worker reports it and as the driver sees it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from clops_sweep import RunConfig
from clops_sweep.errors import StoreError
from clops_sweep.execution.feeding.feed import GridFeed
from clops_sweep.execution.feeding.relay import Relay
from clops_sweep.execution.feeding.retries import Retries
from clops_sweep.execution.feeding.under_way import RunsUnderWay
from clops_sweep.execution.jobs import Job
from clops_sweep.execution.observers.thread import Observers
from clops_sweep.execution.reports import Report, Unrecorded
from clops_sweep.execution.run_log import stacks_file
from clops_sweep.store.rows import storing
from clops_sweep.store.run_store import RunStore

PARTS = [Job((RunConfig(seed=seed),), (f"{seed:024x}",), names=("CLOPS",)) for seed in range(3)]
BLIND = Unrecorded("not seen by a node of the cluster")


class Said:
    """A display that records its calls."""

    def __init__(self) -> None:
        self.reports: list[Report] = []

    def report(self, job: Job, report: Report) -> None:
        self.reports.append(report)


def passed_on(store: RunStore, reports: list[Unrecorded]) -> tuple[Relay, list[Report]]:
    said: Any = Said()
    feed = GridFeed(PARTS, Retries(store, 1, lambda config: None, {}), said)
    relay = Relay(store, said, feed, Observers([], print), RunsUnderWay(store, ()))
    relay.pass_on(PARTS, [], list(enumerate(reports)), [], relay.started)
    return relay, said.reports


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    return store


@pytest.mark.parametrize("order", [[0, 1, 1], [1, 1, 0], [1, 1, 1]])
def test_deleted_results_are_called_deleted_whichever_worker_reports_first(store: RunStore, order: list[int]) -> None:
    shutil.rmtree(store.files.root)
    with pytest.raises(StoreError) as gone, storing(store):
        pass
    recording, beginning = Unrecorded(str(gone.value)), BLIND
    relay, reports = passed_on(store, [(recording, beginning)[it] for it in order])
    assert reports == [recording] * 3
    with pytest.raises(StoreError) as stopped:
        relay.check()
    assert str(stopped.value) == recording.error


def test_results_that_one_node_does_not_see_are_not_called_deleted(store: RunStore) -> None:
    relay, reports = passed_on(store, [BLIND] * 3)
    assert reports == [BLIND] * 3
    assert relay.store_error == BLIND.error


def test_only_a_worker_that_left_stacks_has_timed_out(store: RunStore) -> None:
    relay, _ = passed_on(store, [])
    job = Job.joined(PARTS)
    file = stacks_file(store.log_folder / "logs", PARTS[1].run_ids[0])
    file.parent.mkdir(parents=True)
    assert not relay.left_stacks(job)
    file.touch()  # opened when the epoch began
    assert not relay.left_stacks(job)
    file.write_text("Timeout (0:00:02)!\n")
    assert relay.left_stacks(job)
