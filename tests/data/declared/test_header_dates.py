"""Dates of recordings from the headers of EDF files, and headers that are anonymized."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, time, timedelta
from pathlib import Path

import edfio
import numpy as np
import pandas as pd
import pytest

from clops_sweep import Recording, Recordings, UsageError, dataset, from_edf, open_frames, prepare
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from tests.data.declared_files import forget

BEGIN = datetime(2020, 1, 31, 22, 15)
DATES = [BEGIN + timedelta(days=40 * (11 - number)) for number in range(12)]
"""Later names have earlier dates."""


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    forget("ward")
    yield
    forget("ward")


def _written(folder: Path, dates: Sequence[datetime | None]) -> None:
    """Write an EDF file of 4 s for each date; None is anonymized by X in place of the date."""
    for number, date in enumerate(dates):
        samples = np.random.default_rng(number).normal(size=400)
        edfio.Edf(
            [edfio.EdfSignal(samples, 100, label="ECG", physical_dimension="mV", physical_range=(-9, 9))],
            recording=None if date is None else edfio.Recording(startdate=date.date()),
            starttime=time(22, 15) if date is None else date.time(),
        ).write(folder / f"r{number:02}.edf")


def _prepared(folder: Path, *, own: bool = False, **given: object) -> PreparedSet:
    names = [f"r{number:02}" for number in range(12)]
    table = pd.DataFrame({"file": names, "label": ["a", "b"] * 6, "who": [f"p{number // 2}" for number in range(12)]})

    def read(path: Path) -> Recording:
        recording = from_edf(path)
        return Recording(recording.signal, **{**_facts(recording), "time": recording.start}) if own else recording

    @dataset("ward", scenarios=("class_il_union",))
    def ward(data_root: Path | None) -> Recordings:
        return Recordings.from_folder(
            folder,
            "*.edf",
            read=read,
            table=table,
            name="file",
            label="label",
            patient="who",
            window_seconds=1,
            **given,
        )

    return prepare("ward", prepared_root=folder / "prepared", data_root=None, workers=1)


def _facts(recording: Recording) -> dict[str, object]:
    return {name: getattr(recording, name) for name in ("channels", "units", "sampling_rate", "start")}


def test_the_start_of_each_file_is_its_date_if_this_is_asked_for(tmp_path: Path) -> None:
    _written(tmp_path, DATES)
    plain = _prepared(tmp_path)
    assert not plain.manifest.dated
    forget("ward")
    dated = _prepared(tmp_path, time="header")
    assert dated.manifest.data_hash != plain.manifest.data_hash, "the order of recordings over time is another"
    frames = open_frames("ward", prepared_root=tmp_path / "prepared")
    of_names = dated.table.record_names()
    for name, date in zip(of_names, frames.times.tolist(), strict=True):
        assert date == DATES[int(name[1:])]
    assert "the dates of recordings are those of their headers, from 2020-01-31 to 2021-04-15" in dated.manifest.notes
    assert not any("natural order" in note for note in dated.manifest.notes)


@pytest.mark.parametrize(
    ("dates", "note"),
    [
        (
            [*DATES[:10], None, datetime(1985, 1, 1, 8)],
            "dates: 2 of 12 headers have none, or an anonymized one, so no recording has a date: r10, r11; give all "
            "dates in a table",
        ),
        (
            [BEGIN + timedelta(minutes=number) for number in range(12)],
            "dates: all 12 headers have 2020-01-31, as anonymized ones do, so no recording has a date; give the dates "
            "in a table",
        ),
    ],
)
def test_anonymized_headers_have_no_dates(dates: list[datetime | None], note: str, tmp_path: Path) -> None:
    _written(tmp_path, dates)
    plain = _prepared(tmp_path)
    forget("ward")
    anonymized = _prepared(tmp_path, time="header")
    assert not anonymized.manifest.dated
    assert note in anonymized.manifest.notes
    assert anonymized.manifest.data_hash == plain.manifest.data_hash


def test_dates_of_recordings_and_of_headers_are_not_mixed(tmp_path: Path) -> None:
    _written(tmp_path, DATES)
    with pytest.raises(
        UsageError, match=r"r00\.edf: time: recordings have dates of their own; leave out time='header'"
    ):
        _prepared(tmp_path, own=True, time="header")
