"""Records in every format of WFDB, with missing samples, segments and several rates, compared with the wfdb package."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from clops_sweep.data.files.resampling import at_rate
from clops_sweep.data.files.wfdb_header import summarize
from clops_sweep.data.files.wfdb_records import leads_of, load_wfdb, read_in_units
from clops_sweep.errors import UsageError

BITS = {"8": 8, "80": 8, "508": 8, "212": 12, "310": 10, "311": 10, "24": 24, "524": 24, "32": 32}
WRITTEN = ("16", "24", "32", "80", "212", "508", "516", "524")
"""Formats that the wfdb package writes."""


def _package(path: Path, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_wfdb().rdrecord(str(path.with_suffix("")), **options)


def _write(folder: Path, form: str, values: NDArray[np.float64], name: str = "r", **options: Any) -> Path:
    """Write values [samples, channels] that may be NaN."""
    many = values.shape[1]
    given: dict[str, Any] = {"units": ["mV"] * many, "sig_name": [f"c{n}" for n in range(many)], **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load_wfdb().wrsamp(
            name, 100, p_signal=values, fmt=[form] * many, adc_gain=[50.0] * many, baseline=[3] * many,
            write_dir=str(folder), **given,
        )  # fmt: skip
    return folder / f"{name}.hea"


def _same_as_package(path: Path) -> None:
    names, units = leads_of(path)
    found, package = read_in_units(path, range(len(names))), _package(path)
    assert (list(names), list(units), found.rate) == (package.sig_name, package.units, package.fs)
    np.testing.assert_array_equal(found.values, package.p_signal.T)


@pytest.mark.parametrize("form", WRITTEN)
@pytest.mark.parametrize("channels", [1, 2])
def test_missing_samples_are_nan(form: str, channels: int, tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(-60, 60, (300, channels)) / 50
    values[100:150, -1] = np.nan
    path = _write(tmp_path, form, values)
    _same_as_package(path)
    assert np.isnan(read_in_units(path, [channels - 1]).values).sum() == 50
    assert summarize(path.read_text()) == (("r.dat",), channels, (), BITS.get(form, 16) <= 16, ("", ""))


@pytest.mark.parametrize("form", ["61", "160", "310", "311", "8"])
def test_formats_that_the_package_only_reads(form: str, tmp_path: Path) -> None:
    content = np.random.default_rng(1).integers(0, 256, 238, np.uint8).tobytes()
    (tmp_path / "r.dat").write_bytes(b"\xc0\xc0" + content)  # two differences of -64 lead to -128, which is a sample
    samples = int(240 / {"61": 2, "160": 2, "310": 4 / 3, "311": 4 / 3, "8": 1}[form])
    (tmp_path / "r.hea").write_text(f"r 1 100 {samples}\nr.dat {form} 50(3)/mV\n")
    expected = _package(tmp_path / "r.hea")
    assert summarize((tmp_path / "r.hea").read_text()).narrow == (form != "8"), "8 holds differences"
    low = -(2 ** (BITS.get(form, 16) - 1))
    found = read_in_units(tmp_path / "r.hea", [0]).values
    stored = _package(tmp_path / "r.hea", physical=False).d_signal[:, 0]
    np.testing.assert_array_equal(found[0], np.where((stored == low) & (form != "8"), np.nan, (stored - 3) / 50))
    np.testing.assert_array_equal(found, expected.p_signal.T)
    (tmp_path / "r.hea").write_text(f"r 1 100\nr.dat {form} 50(3)/mV\n")
    np.testing.assert_array_equal(read_in_units(tmp_path / "r.hea", [0]).values, found)


@pytest.mark.parametrize("gain", ["0", "0(3)/mV", "-20(3)/mV", "", "200(-7)/uV", "+200/mV"])
def test_gains(gain: str, tmp_path: Path) -> None:
    np.arange(-50, 50, dtype="<i2").tofile(tmp_path / "r.dat")
    (tmp_path / "r.hea").write_text(f"r 1 100 100\nr.dat 16 {gain}\n")
    found, package = read_in_units(tmp_path / "r.hea", [0]), _package(tmp_path / "r.hea")
    np.testing.assert_array_equal(found.values, package.p_signal.T)
    assert bool(found.notes) == (gain in ("0", "0(3)/mV", ""))
    (tmp_path / "r.hea").write_text("# c\nr 1\nr.dat 16 200\n", "utf-8-sig")
    assert read_in_units(tmp_path / "r.hea", [0]).notes == (
        "no sampling rate in the header: 250 Hz, as WFDB assumes",
        "no unit in the header: mV, as WFDB defines it",
    )


@pytest.mark.parametrize("form", ["16", "212", "24"])
def test_each_channel_keeps_its_samples_or_is_resampled_by_a_filter(form: str, tmp_path: Path) -> None:
    """A sine below half the lowest rate stays a sine; a channel of the highest rate is as it was stored."""
    seconds, per_frame, rate = 20, (1, 4, 16), 25
    sines = [np.sin(2 * np.pi * 3 * np.arange(seconds * rate * each) / (rate * each)) for each in per_frame]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load_wfdb().wrsamp(
            "r", rate, ["mV"] * 3, ["a", "b", "c"], e_d_signal=[np.rint(500 * each).astype(int) for each in sines],
            fmt=[form] * 3, adc_gain=[500.0] * 3, baseline=[0] * 3, samps_per_frame=list(per_frame),
            write_dir=str(tmp_path),
        )  # fmt: skip
    assert not summarize((tmp_path / "r.hea").read_text()).narrow
    found = read_in_units(tmp_path / "r.hea", [0, 1, 2])
    assert (found.rate, found.per_frame, found.values.shape) == (400, 16, (3, seconds * 400))
    np.testing.assert_array_equal(found.values[2], np.rint(500 * sines[2]) / 500)
    np.testing.assert_allclose(found.values[:2, 400:-400], np.tile(sines[2][400:-400], (2, 1)), atol=0.01)
    assert [note.split(" is ")[0] for note in found.notes] == ["channel a", "channel b"]
    alone = read_in_units(tmp_path / "r.hea", [1])
    assert (alone.rate, alone.notes) == (100, ())
    np.testing.assert_array_equal(alone.values[0], np.rint(500 * sines[1]) / 500)


def test_segments_of_a_fixed_layout(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(-60, 60, (300, 2)) / 50
    _write(tmp_path, "16", values[:200], "one")
    _write(tmp_path, "212", values[200:], "two")
    (tmp_path / "r.hea").write_text("r/3 2 100 350\none 200\n~ 50\ntwo 100\n")
    segments = (("one", "200"), ("~", "50"), ("two", "100"))
    assert summarize((tmp_path / "r.hea").read_text()) == ((), 2, segments, False, ("3", "350"))
    assert summarize("# a comment\n\nr 2 100\n\na.dat 16\n# another\nb.dat what\n")[:3] == (("a.dat", "b.dat"), 2, ())
    expected = np.concatenate([values[:200], np.full((50, 2), np.nan), values[200:]])
    np.testing.assert_array_equal(read_in_units(tmp_path / "r.hea", [0, 1]).values, expected.T)
    (tmp_path / "r.hea").write_text("r/2 2 100 300\none 200\ntwo 100\n")
    _same_as_package(tmp_path / "r.hea")
    for cut in ("r/2 2 100 300\none 200\n", "r/2 2 100\none 200\n", "r/2 2 100 350\none 200\ntwo 100\n"):
        (tmp_path / "r.hea").write_text(cut)
        with pytest.raises(
            UsageError, match=r"r\.hea: promises 2 segments of (\d+)? samples where it lists [12] of [23]00"
        ):
            read_in_units(tmp_path / "r.hea", [0])
    (tmp_path / "r.hea").write_text("r/2 2 100 300\none 200\ntwo 90\n")
    with pytest.raises(UsageError, match=r"two\.hea: has another length, rate or unit than r\.hea promises"):
        read_in_units(tmp_path / "r.hea", [0])


def test_a_segment_without_the_fast_channel_is_resampled_to_its_rate(tmp_path: Path) -> None:
    stream = np.random.default_rng(0)
    fast, slow = stream.integers(-100, 100, (50, 4)), stream.integers(-100, 100, 30)
    fast.astype("<i2").tofile(tmp_path / "one.dat")
    slow.astype("<i2").tofile(tmp_path / "two.dat")
    (tmp_path / "one.hea").write_text("one 1 100 50\none.dat 16x4 100/mV 16 0 0 0 0 ECG\n")
    (tmp_path / "two.hea").write_text("two 1 100 30\ntwo.dat 16 10/mV 16 0 0 0 0 Resp\n")
    layout = "layout 2 100 0\n~ 0x4 100/mV 16 0 0 0 0 ECG\n~ 0 10/mV 16 0 0 0 0 Resp\n"
    (tmp_path / "layout.hea").write_text(layout)
    (tmp_path / "r.hea").write_text("r/3 2 100 80\nlayout 0\none 50\ntwo 30\n")
    found = read_in_units(tmp_path / "r.hea", [0, 1])
    assert (found.rate, found.per_frame) == (400, 4)
    assert found.notes == ("channel Resp is resampled from 100 to 400 Hz, the highest rate of the record",)
    expected = np.full((2, 320), np.nan)
    expected[0, :200] = fast.ravel() / 100
    expected[1, 200:] = at_rate(slow / 10, 1, 4)
    np.testing.assert_allclose(found.values, expected)
    alone = read_in_units(tmp_path / "r.hea", [1])
    assert (alone.rate, alone.values.shape, alone.notes) == (100, (1, 80), ())
