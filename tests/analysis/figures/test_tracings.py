from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from clops_sweep.analysis.figures.beta.tracings import draw_tracings, tracings


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
