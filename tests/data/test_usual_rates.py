"""Notes on sampling rates that channels of a kind do not have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.data.usual_rates import rate_notes
from tests.data.declared_files import declare, waves


@pytest.mark.parametrize(
    ("channels", "units", "rate", "seconds"),
    [
        (["PPG"], "NU", 25, 10.0),
        (["bvp"], "", 64, 30.0),
        (["EEG Fpz-Cz", "C3", "O1"], "uV", 256, 30.0),
        (["C3"], "uV", 1024, 0.5),
        (["EMG biceps"], "mV", 2000, 0.05),
        (["ch1", "ch2"], "mV", 2000, 0.05),
        (["II", "V5"], "mV", 250, 0.2),  # beats that were cut before
        (["ECG"], "mV", 1000, 0.2),
        (["ecg"], "mV", 125, 10.0),
        (["ax", "ay", "az"], "g", 32, 2.0),
        (["acc_x"], "m/s2", 0.2, 600.0),  # means of 5 s
        (["EDA", "TEMP"], "uS, degC", 4, 60.0),
        (["EDA"], "uS", 700, 60.0),
        (["temperature"], "degC", 1 / 60, 3600.0),
        (["T1", "T2"], "degC", 0.1, 600.0),  # no electrodes
        (["I", "II"], "A", 0.1, 600.0),  # no leads
        (["Resp"], "NU", 62.5, 10.0),
        (["ABP mean"], "mmHg", 1 / 60, 3600.0),
        (["LFP 3"], "uV", 30_000, 1.0),
        (["microphone"], "Pa", 44_100, 0.02),
    ],
)
def test_usual_rates_have_no_note(channels: Sequence[str], units: str, rate: float, seconds: float) -> None:
    assert rate_notes({rate: ["r1"]}, channels, units, seconds) == []


@pytest.mark.parametrize(
    ("channels", "units", "rate", "seconds", "said"),
    [
        (
            ["ECG"], "mV", 32_000, 0.06,
            "channel ECG: 32,000 samples a second, more than an ECG is recorded with, and each recording lasts 0.06 s, "
            "less than a heart beat; is the rate in Hz?",
        ),
        (["V1", "V2"], "mV", 250_000, None, "channels V1, V2: 250,000 samples a second, more than an ECG is recorded"),
        (["ppg"], "NU", 25_000, 10.0, "channel ppg: 25,000 samples a second, more than a PPG is recorded with; is"),
        (["ppg"], "NU", 0.064, None, "channel ppg: 0.064 samples a second, too few for a PPG; give the rate in Hz"),
        (["MLII"], "mV", 0.36, 1e4, "channel MLII: 0.36 samples a second, too few for an ECG; give the rate in Hz"),
        (["lead II"], "mV", 4, 2000.0, "channel lead II: 4 samples a second, too few for an ECG; give the rate in Hz"),
        (["ax"], "g", 50_000, 2.0, "channel ax: 50,000 samples a second, more than an acceleration is recorded with"),
        (["EDA"], "uS", 4000, 0.06, "channel EDA: 4,000 samples a second, and each recording lasts 0.06 s, less than"),
        (["Fz"], "uV", 128_000, 1.0, "channel Fz: 128,000 samples a second, more than an EEG is recorded with"),
        (["x"], "mV", 32_000, 0.02, "channel x: 32,000 samples a second, and each recording lasts 0.02 s, less than"),
    ],
)  # fmt: skip
def test_other_rates_are_noted(
    channels: Sequence[str], units: str, rate: float, seconds: float | None, said: str
) -> None:
    (note,) = rate_notes({rate: ["r1"]}, channels, units, seconds)
    assert note.startswith(said), note


def test_recordings_of_another_rate_are_named() -> None:
    notes = rate_notes({500: ["r1", "r2"], 0.5: ["r3"]}, ["ECG", "x"], "mV", None)
    assert notes == [
        "channel ECG: 0.5 samples a second in 1 recording (r3), too few for an ECG; give the rate in Hz, not in kHz or "
        "as the distance of samples",
        "channel x: 0.5 samples a second in 1 recording (r3), too few for most voltages of the body; give the rate in "
        "Hz, not in kHz or as the distance of samples",
    ]


@pytest.mark.parametrize(("rate", "is_noted"), [(32, False), (32_000, True)])
def test_a_rate_in_another_unit_is_noted_where_data_are_prepared(rate: float, is_noted: bool, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", waves(8, 1, 320))
    declare(
        tmp_path / "space.py",
        f"""
        @dataset("own", files=["x.npy"])
        def own(data_root):
            x = np.load(data_root / "x.npy")
            return Recordings(x, {rate}, ["bvp"], "NU", [0, 1] * 4, ["A", "B"], patients=range(8))
        """,
    )
    notes = prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1).manifest.notes
    said = "channel bvp: 32,000 samples a second, more than a PPG is recorded with, and each recording lasts 0.01 s"
    assert any(note.startswith(said) for note in notes) == is_noted
    assert any("samples a second" in note for note in notes) == is_noted
