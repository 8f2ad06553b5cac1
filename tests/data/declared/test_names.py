"""Folders and records with odd names are read, or refused in one sentence on one line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.data.preparing.verify import verify
from clops_sweep.errors import UsageError
from tests.data.published_formats import WRITERS, noise, write_challenge_record, write_ecg

FOLDERS = ["ünï 数据", "[x]*?", "100%20#", "with\nline", "-dash", "~x", "{a}", os.fsdecode(b"\xff\xfe"), "a::b"]


def _prepare(name: str, root: Path, **options: Any) -> PreparedSet:
    return prepare(name, prepared_root=root / "prepared", data_root=root / "data", workers=1, **options)


@pytest.mark.parametrize("name", ["cardiology", "physionet2020"])
def test_a_folder_may_have_any_name(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / "data")
    expected = _prepare(name, tmp_path).manifest.data_hash
    for folder in FOLDERS:
        root = tmp_path / folder
        root.mkdir()
        (tmp_path / "data").rename(root / "data")
        assert _prepare(name, root).manifest.data_hash == expected
        assert verify(name, prepared_root=root / "prepared", data_root=root / "data").problems == ()
        (root / "data").rename(tmp_path / "data")


@pytest.mark.parametrize(
    "record", ["ä100", "数", "a b", "A0001 (1)", "a.b", "%20", "[1]", "l\nm", os.fsdecode(b"\xff1")]
)
def test_a_wfdb_record_of_a_name_that_wfdb_does_not_have(tmp_path: Path, record: str) -> None:
    WRITERS["physionet2020"](tmp_path / "data")
    folder = tmp_path / "data" / "cpsc2018"
    write_challenge_record(folder, "A0099", "AF", noise(99, shape=(12, 5000)))
    header = (folder / "A0099.hea").read_bytes().replace(b"A0099", os.fsencode(record))
    (folder / f"{record}.hea").write_bytes(header)
    (folder / "A0099.hea").unlink()
    (folder / "A0099.mat").rename(folder / f"{record}.mat")
    with pytest.raises(
        UsageError, match=r"the record's name (has other characters than|holds characters that)"
    ) as caught:
        _prepare("physionet2020", tmp_path)
    assert str(caught.value).isprintable()
    ((skipped, reason),) = _prepare("physionet2020", tmp_path, on_error="skip").manifest.skipped
    assert skipped.isprintable()
    assert reason.isprintable()


@pytest.mark.parametrize("record", ["ä100_1", "数_1", "a b_1", "x::y", "[1]*?_1", "%20", "#1", "a.b"])
def test_a_recording_without_a_header_may_have_any_name_that_can_be_printed(tmp_path: Path, record: str) -> None:
    WRITERS["cardiology"](tmp_path / "data")
    write_ecg(tmp_path / "data" / "cardiology", record, [(1, 6000, "VT")])
    assert record.split("_")[0] in _prepare("cardiology", tmp_path).manifest.patient_names


@pytest.mark.parametrize("record", [os.fsdecode(b"\xff1"), "l\nm"])
def test_a_recording_of_a_name_that_cannot_be_printed(tmp_path: Path, record: str) -> None:
    WRITERS["cardiology"](tmp_path / "data")
    write_ecg(tmp_path / "data" / "cardiology", record, [(1, 6000, "VT")])
    with pytest.raises(
        UsageError, match=r"\.ecg: the record's name holds characters that cannot be printed; rename"
    ) as caught:
        _prepare("cardiology", tmp_path)
    assert str(caught.value).isprintable()
    ((skipped, _),) = _prepare("cardiology", tmp_path, on_error="skip").manifest.skipped
    assert skipped in (r"\udcff1", r"l\nm")
