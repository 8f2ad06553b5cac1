"""Headers and signal files equal what the wfdb package reads, whatever their dates."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clops_sweep.data.files.wfdb_records import Header, load_wfdb, read_annotations, read_header, read_stored
from clops_sweep.errors import UsageError

RECORDS = ("{} {} 360 {}", "{} {} 500.0 {} 10:11:12 05/06/2007", "{} {} 500 {} 05-Feb-2020 11:39:16")
SIGNALS = (
    "{}.dat {} 200 11 1024 995 {} 0 MLII",
    "{}.dat {} 1000.5(-7)/mV 16 0 -127 {} 0  a lead of three words ",
    "{}.dat {} 4880(12)/uV 12 -3 0 {} 0 V5",
    "{}.dat {} 200/% 12 -3 0 {} 0 Resp",
)


def _by_the_package(header: Path) -> Any:
    """Read a record by the wfdb package, without its date, since the package refuses some."""
    lines = header.read_text().splitlines()
    header.write_text("\n".join([" ".join(lines[0].split()[:4]), *lines[1:], ""]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_wfdb().rdrecord(str(header.with_suffix("")), physical=False, return_res=32)


def _assert_alike(found: Header, stored: np.ndarray, package: Any) -> None:
    assert (found.rate, found.samples, list(found.leads)) == (package.fs, package.sig_len, package.sig_name)
    assert list(found.units) == package.units
    assert (found.gain.tolist(), found.baseline.tolist()) == (package.adc_gain, package.baseline)
    assert [str(file.name) for file in found.files] == package.file_name
    assert list(found.lines.comments) == package.comments
    np.testing.assert_array_equal(stored, package.d_signal)


def _packed(samples: list[int], form: str) -> bytes:
    """Pack samples one by one, as in signal(5) of the WFDB manual."""
    if form == "16":
        return b"".join(each.to_bytes(2, "little", signed=True) for each in samples)
    found = bytearray()
    for first, second in zip(samples[::2], [*samples[1::2], 0], strict=False):
        found += bytes([first & 255, (first >> 8 & 15) | (second >> 4 & 0xF0), second & 255])
    return bytes(found[: -(-len(samples) * 3 // 2)])


def _write(folder: Path, record: str, signal: str, form: str, stored: np.ndarray) -> Path:
    """Write a record in which all signals have the same kind of line."""
    samples, signals = stored.shape
    (folder / "r.dat").write_bytes(_packed(stored.reshape(-1).tolist(), form))
    sums = stored.sum(0, dtype=np.int64) % 2**16
    lines = [record.format("r", signals, samples), *(signal.format("r", form, each) for each in sums), "# Dx: AF", "#"]
    (folder / "r.hea").write_text("\n".join(lines) + "\n")
    return folder / "r.hea"


@pytest.mark.parametrize("form", ["16", "212"])
@pytest.mark.parametrize(("samples", "signals"), [(1, 1), (2, 1), (7, 3), (250, 2)])
def test_plain_records_are_read_as_by_the_package(form: str, samples: int, signals: int, tmp_path: Path) -> None:
    low = -(2**11) if form == "212" else -(2**15)
    stored = np.random.default_rng(samples).integers(low, -low, (samples, signals))
    stored[0], stored[-1, -1] = low, -low - 1
    for record, signal in [(RECORDS[number % 3], each) for number, each in enumerate(SIGNALS)]:
        header = _write(tmp_path, record, signal, form, stored)
        found = read_header(header, lenient=True)
        assert list(found.checksums) == [int(each) or None for each in stored.sum(0) % 2**16]
        np.testing.assert_array_equal(read_stored(found), stored)
        _assert_alike(found, read_stored(found), _by_the_package(header))
    _assert_complete(header)


def _assert_complete(header: Path) -> None:
    """Check that the signal file has exactly the bytes that its header promises: with one byte less, it is refused."""
    file = header.with_suffix(".dat")
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(
        UsageError, match=f"truncated, {len(whole) - 1:,} bytes where its header promises {len(whole):,};"
    ):
        read_header(header, lenient=True)
    file.write_bytes(whole)


def test_samples_behind_other_bytes_are_found(tmp_path: Path) -> None:
    stored = np.arange(-20, 20).reshape(20, 2)
    header = _write(tmp_path, RECORDS[0], SIGNALS[0].replace(" {} 200", " {}+24 200"), "16", stored)
    data = (tmp_path / "r.dat").read_bytes()
    (tmp_path / "r.dat").write_bytes(b"\1" * 24 + data)
    np.testing.assert_array_equal(read_stored(read_header(header, lenient=True)), stored)
    _assert_complete(header)
    (tmp_path / "r.dat").write_bytes(b"\1" * 24 + data[:-2] + b"\0\0")
    with pytest.raises(UsageError, match=r"r\.dat: lead MLII does not have the checksum that r\.hea gives"):
        read_stored(read_header(header))


@pytest.mark.parametrize("form", ["24", "32", "80"])
@pytest.mark.parametrize("date", ["", " 05-May-2020 11:39:16"])
def test_other_records_are_left_to_the_package(form: str, date: str, tmp_path: Path) -> None:
    stored = np.random.default_rng(1).integers(-100, 100, (50, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load_wfdb().wrsamp(
            "r", 100, ["mV"] * 2, ["a", "b"], d_signal=stored, fmt=[form] * 2, adc_gain=[50] * 2, baseline=[1, 2],
            write_dir=str(tmp_path),
        )  # fmt: skip
    header = tmp_path / "r.hea"
    header.write_text(header.read_text().replace("r 2 100 50", f"r 2 100 50{date}"))
    found, wide = read_header(header), form in ("24", "32")
    np.testing.assert_array_equal(read_stored(found, wide), stored)
    assert read_stored(found, wide).dtype == (np.int64 if wide else np.int16)
    _assert_alike(found, read_stored(found, wide), _by_the_package(header))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("16x1", "16x2", None),
        ("16x1", "16:3", None),
        ("360", "360/120(3)", None),
        ("360", "0.5", None),
        ("100\n", "100 what\n", None),
        ("16x1 ", "x ", "line 2: format 'x', expected a number such as 16 or 212"),
        ("200 ", "x ", r"line 2: gain 'x', expected a number such as 1000\(0\)/mV"),
        ("200 ", "1e999 ", "line 2: gain '1e999', expected a number"),
        ("200 ", "2e2 ", None),
        ("200", "200/\u00b5V", None),
        (" MLII", "", None),
        ("MLII", "ML\tII", None),
    ],
)
def test_fields_that_are_rare(old: str, new: str, says: str | None, tmp_path: Path) -> None:
    header = tmp_path / "r.hea"
    text = "r 1 360 100\nr.dat 16x1 200 11 0 995 3 0 MLII\n"
    assert old in text
    (tmp_path / "r.dat").write_bytes(bytes(400))
    header.write_text(text.replace(old, new, 1), encoding="utf-8")
    if says is None:
        found = read_header(header, lenient=True)
        assert (found.rate, found.gain[0]) == (0.5 if new == "0.5" else 360, 200)
        return
    with pytest.raises(UsageError, match=says):
        read_header(header, lenient=True)


def test_annotations_are_in_order_of_time(tmp_path: Path) -> None:
    at_50, back_30, two_at_20 = [1 << 10 | 50], [59 << 10, 0xFFFF, 0xFFE2], [5 << 10, 8 << 10]
    np.array([*at_50, *back_30, *two_at_20, 0], "<u2").tofile(tmp_path / "r.atr")
    samples, symbols, _ = read_annotations(tmp_path / "r.atr", 200, per_frame=2)
    assert (samples.tolist(), symbols) == ([40, 40, 100], ["V", "A", "N"])


@pytest.mark.parametrize("fs", [None, 500])
@pytest.mark.parametrize("defines", [False, True])
def test_comments_at_the_first_sample_are_annotations_unless_they_define(
    fs: int | None, defines: bool, tmp_path: Path
) -> None:
    symbols = ["+", '"', '"', "x" if defines else "N", '"']
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load_wfdb().wrann(
            "r",
            "st",
            np.array([0, 0, 0, 7500, 15000]),
            symbols,
            aux_note=["(N", "W", "2 LA", "", "1"],
            fs=fs,
            custom_labels=[(42, "x", "a word of mine")] if defines else None,
            write_dir=str(tmp_path),
        )
    samples, read, notes = read_annotations(tmp_path / "r.st", 500)
    assert sorted(zip(samples.tolist(), read, notes, strict=True)) == [
        (0, '"', "2 LA"),
        (0, '"', "W"),
        (0, "+", "(N"),
        (7500, symbols[3], ""),
        (15000, '"', "1"),
    ]


@pytest.mark.parametrize("line", ["r 1", "r 1 250", "r 1 250/10"])
def test_the_length_of_a_header_without_one_is_that_of_the_file(line: str, tmp_path: Path) -> None:
    (tmp_path / "r.dat").write_bytes(bytes(400))
    (tmp_path / "r.hea").write_text(f"{line}\nr.dat 16 200 11 0 0 0 0 MLII\n", encoding="utf-8")
    found = read_header(tmp_path / "r.hea", lenient=True)
    assert (found.rate, found.samples) == (250, 200)
    with pytest.raises(UsageError, match="promises no samples"):
        read_header(tmp_path / "r.hea")
    several = "r.dat 16+40\nr.dat 16x2+40\nother.dat 16\n"  # 40 other bytes, then frames of three samples
    (tmp_path / "other.dat").write_bytes(bytes(120))
    (tmp_path / "r.hea").write_text(f"{line.replace('r 1', 'r 3')}\n{several}", encoding="utf-8")
    assert read_header(tmp_path / "r.hea", lenient=True).samples == 60
    (tmp_path / "r.hea").write_text(f"{line}\nr.dat 16 200 11 0 0 0 0 MLII\n", encoding="utf-8")
    (tmp_path / "r.dat").write_bytes(b"")
    with pytest.raises(UsageError, match=r"r\.dat: the signal file has no samples"):
        read_header(tmp_path / "r.hea", lenient=True)
