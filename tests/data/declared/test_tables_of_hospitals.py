"""Mistakes in the table of a folder of recordings: the sentence names what is there, and doing what it says works."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clops_sweep import Recordings, UsageError
from clops_sweep.data.left_out import sentences

LABELS = ("AF", "normal")


def _table(folder: Path, labels: Sequence[str], names: Sequence[str]) -> None:
    """Write six recordings and their table."""
    rows = ["record,rhythm,person,date"]
    for number, name in enumerate(names):
        np.save(folder / f"{name}.npy", np.random.default_rng(number).normal(size=(1, 100)))
        rows.append(f"{name},{labels[number]},p{number},{number + 1:02d}.02.2020")
    (folder / "labels.csv").write_text("\n".join(rows))


def _read(folder: Path, **given: object) -> Recordings:
    fields = {"table": "labels.csv", "name": "record", "label": "rhythm", "patient": "person", **given}
    return Recordings.from_folder(folder, "*.npy", sampling_rate=50, units="mV", channels=["II"], **fields)  # type: ignore[arg-type]


NAMES = [f"{number:03d}" for number in range(6)]


def test_a_column_of_other_names_is_refused_with_those_of_the_files(tmp_path: Path) -> None:
    _table(tmp_path, LABELS * 3, NAMES)
    with pytest.raises(UsageError) as error:
        _read(tmp_path, name="person")
    assert str(error.value) == (
        f"name: 'p0' is not a recording in {tmp_path}, and neither is any other of the column; there are 000, 001, "
        "002, 003, 004, 005: give name=..., the column with the names of the files"
    )
    assert len(_read(tmp_path, name="record")) == 6


def test_leading_zeros_that_pandas_loses_are_named(tmp_path: Path) -> None:
    _table(tmp_path, LABELS * 3, [f"{number:03d}" for number in range(1, 7)])
    with pytest.raises(UsageError, match=r"leading zeros are lost; give table=pandas.read_csv\(..., dtype=str\)"):
        _read(tmp_path, table=pd.read_csv(tmp_path / "labels.csv"))
    assert len(_read(tmp_path, table=pd.read_csv(tmp_path / "labels.csv", dtype=str))) == 6


def test_labels_that_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    _table(tmp_path, ["AF", "normal", "Normal", "AF", "normal", "AF"], NAMES)
    with pytest.raises(UsageError) as error:
        _read(tmp_path)
    assert str(error.value) == (
        "label: 'Normal' and 'normal' differ only in case or spaces; give classes={'Normal': 'Normal', 'normal': "
        "'Normal', ...} to join them, or classes=[...] with all labels to keep both"
    )
    joined = _read(tmp_path, classes={"AF": "AF", "Normal": "Normal", "normal": "Normal"})
    assert (joined.common.classes, len(joined)) == (("AF", "Normal"), 6)
    assert _read(tmp_path, classes=["AF", "Normal", "normal"]).common.classes == ("AF", "Normal", "normal")


def test_dates_of_another_format_name_date_format(tmp_path: Path) -> None:
    _table(tmp_path, LABELS * 3, NAMES)
    with pytest.raises(UsageError, match=r"not '01.02.2020'; of a table, date_format='%d.%m.%Y' names another format"):
        _read(tmp_path, time="date")
    times = _read(tmp_path, time="date", date_format="%d.%m.%Y").columns.times
    assert times is not None
    assert str(times[1]) == "2020-02-02T00:00:00"


@pytest.mark.parametrize(("format_", "one"), [("%d.%m.%Y", "1 February 2020"), ("%m.%d.%Y", "2 January 2020")])
def test_dates_that_may_be_read_in_two_ways_are_noted(tmp_path: Path, format_: str, one: str) -> None:
    _table(tmp_path, LABELS * 3, NAMES)
    swapped = {"%d.%m.%Y": "%m.%d.%Y", "%m.%d.%Y": "%d.%m.%Y"}[format_]
    (said,) = _read(tmp_path, time="date", date_format=format_).common.notes
    assert said.startswith(f"dates: all 6 would be dates of {swapped!r}, too; by date_format={format_!r}, ")
    assert said.endswith(f" '01.02.2020' is {one}: check it")
    path = tmp_path / "labels.csv"
    path.write_text(path.read_text().replace("06.02.2020", "13.02.2020"))
    assert _read(tmp_path, time="date", date_format="%d.%m.%Y").common.notes == ()
    assert _read(tmp_path).common.notes == ()


def test_a_misspelt_label_beside_others_is_counted(tmp_path: Path) -> None:
    _table(tmp_path, ["AF", "normal", "AF+Normal", "AF+noise", "normal", "AF"], NAMES)
    read = _read(tmp_path, classes=["AF", "normal"], separator="+")
    dropped = "label Normal (did you mean normal?) of recordings that keep others"
    assert (len(read), sentences(read.common.left_out)) == (6, [f"1 {dropped}"])


def test_a_dropped_label_names_the_class_that_it_may_misspell(tmp_path: Path) -> None:
    labels = ["AF"] * 40 + ["sinus rhythm"] * 20 + ["AFF", "sinus rythm", "af", "AFL", "AFL", "AFL", "noise"]
    _table(tmp_path, labels, [f"{number:03d}" for number in range(len(labels))])
    read = _read(tmp_path, classes=["AF", "sinus rhythm"], date_format=None)
    assert set(sentences(read.common.left_out)) == {
        "1 recording labelled AFF (did you mean AF?)",
        "1 recording labelled sinus rythm (did you mean sinus rhythm?)",
        "1 recording labelled af (did you mean AF?)",
        "3 recordings labelled AFL",  # too frequent for a misspelling of 40
        "1 recording labelled noise",
    }


@pytest.mark.parametrize(("label", "differ"), [("AF", ""), ("normal", " and differ in label")])
@pytest.mark.parametrize("is_file", [True, False])
def test_two_rows_of_one_recording_are_named(tmp_path: Path, label: str, differ: str, is_file: bool) -> None:
    _table(tmp_path, LABELS * 3, NAMES)
    path = tmp_path / "labels.csv"
    lines = path.read_text().splitlines()
    written = [*lines, lines[1].replace("AF", label)]
    path.write_text("\n".join(written))
    table = path if is_file else pd.read_csv(path, dtype=str)
    with pytest.raises(UsageError) as error:
        _read(tmp_path, table=table)
    where = f"{path}: lines 2 and 8" if is_file else "table: lines 1 and 7"
    assert str(error.value) == (
        f"name: {where} both name the recording '000'{differ}; correct the name in one of them, or delete it"
    )
    written[-1] = written[-1].replace("AF", "noise").replace("normal", "noise")  # of a label that is not used
    path.write_text("\n".join(written))
    assert len(_read(tmp_path, classes=["AF", "normal"])) == 6
