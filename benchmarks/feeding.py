"""Speed of the driver of a sweep: the real scheduler, with simulated workers that answer without computing.

``python -m benchmarks.feeding CORES SECONDS STEPS`` simulates CORES workers with runs of SECONDS, until STEPS steps are
done. A simulated second passes per step. A few Ray processes answer for all workers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clops_sweep.execution.ray_environment  # noqa: F401  # sets variables that Ray reads on import

# isort: split

import numpy as np
import ray
from ray.air.execution._internal.tracked_actor import TrackedActor
from ray.tune.execution import tune_controller

from benchmarks.timing import table
from clops_sweep import RunConfig
from clops_sweep.execution import tune
from clops_sweep.execution.cluster.start import cluster
from clops_sweep.execution.display.live import SweepDisplay
from clops_sweep.execution.display.terminal import output_to
from clops_sweep.execution.feeding.feed import GridFeed
from clops_sweep.execution.feeding.retries import Retries
from clops_sweep.execution.jobs import Job, Resources, Workplace
from clops_sweep.execution.reports import Begun, Finished, Report, Running
from clops_sweep.store.run_store import RunStore

_PROCESSES = 2
_SECONDS_PER_STEP = 1.0


class Answers:
    """Reports of simulated workers, each of whose runs takes some seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._workers: dict[int, tuple[int, int, float]] = {}

    def call(self, worker: int, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of a worker."""
        return getattr(self, method)(worker, *arguments, **options)

    def reset(self, worker: int, config: dict[str, Any], storage: object = None) -> bool:
        """Assign a job to a worker."""
        self._workers[worker] = len(config["job"].parts()), 0, 0.0
        return True

    def train(self, worker: int) -> dict[str, Any]:
        """Return the reports of a worker after a simulated second."""
        parts, at, done = self._workers[worker]
        found: list[tuple[int, Report]] = []
        left = _SECONDS_PER_STEP
        while at < parts and self._seconds - done <= left:
            left -= self._seconds - done
            found.append((at, Finished({"auc": (0.8,)}, self._seconds)))
            at, done = at + 1, 0.0
            if at < parts:
                found.append((at, Begun()))
        if at < parts:
            done += left
            found.append((at, Running(1, 6, 1, 20)))
        self._workers[worker] = parts, at, done
        return {"reports": found, "notes": (), "done": at == parts, "training_iteration": 1, "config": {}}

    def stop(self, worker: int) -> None:
        """Do nothing: the worker is no longer needed."""

    def get_auto_filled_metrics(self, worker: int, **options: Any) -> dict[str, Any]:
        """Return none of the metrics that Tune requests before a trial's first result."""
        return {}


@dataclass(frozen=True)
class _Worker:
    """A simulated worker, which Tune uses like the handle of an actor."""

    process: Any
    number: int

    def __getattr__(self, method: str) -> _Method:
        return _Method(self, method)


@dataclass(frozen=True)
class _Method:
    worker: _Worker
    name: str

    def remote(self, *arguments: Any, **options: Any) -> Any:
        return self.worker.process.call.remote(self.worker.number, self.name, *arguments, **options)


def _manager(processes: list[Any]) -> Callable[..., Any]:
    class Manager(tune_controller.RayActorManager):  # type: ignore[misc]
        """Creates simulated workers in a few processes instead of actors."""

        def add_actor(self, cls: type, kwargs: dict[str, Any], resource_request: Any, **called: Any) -> TrackedActor:
            number = len(self._live_actors_to_ray_actors_resources)
            actor = TrackedActor(number, **called)
            worker = _Worker(processes[number % len(processes)], number)
            self._live_actors_to_ray_actors_resources[actor] = worker, None
            job = {"job": kwargs["config"]["job"]}
            future = worker.reset.remote(job)
            self._tracked_actors_to_state_futures[actor].add(future)
            self._actor_state_events.track_future(
                future, on_result=lambda _: self._actor_start_resolved(tracked_actor=actor, future=future)
            )
            return actor

        def _cleanup_actor(self, tracked_actor: TrackedActor) -> None:
            self._cleanup_actor_futures(tracked_actor)
            del self._live_actors_to_ray_actors_resources[tracked_actor]

    return Manager


@dataclass(frozen=True)
class Fed:
    """Speed of a driver.

    Attributes:
        steps: steps of workers handled per wall-clock second.
        runs: runs started per wall-clock second.
        used: processor seconds per step.
    """

    steps: float
    runs: float
    used: float


def fed(cores: int, seconds: float, steps: int) -> Fed:
    """Measure the driver in a sweep over runs of `seconds` simulated seconds."""
    runs = max(cores, round(steps * _SECONDS_PER_STEP / seconds))
    locksteps = [Job((RunConfig(seed=seed),), (f"{seed:024x}",), names=("trivial",)) for seed in range(runs)]
    kept = tune.places, tune_controller.RayActorManager
    with tempfile.TemporaryDirectory() as folder, SweepDisplay() as display:
        store = RunStore(Path(folder) / "results")
        store.open_for_writing()
        log = Path(folder) / "log"
        display.begin([config for job in locksteps for config in job.configs], log)
        with output_to(log), cluster(Resources(), {}):
            processes = [ray.remote(num_cpus=0)(Answers).remote(seconds) for _ in range(_PROCESSES)]
            ray.get([process.reset.remote(0, {"job": locksteps[0]}) for process in processes])
            workplace = Workplace({}, {}, store.uri, {}, {}, 2, 0)
            feed = _Noted(GridFeed(locksteps, store, Retries(store, 2, lambda config: "", {}), display))
            tune.places, tune_controller.RayActorManager = lambda resources: cores, _manager(processes)
            try:
                tune.run_fed(feed, workplace, Resources(), display)
            finally:
                tune.places, tune_controller.RayActorManager = kept
    first, last = len(feed.steps) // 5, len(feed.steps) * 4 // 5  # without start and end
    spans = zip(feed.steps[first], feed.steps[last], strict=True)
    each, used = ((after - before) / (last - first) for before, after in spans)
    return Fed(1 / each, _SECONDS_PER_STEP / seconds / each, used)


class _Noted:
    """A feed that records wall-clock and processor time of each step."""

    def __init__(self, feed: GridFeed) -> None:
        self._feed = feed
        self.steps: list[tuple[float, float]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._feed, name)

    def report(self, job: Job, report: Report) -> None:
        self._feed.report(job, report)
        if isinstance(report, Running):  # the last report of a step, unless the job ends
            self._note()

    def returned(self, job: Job) -> None:
        self._feed.returned(job)
        self._note()

    def _note(self) -> None:
        self.steps.append((time.perf_counter(), time.process_time()))


def run(*, quick: bool) -> str:
    """Return the section of results.md."""
    workers = (8, 16) if quick else (50, 100, 200, 400)
    rows = []
    used: dict[float, list[float]] = {}
    for cores in workers:
        for seconds in (0.3, 1.0, 5.0, 30.0):
            arguments = [str(cores), str(seconds), str(300 if quick else 30 * cores + 3_000)]
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.feeding", *arguments],
                cwd=Path(__file__).parents[1], check=True, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            found = Fed(**json.loads(done.stdout.splitlines()[-1]))
            used.setdefault(seconds, []).append(found.used)
            rows.append(
                [
                    f"{cores} workers, runs of {seconds:g} s",
                    f"{found.steps:.0f}",
                    f"{found.runs:.1f}",
                    f"{1e3 * found.used:.2f}",
                    f"{0.7 / found.used:.0f}",
                ]
            )
    exponents = [
        f"{np.polyfit(np.log(workers), np.log(times), 1)[0]:.2f} with runs of {seconds:g} s"
        for seconds, times in used.items()
    ]
    header = ["", "steps a second", "runs a second", "processor ms a step", "cores at 70 % of the driver's"]
    return (
        "## What a driver can feed\n\n"
        f"The scheduler against {_PROCESSES} processes that answer for all workers without computing: as many steps as "
        "it takes in. A worker takes a step a second, in which runs end, or one goes on. The driver's processor "
        "time a step grows with the number of workers to the power of "
        f"{', '.join(exponents)}.\n\n" + table(header, rows)
    )


if __name__ == "__main__":
    print(json.dumps(vars(fed(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))))
