"""Annotations of EDF+ files: each of them is kept, or the file is refused."""

from __future__ import annotations

from pathlib import Path

import edfio
import numpy as np
import pyedflib
import pytest

from clops_sweep import from_edf
from clops_sweep.errors import UsageError


def _written(path: Path, *annotations: edfio.EdfAnnotation) -> Path:
    """Write three records of 1 s, with a last annotation of 0.5 s at 2.5 s."""
    signal = edfio.EdfSignal(np.arange(30.0), 10, label="EEG", physical_dimension="uV")
    last = edfio.EdfAnnotation(2.5, 0.5, "last")
    edfio.Edf([signal], annotations=[*annotations, last], data_record_duration=1).write(path)
    return path


def _replaced(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new.ljust(len(old), b"\0")))


@pytest.mark.parametrize("text", ["two\nlines", "two\r\nlines", "a\ttab"])
def test_texts_of_several_lines_are_kept(text: str, tmp_path: Path) -> None:
    path = _written(tmp_path / "a.edf", edfio.EdfAnnotation(1, 1, text))
    with pyedflib.EdfReader(str(path)) as reader:
        assert list(reader.readAnnotations()[2]) == [text, "last"]
    assert from_edf(path, annotations=True).intervals == [(1.0, 2.0, text), (2.5, 3.0, "last")]


@pytest.mark.parametrize(
    ("written", "end"),
    [
        (b"+1\x15.5\x14stage\x14", 1.5),
        (b"+1\x151.\x14stage\x14", 2),
        (b"+1\x15\x14stage\x14", 1),
        (b"1\x14stage\x14", 1),
    ],
)
def test_numbers_that_are_clear_are_read(written: bytes, end: float, tmp_path: Path) -> None:
    path = _written(tmp_path / "a.edf", edfio.EdfAnnotation(1.0, 0.25, "stage"))
    _replaced(path, b"+1\x150.25\x14stage\x14", written)
    assert from_edf(path, annotations=True).intervals == [(1.0, end, "stage"), (2.5, 3.0, "last")]


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (b"+1\x150.25\x14stage", r"record 2 has '\+1.*stage' among its annotations; expected an onset, a duration"),
        (b"+1e0\x15.2\x14stage\x14", r"record 2 has '\+1e0.*among its annotations"),
        (b"+1\x150.25\x14st\xe4ge\x14", "not UTF-8, 'stäge'|codec can't decode byte 0xe4"),
    ],
)
def test_what_is_no_annotation_is_refused(written: bytes, sentence: str, tmp_path: Path) -> None:
    path = _written(tmp_path / "a.edf", edfio.EdfAnnotation(1.0, 0.25, "stage"))
    _replaced(path, b"+1\x150.25\x14stage\x14", written)
    with pytest.raises(UsageError, match=sentence):
        from_edf(path, annotations=True)


def test_a_first_stage_without_a_time_keeping_annotation_before_it_is_kept(tmp_path: Path) -> None:
    night = _written(tmp_path / "night.edf")
    stages = _written(tmp_path / "stages.edf", edfio.EdfAnnotation(0.0, 1, "wake"))
    _replaced(stages, b"+0\x14\x14\x00+0\x151\x14wake\x14\x00", b"+0\x151\x14wake\x14\x00")
    assert from_edf(night, annotations=stages).intervals == [(0.0, 1.0, "wake"), (2.5, 3.0, "last")]
