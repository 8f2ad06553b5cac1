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
from clops_sweep.learning.run import ContinualRun
from clops_sweep.planning.calibration import Calibrations, calibrate
from clops_sweep.planning.cost_model import Load
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


def _runs(**fields: Any) -> list[PlannedRun]:
    space = SearchSpace(name="s", base=RunConfig(**fields), axes={"storage_fraction": [0.1, 0.5, 1.0]}, seeds=[0, 1])
    return [PlannedRun("0", request.config, "pending") for request in space.requests()]


def test_the_cheapest_and_the_dearest_are_measured(tmp_path: Path, frames: FrameSet) -> None:
    kept = Calibrations(tmp_path / "folder" / "calibration.json")
    runs = _runs(epochs_per_task=8) + _runs(strategy="finetune")[:1]
    said: list[str] = []
    calibrate(runs, lambda config: frames, kept, say=said.append)
    measured = kept.known({frames.data_hash})
    assert [(m.load.strategy, m.load.storage_fraction, m.load.epochs_per_task) for m in measured] == [
        ("clops", 0.1, 2),
        ("clops", 1.0, 2),
        ("finetune", 0.1, 2),
    ]
    assert len(said) == 3
    for item in measured:
        assert item.work == item.load.work  # all of it has been done
        assert min(item.seconds[0], item.seconds[2]) > 0
    assert kept.known({"of other data"}) == []
    calibrate(runs[:1], lambda config: frames, kept)
    assert len(kept.known({frames.data_hash})) == 3  # measured again, and kept once


def test_what_is_measured_is_what_a_run_takes(tmp_path: Path, frames: FrameSet) -> None:
    """Within a factor of three: other processes come and go."""
    config = RunConfig(epochs_per_task=10, mc_samples=10)
    kept = Calibrations(tmp_path / "calibration.json")
    calibrate([PlannedRun("0", config, "pending")], lambda _: frames, kept)
    (measured,) = kept.known({frames.data_hash})
    assert measured.load == Load.of(config.replace(epochs_per_task=2))
    found = estimate([PlannedRun("0", config, "pending")], [], RunStore(tmp_path / "results"), [measured])
    taken = float(ContinualRun(config, frames).run().runs["seconds"].iloc[0])
    assert 1 / 3 < found.hours * 3600 / taken < 3


def test_it_ends_in_time(tmp_path: Path, frames: FrameSet) -> None:
    kept = Calibrations(tmp_path / "calibration.json")
    begun = time.monotonic()
    calibrate(_runs(mc_samples=2000), lambda config: frames, kept, seconds=0.2)
    assert time.monotonic() - begun < 20
    dearest = kept.known({frames.data_hash})[-1]
    assert dearest.work < dearest.load.work  # cut short, and it counts with what it has done
    assert sum(dearest.work) > 0


@pytest.mark.parametrize(
    "content", ["", "{", "[1]", "{}", "null", '[{"load": 3}]', '[{"host": "", "load": {"dataset": "x"}}]']
)
def test_a_file_that_is_something_else_counts_as_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(content)
    assert Calibrations(path).known({""}) == []


@pytest.mark.parametrize("name", ["host", "package_version", "semantics_version"])
def test_what_was_measured_elsewhere_does_not_count(tmp_path: Path, frames: FrameSet, name: str) -> None:
    kept = Calibrations(tmp_path / "calibration.json")
    calibrate(_runs(strategy="finetune", epochs_per_task=1)[:1], lambda config: frames, kept)
    assert len(kept.known({frames.data_hash})) == 1
    items = json.loads(kept.path.read_text())
    items[0][name] = "another"
    kept.path.write_text(json.dumps(items))
    assert kept.known({frames.data_hash}) == []


def test_the_command_measures_once_and_records_nothing(clops_sweep: Command, tmp_path: Path) -> None:
    (tmp_path / "space.py").write_text(SPACE)
    first = clops_sweep("plan", "space.py", "--calibrate")
    assert first.returncode == 0, first.stderr
    assert first.stderr.splitlines() == ["measuring clops on synthetic, class_il, b = 0.25"] * 2
    assert first.stdout.splitlines()[-1].endswith("; from 2 short runs on this machine")
    assert list((tmp_path / "results").rglob("*.parquet")) == []
    for again in (clops_sweep("plan", "space.py"), clops_sweep("plan", "space.py", "--calibrate")):
        assert (again.returncode, again.stderr, again.stdout) == (0, "", first.stdout)
    unprepared = clops_sweep("plan", "space.py", "--calibrate", "--set", "dataset=mitbih", "--prepared-root", "none")
    assert unprepared.returncode == 2
    assert unprepared.stderr == (
        "clops-sweep: --calibrate: mitbih is not prepared here; expected: clops-sweep data prepare mitbih\n"
    )
