"""One continual-learning run gives the same tables wherever and after whatever it is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from clops_sweep import ContinualRun, RunConfig
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.preparing.prepare import open_frames
from clops_sweep.execution.reports import AttemptFailed, Computed, Running, Scored, WorkerReport
from clops_sweep.experiment.metrics import METRICS
from clops_sweep.store.run_store import RunStore

pytestmark = pytest.mark.cluster  # a Ray of its own, with a GPU that is not there

BASE = RunConfig(epochs_per_task=2, mc_samples=3, seed=1)
OTHER = RunConfig(epochs_per_task=1, strategy="finetune", batch_size=64, seed=9)
LONG = RunConfig(epochs_per_task=12, mc_samples=3)  # more than a step, even with compiled kernels
SECONDS_PER_STEP = 0.05  # and not one: a run that takes several has fewer epochs
FAILING = BASE.replace(task_order=(1, 0))  # six tasks have no such order

Tables = dict[str, pd.DataFrame]


@pytest.fixture(scope="module")
def frames(prepared_root: Path) -> FrameSet:
    key = BASE.data_key
    return open_frames(key.dataset, prepared_root=prepared_root, **key.view)


@pytest.fixture(scope="module")
def alone(frames: FrameSet) -> Tables:
    """The run in three lines of Python."""
    return _comparable(ContinualRun(BASE, frames).run().tables)


@pytest.fixture(scope="module")
def long_alone(frames: FrameSet) -> Tables:
    """The same of a long one."""
    return _comparable(ContinualRun(LONG, frames).run().tables)


@pytest.fixture(scope="module")
def cluster(frames: FrameSet) -> Iterator[Any]:
    from clops_sweep.execution.cluster.start import Resources, cluster, ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_OVERRIDE_RESOURCES", '{"CPU": 2, "GPU": 1}')  # as if Ray had found a GPU
        with cluster(Resources(), {BASE.data_key: frames}):
            yield ray


class Actor:
    """A Ray actor of the Trainable, as Tune makes, feeds and stops one."""

    def __init__(
        self,
        ray: Any,
        frames: FrameSet,
        results: Path,
        *configs: RunConfig,
        gpus: float = 0,
        until: Sequence[int | None] = (),
        plugins: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        from ray import tune

        from clops_sweep.execution.computing.tune import ContinualRunTrainable
        from clops_sweep.execution.jobs import Job, Workplace

        self.ray = ray
        self.ids = [config.run_id(frames.data_hash) for config in configs]
        self.results, self.checkpoints = results, results / ".work" / "checkpoints"
        self.store = RunStore(results)
        self.store.open_for_writing()
        given = zip_longest(self.ids, configs, until, fillvalue=None)
        self.jobs = [Job(run_id, config, last) for run_id, config, last in given]
        workplace = Workplace(
            frames={BASE.data_key: ray.put(frames)},
            data_hashes={BASE.data_key: frames.data_hash},
            store_uri=str(results),
            software={},
            plugins=plugins or {},
            checkpoint_every=0,
            on_gpu=gpus > 0,
        )

        class Unlogged(ContinualRunTrainable):
            def log_result(self, result: dict[str, Any]) -> None:
                """Write nothing: outside of Tune, Ray 2.50 writes to a file that it has closed on a reset."""

        trainable = tune.with_parameters(Unlogged, workplace=workplace)
        self.actor = ray.remote(num_cpus=0.5, num_gpus=gpus)(trainable).remote(config={"jobs": (self.jobs[0],)})
        self.call("__ray_call__", _impatience())

    def call(self, method: str, *arguments: object) -> Any:
        return self.ray.get(getattr(self.actor, method).remote(*arguments), timeout=250)

    def begin(self, job: int) -> None:
        self.call("reset", {"jobs": (self.jobs[job],)})

    def step(self) -> WorkerReport:
        """A step of a job."""
        return self.result()[0]

    def train(self) -> WorkerReport:
        while True:
            report, is_done = self.result()
            if is_done:
                return report

    def result(self) -> tuple[WorkerReport, bool]:
        """The last report of a step, whose rows are stored at once, and whether the job has ended."""
        result = self.call("train")
        indices, reports = zip(*result["reports"], strict=True)
        assert set(indices) == {0}
        assert all(isinstance(report, Scored) for report in reports[:-1])
        last: WorkerReport = reports[-1]
        if isinstance(last, Computed):
            self.store.add(last.tables["runs"]["run_id"][0].as_py(), last.tables, last.checkpoint)
            self.store.flush()
        return last, result["done"]

    def forget_results(self) -> None:
        for path in (*self.results.glob("[!.]*/*"), *self.checkpoints.glob("*")):
            path.unlink()


def _impatience() -> Callable[[object], None]:
    """Makes the steps shorter of the process in which it is called.

    A function in here goes to a worker by value.
    """
    seconds = SECONDS_PER_STEP

    def change(trainable: object) -> None:
        from clops_sweep.execution.worker import job_runner as worker

        worker.SECONDS_PER_STEP = seconds

    return change


def _comparable(tables: Any) -> Tables:
    """What a run has computed: everything but when, where and how long."""
    runs = tables["runs"][["run_id", "seed", "left_out", *METRICS, *(f"test_{name}" for name in METRICS)]]
    return {"runs": runs, **{name: tables[name] for name in ("r_matrix", "curves", "instances")}}


def _stored(results: Path, run_id: str) -> Tables:
    store = RunStore(results)
    return _comparable({name: store.read(name, [run_id]) for name in ("runs", "r_matrix", "curves", "instances")})


def _assert_same(found: Tables, expected: Tables) -> None:
    for name, frame in expected.items():
        pd.testing.assert_frame_equal(_scalar(found[name]), _scalar(frame), check_exact=True, check_dtype=False)


def _scalar(frame: pd.DataFrame) -> pd.DataFrame:
    """Lists in cells as tuples: pandas does not compare lists."""
    lists = [name for name in frame if frame[name].map(lambda value: isinstance(value, list | np.ndarray)).any()]
    return frame.assign(**{name: frame[name].map(lambda v: None if v is None else tuple(v)) for name in lists})


@pytest.fixture(scope="module")
def actor(cluster: Any, frames: FrameSet, tmp_path_factory: pytest.TempPathFactory) -> Actor:
    """An actor that has done BASE, as its first job, and goes on living."""
    results = tmp_path_factory.mktemp("results")
    actor = Actor(cluster, frames, results, BASE, OTHER, LONG, FAILING)
    assert isinstance(actor.train(), Computed)
    return actor


@pytest.fixture(scope="module")
def other_actor(cluster: Any, frames: FrameSet, actor: Actor) -> Actor:
    """Another process on the same store, from which `actor` takes over."""
    other = Actor(cluster, frames, actor.results, OTHER, LONG, LONG.replace(seed=9))
    other.train()
    return other


def test_a_fresh_actor_gives_the_tables_of_a_run_alone(actor: Actor, alone: Tables) -> None:
    _assert_same(_stored(actor.results, actor.ids[0]), alone)


def test_a_run_that_raises_is_reported_and_the_actor_lives_on(actor: Actor, alone: Tables) -> None:
    actor.forget_results()
    actor.begin(3)
    report = actor.train()
    assert isinstance(report, AttemptFailed)
    assert report.is_final
    assert {"started_at", "device", "host"} <= report.facts.keys()
    assert "Traceback" in report.error
    assert "task_order" in report.error
    assert RunStore(actor.results).statuses() == {}  # the driver records it
    actor.begin(0)
    assert isinstance(actor.train(), Computed)
    _assert_same(_stored(actor.results, actor.ids[0]), alone)


def test_a_damaged_checkpoint_means_a_fresh_start(actor: Actor, alone: Tables) -> None:
    actor.forget_results()
    actor.checkpoints.mkdir(parents=True, exist_ok=True)
    (actor.checkpoints / f"{actor.ids[0]}.pt").write_bytes(b"PK\x03\x04 and nothing more")
    actor.begin(0)
    assert isinstance(actor.train(), Computed)
    _assert_same(_stored(actor.results, actor.ids[0]), alone)


def test_stopping_an_actor_keeps_what_it_has_trained(actor: Actor, other_actor: Actor, long_alone: Tables) -> None:
    actor.forget_results()
    stopped = other_actor
    stopped.begin(1)
    progress = stopped.step()
    assert isinstance(progress, Running)
    stopped.call("stop")
    (saved,) = actor.checkpoints.iterdir()
    state = torch.load(saved, weights_only=True)  # tensors, numbers and text alone
    assert state["run_id"] == stopped.ids[1]
    task, epoch = state["task"] + 1, state["epoch"]
    assert (task, epoch) == (progress.progress.task, progress.progress.epoch)
    assert RunStore(actor.results).statuses() == {}

    actor.begin(2)
    assert actor.step() == Running(progress.progress, resumed=True)
    assert isinstance(actor.train(), Computed)
    assert list(actor.checkpoints.iterdir()) == []
    _assert_same(_stored(actor.results, actor.ids[2]), long_alone)


def test_the_checkpoint_of_another_run_is_not_used(actor: Actor, other_actor: Actor, alone: Tables) -> None:
    """Copied over a run's own, it once gave that run the numbers of the other."""
    actor.forget_results()
    other_actor.begin(2)
    assert isinstance(other_actor.step(), Running)
    other_actor.call("stop")
    (saved,) = actor.checkpoints.iterdir()
    saved.rename(saved.with_name(f"{actor.ids[0]}.pt"))
    actor.begin(0)
    assert isinstance(actor.train(), Computed)
    assert list(actor.checkpoints.iterdir()) == []
    _assert_same(_stored(actor.results, actor.ids[0]), alone)
