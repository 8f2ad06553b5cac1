"""Invalid published files: one sentence each that names the file and the remedy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.errors import UsageError
from tests.data.published_formats import (
    chapman_csv,
    noise,
    physionet2020,
    ptbxl,
    write_challenge_record,
    write_diagnostics,
    write_ecg,
)


def _prepare(name: str, tmp_path: Path, **options: object) -> PreparedSet:
    return prepare(name, prepared_root=tmp_path / "prepared", data_root=tmp_path / "data", workers=1, **options)


def _fails(name: str, tmp_path: Path, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        _prepare(name, tmp_path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "prepared" / name).exists()


@pytest.mark.parametrize(
    ("episodes", "says"),
    [
        ([(1, 3000, "NSR"), (2900, 6000, "VT")], "episodes overlap at sample 2900"),
        ([(1, 3000, "NSR"), (3400, 6000, "VT")], "no episode between samples 3000 and 3400"),
        ([(1, 3000, "NSR")], "no episode between samples 3000 and 6001"),
        ([(500, 6000, "NSR")], "no episode between samples 0 and 500"),
        ([(2, 3000, "NSR"), (3001, 6000, "VT")], "no episode between samples 0 and 2; correct"),
        ([(3000, 1, "NSR"), (3001, 6000, "VT")], "an episode from sample 3000 to 1 ends before it begins; correct"),
        ([(1, 3000, "NSR"), (3001, 3010, "SINUS"), (3011, 6000, "NSR")], "rhythm 'SINUS' is unknown"),
        ([(1, 6000, "SINUS")], "rhythm 'SINUS' is unknown"),
        ([], "no episode between"),
        ([(-5, 6000, "NSR")], "an episode from sample -5 to 6000 in a recording of 6000"),
        ([(1, 3000, "NSR"), (3001, 7000, "VT")], "an episode from sample 3001 to 7000 in a recording of 6000"),
    ],
)
def test_cardiology_episodes(tmp_path: Path, episodes: list[tuple[int, int, str]], says: str) -> None:
    write_ecg(tmp_path / "data" / "cardiology", "ab_0001", episodes)
    _fails("cardiology", tmp_path, rf"ab_0001_grp3\.episodes\.json: {says}")


def test_cardiology_files_that_do_not_belong_together(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "cardiology"
    write_ecg(folder, "ab_0001", [(1, 6000, "NSR")])
    episodes = folder / "ab_0001_grp3.episodes.json"
    shutil.copy(episodes, folder / "ab_0001_grp4.episodes.json")
    _fails("cardiology", tmp_path, r"ab_0001\.ecg: 2 files ab_0001_grp\*\.episodes\.json lie beside it; keep one")
    (folder / "ab_0001_grp4.episodes.json").unlink()
    for content in (
        json.dumps({"episodes": [{"onset": 1}]}),
        '{"episodes": [{"onset": 1, "offset": 1e999, "rhythm_name": "NSR"}]}',
        "null",
        "[" * 100_000,
        "",
    ):
        episodes.write_text(content)
        _fails("cardiology", tmp_path, "not a list of episodes")
    episodes.unlink()
    _fails("cardiology", tmp_path, r"no file ab_0001_grp\*\.episodes\.json lies beside it; download the record again")
    write_ecg(folder, "cd_0001", [(1, 6000, "NSR")])
    write_ecg(folder, "ab_0001", [(1, 6000, "NSR")])
    (folder / "ab_0001.ecg").unlink()
    _fails(
        "cardiology", tmp_path, r"ab_0001\.ecg: the recording is missing, and ab_0001_grp3\.episodes\.json labels it"
    )
    assert [record for record, _ in _prepare("cardiology", tmp_path, on_error="skip").manifest.skipped] == ["ab_0001"]
    shutil.rmtree(tmp_path / "prepared")
    write_ecg(folder, "ab_0001", [(1, 6000, "NSR")])
    write_ecg(folder / "again", "ab_0001", [(1, 6000, "NSR")])
    _fails("cardiology", tmp_path, "record 'ab_0001' is there twice")


def test_chapman_tables_and_numbers(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "chapman"
    chapman_csv(tmp_path / "data")
    csv = sorted((folder / "ECGDataDenoised").glob("*.csv"))[1]
    whole = csv.read_text()
    lines = whole.split("\n")
    for content, says in (
        (whole.replace("\n", "\nx,", 1), "line 2 has 13 cells; expected 12"),
        (
            "\n".join([*lines[:99], "x" + lines[99][lines[99].index(",") :], *lines[100:]]),
            "line 100, column .*: 'x' is",
        ),
        ("\n".join([*lines[:100], f"1,{lines[100]}", *lines[101:]]), "line 101 has 13 cells"),
        (whole.replace(",", ",\udcff", 1), "holds 4999 rows of 12 numbers, expected 5000"),
        (whole.split("\n", 1)[1], "holds 4999 rows of 12 numbers, expected 5000"),
        ("", "not a readable table of numbers"),
    ):
        csv.write_text(content, errors="surrogateescape")
        _fails("chapman", tmp_path, f"{csv.name}: {says}")
    csv.unlink()
    _fails("chapman", tmp_path, rf"{csv.name}: the recording is missing, and Diagnostics\.xlsx lists it")
    csv.write_text("I,II,III,aVR,aVL,aVF,V1,V2,V3,V4,V5,V6\n" + whole)
    names = [path.stem for path in csv.parent.glob("*.csv")]
    rows = [(name, "SB") for name in names]
    for table, says in (
        ([*rows, rows[0]], "is listed twice"),
        ([(name, "SI" if name == csv.stem else "SB") for name in names], rf"{csv.name}: rhythm 'SI' is unknown"),
        (rows[1:], "no rhythm is given for this recording"),
    ):
        write_diagnostics(folder, table)
        _fails("chapman", tmp_path, says)
    (folder / "Diagnostics.xlsx").write_text("no zip file")
    _fails("chapman", tmp_path, r"Diagnostics\.xlsx: not a readable xlsx table")
    (folder / "Diagnostics.xlsx").unlink()
    _fails("chapman", tmp_path, r"Diagnostics\.xlsx: the table of labels is missing")


def test_physionet2020_records(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "cpsc2018"
    signal = noise(1, shape=(12, 5000))
    leads, avl = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5"), np.arange(12)[:, None] == 4
    cases: list[tuple[str, np.ndarray, dict[str, Any], str]] = [
        ("AF,XX", signal, {}, r"A0001\.hea: label 'XX' is unknown"),
        ("", signal, {}, r"A0001\.hea: no '#Dx:' line with a diagnosis"),
        ("AF", signal, {"rate": 257}, r"A0001\.hea: sampled at 257 Hz instead of 500 Hz"),
        ("AF", signal[:11], {"leads": leads}, r"A0001\.hea: lead V6 is missing"),
        ("AF", signal[:, :0], {}, r"A0001\.hea: .*(no samples|not a readable header)"),
        ("AF", np.where(avl, -32768, signal), {}, r"A0001\.mat: lead aVL is nothing but missing samples"),
        ("AF", np.where(avl, 5, signal), {}, r"A0001\.mat: lead aVL is nothing but flat line"),
    ]
    for label, samples, options, says in cases:
        write_challenge_record(folder, "A0001", label, samples.astype(np.int16), **options)
        _fails("physionet2020", tmp_path, says)
    physionet2020(tmp_path / "data")
    write_challenge_record(folder / "g2", "A0001", "AF", signal)
    _fails("physionet2020", tmp_path, "record 'A0001' is there twice")
    skipped = _prepare("physionet2020", tmp_path, on_error="skip").manifest.skipped
    assert [record for record, _ in skipped] == ["A0001"]


def test_ptbxl_rows(tmp_path: Path) -> None:
    ptbxl(tmp_path / "data")
    table = tmp_path / "data" / "ptbxl" / "ptbxl_database.csv"
    whole = table.read_text()
    for found, wrong, says in (
        ("{'NORM'", "{'NORM'(", "scp_codes of 1 is .*, expected a mapping such as .*; use the table as published"),
        ("{'NORM'", "(" * 10_000 + "{'NORM'", "scp_codes of 1 is "),
        ("'SR': 0.0", "'XYZ': 0.0", r"scp_codes of 1 has 'XYZ', which scp_statements\.csv does not explain; use both"),
        ("1990-03-04 09:17:34", "yesterday", "recording_date 'yesterday' of 1 is not a date; use the table as"),
        ("1990-03-04 09:17:34", "", "recording_date '' of 1 is not a date"),
        ("patient_id", "person", "column 'patient_id' is missing; use the table as published"),
    ):
        table.write_text(whole.replace(found, wrong, 1))
        _fails("ptbxl", tmp_path, rf"{table}: {says}")
    table.write_text(whole.replace("'SR': 0.0", "'XYZ': 0.0", 1))
    assert [record for record, _ in _prepare("ptbxl", tmp_path, on_error="skip").manifest.skipped] == ["1"]
    table.write_text(whole)
    frames_of = prepare("ptbxl", prepared_root=tmp_path, data_root=tmp_path / "data", workers=1).manifest
    assert "28" in frames_of.patient_names
    assert "recording 4" in frames_of.patient_names


def test_integer_frames_are_the_publishers_integers(tmp_path: Path) -> None:
    physionet2020(tmp_path / "data")
    _prepare("physionet2020", tmp_path)
    frames = open_frames("physionet2020", prepared_root=tmp_path / "prepared")
    raw = np.fromfile(tmp_path / "data" / "cpsc2018" / "A0001.mat", "<i2", offset=24).reshape(-1, 12)
    assert np.array_equal(frames.frames[:12], raw[:2500].T)
    assert np.array_equal(frames.frames[12:24], raw[2500:5000].T)
    np.testing.assert_allclose(frames.signal(np.array([3]))[0], raw[:2500, 3] / 1000, rtol=1e-6)
