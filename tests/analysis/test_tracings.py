from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from analysis.style import as_png
from analysis.tracings import describe_tracings, draw_tracings, tracings
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import BadInput


@dataclass
class GeneratedFrames:
    """Test input: four frames whose samples are their row."""

    name: str = "mitbih"
    unit: str = "mV"
    data_hash: str = "generated0001"

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
    assert low.signal[0] == 1
    assert (low.time[1], low.seconds) == (0.002, 5.0)
    assert [r.instance for r in tracings(INSTANCES, GeneratedFrames(), count=2)] == [1, 2, 3, 2]
    assert "lowest s: task A, label AFIB, patient p1, s = 18.700" in describe_tracings((low, high))


def test_values_of_s_that_are_close_are_told_apart() -> None:
    close = tracings(INSTANCES.assign(s=[1.00031, 0.99912, np.nan, 0.9995]), GeneratedFrames())
    assert "s = 0.9991; highest s" in describe_tracings(close)
    assert [axes.get_title(loc="left").split("s = ")[1] for axes in draw_tracings(close).axes] == ["0.9991", "1.0003"]


def test_microvolt_becomes_millivolt() -> None:
    low, _ = tracings(INSTANCES, GeneratedFrames(unit="uV"))
    assert (low.unit, low.signal[0]) == ("mV", pytest.approx(1e-3))


def test_the_clinical_grid_is_to_scale() -> None:
    figure = draw_tracings(tracings(INSTANCES, GeneratedFrames()))
    for axes in figure.axes:
        box = axes.get_position()
        width, height = figure.get_size_inches() * 25.4
        millimetres_per_second = box.width * width / np.ptp(axes.get_xlim())
        millimetres_per_millivolt = box.height * height / np.ptp(axes.get_ylim())
        assert millimetres_per_second == pytest.approx(25, rel=1e-3)
        assert millimetres_per_millivolt == pytest.approx(10, rel=1e-3)


@pytest.mark.parametrize(("name", "unit"), [("mitbih", "raw"), ("unheard-of", "mV")])
def test_unknown_units_draw_without_a_clinical_grid(name: str, unit: str) -> None:
    figure = draw_tracings(tracings(INSTANCES, GeneratedFrames(name=name, unit=unit)))
    assert as_png(figure).startswith(b"\x89PNG")


def test_wrong_input_ends_in_a_sentence() -> None:
    with pytest.raises(BadInput, match="no instance has an s"):
        tracings(INSTANCES.assign(s=np.nan), GeneratedFrames())
    with pytest.raises(BadInput, match="not among the 4 frames of mitbih"):
        tracings(INSTANCES.assign(instance=[0, 1, 2, 9]), GeneratedFrames())
    with pytest.raises(BadInput, match="nothing to draw"):
        draw_tracings([])


def test_prepared_frames_are_frames() -> None:
    n = 3
    frames = FrameSet(
        name="mitbih",
        frames=np.arange(n * 2500, dtype=np.int16).reshape(n, 2500),
        gain=np.full(n, 0.5, dtype=np.float32),
        offset=np.arange(n, dtype=np.float32),
        unit="mV",
        patients=np.arange(n, dtype=np.int32),
        patient_names=("p0", "p1", "p2"),
        labels=np.zeros(n, dtype=np.int64),
        classes=("NSR",),
        split=np.zeros(n, dtype=np.int8),
        leads=np.zeros(n, dtype=np.int16),
        lead_names=("MLII",),
        times=None,
        data_hash="generated0001",
    )
    low, _ = tracings(INSTANCES.iloc[1:], frames)
    np.testing.assert_allclose(low.signal[:3], 0.5 * np.array([2500, 2501, 2502]) + 1)
