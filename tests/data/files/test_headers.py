"""WFDB headers with impossible numbers are refused by line and field, for every data set that reads headers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from clops_sweep.data.files.wfdb_records import read_header
from clops_sweep.errors import UsageError
from tests.data import published_formats
from tests.data.published_formats import write_mitbih_record


def _mitbih_vfdb(root: Path) -> None:
    published_formats.small_mitbih(root)
    for name in ("418", "419"):
        rhythms = [("(N", 12, ""), ("(VT", 12, ""), ("(VFL", 12, "")]
        write_mitbih_record(root / "vfdb", name, rhythms, rate=250, leads=("ECG", "second"))


WRITERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "mitbih": (published_formats.small_mitbih, "103.hea"),
    "mitbih_vfdb": (_mitbih_vfdb, "419.hea"),
    "ptbxl": (published_formats.ptbxl, "00003_hr.hea"),
    "physionet2020": (published_formats.physionet2020, "A0003.hea"),
    "chapman": (published_formats.chapman_wfdb, "JS00003.hea"),
}

GAIN = "expected 1 to 1,000,000 steps per mV such as 1000(0)/mV"
LEVEL = "expected a whole number from -16,777,216 to 16,777,216"

WRONG = [
    *((1, 2, gain, f"gain '{gain}', {GAIN}") for gain in ("0/mV", "0", "nan/mV", "inf/mV", "x", "-200(0)/mV", ".")),
    *((1, 2, gain, f"gain '{gain}', {GAIN}") for gain in ("1e999/mV", "1e300/mV", "1e-300/mV", "1000(0/mV", "1,5")),
    *((1, 2, f"200({zero})/mV", f"baseline '{zero}', {LEVEL}") for zero in ("nan", "x", "", "1e9", "16777217")),
    (1, 2, f"200({'9' * 400})/mV", f"baseline '{'9' * 40}', {LEVEL}"),
    (1, 2, "200(0)/uV", "unit 'uV', expected mV as in 1000(0)/mV"),
    *((1, 4, zero, f"ADC zero '{zero}', expected a whole number") for zero in ("nan", "1.5")),
    (1, 4, "99999999", f"ADC zero '99999999', {LEVEL}"),
    (1, 6, "nan", "checksum 'nan', expected a whole number"),
    *((0, 2, rate, f"sampling rate '{rate}', expected a positive number such as 500") for rate in ("0", "nan", "-250")),
    (0, 2, "inf", "sampling rate 'inf', expected a positive number such as 500"),
    *((0, 3, n, f"number of samples '{n[:40]}', expected a whole number") for n in ("-5000", "nan", "9" * 400)),
    *((0, 1, n, rf"number of signals '{n}', expected \d+ as there are lines of signals") for n in ("1", "13", "-2")),
    (0, 0, "1/2", "record name '1/2' announces several segments, expected a single one"),
    (1, 0, "../100.dat", "signal file '../100.dat', expected a name of the letters A to Z"),
]  # line (from 0), field (from 0), its text, the message


def _with_field(text: str, line: int, field: int, value: str) -> str:
    lines = text.splitlines()
    fields = lines[line].split(None, 8)
    fields[field] = value
    lines[line] = " ".join(fields)
    return "\n".join(lines) + "\n"


def _says(expected: str) -> str:
    return expected if r"\d" in expected else re.escape(expected)


@pytest.mark.parametrize("name", WRITERS)
def test_numbers_that_cannot_be_are_refused_by_line_and_field(name: str, tmp_path: Path) -> None:
    write, file = WRITERS[name]
    write(tmp_path)
    (header,) = tmp_path.rglob(file)
    whole = header.read_text()
    read_header(header)
    for line, field, value, expected in WRONG:
        header.write_text(_with_field(whole, line, field, value))
        with pytest.raises(
            UsageError, match=rf"{file}: line {line + 1}: {_says(expected)}.*; correct the header"
        ) as caught:
            read_header(header)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 500


PUBLISHED = {
    "200": 200, "1000/mV": 1000, "1000.0(0)/mV": 1000, "1e3(-7)/mV": 1000, "200(1024)": 200, "1/mV": 1,
    "1000000(16777216)": 1e6, "200(-16777216)": 200,
}  # fmt: skip


@pytest.mark.parametrize("gain", PUBLISHED)
def test_numbers_as_publishers_write_them(gain: str, tmp_path: Path) -> None:
    write_mitbih_record(tmp_path, "100", published_formats.BY_RHYTHM)
    header = tmp_path / "100.hea"
    header.write_text(_with_field(header.read_text(), 1, 2, gain))
    assert read_header(header).gain[0] == PUBLISHED[gain]
