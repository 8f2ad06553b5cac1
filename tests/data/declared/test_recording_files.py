"""Recordings in files: WFDB folders and folders of tables, generated and real."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clops_sweep.data.files.wfdb_records import load_wfdb
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, waves, write_notes, write_wfdb


def _frames(tmp_path: Path, call: str, name: str = "own", root: Path | None = None) -> FrameSet:
    """Prepare the recordings of a call from a data root, and return the frames of all channels."""
    declare(tmp_path / "space.py", f"@dataset({name!r})\ndef {name}(data_root):\n    return Recordings.{call}\n")
    prepare(name, prepared_root=tmp_path / "prepared", data_root=root or tmp_path, workers=1)
    return open_frames(name, prepared_root=tmp_path / "prepared", leads="all")


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Twelve records of two channels, in two folders; labels are in a table and in the headers."""
    rows = ["file,label,who,site,day"]
    for number in range(12):
        folder = tmp_path / "wfdb" / "ab"[number % 2]
        signal = np.rint(1000 * waves(number + 1, 2, 300 + number, seed=number)[number])
        comments = [f"Dx: {'AF,N' if number % 4 == 0 else 'N'}", f"Person: p{number // 2}"]
        write_wfdb(folder, f"r{number:02d}", signal, 100, ("II", "RESP"), "NU", comments, gain=50)
        name, label, day = (
            f"{'ab'[number % 2]}/r{number:02d}",
            ("N", "AF", "x")[number % 3],
            f"202001{number + 1:02d}",
        )
        rows.append(f"{name},{label},p{number // 2},S{number % 2},{day}")
    (tmp_path / "wfdb" / "labels.csv").write_text("\ufeff" + "\n".join(rows) + "\n")
    return tmp_path / "wfdb"


def test_wfdb_with_a_table(records: Path, tmp_path: Path) -> None:
    call = (
        'from_wfdb(data_root / "wfdb", table="labels.csv", name="file", label="label", patient="who", time="day",'
        ' domains={"site": "site"}, classes={"N": "normal", "AF": "afib"}, window_seconds=1, channels=["RESP", "II"])'
    )
    frames = _frames(tmp_path, call)
    assert (frames.classes, frames.lead_names, frames.unit) == (("normal", "afib"), ("RESP", "II"), "NU")
    used = [number for number in range(12) if number % 3 != 2]
    assert len(frames) == 3 * len(used)
    assert frames.frames.dtype == np.int16
    for place, number in enumerate(used):
        record = load_wfdb().rdrecord(str(records / "ab"[number % 2] / f"r{number:02d}"))
        expected = record.p_signal.T[::-1, 100:200]
        np.testing.assert_allclose(frames.signal(np.array([3 * place + 1]))[0], expected, atol=1e-5)
        assert frames.labels[3 * place] == number % 3
        assert frames.patient_names[frames.patients[3 * place]] == f"p{number // 2}"
        assert str(frames.times[3 * place])[:10] == f"2020-01-{number + 1:02d}"
        codes, sites = frames.domains["site"]
        assert sites[codes[3 * place]] == f"S{number % 2}"


@pytest.mark.parametrize("resolution", [None, 100, 250])
def test_wfdb_with_rhythm_notes(resolution: int | None, tmp_path: Path) -> None:
    for number in range(6):
        write_wfdb(tmp_path / "wfdb", f"r{number}", np.rint(1000 * waves(1, 1, 1000, seed=number)[0]), 100)
        places = [int(seconds * (resolution or 100)) for seconds in (0.5, 4, 7)]
        write_notes(tmp_path / "wfdb", f"r{number}", places, ["(N", "(AFIB", "(X"], resolution)
    call = 'from_wfdb(data_root / "wfdb", label=".atr", classes={"(N": "N", "(AFIB": "AF"}, window_seconds=1)'
    with pytest.raises(UsageError, match=r"r5\.hea has no annotation that is in classes, but \(AFIB, \(N, \(X$"):
        _frames(tmp_path, call.replace('"(', '"'))
    frames = _frames(tmp_path, call)
    index = pd.read_parquet(tmp_path / "prepared" / "own" / "index.parquet")
    assert list(index["start"][:6]) == [0.5, 1.5, 2.5, 4.0, 5.0, 6.0]
    assert frames.labels.tolist() == 6 * [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("ending", ["csv", "npy", "parquet", "CSV", "PARQUET"])
def test_a_folder_of_files(ending: str, tmp_path: Path) -> None:
    x = waves(12, 2, 40)
    x[0] = np.rint(9 * x[0])  # whole numbers in the first file alone
    (tmp_path / "files").mkdir()
    for number, signal in enumerate(x):
        path = tmp_path / "files" / f"r{number}.{ending}"
        stored = signal if number else signal.astype(np.int16)
        frame = pd.DataFrame({"b": stored[1], "a": stored[0]})
        match ending.lower():
            case "csv":
                frame.to_csv(path, index=False)
            case "npy":
                np.save(path, stored)
            case "parquet":
                frame.to_parquet(path)
    rows = [f"r{number},{'pq'[number % 2]},{number // 2}" for number in range(12)]
    (tmp_path / "labels.tsv").write_text("\n".join(rows).replace(",", "\t") + "\n")
    frames = _frames(
        tmp_path,
        f'from_folder(data_root / "files", "*.{ending}", table=data_root / "labels.tsv", label=1, patient=2,'
        ' channels=["a", "b"], sampling_rate=10, units="g", gain=2)',
    )
    np.testing.assert_allclose(frames.signal(np.arange(12)), 2 * x, atol=1e-5)
    assert frames.labels.tolist() == [0, 1] * 6
    assert len(frames.patient_names) == 6


def test_cinc2017(data_root: Path, tmp_path: Path) -> None:
    if not (data_root / "cinc2017").is_dir():
        pytest.skip("no cinc2017 there")
    table = pd.read_csv(data_root / "cinc2017" / "REFERENCE-v3.csv", header=None, names=["record", "label"])
    some = table[table["label"].isin(["N", "A"])].groupby("label").head(35)
    some.to_csv(tmp_path / "some.csv", header=False, index=False)
    labels = f"label=1, table={str(tmp_path / 'some.csv')!r}"
    call = f'from_wfdb(data_root / "cinc2017", {labels}, window_seconds=5, resample_to=500)'
    frames = _frames(tmp_path, call, "cinc", data_root)
    assert (frames.samples, frames.classes, frames.unit) == (2500, ("A", "N"), "mV")
    assert len(frames.patient_names) == 70
    index = pd.read_parquet(tmp_path / "prepared" / "cinc" / "index.parquet")
    counts = index["record"].astype(str).value_counts()
    for record in some["record"]:
        samples = load_wfdb().rdheader(str(data_root / "cinc2017" / record)).sig_len
        assert counts[record] == samples // 1500
    assert np.abs(frames.signal(slice(None))).max() < 20
