"""Calibration: really trains a little, keeps what it took, and leaves the store alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepare import open_frames
from clops_sweep.errors import BadInput
from clops_sweep.learning.run import ContinualRun
from clops_sweep.learning.timing import time_epochs
from clops_sweep.planning.calibration import calibrate, keep, kept_in
from clops_sweep.planning.cost_model import Load, Measured
from clops_sweep.planning.estimate import estimate
from clops_sweep.planning.plan import PlannedRun
from clops_sweep.store.run_store import RunStore

Command = Callable[..., Any]

SPACE = """
from clops_sweep import RunConfig, SearchSpace
SPACE = SearchSpace(
    name="small", base=RunConfig(epochs_per_task=6, task_order="curriculum"), axes={"mc_samples": [5, 20]}, seeds=[0, 1]
)
"""


@pytest.fixture
def frames(prepared_root: Path) -> FrameSet:
    return open_frames("synthetic", prepared_root=prepared_root)


def _load(config: RunConfig) -> Load:
    return Load.of(config.model_dump(mode="json"))


def _runs(**fields: Any) -> list[PlannedRun]:
    space = SearchSpace(name="s", base=RunConfig(**fields), axes={"storage_fraction": [0.1, 0.5, 1.0]}, seeds=[0, 1])
    return [PlannedRun("0", request.config, "pending") for request in space.requests()]


def _calibrate(runs: list[PlannedRun], frames: FrameSet, **options: Any) -> list[tuple[str, Measured]]:
    return list(calibrate(runs, lambda config: frames, time_epochs, "cpu", lambda text: None, **options))


def test_the_most_expensive_run_of_each_kind_is_measured(frames: FrameSet) -> None:
    runs = _runs(epochs_per_task=8, acquire_every=4) + _runs(strategy="finetune")[:1]
    said: list[str] = []
    measured = list(calibrate(runs, lambda config: frames, time_epochs, "cpu", said.append))
    assert [(data_hash, item.load) for data_hash, item in measured] == [
        (frames.data_hash, _load(RunConfig(storage_fraction=1.0, epochs_per_task=2))),
        (frames.data_hash, _load(RunConfig(strategy="finetune", epochs_per_task=2))),
    ]
    assert [line.split()[1] for line in said] == ["clops", "finetune"]
    for _, item in measured:
        assert min(item.seconds[0], item.seconds[2]) > 0


def test_what_is_measured_is_what_a_run_takes(tmp_path: Path, frames: FrameSet) -> None:
    """Within a factor of three: other processes come and go."""
    config = RunConfig(epochs_per_task=10, mc_samples=10)
    ((_, measured),) = _calibrate([PlannedRun("0", config, "pending")], frames)
    assert measured.load == _load(config.replace(epochs_per_task=2))
    found = estimate([PlannedRun("0", config, "pending")], [], RunStore(tmp_path / "results"), [measured])
    taken = float(ContinualRun(config, frames).run().runs["seconds"].iloc[0])
    assert 1 / 3 < found.hours * 3600 / taken < 3


def test_it_ends_in_time(frames: FrameSet) -> None:
    begun = time.process_time()
    ((_, measured),) = _calibrate(_runs(mc_samples=2000), frames, seconds=0.2)
    assert time.process_time() - begun < 20
    whole = _load(RunConfig(storage_fraction=1.0, mc_samples=2000, epochs_per_task=2))
    assert 0 < sum(measured.load.work) < sum(whole.work)  # cut short, and it counts with what it has done


def test_a_run_that_fails_is_one_sentence(frames: FrameSet) -> None:
    def fails(*arguments: object) -> tuple[int, list[float]]:
        raise RuntimeError("of\nno use")

    with pytest.raises(BadInput, match=r"^--calibrate: a run of clops on synthetic fails \(RuntimeError: of no use\)$"):
        list(calibrate(_runs(), lambda config: frames, fails, "cpu", lambda text: None))


def test_what_was_measured_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "calibration.json"
    measured = [("hash", Measured(_load(RunConfig()), [0.1, 0.2, 0.3], "cuda"))]
    keep(path, measured)
    assert kept_in(path) == measured


def test_a_file_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    keep(tmp_path / "file" / "calibration.json", [])
    assert kept_in(tmp_path / "file" / "calibration.json") == []


@pytest.mark.parametrize(
    "content",
    ["", "{", "[1]", "{}", "null", '[{"load": 3}]', '{"measured": 3}', '{"measured": [["", [[[], 1], [], ""]]]}'],
)
def test_a_file_that_is_something_else_counts_as_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(content)
    assert kept_in(path) == []


@pytest.mark.parametrize("name", ["host", "version", "semantics_version"])
def test_what_was_measured_elsewhere_does_not_count(tmp_path: Path, name: str) -> None:
    path = tmp_path / "calibration.json"
    keep(path, [("hash", Measured(_load(RunConfig()), [0.1, 0.2, 0.3], "cpu"))])
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {name: "another"}))
    assert kept_in(path) == []


def test_the_command_measures_once_and_records_nothing(clops_sweep: Command, tmp_path: Path) -> None:
    (tmp_path / "space.py").write_text(SPACE)
    first = clops_sweep("plan", "space.py", "--calibrate")
    assert first.returncode == 0, first.stderr
    assert first.stderr.splitlines() == ["measuring clops on synthetic, class_il, b = 0.25"]
    assert first.stdout.splitlines()[-1].endswith("; from 1 short run on this machine")
    assert list((tmp_path / "results").rglob("*.parquet")) == []
    for again in (clops_sweep("plan", "space.py"), clops_sweep("plan", "space.py", "--calibrate")):
        assert (again.returncode, again.stderr, again.stdout) == (0, "", first.stdout)
    unprepared = clops_sweep("plan", "space.py", "--calibrate", "--set", "dataset=mitbih", "--prepared-root", "none")
    assert unprepared.returncode == 2
    assert unprepared.stderr == (
        "clops-sweep: --calibrate: mitbih is not prepared here; expected: clops-sweep data prepare mitbih\n"
    )
