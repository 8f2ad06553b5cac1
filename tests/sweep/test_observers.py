"""Observers: told everything once, harmless whatever they do, and the built-in ones read back by their own readers."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from launching import Sweep

from clops_sweep import EpochEnd, RunConfig, RunEnd, TaskEnd
from clops_sweep.data.prepare import open_frames
from clops_sweep.errors import BadInput
from clops_sweep.experiment.columns import METRICS
from clops_sweep.experiment.events import Event, Place
from clops_sweep.experiment.plugins import observer
from clops_sweep.experiment.registry import OBSERVERS
from clops_sweep.experiment.search_space import load_spaces
from clops_sweep.learning.run import ContinualRun
from clops_sweep.store.run_store import RunStore
from clops_sweep.sweep.observers.asked import asked_observers, check_observers
from clops_sweep.sweep.observers.events import after_epoch, after_run
from clops_sweep.sweep.observers.teller import Observers
from clops_sweep.testing import ContractViolation, check_observer, tiny_config, tiny_frames

Launch = Callable[..., Sweep]
Command = Callable[..., "subprocess.CompletedProcess[str]"]

PAGE = (Path(__file__).parents[2] / "docs" / "observers.md").read_text()
EXAMPLE, CONTRACT = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
RUN, OTHER = "ab12", "cd34"


@pytest.fixture(autouse=True)
def as_if_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OBSERVERS, "_added", {})


def place(task: int, epoch: int) -> Place:
    return Place(task, f"task {task}", 2, epoch, 2)


def events_of(run_id: str = RUN) -> list[Event]:
    """Two tasks of two epochs."""
    config = RunConfig()
    found: list[Event] = []
    for task in (1, 2):
        found += [EpochEnd(run_id, config, place(task, epoch), {"auc": task + epoch / 10}) for epoch in (1, 2)]
        found.append(TaskEnd(run_id, config, place(task, 2), {"auc": float(task), "test_auc": 0.5}))
    return [*found, RunEnd(run_id, config, "finished", {"auc": 0.75, "bwt": -0.25})]


Made = Callable[..., Observers]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    """Observers as a worker on the store in this folder has them."""
    there: list[Observers] = []
    store = RunStore(tmp_path / "results")
    store.open_for_writing()

    def make(*texts: str, seconds: float = 60) -> Observers:
        check_observers(texts)
        folder = f"{store.work_folder}/checkpoints"
        there.append(Observers(asked_observers(texts, store), store.files, folder, seconds))
        return there[-1]

    yield make
    for observers in there:
        observers.close(20)


def test_everything_is_told_once_also_where_a_run_is_resumed_or_begun_anew(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "told"

    class Lines:
        def __init__(self, target: str | None, folder: str) -> None:
            self.target = (target, folder)

        def __call__(self, event: Event) -> None:
            print("what is printed is no answer")
            at = "" if isinstance(event, RunEnd) else f" {event.place.step}"
            with file.open("a") as lines:
                lines.write(f"{type(event).__name__} {event.run_id}{at} {self.target}\n")

    observer("lines")(Lines)
    events, others = events_of(), events_of(OTHER)
    for some in (events[:2], events[1:5], events):  # a process each; others were told before their worker died
        observers = made("lines:some:where")
        observers.tell([*some, *others])
        observers.catch_up()
        assert observers.notes() == ()
    own = ("some:where", str(tmp_path / "results" / ".work" / "lines"))
    told = [
        "EpochEnd {} 1",
        "EpochEnd {} 2",
        "TaskEnd {} 2",
        "EpochEnd {} 3",
        "EpochEnd {} 4",
        "TaskEnd {} 4",
        "RunEnd {}",
    ]
    lines = [line for line in file.read_text().splitlines() if RUN in line]
    assert lines == [f"{line.format(RUN)} {own}" for line in told]
    assert len(file.read_text().splitlines()) == 7 + 3 * 7  # once its end has been told, a run is another attempt
    assert not list((tmp_path / "results" / ".work" / "checkpoints").iterdir())


def test_what_they_do_harms_nobody_and_is_said_once(made: Made, tmp_path: Path) -> None:
    told = tmp_path / "told"

    @observer("raises")
    def raises(event: Event) -> None:
        with told.open("a") as file:
            file.write("x")
        raise ValueError("not\nthis time")

    @observer("leaves")
    def leaves(event: Event) -> None:
        os._exit(3)

    @observer("hangs")
    class Hangs:
        def __init__(self, target: str | None, folder: str) -> None: ...

        def __call__(self, event: Event) -> None:
            time.sleep(600)

    @observer("unmade")
    class Unmade:
        def __init__(self, target: str | None, folder: str) -> None:
            raise RuntimeError("no server")

        def __call__(self, event: Event) -> None: ...

    observers = made("raises", "leaves", "unmade", seconds=60)
    slow = made("hangs", seconds=8)
    began = time.monotonic()
    observers.tell(events_of())
    slow.tell(events_of())
    assert time.monotonic() - began < 7  # nobody has waited for the one that hangs
    observers.catch_up()
    slow.catch_up()
    *notes, of_slow = [note.text for note in (*observers.notes(), *slow.notes())]
    assert notes == [
        "observer 'raises' raises ValueError: not this time; runs go on, and it is told what comes",
        "observer 'leaves' has ended its own process (exit status 3); runs go on, and this worker tells it no more",
        "observer 'unmade' cannot be made (RuntimeError: no server); runs go on, and this worker tells it no more",
    ]
    assert re.match("observer 'hangs' has not (returned within 8 s|caught up 8 s after the end of a run); ", of_slow)
    assert told.read_text() == 7 * "x"
    observers.tell(events_of(OTHER))
    slow.tell(events_of(OTHER))
    began = time.monotonic()
    slow.catch_up()
    assert time.monotonic() - began < 7
    observers.catch_up()
    assert (observers.notes(), slow.notes()) == ((), ())
    assert told.read_text() == 14 * "x"


def test_what_is_told_is_what_is_stored() -> None:
    config, frames = tiny_config("class_il"), tiny_frames("class_il", tasks=3)
    run = ContinualRun(config, frames)
    told: list[Event] = []
    while not run.finished:
        told += after_epoch([RUN], run, run.advance())
    result = run.result()
    curves, r = result.curves, result.r_matrix
    epochs = [event for event in told if isinstance(event, EpochEnd)]
    assert [event.place.step for event in epochs] == list(range(1, len(epochs) + 1))
    for event in epochs:
        rows = curves[curves["epoch"] == event.place.step][: event.place.task]
        assert event.metrics["auc"] == pytest.approx(rows["auc"].mean(), abs=1e-12)
        assert {name: event.metrics[f"loss/{name}"] for name in rows["task"]} == dict(
            zip(rows["task"], rows["loss"], strict=True)
        )
        assert len(event.metrics) == 5 * (1 + event.place.task)
    for event in (event for event in told if isinstance(event, TaskEnd)):
        k = event.place.task
        known = r[(r["split"] == "test") & (r["evaluated_on"] <= k)]
        matrix = known.pivot_table("auc", "trained_on", "evaluated_on").to_numpy()[:k]
        assert event.metrics["test_auc"] == pytest.approx(matrix[-1].mean())
        if k > 1:
            forgotten = [matrix[-1, j] - matrix[j, j] for j in range(k - 1)]
            assert event.metrics["test_bwt"] == pytest.approx(sum(forgotten) / (k - 1))
        assert ("test_bwt" in event.metrics) == (k > 1)
    (end,) = after_run({str(result.runs["run_id"].item()): config}, result)
    assert isinstance(end, RunEnd)
    assert end.metrics["test_bwt"] == result.runs["test_bwt"].item() == told[-1].metrics["test_bwt"]


def test_tensorboard_reads_what_was_told(made: Made, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs TensorBoard: pip install 'clops-sweep[tensorboard]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for some in (events_of()[:2], events_of()[2:]):
        observers = made(f"tensorboard:{tmp_path}/events")
        observers.tell(some)
        observers.close(60)
        assert observers.notes() == ()
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


def test_wandb_writes_what_was_told_without_a_net(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="needs W&B: pip install 'clops-sweep[wandb]'")
    monkeypatch.setenv("WANDB_MODE", "offline")
    observers = made("wandb:somebody/study")
    observers.tell(events_of())
    observers.close(60)
    assert observers.notes() == ()
    (file,) = (tmp_path / "results" / ".work" / "wandb" / "wandb").glob(f"offline-run-*-{RUN}/run-{RUN}.wandb")
    assert _history(file) == [("epochs", str(n)) for n in (1, 2, 2, 3, 4, 4)]


def _history(file: Path) -> list[tuple[str, str]]:
    """What a file of W&B has logged: seven bytes, then a log of LevelDB of messages of protocol buffers."""
    from wandb.proto import wandb_internal_pb2

    content, at, found = file.read_bytes(), 7, []
    while at + 7 <= len(content):
        size, kind = int.from_bytes(content[at + 4 : at + 6], "little"), content[at + 6]
        assert kind == 1, "whole messages"
        record = wandb_internal_pb2.Record.FromString(content[at + 7 : at + 7 + size])
        at += 7 + size
        for item in record.history.item:
            name = item.key or "/".join(item.nested_key)
            if name == "epochs":
                found.append((name, item.value_json))
    return found


def test_the_example_runs_and_changes_no_number(attach: Launch, prepared_root: Path, tmp_path: Path) -> None:
    assert len(EXAMPLE.splitlines()) <= 30
    raising = "\n\n@observer('raises')\ndef raises(event):\n    raise OSError('no room')\n"
    (tmp_path / "my_sweep.py").write_text(EXAMPLE + raising)
    sweep = attach("my_sweep.py", "--no-report", "--observe", "progress_file", "--observe", "raises")
    assert sweep.wait() == 0, sweep.output + sweep.errors
    said = "observer 'raises' raises OSError: no room; runs go on, and it is told what comes"
    assert sweep.output.count(said) == 1
    lines = (tmp_path / "progress.txt").read_text().splitlines()
    runs = pd.read_parquet(tmp_path / "results" / "runs")
    assert len(lines) == 2 * (6 * 2 + 6 + 1)
    for run_id, seed, bwt in zip(runs["run_id"], runs["seed"], runs["bwt"], strict=True):
        own = [line.removeprefix(f"{run_id} seed {seed} ") for line in lines if line.startswith(run_id)]
        assert own[0].startswith("epoch 1 (task 1/6): AUC ")
        assert own[2].startswith("after task 0-1: test AUC ")
        assert own[-1] == f"finished: BWT {bwt:+.3f}"
    (space,) = load_spaces(tmp_path / "my_sweep.py")
    alone = ContinualRun(space.base.replace(seed=0), open_frames("synthetic", prepared_root=prepared_root)).run()
    assert alone.runs[list(METRICS)].equals(runs.loc[runs["seed"] == 0, list(METRICS)].reset_index(drop=True))
    assert not list((tmp_path / "results" / ".work" / "checkpoints").iterdir())


def test_the_contract_suite_passes_the_example_and_names_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "my_sweep.py").write_text(EXAMPLE)
    load_spaces(tmp_path / "my_sweep.py")
    names: dict[str, Any] = {"progress_file": OBSERVERS["progress_file"]}
    exec(CONTRACT, names)
    names["test_contract"]()
    with pytest.raises(
        ContractViolation, match=r"^observer 'observer_under_test' raises AttributeError: 'RunEnd' object"
    ):
        check_observer(lambda event: event.place)


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (
            ["tensorbord"],
            "--observe 'tensorbord': no such observer (did you mean 'tensorboard'?); there are tensorboard, ",
        ),
        (["mine:"], "--observe 'mine:': nothing stands behind the colon; expected mine:TARGET"),
        (["mine:there"], "--observe 'mine:there': a function takes no target; expected mine, or a class"),
        (["mine", "mine"], "--observe mine is there twice; expected it once"),
        ("mine", "observe = 'mine': expected a list of names, such as ['mine']"),
        (["mlflow"], "--observe mlflow needs the package mlflow: pip install mlflow"),
    ],
)
def test_what_cannot_be_asked_for(monkeypatch: pytest.MonkeyPatch, texts: Any, sentence: str) -> None:
    observer("mine")(lambda event: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BadInput, match=f"^{re.escape(sentence)}"):
        check_observers(texts)


def test_mlflow_must_be_told_where_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(BadInput, match=r"^--observe mlflow: expected where to, as in mlflow:http://HOST:5000, or MLF"):
        check_observers(["mlflow"])


def test_what_is_no_observer_is_refused_where_it_is_declared(clops_sweep: Command, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^observer 'mine': expected a function of an event; nothing\(\) is none "):

        @observer("mine")
        def nothing() -> None: ...

    with pytest.raises(BadInput, match=r"^observer 'mine': class Mute has no method __call__; expected one that takes"):

        @observer("mine")
        class Mute: ...

    with pytest.raises(BadInput, match=r"^observer 'mlflow' is built in; register yours under another name"):
        observer("mlflow")(print)
    (tmp_path / "space.py").write_text(EXAMPLE)
    done = clops_sweep("space.py", "--observe", "progress")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert done.stderr.startswith("clops-sweep: --observe 'progress': no such observer")
    assert not (tmp_path / "results").exists()
