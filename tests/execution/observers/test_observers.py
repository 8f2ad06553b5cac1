"""Observers: each event once a launch, no harm whatever they do, and the built-in ones read by their own readers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clops_sweep import EpochEnd, RunConfig, RunEnd, TaskEnd
from clops_sweep.execution.observers import thread
from clops_sweep.execution.observers.events import after_epoch, after_run
from clops_sweep.execution.observers.requested import check_observers, requested_observers
from clops_sweep.execution.observers.thread import Observers
from clops_sweep.execution.run_log import epoch_line, scores_after
from clops_sweep.experiment.events import Event, Progress
from clops_sweep.experiment.plugins.decorators import observer
from clops_sweep.experiment.plugins.registry import OBSERVERS
from clops_sweep.experiment.spaces.space_files import load_spaces
from clops_sweep.learning.run import ContinualRun
from clops_sweep.store.run_logs import EpochScores
from clops_sweep.store.run_store import RunStore
from clops_sweep.testing import ContractViolation, check_observer, tiny_config, tiny_frames
from tests.helpers.documentation import examples
from tests.helpers.registries import only_built_in

EXAMPLE, CONTRACT = examples("observers")
RUN, OTHER = "ab12", "cd34"


@pytest.fixture(autouse=True)
def as_if_new() -> Iterator[None]:
    with only_built_in(OBSERVERS):
        yield


def progress(task: int, epoch: int) -> Progress:
    return Progress(task, f"task {task}", 2, epoch, 2)


def events_of(run_id: str = RUN) -> list[Event]:
    """Two tasks of two epochs."""
    config = RunConfig()
    found: list[Event] = []
    for task in (1, 2):
        found += [EpochEnd(run_id, config, progress(task, epoch), {"auc": task + epoch / 10}) for epoch in (1, 2)]
        found.append(TaskEnd(run_id, config, progress(task, 2), {"auc": float(task), "test_auc": 0.5}))
    return [*found, RunEnd(run_id, config, "finished", {"auc": 0.75, "bwt": -0.25})]


Made = Callable[..., Observers]
SECONDS = 30.0
"""Longest wait for observers that are quick."""


@pytest.fixture
def notes() -> list[str]:
    """The sentences that a user reads."""
    return []


@pytest.fixture
def made(tmp_path: Path, notes: list[str]) -> Iterator[Made]:
    """Observers as a launch on the store in this folder has them."""
    there: list[Observers] = []

    def make(*texts: str, seconds: float = SECONDS) -> Observers:
        check_observers(texts)
        requested = requested_observers(texts, RunStore(tmp_path / "results"))
        there.append(Observers(requested, notes.append, seconds))
        return there[-1]

    yield make
    for observers in there:
        observers.close(0)


class Recorder:
    """An observer that remembers its events, and raises, waits or ends its thread as a test needs it."""

    def __init__(self, name: str, then: Callable[[], object] = lambda: None) -> None:
        self.events: list[Event] = []
        self._then = then
        observer(name)(self.call)

    def call(self, event: Event) -> None:
        self.events.append(event)
        self._then()


def raising(error: BaseException) -> Callable[[], object]:
    def then() -> None:
        raise error

    return then


def test_an_observer_that_misbehaves_is_reported_once_and_harms_no_other(made: Made, notes: list[str]) -> None:
    released = threading.Event()
    raises = Recorder("raises", raising(ValueError("not\nthis time")))
    leaves = Recorder("leaves", raising(SystemExit(3)))
    interrupts = Recorder("interrupts", raising(KeyboardInterrupt()))
    good = Recorder("good")
    hangs = Recorder("hangs", released.wait)

    @observer("unmade")
    class Unmade:
        def __init__(self, target: str | None, folder: str) -> None:
            raise RuntimeError("no server")

        def __call__(self, event: Event) -> None: ...

    observers = made("raises", "unmade", "hangs", "leaves", "interrupts", "good", seconds=1)
    began = time.monotonic()
    observers.tell(events_of())
    assert time.monotonic() - began < 1
    while not any("hangs" in note for note in notes) and time.monotonic() - began < SECONDS:
        time.sleep(0.02)
        observers.look()
    assert good.events == []
    observers.tell(events_of(OTHER))
    released.set()
    observers.close(SECONDS)
    later = "runs go on, and so do its later events"
    assert notes == [
        f"observer 'raises' raises ValueError: not this time; {later}",
        "observer 'unmade' cannot be made (RuntimeError: no server); runs go on, and it gets no more events",
        "observer 'hangs' has not returned within 1 s; runs go on, and observers get no events until it does",
        f"observer 'leaves' raises SystemExit: 3; {later}",
        f"observer 'interrupts' raises KeyboardInterrupt: ; {later}",
    ]
    expected = [*events_of(), *events_of(OTHER)]
    assert raises.events == leaves.events == interrupts.events == good.events == hangs.events == expected


def test_the_end_waits_no_longer_than_its_limit(made: Made, notes: list[str]) -> None:
    released = threading.Event()
    hangs = Recorder("hangs", released.wait)
    observers = made("hangs")
    observers.tell(events_of())
    began = time.monotonic()
    observers.close(0.3)
    assert time.monotonic() - began < 5
    observers.close(0.3)
    assert notes == ["observer 'hangs' has not returned at the end of the sweep; observers missed 6 events"]
    released.set()
    observers.tell(events_of(OTHER))
    assert len(hangs.events) == 1


def test_a_full_queue_drops_epochs_alone_and_says_once_how_many(
    made: Made, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread, "MOST_WAITING", 3)
    released = threading.Event()
    slow, observers = Recorder("slow", released.wait), made("slow")
    events = [event for run in range(50) for event in events_of(f"{run:04x}")]
    observers.tell(events[:1])
    until = time.monotonic() + SECONDS
    while not slow.events and time.monotonic() < until:
        time.sleep(0.01)
    observers.tell(events)
    assert notes == []
    released.set()
    observers.close(SECONDS)
    kept = [event for event in events if not isinstance(event, EpochEnd)]
    assert [event for event in slow.events if not isinstance(event, EpochEnd)] == kept
    dropped = len(events) - len(slow.events)
    assert 190 <= dropped < 200
    assert notes == [f"observers are slower than the runs and missed {dropped} epoch events"]


def test_what_is_told_is_what_is_stored() -> None:
    config, frames = tiny_config("class_il"), tiny_frames("class_il", tasks=3)
    run = ContinualRun(config, frames)
    told: list[Event] = []
    logged: list[EpochScores] = []
    while not run.finished:
        progress = run.advance()
        told += after_epoch(RUN, run, progress)
        logged.append(scores_after(run, progress))
    result = run.result()
    curves, r = result.curves, result.r_matrix
    assert {after.measure for after in logged} == {"auc"}
    epochs = [event for event in told if isinstance(event, EpochEnd)]
    assert [event.progress.step for event in epochs] == list(range(1, len(epochs) + 1))
    for event in epochs:
        rows = curves[curves["epoch"] == event.progress.step][: event.progress.task]
        assert event.metrics["auc"] == pytest.approx(rows["auc"].mean(), abs=1e-12)
        (after,) = (after for after in logged if after.progress == event.progress)
        assert dict(after.values) == dict(zip(rows["task"], rows["auc"], strict=True))
        assert set(rows["training_task"]) == {after.progress.task_name}
        for task, value in after.values.items():
            assert f"{value:.4f} ({task})" in epoch_line(after, "validation")
        assert ": validation auc " in epoch_line(after, "validation")
        assert {name: event.metrics[f"loss/{name}"] for name in rows["task"]} == dict(
            zip(rows["task"], rows["loss"], strict=True)
        )
        assert len(event.metrics) == 5 * (1 + event.progress.task)
    for event in (event for event in told if isinstance(event, TaskEnd)):
        k = event.progress.task
        known = r[(r["split"] == "test") & (r["evaluated_on"] <= k)]
        matrix = known.pivot_table("auc", "trained_on", "evaluated_on").to_numpy()[:k]
        assert event.metrics["test_auc"] == pytest.approx(matrix[-1].mean())
        if k > 1:
            forgotten = [matrix[-1, j] - matrix[j, j] for j in range(k - 1)]
            assert event.metrics["test_bwt"] == pytest.approx(sum(forgotten) / (k - 1))
        assert ("test_bwt" in event.metrics) == (k > 1)
    end = after_run(str(result.runs["run_id"].item()), config, result)
    assert end.metrics["test_bwt"] == result.runs["test_bwt"].item() == told[-1].metrics["test_bwt"]


def test_tensorboard_reads_what_was_told(made: Made, notes: list[str], tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs TensorBoard: pip install 'clops-sweep[tensorboard]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for some in (events_of()[:5], events_of()[3:]):  # the first launch was killed, and two events come again
        observers = made(f"tensorboard:{tmp_path}/events")
        observers.tell(some)
        observers.close(SECONDS)
    assert notes == []
    found = EventAccumulator(str(tmp_path / "events" / RUN))
    found.Reload()
    scalars = {tag: [(it.step, round(it.value, 6)) for it in found.Scalars(tag)] for tag in found.Tags()["scalars"]}
    assert scalars == {
        "epoch/auc": [(1, 1.1), (2, 1.2), (3, 2.1), (4, 2.2)],
        "task/auc": [(2, 1.0), (4, 2.0)],
        "task/test_auc": [(2, 0.5), (4, 0.5)],
        "run/auc": [(4, 0.75)],
        "run/bwt": [(4, -0.25)],
    }
    assert "_hparams_/session_start_info" in found.SummaryMetadata.__self__.summary_metadata


@pytest.mark.filterwarnings("ignore")
def test_mlflow_has_what_was_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow", reason="needs MLflow: pip install 'clops-sweep[mlflow]'")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a database takes MLflow half a minute to make
    for some in (events_of()[:2], events_of()[2:]):  # a run that is resumed goes on where it was
        told = OBSERVERS["mlflow"]((tmp_path / "store").as_uri(), "")
        for event in some:
            told(event)
    (run,) = (tmp_path / "store").glob("*/*/tags/mlflow.runName")
    folder = run.parents[1]
    assert run.read_text() == RUN
    assert (folder / "params" / "storage_fraction").read_text() == "0.25"
    lines = (folder / "metrics" / "epoch" / "auc").read_text().splitlines()
    assert [line.split()[1:] for line in lines] == [["1.1", "1"], ["1.2", "2"], ["2.1", "3"], ["2.2", "4"]]
    assert "status: 3" in (folder / "meta.yaml").read_text()


@pytest.mark.nightly
def test_wandb_writes_what_was_told_without_a_net(
    made: Made, notes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="needs W&B: pip install 'clops-sweep[wandb]'")
    monkeypatch.setenv("WANDB_MODE", "offline")
    observers = made("wandb:somebody/study")
    observers.tell(events_of())
    observers.close(60)
    assert notes == []
    (file,) = (tmp_path / "results" / ".work" / "wandb" / "wandb").glob(f"offline-run-*-{RUN}/run-{RUN}.wandb")
    expected = [("epochs", str(n)) for n in (1, 2, 2, 3, 4, 4)]
    for _ in range(200):  # its process writes the file soon after the run is finished
        time.sleep(0 if _history(file) == expected else 0.1)
    assert _history(file) == expected


def _history(file: Path) -> list[tuple[str, str]]:
    """What a file of W&B has logged: seven bytes, then a log of LevelDB of messages of protocol buffers."""
    from wandb.proto import wandb_internal_pb2

    content, at, found = file.read_bytes(), 7, []
    while at + 7 <= len(content):
        size, kind = int.from_bytes(content[at + 4 : at + 6], "little"), content[at + 6]
        assert kind == 1, "whole messages"
        at += 7 + size
        if at > len(content):  # the message is being written
            break
        record = wandb_internal_pb2.Record.FromString(content[at - size : at])
        for item in record.history.item:
            name = item.key or "/".join(item.nested_key)
            if name == "epochs":
                found.append((name, item.value_json))
    return found


def test_the_contract_suite_passes_the_example_and_names_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "my_sweep.py").write_text(EXAMPLE)
    load_spaces(tmp_path / "my_sweep.py")
    names: dict[str, Any] = {"progress_file": OBSERVERS["progress_file"]}
    exec(CONTRACT, names)
    names["test_contract"]()
    with pytest.raises(
        ContractViolation, match=r"^observer 'observer_under_test' raises AttributeError: 'RunEnd' object"
    ):
        check_observer(lambda event: event.progress)
