"""The MIT-BIH reader: on the real records if available, and on small ones in their format."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from clops_sweep.data.files.rhythm_segments import AAMI, Segment
from clops_sweep.data.files.wfdb_records import load_wfdb
from clops_sweep.data.frames import TEST, FrameSet
from clops_sweep.data.prepared.counts import class_rows
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.data.published.mitbih import DS1, GRID, place_windows, window_class
from clops_sweep.data.scenarios import build_scenario
from clops_sweep.errors import UsageError
from tests.data.conftest import WriteRecord
from tests.data.declared_files import declare, forget
from tests.data.published_formats import BY_RHYTHM, small_mitbih


@pytest.fixture
def small_root(tmp_path: Path) -> Path:
    return small_mitbih(tmp_path / "data")


def _prepare(root: Path, **options: Any) -> PreparedSet:
    return prepare("mitbih", prepared_root=root.parent / "prepared", data_root=root, workers=1, **options)


def test_one_lead_of_a_recording_is_read(small_root: Path) -> None:
    """MLII, or else the first lead; so there are no frames of all leads, and these are refused."""
    prepared = _prepare(small_root)
    sentence = r"dataset 'mitbih': leads = 'all': no recording .* \(MLII, V5\); expected leads = 'single'"
    with pytest.raises(UsageError, match=sentence):
        open_frames("mitbih", prepared_root=prepared.folder.parent, leads="all")


def test_all_classes_of_small_records(small_root: Path) -> None:
    manifest = _prepare(small_root).manifest
    # 12 s hold two windows of 5 s; four records each
    frames = open_frames("mitbih", prepared_root=small_root.parent / "prepared")
    assert {row.name: sum(row.frames) for row in class_rows(frames)} == dict.fromkeys(manifest.classes, 8)
    scenario = build_scenario(frames, "class_il")
    titles = ["AFIB / APB", "BIGEMINY / NSR", "LBBB / RBBB", "PACED / PVC"]
    assert [task.title for task in scenario.tasks] == titles


def test_records_of_one_person_are_one_patient(small_root: Path, write_mitbih_record: WriteRecord) -> None:
    for name in ("201", "202"):
        write_mitbih_record(small_root / "mitdb", name, BY_RHYTHM)
    index = pd.read_parquet(_prepare(small_root).folder / "index.parquet")
    assert set(index.loc[index["record"].isin(["201", "202"]), "patient"]) == {"201"}


@pytest.mark.parametrize(
    ("file", "harm", "says"),
    [
        ("103.dat", lambda content: content[:1000], r"103\.dat: truncated, 1,000 bytes where its header promises"),
        (
            "103.dat",
            lambda content: np.random.default_rng(0).bytes(len(content)),
            r"103\.dat: lead MLII does not have the checksum that 103\.hea gives; download",
        ),
        ("103.dat", None, r"103\.dat: the signal file is missing"),
        ("103.hea", None, r"103\.hea: the header is missing"),
        ("103.hea", lambda _: b"", r"103\.hea: the header promises no samples"),
        ("103.atr", None, r"103\.atr: the annotation file is missing"),
        ("103.atr", lambda _: b"", r"103\.atr: truncated, its end mark is missing"),
        ("103.atr", lambda _: b"\1\4\0\0", r"103\.atr: has no rhythm annotation"),
        ("103.atr", lambda content: content + b"\1\4\0\0", r"103\.atr: its end mark is at byte 168 of 172"),
    ],
)
def test_a_bad_file_is_one_sentence_and_can_be_skipped(
    small_root: Path, file: str, harm: Callable[[bytes], bytes] | None, says: str
) -> None:
    path = small_root / "mitdb" / file
    content = path.read_bytes()
    path.unlink()
    if harm is not None:
        path.write_bytes(harm(content))
    with pytest.raises(UsageError, match=says) as caught:
        _prepare(small_root)
    assert "\n" not in str(caught.value)
    assert not (small_root.parent / "prepared" / "mitbih").exists()
    manifest = _prepare(small_root, on_error="skip").manifest
    assert [record for record, _ in manifest.skipped] == ["103"]


@pytest.mark.parametrize("note", ["(AFIP", "AFIB", ""])
def test_an_unknown_rhythm_is_refused_and_a_known_one_without_a_class_is_counted(
    small_root: Path, write_mitbih_record: WriteRecord, note: str
) -> None:
    write_mitbih_record(small_root / "mitdb", "104", [*BY_RHYTHM, ("(T", 12, "N")])
    assert _prepare(small_root).manifest.dropped == {"rhythm T": 2}
    write_mitbih_record(small_root / "mitdb", "103", [*BY_RHYTHM, (note, 12, "N")])
    says = rf"103\.atr: rhythm note {re.escape(repr(note))} is unknown; expected one of \(AB, "
    with pytest.raises(UsageError, match=says):
        prepare("mitbih", prepared_root=small_root, data_root=small_root, workers=1)
    manifest = prepare("mitbih", prepared_root=small_root, data_root=small_root, workers=1, on_error="skip").manifest
    assert [record for record, _ in manifest.skipped] == ["103"]


def test_windows_never_overlap_and_short_rhythms_are_centred() -> None:
    segments = [Segment(0, 4000, "(N"), Segment(4000, 5200, "(B"), Segment(5200, 9100, "(N"), Segment(9100, 9500, "(B")]
    placed = place_windows(segments, 1800, 9500)
    assert placed == [(0, "(N"), (1800, "(N"), (3700, "(B"), (5500, "(N"), (7300, "(N")] or placed == [
        (0, "(N"),
        (3700, "(B"),
        (5500, "(N"),
        (7300, "(N"),
    ]
    begins = [begin for begin, _ in placed]
    assert np.diff(begins).min() >= 1800


def test_beats_decide_in_normal_rhythm() -> None:
    for rhythm, beats, expected in (
        ("(AFIB", "V", "AFIB"),
        ("(N", "NVA", "PVC"),
        ("(SBR", "NaL", "APB"),
        ("(N", "LL", "LBBB"),
        ("(N", "R", "RBBB"),
        ("(N", "NN", "NSR"),
        ("(N", "NL", "mixture of beats"),
        ("(N", "", "no beat in the window"),
        ("(T", "N", "rhythm T"),
    ):
        assert window_class(rhythm, np.array(list(beats), str)) == expected


def _format_212(path: Path) -> np.ndarray:
    """Decode two 12-bit two's-complement samples per three bytes, without the wfdb package."""
    raw = np.fromfile(path, np.uint8).astype(np.int32).reshape(-1, 3)
    first = raw[:, 0] + ((raw[:, 1] & 0x0F) << 8)
    second = raw[:, 2] + ((raw[:, 1] & 0xF0) << 4)
    return np.stack([np.where(x > 2047, x - 4096, x) for x in (first, second)], axis=1)


def test_real_frames_equal_an_independent_computation(data_root: Path, mitbih: PreparedSet) -> None:
    frames = open_frames("mitbih", prepared_root=mitbih.folder.parent)
    index = pd.read_parquet(mitbih.folder / "index.parquet")
    for record, channel in (("100", 0), ("114", 1), ("102", 0)):
        stored = _format_212(data_root / "mitdb" / f"{record}.dat")[:, channel]
        rows = np.flatnonzero(index["record"] == record)
        for row in rows[[0, -1]]:
            begin = round(index["start"].iloc[row] * 360)
            millivolt = (stored[begin : begin + 1800] - 1024) / 200
            # explicit Fourier interpolation: the same sum of 901 harmonics, evaluated at 2500 times
            spectrum = np.fft.fft(millivolt)
            harmonics = np.fft.fftfreq(1800, 1 / 1800)
            spectrum[900] = 0  # 1800 samples do not determine its sine; the cosine is added below
            instants = np.arange(2500) * 1800 / 2500
            expected = (np.exp(2j * np.pi * np.outer(instants, harmonics) / 1800) @ spectrum).real / 1800
            expected += np.fft.fft(millivolt)[900].real * np.cos(np.pi * instants) / 1800
            assert np.abs(frames.signal(np.array([row]))[0] - expected).max() <= GRID


def test_real_counts_per_class(mitbih: PreparedSet) -> None:
    manifest = mitbih.manifest
    assert len(manifest.patient_names) == 47
    assert "202" not in manifest.patient_names
    rows = class_rows(open_frames("mitbih", prepared_root=mitbih.folder.parent))
    assert all(200 <= sum(row.frames) <= 420 and min(row.frames) > 0 for row in rows)
    assert manifest.notes == ()


def test_beats_have_the_classes_and_the_split_that_are_published(data_root: Path, tmp_path: Path) -> None:
    prepare("mitbih_beats", prepared_root=tmp_path, data_root=data_root)
    frames = open_frames("mitbih_beats", prepared_root=tmp_path, validation=0.2)
    published = {  # de Chazal et al., table II, without record 202, whose person is in DS1
        "learned": np.array([45_866, 944, 3_788, 415]),
        "tested": np.array([44_259 - 2_061, 1_837 - 55, 3_221 - 19, 388 - 1]),
    }
    tested = frames.split == TEST
    counts = [np.bincount(frames.labels[rows], minlength=4) for rows in (~tested, tested)]
    assert counts[0].sum() + counts[1].sum() + 50 == sum(each.sum() for each in published.values())
    for found, expected in zip(counts, published.values(), strict=True):
        assert (expected - found >= 0).all()
        assert (expected - found)[[1, 2, 3]].max() <= 1  # beats at the edges are nearly all normal
    assert {*DS1} == {
        int(name) for name, split in zip(frames.patient_names, _splits(frames), strict=True) if split != TEST
    }
    assert frames.samples == 360


def _splits(frames: FrameSet) -> list[int]:
    return [int(frames.split[frames.patients == person][0]) for person in range(len(frames.patient_names))]


def test_a_frame_around_a_beat_is_the_signal_there(data_root: Path, tmp_path: Path) -> None:
    declare(
        tmp_path / "space.py",
        "from clops_sweep import AAMI\n@dataset('own', files=['mitdb/100.*', 'mitdb/200.*', 'mitdb/208.*'])\n"
        "def own(root):\n    table = pd.DataFrame({'record': ['100', '200', '208']})\n"
        "    return Recordings.from_wfdb(root / 'mitdb', '.atr', table=table, name='record', channels=['MLII'],\n"
        "        classes={k: v for k, v in AAMI.items() if v in 'NV'}, window_seconds=0.5, window_around='beat')\n",
    )
    prepare("own", prepared_root=tmp_path, data_root=data_root, workers=1)
    frames, index = open_frames("own", prepared_root=tmp_path), pd.read_parquet(tmp_path / "own" / "index.parquet")
    wfdb, stem = load_wfdb(), str(data_root / "mitdb" / "200")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of wfdb about pandas
        record, notes = wfdb.rdrecord(stem), wfdb.rdann(stem, "atr")
    named = [(at, AAMI.get(symbol)) for at, symbol in zip(notes.sample, notes.symbol, strict=True)]
    beats = [(at, name) for at, name in named if name in ("N", "V")]
    rows = np.flatnonzero(frames.patients == frames.patient_names.index("200"))
    inside = [(at, name) for at, name in beats if 90 <= at <= len(record.p_signal) - 90]
    assert [frames.classes[code] for code in frames.labels[rows]] == [name for _, name in inside]
    np.testing.assert_allclose(index["start"][rows], [(at - 90) / 360 for at, _ in inside])
    for row, (at, _) in list(zip(rows, inside, strict=True))[::100]:
        found = frames.signal(np.array([row]))[0]
        np.testing.assert_allclose(found, record.p_signal[at - 90 : at + 90, 0], atol=1e-6)
    forget()
