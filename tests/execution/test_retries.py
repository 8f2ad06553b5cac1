"""How often a run that raises is computed again, and what is stored of it: real runs in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

from clops_sweep import ContinualRun, RunConfig
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import Diverged, UsageError
from clops_sweep.execution.computing.workers import ThisProcess
from clops_sweep.execution.display.live import SweepDisplay
from clops_sweep.execution.driver import run_feeds
from clops_sweep.execution.feeding.feed import GridFeed
from clops_sweep.execution.jobs import Job, Resources
from clops_sweep.learning.strategies.finetune import FineTuning
from clops_sweep.store.run_store import RunStore
from clops_sweep.testing import tiny_config, tiny_frames

RETRIES = 2
TASKS = 3


@pytest.fixture
def frames() -> FrameSet:
    return tiny_frames("class_il", tasks=TASKS)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    return store


def configs(count: int) -> list[RunConfig]:
    return [tiny_config("class_il", strategy="finetune", seed=seed) for seed in range(count)]


def computed(
    store: RunStore, frames: FrameSet, runs: list[RunConfig], capsys: pytest.CaptureFixture[str]
) -> tuple[pd.DataFrame, str]:
    """Compute runs as a launch does; return their rows by seed, and what the display has printed."""
    jobs = [Job(run.run_id(frames.data_hash), run) for run in runs]

    def feeds(log: Path) -> Iterator[GridFeed]:
        yield GridFeed(jobs)

    resources = Resources(workers="this process", max_retries=RETRIES, checkpoint_every=1)
    with SweepDisplay() as display:
        display.begin(runs, Path("log"))
        ids = [job.run_id for job in jobs]
        run_feeds(feeds, ids, {runs[0].data_key: frames}, store, resources, display, ThisProcess())
    return store.read("runs").set_index("seed").sort_index(), capsys.readouterr().out


class Raising:
    """Raises at the beginning of the second task of seed 0, so many times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int, error: Callable[[int], Exception]) -> None:
        self.tasks: list[int] = []
        whole = FineTuning.begin_task

        def begin_task(strategy: FineTuning, task: int) -> None:
            whole(strategy, task)
            if strategy.training.seed == 0:
                self.tasks.append(task)
                if task == 1 and self.tasks.count(1) <= times:
                    raise error(self.tasks.count(1))

        monkeypatch.setattr(FineTuning, "begin_task", begin_task)


def test_a_run_that_raises_is_tried_again_from_its_checkpoint(
    store: RunStore, frames: FrameSet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    undisturbed = ContinualRun(configs(1)[0], frames).run()
    raising = Raising(monkeypatch, RETRIES, lambda number: RuntimeError(f"time {number}"))
    runs, shown = computed(store, frames, configs(2), capsys)
    assert raising.tasks == [0, 1, 1, 1, 2]
    assert runs["status"].to_dict() == {0: "finished", 1: "finished"}
    assert runs.loc[0, "auc"] == undisturbed.runs["auc"].item()
    stored = store.read("curves", [runs.loc[0, "run_id"]])
    assert stored["auc"].tolist() == undisturbed.curves["auc"].tolist()
    counts = [line for line in shown.splitlines() if line.startswith("[")]
    assert len(counts) >= 2
    assert "\nworkers: this process, as requested\n" in shown
    assert all("] resumed" in line or "] finished" in line for line in counts), counts
    assert not list(Path(store.work_folder, "checkpoints").iterdir())


def test_a_run_that_always_raises_fails_with_its_last_error_and_where_it_was_computed(
    store: RunStore, frames: FrameSet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising = Raising(monkeypatch, 99, lambda number: RuntimeError(f"time {number}"))
    runs, shown = computed(store, frames, configs(2), capsys)
    assert raising.tasks.count(1) == 1 + RETRIES
    assert runs["status"].to_dict() == {0: "failed", 1: "finished"}
    failed = runs.loc[0]
    assert failed["error"].startswith("Traceback")
    assert failed["error"].rstrip().endswith(f"RuntimeError: time {1 + RETRIES}")
    assert failed["started_at"] <= runs.loc[1, "started_at"], "when the first attempt began"
    assert not failed[["host", "device", "data_hash", "semantics_version"]].isna().any()
    assert failed["host"] == runs.loc[1, "host"]
    (line,) = [line for line in shown.splitlines() if "failed" in line]
    assert f"seed 0: RuntimeError: time {1 + RETRIES}  (clops-sweep status shows more)" in line


@pytest.mark.parametrize("error", [UsageError("not like this"), Diverged("not finite")])
def test_an_error_that_every_attempt_gives_is_not_tried_again(
    error: Exception,
    store: RunStore,
    frames: FrameSet,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    raising = Raising(monkeypatch, 99, lambda _: error)
    runs, _ = computed(store, frames, configs(1), capsys)
    assert raising.tasks == [0, 1]
    assert runs.loc[0, "status"] == "failed"
    assert str(error) in runs.loc[0, "error"]
