"""Interrupted EDF+ files, and headers that count other records than there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import edfio
import numpy as np
import pytest

from clops_sweep import from_edf
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare

RATES = (50, 4)
LONG = "a text that leaves room for longer onsets in other records"


def _interrupted(path: Path, onsets: Sequence[float]) -> list[np.ndarray]:
    """Write records of 1 s that start at `onsets`, and an annotation at 11.5 s; return the signals."""
    stream = np.random.default_rng(int(path.stem[1:]))
    signals = [stream.integers(-500, 500, rate * len(onsets)).astype(float) for rate in RATES]
    edfio.Edf(
        [
            edfio.EdfSignal(signal, rate, label=label, physical_dimension="uV", physical_range=(-32768, 32767))
            for signal, rate, label in zip(signals, RATES, ("EEG", "RESP"), strict=True)
        ],
        annotations=[edfio.EdfAnnotation(0, 1, LONG), edfio.EdfAnnotation(11.5, 2, "AF")],
        data_record_duration=1,
    ).write(path)
    content = bytearray(path.read_bytes())
    content[192:197] = b"EDF+D"
    count = int(content[252:256])
    size = sum(int(content[256 + 216 * count + 8 * n : 264 + 216 * count + 8 * n]) for n in range(count)) * 2
    for record, onset in enumerate(onsets):
        begin = 256 * (count + 1) + record * size
        at = content.index(b"+%d\x14\x14" % record, begin, begin + size)
        rest = content[at : begin + size].split(b"\x14\x14", 1)[1]
        new = b"+" + f"{onset:g}".encode() + b"\x14\x14" + rest
        content[at : begin + size] = new[: begin + size - at].ljust(begin + size - at, b"\0")
    path.write_bytes(content)
    return signals


ONSETS = [0, 1, 2, 10, 11, 12, 13, 20.5, 21.5]


def test_pieces_are_read_at_their_times(tmp_path: Path) -> None:
    eeg, slow = _interrupted(tmp_path / "r1.edf", ONSETS)
    found = from_edf(tmp_path / "r1.edf", annotations=True)
    for signal, given, rate in zip(found.signal, (eeg, slow), RATES, strict=True):
        expected = np.full(round(22.5 * rate), np.nan)
        for record, onset in enumerate(ONSETS):
            begin = round(onset * rate)
            expected[begin : begin + rate] = given[record * rate : (record + 1) * rate]
        np.testing.assert_allclose(signal, expected, atol=1e-9)
    assert found.intervals == [(0, 1, LONG), (11.5, 13.5, "AF")]
    assert found.notes == ("is interrupted: its pieces are at their times, with missing samples between them",)


def test_jitter_below_half_a_sample_is_no_interruption(tmp_path: Path) -> None:
    eeg, _ = _interrupted(tmp_path / "r1.edf", [0, 1.005, 2.001, 3])
    found = from_edf(tmp_path / "r1.edf", ["EEG"])
    np.testing.assert_allclose(found.signal[0], eeg, atol=1e-9)
    assert found.notes == ()


def test_records_that_go_back_in_time_are_refused(tmp_path: Path) -> None:
    _interrupted(tmp_path / "r1.edf", [0, 1, 1.5, 3])
    with pytest.raises(UsageError, match=r"r1\.edf: record 3 starts at 1\.5 s, before the one before ends at 2 s"):
        from_edf(tmp_path / "r1.edf")


def test_a_recording_that_is_mostly_a_gap_is_refused(tmp_path: Path) -> None:
    _interrupted(tmp_path / "r1.edf", [0, 1, 2e7])
    with pytest.raises(UsageError, match=r"has 3 s of samples within 20,000,001 s, too long with its gaps"):
        from_edf(tmp_path / "r1.edf")


def test_pieces_are_cut_on_their_own(tmp_path: Path) -> None:
    signals = []
    (tmp_path / "f").mkdir()
    for number in range(6):
        signals.append(_interrupted(tmp_path / "f" / f"r{number}.edf", ONSETS)[0])
    body = """
    from dataclasses import replace
    from clops_sweep import from_edf

    def one(path):
        return replace(from_edf(path, ["EEG"]), label=int(path.stem[1:]) % 2, patient=path.stem)

    @dataset("own", files=["f"])
    def own(data_root):
        return Recordings.from_folder(data_root / "f", "*.edf", read=one, classes=("a", "b"), window_seconds=2{more})
    """
    declare(tmp_path / "space.py", body.format(more=""))
    with pytest.raises(UsageError, match="EEG has samples that are NaN, infinite or missing"):
        prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)
    declare(tmp_path / "space.py", body.format(more=", gaps='split'"))
    prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)
    frames = open_frames("own", prepared_root=tmp_path / "prepared", leads="all")
    assert len(frames) == 6 * 4  # one of 3 s, two of 4 s, one of 2 s
    begins = [0, 150, 250, 350]
    expected = np.stack([signals[0][begin : begin + 100] for begin in begins])
    np.testing.assert_allclose(frames.signal(np.arange(4)), expected, atol=1e-3)


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (b"3 ", r"holds 9 records of data \(.*\) where its header counts 3: records were appended"),
        (b"12", "truncated, 9 records of data"),
    ],
)
def test_a_header_that_counts_other_records(written: bytes, sentence: str, tmp_path: Path) -> None:
    _interrupted(tmp_path / "r1.edf", range(9))
    content = bytearray((tmp_path / "r1.edf").read_bytes())
    content[236:238] = written
    (tmp_path / "r1.edf").write_bytes(content)
    with pytest.raises(UsageError, match=sentence):
        from_edf(tmp_path / "r1.edf")


def test_an_incomplete_record_of_a_recorder_that_stopped_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "x.edf"
    edfio.Edf([edfio.EdfSignal(np.arange(1000) % 7 - 3.0, 100, label="c", physical_dimension="mV")]).write(path)
    whole = bytearray(path.read_bytes())
    whole[236:244] = b"-1      "
    path.write_bytes(whole)
    assert from_edf(path).notes == ()
    path.write_bytes(whole[:-70])
    read = from_edf(path)
    assert len(read.signal[0]) == 900
    assert read.notes == ("its last record is incomplete and left out",)


@pytest.mark.parametrize(("largest", "is_noted"), [(1000, False), (1001, False), (1003, True), (-1003, True)])
@pytest.mark.parametrize("sign", [1, -1])
def test_samples_beyond_the_range_of_the_header_are_noted(
    largest: int, is_noted: bool, sign: int, tmp_path: Path
) -> None:
    """The header says that digital samples are from -1,000 to 1,000, and physical ones from -100 to 100, or reverse."""
    steps = np.arange(500) % 7 - 3
    steps[7] = 1000
    signals = []
    for name in ("EEG a", "EEG b"):
        ends = (-100.0, 100.0)
        signals.append(
            edfio.EdfSignal(
                steps / 10.0, 100, label=name, physical_dimension="uV", physical_range=ends, digital_range=(-1000, 1000)
            )
        )
    edfio.Edf(signals).write(tmp_path / "r.edf")
    content = bytearray((tmp_path / "r.edf").read_bytes())
    if sign < 0:  # ends exchanged, as by electrodes that were swapped
        for signal in range(2):
            low, high = 256 + 2 * 104 + 8 * signal, 256 + 2 * 112 + 8 * signal
            content[low : low + 8], content[high : high + 8] = content[high : high + 8], content[low : low + 8]
    first = 256 * 3 + 2 * 7
    content[first : first + 2] = np.int16(largest).tobytes()  # of EEG a
    (tmp_path / "r.edf").write_bytes(bytes(content))
    found = from_edf(tmp_path / "r.edf")
    assert found.signal[0][7] == pytest.approx(sign * largest / 10)
    said = "samples of EEG a lie beyond the range of its header, so that their scale may be wrong"
    assert list(found.notes) == ([said] if is_noted else [])
