"""Units in WFDB headers: what is assumed or converted is noted once, with its recordings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import edfio
import numpy as np
import pytest

from clops_sweep.data.preparing.prepare import open_frames, prepare
from tests.data.declared_files import declare, write_wfdb

UNITS: Mapping[int, str] = {3: "/uV", 5: "", 6: "", 7: "/microvolts"}


@pytest.mark.parametrize("more", ["", ", resample_to=50"])
def test_missing_and_other_units_are_noted_once(tmp_path: Path, more: str) -> None:
    """Records are the same in mV, whichever unit the header gives and however it spells it."""
    rows = ["record,rhythm,person"]
    for number in range(12):
        signal = np.rint(500 * np.sin(np.arange(200) / (2 + number % 2)))[None]
        write_wfdb(tmp_path / "hospital", f"r{number}", signal, 50, gain=1000)
        rows.append(f"r{number},{('no', 'AF')[number % 2]},{number}")
        header = tmp_path / "hospital" / f"r{number}.hea"
        unit = UNITS.get(number, "/mV")
        gain = "1" if "u" in unit or "micro" in unit else "1000"
        written = header.read_text()
        assert "1000(0)/mV" in written
        header.write_text(written.replace("1000(0)/mV", f"{gain}(0){unit}"))
    (tmp_path / "hospital" / "labels.csv").write_text("\n".join(rows))
    declare(
        tmp_path / "space.py",
        f"""
        @dataset("own", files=["hospital"])
        def own(data_root):
            given = dict(table="labels.csv", name="record", label="rhythm", patient="person"{more})
            return Recordings.from_wfdb(data_root / "hospital", **given)
        """,
    )
    made = prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)
    notes = [note for note in made.manifest.notes if "unit" in note or "converted" in note]
    assert notes == [
        "1 recording (r3): converted from uV to mV",
        "2 recordings: no unit in the header: mV, as WFDB defines it",
        "1 recording (r7): converted from microvolts to mV",
    ]
    frames = open_frames("own", prepared_root=tmp_path / "prepared", data_root=tmp_path)
    signals: Any = frames.gain[:, None] * frames.frames + frames.offset[:, None]
    order = np.argsort(frames.recordings)
    for number, row in enumerate(order.tolist()):
        np.testing.assert_allclose(signals[row], signals[order[number % 2]], atol=1e-6)


def test_edf_files_in_another_unit_than_the_first_are_noted(tmp_path: Path) -> None:
    for number in range(12):
        signal = 0.5 * np.sin(np.arange(200) / (2 + number % 2))
        unit, factor = ("uV", 1000) if number in (1, 3, 5) else ("mV", 1)
        channel = edfio.EdfSignal(
            factor * signal, 50, label="ECG", physical_dimension=unit, physical_range=(-factor, factor)
        )
        edfio.Edf([channel]).write(tmp_path / f"r{number}.edf")
    rows = [f"r{number},{('no', 'AF')[number % 2]}" for number in range(12)]
    (tmp_path / "labels.csv").write_text("\n".join(["file,rhythm", *rows]))
    declare(
        tmp_path / "space.py",
        """
        from clops_sweep import from_edf
        @dataset("own", one_recording_per_person=True)
        def own(data_root):
            given = dict(read=from_edf, table="labels.csv", name="file", label="rhythm")
            return Recordings.from_folder(data_root, "*.edf", **given)
        """,
    )
    made = prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)
    (note,) = (note for note in made.manifest.notes if "converted" in note)
    assert note == "3 recordings (r1, r3, r5): converted from uV to mV"
