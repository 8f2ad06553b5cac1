"""The runs that are said to be under way follow from what workers report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clops_sweep import RunConfig
from clops_sweep.data.frames import FrameSet
from clops_sweep.execution.computing import alone
from clops_sweep.execution.display.live import SweepDisplay
from clops_sweep.execution.driver import make_workplace
from clops_sweep.execution.feeding.feed import GridFeed
from clops_sweep.execution.feeding.relay import Relay
from clops_sweep.execution.feeding.retries import Retries
from clops_sweep.execution.feeding.under_way import RunsUnderWay
from clops_sweep.execution.jobs import Job, Resources, Workplace
from clops_sweep.execution.observers.thread import Observers
from clops_sweep.execution.reports import Running
from clops_sweep.experiment.events import Progress
from clops_sweep.experiment.spaces.run_names import RunName
from clops_sweep.store.launches import UnderWay, request_id, runs_under_way
from clops_sweep.store.run_store import RunStore
from clops_sweep.testing.frames import tiny_config, tiny_frames

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


class AfterOneStep:
    """Ends the work of this process after its first step, as if Ray paid."""

    def __init__(self) -> None:
        self.reports: list[object] = []

    def begun(self, job: Job) -> None: ...

    def heard(self, reports: Sequence[tuple[Job, object]]) -> None:
        self.reports += [report for _, report in reports]

    def should_end(self) -> bool:
        return bool(self.reports)


@dataclass
class World:
    """What computes a long run in this process."""

    store: RunStore
    job: Job
    feed: GridFeed
    under_way: RunsUnderWay
    display: SweepDisplay
    observers: Observers
    retries: Retries
    frames: FrameSet

    def relay(self, kind: type[Relay] = Relay) -> Relay:
        return kind(self.store, self.display, self.feed, self.observers, self.under_way, self.retries)

    def compute(self, relay: Relay, watch: alone.Watch | None = None) -> None:
        data = {self.job.config.data_key: self.frames}

        def workplace(shared: Any) -> Workplace:
            return make_workplace(data, self.store, Resources(), {}, {}, "", shared, alone=True)

        with alone.workers(data, self.display, workplace, watch) as run_fed:
            run_fed(self.feed, relay)


@pytest.fixture
def world(tmp_path: Path) -> World:
    config = tiny_config("class_il", strategy="finetune", epochs_per_task=5000)
    frames = tiny_frames("class_il")
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    job = Job(config.run_id(frames.data_hash), config)
    display = SweepDisplay()
    return World(
        store,
        job,
        GridFeed([job]),
        RunsUnderWay(store, (), tmp_path / "1.log"),
        display,
        Observers([], display.warn),
        Retries(store, 0, lambda config: frames.data_hash, {}),
        frames,
    )


def test_a_run_that_is_queued_again_for_other_workers_is_not_under_way(world: World) -> None:
    """A launch that goes on with Ray queues the run of its own process behind others of its kind."""
    watch = AfterOneStep()
    world.compute(world.relay(), watch)
    assert [type(report) for report in watch.reports] == [Running]
    assert told(world.under_way, world.store) == ()
    assert world.display.unfinished() == [world.job], "an interrupted launch says that it goes on from its checkpoint"
    assert world.feed.next_jobs(1) == (world.job,)


class RaisingRelay(Relay):
    """A relay whose regular look has a fault."""

    def look(self) -> None:
        raise RuntimeError("a fault of the look")


def test_an_error_of_the_regular_look_stops_the_sweep_in_order_and_is_raised(world: World) -> None:
    """Without the look, no row would be written before the end of the sweep."""
    with pytest.raises(RuntimeError, match="a fault of the look"), world.display:
        world.compute(world.relay(RaisingRelay))
    assert world.display.interrupted
    assert world.store.has_checkpoint(world.job.run_id)
