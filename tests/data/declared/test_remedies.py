"""Refusals that name what reads the data, and notes on what a reader changed or a library said."""

from __future__ import annotations

from pathlib import Path

import edfio
import numpy as np
import pandas as pd
import pytest

from clops_sweep import Recordings, from_mne
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, write_wfdb

NIGHTS = """
import warnings
from dataclasses import replace
from clops_sweep import from_edf

def read(path):
    {read}

@dataset("own", files=["nights"])
def own(data_root):
    return Recordings.from_folder(data_root / "nights", "*.edf", read=read, classes={classes}, window_seconds=5)
"""


def _prepared(tmp_path: Path, body: str) -> PreparedSet:
    declare(tmp_path / "space.py", body)
    return prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)


def _nights(tmp_path: Path) -> None:
    (tmp_path / "nights").mkdir()
    stages = [edfio.EdfAnnotation(0, 30, "0"), edfio.EdfAnnotation(30, 30, "2")]
    for number in range(6):
        values = np.random.default_rng(number).normal(0, 50, 6000)
        signal = edfio.EdfSignal(values, 100, label="EEG", physical_dimension="uV", physical_range=(-400, 400))
        edfio.Edf([signal], annotations=stages).write(tmp_path / "nights" / f"r{number}.edf")
        events = "onset\tduration\ttrial_type\n0\t3000\tW\n3000\t3000\tN2\n"
        (tmp_path / "nights" / f"r{number}_events.tsv").write_text(events)


def test_labels_that_are_in_no_class_are_named_with_their_remedy(tmp_path: Path) -> None:
    _nights(tmp_path)
    own = "return from_edf(path, annotations=True)"
    with pytest.raises(UsageError, match=r"classes has W, N2: give .* such as classes=\{'0': 'W', '2': 'N2'\}"):
        _prepared(tmp_path, NIGHTS.format(read=own, classes="('W', 'N2')"))
    _prepared(tmp_path, NIGHTS.format(read=own, classes="{'0': 'W', '2': 'N2'}"))


def test_events_in_samples_are_named_with_their_remedy(tmp_path: Path) -> None:
    _nights(tmp_path)
    read = "return from_edf(path, annotations=path.with_name(path.stem + '_events.tsv'))"
    with pytest.raises(UsageError, match="if these are samples, divide them by 100, or give interval_unit"):
        _prepared(tmp_path, NIGHTS.format(read=read, classes="('W', 'N2')"))


def test_warnings_within_a_function_of_the_user_are_noted(tmp_path: Path) -> None:
    _nights(tmp_path)
    read = (
        "warnings.warn(f'{path}: block 3 is damaged')\n    return replace(from_edf(path), label=int(path.stem[1]) % 2)"
    )
    notes = _prepared(tmp_path, NIGHTS.format(read=read, classes="('a', 'b')")).manifest.notes
    assert any("6 recordings: read() warns: the file: block 3 is damaged" in note for note in notes)


def test_columns_of_text_are_named_with_their_remedy(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    for number in range(6):
        pd.DataFrame({"I": [f"{value:g}" for value in np.arange(500) % 7 / 4]}).to_parquet(
            tmp_path / f"p/r{number}.parquet"
        )
    rows = "".join(f"r{number},{'ab'[number % 2]}\n" for number in range(6))
    (tmp_path / "p" / "l.csv").write_text("file,label\n" + rows)
    with pytest.raises(UsageError, match=r"column 'I' holds numbers as text; save them as numbers, such as"):
        _prepared(tmp_path, """
@dataset("own", files=["p"])
def own(data_root):
    return Recordings.from_folder(data_root / "p", "*.parquet", table="l.csv", label="label", sampling_rate=100,
                                  units="mV", classes=("a", "b"))
""")  # fmt: skip


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone_raw\.fif: is not there; expected a file that MNE reads"):
        from_mne(tmp_path / "gone_raw.fif")


@pytest.mark.parametrize(("last", "said"), [(990, True), (1000, False)])
def test_channels_that_end_within_a_second_are_noted(last: int, said: bool, tmp_path: Path) -> None:
    manifest = _prepared(tmp_path, f"""
@dataset("own", classes=("a", "b"), channels=("x", "y"), units="mV", window_seconds=2)
def own(data_root):
    for number in range(6):
        values = np.random.default_rng(number).normal(size=(2, 1000))
        yield Recording([values[0], values[1][:{last}]], label=number % 2, patient=number, sampling_rate=[100, 100])
""").manifest  # fmt: skip
    assert any("channel y ends within a second before others" in note for note in manifest.notes) == said


def test_notes_of_many_different_words_are_counted(tmp_path: Path) -> None:
    manifest = _prepared(tmp_path, """
@dataset("own", classes=("a", "b"), channels=("x",), units="mV", sampling_rate=100)
def own(data_root):
    for number in range(105):
        values = np.random.default_rng(number).normal(size=(1, 100))
        yield Recording(values, label=number % 2, patient=number, notes=[f"block {number} is damaged"])
""").manifest  # fmt: skip
    assert "1 recording: block 99 is damaged" in manifest.notes
    assert "5 recordings: further notes of other words" in manifest.notes
    assert sum("is damaged" in note for note in manifest.notes) == 100


def test_a_class_that_is_spelt_otherwise_in_the_table_lists_the_labels_that_are_there(tmp_path: Path) -> None:
    rows = ["record,rhythm,person"]
    for number in range(9):
        write_wfdb(tmp_path / "hospital", f"r{number}", np.full((1, 100), number), 100)
        rows.append(f"r{number},{('Normal', 'AF', 'noise')[number % 3]},{number}")
    (tmp_path / "hospital" / "labels.csv").write_text("\n".join(rows))
    reader = """
@dataset("own", files=["hospital"])
def own(data_root):
    table = dict(table="labels.csv", name="record", patient="person", classes=["normal", "AF"])
    return Recordings.from_wfdb(data_root / "hospital", "rhythm", **table)
"""
    there = "there are 3 of AF, 3 recordings labelled Normal \\(did you mean normal\\?\\), "
    there += "3 recordings labelled noise; leave it out of classes"
    with pytest.raises(UsageError, match=f"no recording is of class 'normal'; {there}"):
        _prepared(tmp_path, reader)


def test_a_folder_of_edf_files_that_is_read_as_wfdb_names_the_reader(tmp_path: Path) -> None:
    _nights(tmp_path)
    with pytest.raises(
        UsageError, match=r"no WFDB record .*; it has 6 \.edf files: Recordings\.from_folder\(\.\.\., "
    ) as said:
        Recordings.from_wfdb(tmp_path / "nights", "rhythm", table="records.csv", name="record")
    assert str(said.value).endswith('"*.edf", read=from_edf) reads them')
