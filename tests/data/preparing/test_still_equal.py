"""Files that change beside the recordings that a data set reads, such as those of a new ward in a shared folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import h5py
import numpy as np
import pandas as pd
import pytest
from edfio import Edf, EdfSignal

from clops_sweep.data.prepared.prepared_folder import prepared_set, state
from clops_sweep.data.preparing import still_equal
from clops_sweep.data.preparing.prepare import data_hash, open_frames, prepare
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.data.preparing.verify import verify
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, forget, write_wfdb

_OF_TABLE: Final = """
from clops_sweep import from_edf

OF_TABLE = dict(name="name", label="label", patient="person", classes=["SR", "AF"], groups=["sex"])

def ward_a(data_root):
    table = pd.read_csv(data_root / "labels.csv")
    return table[table["ward"] == "A"]
"""

DECLARATIONS: Final = {
    "files_with_a_table": (
        'files=["recordings", "labels.csv"]',
        """
    return Recordings.from_folder(
        data_root / "recordings", "*.csv", table=ward_a(data_root), sampling_rate=50, units="mV", **OF_TABLE
    )
""",
    ),
    "wfdb": (
        'files=["wfdb", "labels.csv"]',
        """
    return Recordings.from_wfdb(data_root / "wfdb", table=ward_a(data_root), **OF_TABLE)
""",
    ),
    "edf": (
        'files=["edf", "labels.csv"]',
        """
    return Recordings.from_folder(data_root / "edf", "*.edf", table=ward_a(data_root), read=from_edf, **OF_TABLE)
""",
    ),
    "hdf5": (
        'files=["wards.h5", "labels.csv"]',
        """
    return Recordings.from_hdf5(
        data_root, "wards.h5", signals="*/ecg", table=ward_a(data_root), sampling_rate=50, units="mV",
        channels=["II"], **OF_TABLE
    )
""",
    ),
    "arrays_of_one_csv": (
        'files=["all.csv"]',
        """
    table = pd.read_csv(data_root / "all.csv")
    table = table[table["ward"] == "A"]
    return Recordings(
        table.filter(like="s_").to_numpy(), 50, ["II"], "mV", labels=table["label"], classes=["SR", "AF"],
        patients=table["person"],
    )
""",
    ),
    "generator": (
        'files=["recordings", "labels.csv"], classes=["SR", "AF"], channels=["II"], units="mV", sampling_rate=50',
        """
    for row in ward_a(data_root).itertuples():
        signal = np.loadtxt(data_root / "recordings" / f"{row.name}.csv", skiprows=1)
        yield Recording(signal[None], label=row.label, patient=row.person, name=row.name)
""",
    ),
}
_LISTED: Final = {"files_with_a_table", "wfdb", "edf"}
"""Declarations whose recordings need not be read again."""


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("CLOPS_DATA_ROOT", raising=False)
    forget()
    yield
    forget()


def _declared(root: Path, kind: str) -> None:
    arguments, body = DECLARATIONS[kind]
    declare(root / "space.py", f"{_OF_TABLE}\n@dataset('ward', {arguments})\ndef ward(data_root):{body}")


def _with_ward(root: Path, ward: str) -> None:
    """Add the recordings of a ward to a folder, a table and two files that wards share."""
    stream = np.random.default_rng(ord(ward))
    rows = []
    signals = stream.normal(size=(16, 40)).round(3)
    for folder in ("recordings", "edf"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    with h5py.File(root / "wards.h5", "a") as file:
        for number, signal in enumerate(signals):
            name = f"{ward}{number:02d}"
            rows.append((name, ["SR", "AF"][number % 2], f"{ward}{number // 2}", ward, "fm"[number // 2 % 2]))
            np.savetxt(root / "recordings" / f"{name}.csv", signal, header="II", comments="", fmt="%.3f")
            write_wfdb(root / "wfdb", name, signal[None], 50, ["II"])
            file.create_group(name)["ecg"] = signal[None]
            _write_edf(root / "edf" / f"{name}.edf", signal)
    table = pd.DataFrame(rows, columns=["name", "label", "person", "ward", "sex"])
    samples = pd.DataFrame(signals, columns=[f"s_{number}" for number in range(40)])
    _added(root / "labels.csv", table)
    _added(root / "all.csv", pd.concat([table, samples], axis=1))


def _write_edf(file: Path, signal: np.ndarray) -> None:
    """Write 40 samples at 50 Hz."""
    channel = EdfSignal(signal, 50, label="II", physical_dimension="mV", physical_range=(-9, 9))
    Edf([channel], data_record_duration=0.8).write(file)


def _added(file: Path, table: pd.DataFrame) -> None:
    earlier = [pd.read_csv(file)] if file.exists() else []
    pd.concat([*earlier, table]).to_csv(file, index=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    _with_ward(tmp_path, "A")
    _with_ward(tmp_path, "B")
    return tmp_path


def _hash(root: Path) -> str | None:
    return data_hash("ward", prepared_root=root / "prepared")


def _prepare(root: Path, *, anew: bool = False) -> None:
    prepare("ward", prepared_root=root / "prepared", data_root=None, workers=1, anew=anew)


@pytest.mark.parametrize("kind", DECLARATIONS)
def test_a_ward_that_is_added_beside_leaves_another_as_it_is(
    root: Path, kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _declared(root, kind)
    _prepare(root)
    before = _hash(root)
    assert before is not None
    _with_ward(root, "C")
    if kind in _LISTED:
        monkeypatch.setattr(still_equal, "READ_AGAIN", 0)
    capsys.readouterr()
    assert prepared_set("ward", root / "prepared") is None
    assert _hash(root) == before
    said = capsys.readouterr().err
    assert said.startswith(("ward: edited: ", "ward: added: "))
    assert said.endswith("; the recordings that it reads are the same\n")
    assert ("C00" in said) == ("recordings" in DECLARATIONS[kind][0] or kind in ("wfdb", "edf"))
    assert _hash(root) == before
    assert len(open_frames("ward", prepared_root=root / "prepared")) == 16
    assert state("ward", prepared_root=root / "prepared", data_root=None) == "prepared"
    assert capsys.readouterr().err == "", "it is said once"
    assert verify("ward", prepared_root=root / "prepared", data_root=root).problems == ()
    _prepare(root, anew=True)
    assert _hash(root) == before, "a preparation gives the same frames"


def _relabel(root: Path, name: str) -> None:
    for file in (root / "labels.csv", root / "all.csv"):
        table = pd.read_csv(file)
        table.loc[table["name"] == name, "label"] = "AF"
        table.to_csv(file, index=False)


def _change_sex(root: Path) -> None:
    """Change what no run depends on, and reports do."""
    table = pd.read_csv(root / "labels.csv")
    table.loc[table["name"] == "A00", "sex"] = "m"
    table.to_csv(root / "labels.csv", index=False)


def _change_samples(root: Path) -> None:
    signal = np.arange(40) % 7 / 10
    np.savetxt(root / "recordings" / "A00.csv", signal, header="II", comments="", fmt="%.3f")
    write_wfdb(root / "wfdb", "A00", signal[None], 50, ["II"])
    with h5py.File(root / "wards.h5", "a") as file:
        file["A00/ecg"][...] = signal[None]
    _write_edf(root / "edf" / "A00.edf", signal)
    table = pd.read_csv(root / "all.csv")
    table.loc[table["name"] == "A00", [f"s_{number}" for number in range(40)]] = signal
    table.to_csv(root / "all.csv", index=False)


@pytest.mark.parametrize("kind", DECLARATIONS)
@pytest.mark.parametrize("change", [lambda root: _relabel(root, "A00"), _change_samples], ids=["label", "samples"])
def test_a_change_of_what_is_read_is_one(root: Path, kind: str, change: Callable[[Path], None]) -> None:
    _declared(root, kind)
    _prepare(root)
    before = _hash(root)
    _with_ward(root, "C")
    change(root)
    assert _hash(root) is None
    with pytest.raises(UsageError, match=r"^dataset 'ward' changed since it was prepared \(edited: "):
        open_frames("ward", prepared_root=root / "prepared")
    _prepare(root)
    assert _hash(root) not in (None, before)


@pytest.mark.parametrize("kind", ["files_with_a_table", "wfdb", "hdf5"])
def test_a_column_for_reports_alone_is_read_too(root: Path, kind: str) -> None:
    _declared(root, kind)
    _prepare(root)
    _change_sex(root)
    assert _hash(root) is None


def test_a_label_of_another_ward_is_corrected(root: Path) -> None:
    _declared(root, "files_with_a_table")
    _prepare(root)
    before = _hash(root)
    _relabel(root, "B00")
    assert _hash(root) == before
    _relabel(root, "A00")
    assert _hash(root) is None


def test_a_recording_that_is_read_and_removed_is_missed(root: Path) -> None:
    _declared(root, "files_with_a_table")
    _prepare(root)
    (root / "recordings" / "B00.csv").unlink()
    assert _hash(root) is not None
    (root / "recordings" / "A00.csv").unlink()
    assert _hash(root) is None


def test_large_files_are_not_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(still_equal, "READ_AGAIN", 0)
    _declared(root, "hdf5")
    _prepare(root)
    before = _hash(root)
    _with_ward(root, "C")
    assert _hash(root) is None
    said = [(change.what, change.how) for change in PreparedData(root / "prepared").changes("ward")]
    assert said == [("labels.csv", "edited"), ("wards.h5", "edited")]
    _prepare(root)
    assert _hash(root) == before


def test_recordings_that_differ_are_read_once(root: Path) -> None:
    arguments, body = DECLARATIONS["hdf5"]
    counted = f"""
    with (data_root / "calls.txt").open("a") as file:
        file.write("called\\n")
{body}"""
    declare(root / "space.py", f"{_OF_TABLE}\n@dataset('ward', {arguments})\ndef ward(data_root):{counted}")
    _prepare(root)
    calls = root / "calls.txt"
    assert calls.read_text().count("called") == 1
    _change_samples(root)
    assert _hash(root) is None
    read = calls.read_text().count("called")
    assert read > 1
    assert _hash(root) is None
    assert calls.read_text().count("called") == read


def test_a_function_of_a_user_may_read_any_file(root: Path) -> None:
    """It reads a gain beside the recordings, which no listing names."""
    (root / "recordings" / "gain.txt").write_text("2")
    body = """
def scaled(path):
    gain = float((path.parent / "gain.txt").read_text())
    return Recording(gain * np.loadtxt(path, skiprows=1)[None], channels=["II"], units="mV", sampling_rate=50)

@dataset("ward", files=["recordings", "labels.csv"])
def ward(data_root):
    return Recordings.from_folder(
        data_root / "recordings", "*.csv", table=ward_a(data_root), read=scaled, **OF_TABLE
    )
"""
    declare(root / "space.py", _OF_TABLE + body)
    _prepare(root)
    before = _hash(root)
    _with_ward(root, "C")
    assert _hash(root) == before, "small recordings are read again"
    (root / "recordings" / "gain.txt").write_text("3")
    assert _hash(root) is None
