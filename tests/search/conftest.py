"""Workers without Ray: they train nothing, but write to a real store what a run of that config would be known for."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.execution.display.live import Results
from clops_sweep.execution.feeding.search_feed import SearchFeed
from clops_sweep.execution.jobs import Job
from clops_sweep.execution.reports import Finished, Paused, Report
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.metrics import METRICS
from clops_sweep.search.study import open_study
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import SCHEMAS
from tests.helpers.stores import write_finished

TASKS = 6


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An empty folder of results, with workers."""
    return World(tmp_path / "results")


def auc(config: RunConfig, trained: int, task: int) -> float:
    """R[trained][task] of a run that never took place: some number that depends on all of it."""
    text = f"{config.model_dump_json()}{trained}{task}"
    return 0.5 + int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**33


def so_far(config: RunConfig, tasks: int) -> float:
    """The average AUC over the first tasks after training on them."""
    return sum(auc(config, tasks, task) for task in range(1, tasks + 1)) / tasks


@dataclass
class Said:
    """A display that remembers."""

    interrupted: bool = False
    stops_in_order: bool = False
    lines: list[str] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)
    not_computed: list[str] = field(default_factory=list)
    best: list[str] = field(default_factory=list)

    def begin(self, runs: Sequence[RunConfig], log: Path, of: str = "", later: Sequence[RunConfig] = ()) -> None: ...
    def finished_before(self, results: Results) -> None: ...
    def starting(self, what: str) -> None: ...
    def started(self, job: Job) -> None: ...
    def taken_back(self, job: Job) -> None: ...
    def not_stored(self, runs: int) -> None: ...
    def stopping(self) -> None: ...
    def unfinished(self) -> list[Job]: ...  # type: ignore[empty-body]

    def warn(self, text: str) -> None: ...

    def report(self, job: Job, report: Report) -> None:
        self.statuses.append(type(report).__name__)

    def trial_ended(self, text: str, left_out: Collection[str] = (), *, best: bool = False) -> None:
        self.lines.append(text)
        self.not_computed += left_out
        self.best += [text] * best

    def left_out(self, run_ids: Collection[str]) -> None:
        self.not_computed += run_ids


@dataclass
class World:
    """A folder of results, and what workers have done in it: which tasks of which run were trained how often."""

    folder: Path
    trained: Counter[tuple[str, int]] = field(default_factory=Counter)
    checkpoints: dict[str, int] = field(default_factory=dict)

    data: ClassVar = {"synthetic, split 0, normalize none": "generated0001"}
    tasks: ClassVar = TASKS
    so_far = staticmethod(so_far)

    def __post_init__(self) -> None:
        self.store = RunStore(self.folder)
        self.store.open_for_writing()

    def driver(self, space: SearchSpace, retry: bool = False) -> tuple[SearchFeed, Said]:
        """A driver that starts now."""

        study, said = open_study(space, self.store, self.data, retry_failed=retry), Said()
        feed = SearchFeed(
            space, study, self.store, lambda config: "generated0001",
            retry_failed=retry, display=said,
        )  # fmt: skip
        feed.begin()
        return feed, said

    def run_ids(self, configs: Sequence[RunConfig]) -> list[str]:
        """The ids of runs."""
        return [config.run_id("generated0001") for config in configs]

    def finish(self, space: SearchSpace, places: int = 1, **options: Any) -> Said:
        """Runs a search to its end."""
        feed, said = self.driver(space, **options)
        under_way: list[Job] = []
        while not feed.finished:
            while len(under_way) < places and (jobs := feed.next_jobs(places)) is not None:
                under_way += jobs
            assert under_way or feed.finished, "nothing is under way and nothing is to come"
            if under_way:
                job = under_way.pop(0)
                feed.report(job, self.work(job))
        return said

    def work(self, job: Job) -> Report:
        """What a worker does with a job: trains on from the checkpoint, and records what is finished."""
        until = min(job.until or TASKS, TASKS)
        for task in range(self.checkpoints.get(job.run_id, 0) + 1, until + 1):
            self.trained[job.run_id, task] += 1
        self.checkpoints[job.run_id] = max(until, self.checkpoints.get(job.run_id, 0))
        if until < TASKS:
            return Paused({"auc": so_far(job.config, until)}, until / TASKS)
        write_finished(self.store, job.run_id, _tables(job.run_id, job.config))
        return Finished({"auc": 0.5})


def _tables(run_id: str, config: RunConfig) -> dict[str, pa.Table]:
    metrics = dict.fromkeys(METRICS, 0.0) | {"auc": so_far(config, TASKS), "bwt": so_far(config, TASKS - 1) - 0.6}
    metrics |= {"test_auc": so_far(config, TASKS - 2)}
    rows: dict[str, list[dict[str, Any]]] = {
        "runs": [{"run_id": run_id, **config_row(config), "status": "finished", "seconds": 2.0, **metrics}],
        "r_matrix": [
            {"run_id": run_id, "split": split, "trained_on": i, "evaluated_on": j, "auc": auc(config, i, j) + offset}
            for split, offset in (("validation", 0.0), ("test", 0.1))
            for i in range(1, TASKS + 1)
            for j in range(1, TASKS + 1)
        ],
        "curves": [],
        "instances": [],
    }
    return {name: _table(name, found) for name, found in rows.items()}


def _table(name: Any, rows: list[dict[str, Any]]) -> pa.Table:
    schema = SCHEMAS[name]
    names = schema.names
    return pa.Table.from_pylist([{column: row.get(column) for column in names} for row in rows], schema=schema)
