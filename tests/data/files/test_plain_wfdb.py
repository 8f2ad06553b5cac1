"""Plain headers and signal files come out as from the wfdb package; what is not plain is left to that package."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from clops_sweep.data.files import wfdb_records
from clops_sweep.data.files.plain_wfdb import plain_record
from clops_sweep.data.files.wfdb_records import Header, read_header, read_stored
from clops_sweep.errors import UsageError

RECORDS = ("{} {} 360 {}", "{} {} 500.0 {} 10:11:12 05/06/2007", "{} {} 500 {} 05-Feb-2020 11:39:16")
SIGNALS = (
    "{}.dat {} 200 11 1024 995 {} 0 MLII",
    "{}.dat {} 1000.5(-7)/mV 16 0 -127 {} 0  a lead of three words ",
    "{}.dat {} 4880(12)/uV 12 -3 0 {} 0 V5",
    "{}.dat {} 200/% 12 -3 0 {} 0 Resp",
)


def _by_the_package(header: Path, monkeypatch: pytest.MonkeyPatch) -> Header:
    with monkeypatch.context() as patch:
        patch.setattr(wfdb_records, "plain_record", lambda text: None)
        return read_header(header, lenient=True)


def _packed(samples: list[int], form: str) -> bytes:
    """signal(5) of the WFDB manual, sample by sample."""
    if form == "16":
        return b"".join(each.to_bytes(2, "little", signed=True) for each in samples)
    found = bytearray()
    for first, second in zip(samples[::2], [*samples[1::2], 0], strict=False):
        found += bytes([first & 255, (first >> 8 & 15) | (second >> 4 & 0xF0), second & 255])
    return bytes(found[: -(-len(samples) * 3 // 2)])


def _write(folder: Path, record: str, signal: str, form: str, stored: np.ndarray) -> Path:
    """A record in which all signals have lines of one kind."""
    samples, signals = stored.shape
    (folder / "r.dat").write_bytes(_packed(stored.reshape(-1).tolist(), form))
    sums = stored.sum(0, dtype=np.int64) % 2**16
    lines = [record.format("r", signals, samples), *(signal.format("r", form, each) for each in sums), "# Dx: AF", "#"]
    (folder / "r.hea").write_text("\n".join(lines) + "\n")
    return folder / "r.hea"


@pytest.mark.parametrize("form", ["16", "212"])
@pytest.mark.parametrize(("samples", "signals"), [(1, 1), (2, 1), (7, 3), (250, 2)])
def test_plain_records_are_read_as_by_the_package(
    form: str, samples: int, signals: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    low = -(2**11) if form == "212" else -(2**15)
    stored = np.random.default_rng(samples).integers(low, -low, (samples, signals))
    stored[0], stored[-1, -1] = low, -low - 1
    for record, signal in [(RECORDS[number % 3], each) for number, each in enumerate(SIGNALS)]:
        header = _write(tmp_path, record, signal, form, stored)
        plain, package = read_header(header, lenient=True), _by_the_package(header, monkeypatch)
        assert plain.packing is not None
        assert package.packing is None
        for field in (each.name for each in fields(Header) if each.name != "packing"):
            np.testing.assert_array_equal(getattr(plain, field), getattr(package, field), field, strict=True)
        np.testing.assert_array_equal(read_stored(plain), stored)
        np.testing.assert_array_equal(read_stored(plain), read_stored(package), strict=True)


def test_samples_behind_other_bytes_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = np.arange(-20, 20).reshape(20, 2)
    header = _write(tmp_path, RECORDS[0], SIGNALS[0].replace(" {} 200", " {}+24 200"), "16", stored)
    data = (tmp_path / "r.dat").read_bytes()
    (tmp_path / "r.dat").write_bytes(b"\1" * 24 + data)
    plain = read_header(header, lenient=True)
    np.testing.assert_array_equal(read_stored(plain), stored)
    np.testing.assert_array_equal(read_stored(plain), read_stored(_by_the_package(header, monkeypatch)), strict=True)
    (tmp_path / "r.dat").write_bytes(b"\1" * 24 + data[:-2] + b"\0\0")
    with pytest.raises(UsageError, match=r"r\.dat: lead MLII does not have the checksum that r\.hea gives"):
        read_stored(read_header(header))


PLAIN = "r 1 360 100\nr.dat 16 200 11 0 995 3 0 MLII\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("r 1", "r/2 1"),
        ("r 1", "r 2"),
        ("360", "360/120(3)"),
        ("360", "360.5"),
        ("100\n", "\n"),
        ("100\n", "100 what\n"),
        ("16 ", "16x2 "),
        ("16 ", "16:3 "),
        ("200 ", ""),
        ("200", "2e2"),
        ("200", "200/µV"),
        ("11 ", "-11 "),
        (" MLII", ""),
        ("MLII", "ML\tII"),
        ("r.dat", "~"),
    ],
)
def test_what_is_not_plain_is_left_to_the_package(old: str, new: str) -> None:
    assert plain_record(PLAIN) is not None
    assert plain_record(PLAIN.replace(old, new, 1)) is None
