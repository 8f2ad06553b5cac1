from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from clops_sweep.analysis.figures.tracings import draw_tracings, tracings
from clops_sweep.data.frames import FRAME_LENGTH
from clops_sweep.data.preparing.prepare import open_frames, prepare
from tests.data.published_formats import write_mitbih_record


@dataclass
class GeneratedFrames:
    """Test input: four frames whose samples are their row."""

    name: str = "mitbih"
    unit: str = "mV"
    data_hash: str = "generated0001"
    frame_seconds: float | None = 5.0

    lead_names: tuple[str, ...] = ("MLII", "V5")

    @property
    def leads(self) -> npt.NDArray[np.int16]:
        return np.array([0, 1, 0, 1], np.int16)

    def __len__(self) -> int:
        return 4

    def signal(self, rows: Any) -> npt.NDArray[np.float32]:
        ramp = np.linspace(0, 1, 2500, dtype=np.float32)
        return np.stack([row + ramp for row in rows])


INSTANCES = pd.DataFrame(
    {
        "run_id": "r1",
        "task": ["A", "A", "B", "B"],
        "instance": [3, 1, 0, 2],
        "patient": ["p3", "p1", "p0", "p2"],
        "label": ["NSR", "AFIB", "NSR", "VT"],
        "s": [18.9, 18.7, np.nan, 18.8],
    }
)


def test_records_by_hand() -> None:
    low, high = tracings(INSTANCES, GeneratedFrames())
    assert (low.instance, low.label, low.patient, low.task, low.s) == (1, "AFIB", "p1", "A", 18.7)
    assert (high.instance, high.label, high.task_position) == (3, "NSR", 0)
    assert low.signal.shape == (1, 2500)
    assert low.signal[0, 0] == 1
    assert (low.channels, low.unit, low.is_ecg) == (("V5",), "mV", True)
    assert (low.time[1], low.seconds) == (0.002, 5.0)
    assert [r.instance for r in tracings(INSTANCES, GeneratedFrames(), count=2)] == [1, 2, 3, 2]


def test_microvolt_becomes_millivolt() -> None:
    low, _ = tracings(INSTANCES, GeneratedFrames(unit="uV"))
    assert (low.unit, low.signal[0, 0]) == ("mV", pytest.approx(1e-3))


def test_the_clinical_grid_is_to_scale() -> None:
    figure = draw_tracings(tracings(INSTANCES, GeneratedFrames()))
    for axes in figure.axes:
        box = axes.get_position()
        width, height = figure.get_size_inches() * 25.4
        millimetres_per_second = box.width * width / np.ptp(axes.get_xlim())
        millimetres_per_millivolt = box.height * height / np.ptp(axes.get_ylim())
        assert millimetres_per_second == pytest.approx(25, rel=1e-3)
        assert millimetres_per_millivolt == pytest.approx(10, rel=1e-3)


@dataclass
class Multichannel(GeneratedFrames):
    """Test input: channel c of instance i is 10 i + c, and a ramp."""

    def signal(self, rows: Any) -> npt.NDArray[np.float32]:
        ramp = np.linspace(0, 1, 128, dtype=np.float32)
        return np.stack([np.stack([10 * row + c + ramp for c in range(len(self.lead_names))]) for row in rows])


AXES = ("ax", "ay", "az")
TWELVE = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")


@pytest.fixture
def ten_seconds(tmp_path: Path) -> Path:
    """Prepared data of generated records, cut into frames of 10 s instead of the usual 5."""
    for number in range(6):
        rhythms_of_one = [("(N", 12, "N"), ("(AFIB", 12, "N"), ("(B", 12, "V"), ("(P", 12, "/")]
        write_mitbih_record(tmp_path / "data" / "mitdb", str(100 + number), rhythms_of_one)
    root, options = tmp_path / "prepared", {"window_seconds": 10.0}
    prepare("mitbih", prepared_root=root, data_root=tmp_path / "data", workers=1, options=options)
    return root


def test_the_time_axis_is_that_of_the_prepared_frames(ten_seconds: Path) -> None:
    frames = open_frames("mitbih", prepared_root=ten_seconds)
    low, _ = tracings(INSTANCES, frames)
    assert low.seconds == 10
    assert low.time[1] == pytest.approx(10 / FRAME_LENGTH)
    axes = draw_tracings([low]).axes[0]
    assert axes.get_xlim()[1] == pytest.approx(10)
