"""Every reader returns the start of a recording that another library or a writer after the specification wrote."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import edfio
import h5py
import mne
import numpy as np
import pandas as pd
import pyedflib
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy.io import savemat

from clops_sweep import Recording, Recordings, from_ecg, from_edf, from_mat, from_mne, from_npz
from clops_sweep.data.declared.formats.read_files import ReadFile
from clops_sweep.data.declared.portions import Portion
from clops_sweep.errors import UsageError
from tests.data.ecg_writers import dicom_group, write_aecg, write_dicom, write_muse, write_scp

RATE = 100
SECONDS = 20
SIGNAL = np.random.default_rng(0).integers(-300, 300, SECONDS * RATE)
MICROSECOND = timedelta(microseconds=1)
Read = Callable[[Path], Recording]


@dataclass(frozen=True)
class Begin:
    """When a recording starts.

    Attributes:
        local: date and time of day by the clock of the recorder.
        zone: its difference to UTC.
        later: seconds after `local` at which the signal that is kept begins, where a format has that.
        in_dataset: whether a DICOM file gives the zone once, for all its dates.
    """

    local: datetime
    zone: timezone
    later: int
    in_dataset: bool

    def at(self, zoned: bool, seconds: float = 0.0, unit: timedelta = MICROSECOND) -> datetime:
        """Return a moment after the start, in whole units, with or without the zone."""
        whole = self.local - (self.local - datetime.min) % unit
        moment = whole + timedelta(seconds=seconds)
        return moment.replace(tzinfo=self.zone) if zoned else moment


@st.composite
def begins(draw: st.DrawFn) -> Begin:
    """Draw a start between 1986 and 2080, also just before midnight, in any zone of whole quarters of an hour."""
    local = draw(st.datetimes(datetime(1986, 1, 1), datetime(2037, 12, 31)))
    if draw(st.booleans()):
        local = local.replace(hour=23, minute=59, second=draw(st.integers(45, 59)))
    zone = timezone(timedelta(minutes=15 * draw(st.integers(-48, 56))))
    return Begin(local, zone, draw(st.integers(0, 5)), draw(st.booleans()))


def _edf(path: Path, begin: Begin) -> None:
    at = begin.at(False)
    edfio.Edf(
        [edfio.EdfSignal(SIGNAL, RATE, label="I", physical_dimension="uV", physical_range=(-400, 400))],
        recording=edfio.Recording(startdate=at.date()),
        starttime=at.time(),
        annotations=[],
    ).write(path)


def edf(folder: Path, begin: Begin) -> tuple[Path, Read, datetime]:
    _edf(folder / "r.edf", begin)
    return folder / "r.edf", from_edf, begin.at(False)


def bdf(folder: Path, begin: Begin) -> tuple[Path, Read, datetime]:
    at = begin.at(False, unit=timedelta(seconds=1))  # pyedflib writes ten times the fraction
    with pyedflib.EdfWriter(str(folder / "r.bdf"), 1, pyedflib.FILETYPE_BDFPLUS) as file:
        file.setStartdatetime(at)
        file.setSignalHeader(0, {
            "label": "I", "dimension": "uV", "sample_frequency": RATE, "physical_min": -400, "physical_max": 400,
            "digital_min": -(2**23), "digital_max": 2**23 - 1, "transducer": "", "prefilter": "",
        })  # fmt: skip
        file.writeSamples([SIGNAL.astype(float)])
    return folder / "r.bdf", from_edf, at


def _stamp(at: datetime, digits: int = 6) -> str:
    return f"{at:%Y%m%d%H%M%S}.{f'{at.microsecond:06}'[:digits]}{at:%z}"


def aecg(folder: Path, begin: Begin, zoned: bool) -> tuple[Path, Read, datetime]:
    at = begin.at(zoned, unit=timedelta(milliseconds=1))
    leads = [("I", SIGNAL)], [("II", SIGNAL[RATE:])]
    second = at + timedelta(seconds=1)
    sets = [(_stamp(second, 3), leads[1]), (_stamp(at, 3), leads[0])]
    write_aecg(folder / "r.xml", [sets], str(1 / RATE))
    return folder / "r.xml", from_ecg, at


def dicom(folder: Path, begin: Begin, zoned: bool) -> tuple[Path, Read, datetime]:
    at = begin.at(zoned)
    apart = zoned and begin.in_dataset
    acquired = _stamp(at.replace(tzinfo=None) if apart else at)
    group = dicom_group([("I", SIGNAL)], str(RATE), offset=f"{1000 * begin.later}")
    write_dicom(folder / "r.dcm", [group], acquired, f"{at:%z}" if apart else "")
    return folder / "r.dcm", from_ecg, at + timedelta(seconds=begin.later)


def muse(folder: Path, begin: Begin) -> tuple[Path, Read, datetime]:
    at = begin.at(False, unit=timedelta(seconds=1))
    write_muse(folder / "r.xml", [("Rhythm", [("I", SIGNAL)])], (str(RATE), "0"), begin=at)
    return folder / "r.xml", from_ecg, at


def scp(folder: Path, begin: Begin, zoned: bool) -> tuple[Path, Read, datetime]:
    at = begin.at(zoned, unit=timedelta(seconds=1))
    first = begin.later * RATE
    write_scp(folder / "r.scp", [(1, 1 + first, SIGNAL), (2, 1 + first, SIGNAL)], 10**6 // RATE, begin=at)
    return folder / "r.scp", from_ecg, at + timedelta(seconds=begin.later)


def kardia(folder: Path, begin: Begin) -> tuple[Path, Read, datetime]:
    at = begin.at(True)
    raw = {"frequency": RATE, "amplitudeResolution": 500, "numLeads": 1, "samples": {"leadI": SIGNAL.tolist()}}
    (folder / "r.json").write_text(json.dumps({"id": "x", "recordedAt": at.isoformat(), "data": {"raw": raw}}))
    return folder / "r.json", from_ecg, at


def _raw(begin: Begin) -> Any:
    later = np.zeros(begin.later * RATE)
    raw = mne.io.RawArray(np.r_[later, SIGNAL][None] * 1e-6, mne.create_info(["I"], RATE, "eeg"), verbose="error")
    raw.set_meas_date(begin.at(True).astimezone(UTC))
    return raw.crop(begin.later)


def fif(folder: Path, begin: Begin) -> tuple[Path, Read, datetime]:
    _raw(begin).save(folder / "r_raw.fif", verbose="error")
    return folder / "r_raw.fif", from_mne, begin.at(True, begin.later)


def raw_of_mne(folder: Path, begin: Begin) -> tuple[Path, Read, datetime]:
    (folder / "r.raw").touch()
    return folder / "r.raw", lambda path: from_mne(_raw(begin)), begin.at(True, begin.later)


def edf_by_mne(folder: Path, begin: Begin) -> tuple[Path, Read, datetime]:
    _edf(folder / "r.edf", begin)
    return folder / "r.edf", from_mne, begin.at(False)


def raw_of_edf(folder: Path, begin: Begin) -> tuple[Path, Read, datetime]:
    _edf(folder / "r.edf", begin)

    def read(path: Path) -> Recording:
        return from_mne(mne.io.read_raw_edf(path, verbose="error").crop(begin.later / 10))

    return folder / "r.edf", read, begin.at(False, begin.later / 10)


def brainvision(folder: Path, begin: Begin) -> tuple[Path, Read, datetime]:
    SIGNAL.astype("<i2").tofile(folder / "r.eeg")
    (folder / "r.vhdr").write_text(
        "Brain Vision Data Exchange Header File Version 1.0\n[Common Infos]\nCodepage=UTF-8\nDataFile=r.eeg\n"
        "MarkerFile=r.vmrk\nDataFormat=BINARY\nDataOrientation=MULTIPLEXED\nNumberOfChannels=1\n"
        f"SamplingInterval={10**6 // RATE}\n[Binary Infos]\nBinaryFormat=INT_16\n[Channel Infos]\nCh1=I,,1,µV\n",
        encoding="utf-8",
    )
    at = begin.at(False)
    (folder / "r.vmrk").write_text(
        "Brain Vision Data Exchange Marker File, Version 1.0\n[Common Infos]\nCodepage=UTF-8\nDataFile=r.eeg\n"
        f"[Marker Infos]\nMk1=New Segment,,1,1,0,{at:%Y%m%d%H%M%S%f}\n",
        encoding="utf-8",
    )
    return folder / "r.vhdr", from_mne, at


def gdf(folder: Path, begin: Begin) -> tuple[Path, Read, datetime]:
    """GDF 2.20; its dates are days in steps of 2**-32, or 20 us."""
    head = bytearray(256)
    head[:8] = b"GDF 2.20"
    at = begin.at(False)
    days = (at - datetime(1, 1, 1)) / timedelta(days=1) + 367
    head[168:176] = np.uint64(round(days * 2**32)).tobytes()
    head[184:186] = np.uint16(2).tobytes()
    head[236:244] = np.int64(SECONDS).tobytes()
    head[244:252] = np.array([1, 1], "<u4").tobytes()
    head[252:254] = np.uint16(1).tobytes()
    limits = np.array([-1000.0, 1000.0, -1000.0, 1000.0]).tobytes()
    fields = [b"I".ljust(16, b"\0"), bytes(86), np.uint16(4275).tobytes(), limits, bytes(80)]
    fields += [np.uint32(RATE).tobytes(), np.uint32(16).tobytes(), bytes(32)]
    (folder / "r.gdf").write_bytes(bytes(head) + b"".join(fields) + SIGNAL.astype("<f4").tobytes())
    return folder / "r.gdf", from_mne, at


def timestamps(folder: Path, begin: Begin, zoned: bool) -> tuple[Path, Read, datetime]:
    """Arrays with a date for each sample."""
    at = begin.at(zoned)
    times = pd.date_range(at, periods=len(SIGNAL), freq=timedelta(seconds=1 / RATE))
    np.save(folder / "r.npy", SIGNAL)

    def read(path: Path) -> Recording:
        return Recording(np.load(path), channels=("I",), units="uV", sampling_rate=RATE, timestamps=times)

    return folder / "r.npy", read, at


def _with(write: Any, zoned: bool) -> Any:
    def writes(folder: Path, begin: Begin) -> tuple[Path, Read, datetime]:
        found: tuple[Path, Read, datetime] = write(folder, begin, zoned)
        return found

    return pytest.param(writes, id=f"{write.__name__}{'-zoned' if zoned else ''}")


WITH_START = [
    edf, bdf, muse, kardia, fif, raw_of_mne, edf_by_mne, raw_of_edf, brainvision, gdf,
    *(_with(write, zoned) for write in (aecg, dicom, scp, timestamps) for zoned in (False, True)),
]  # fmt: skip


def _intervals(folder: Path, path: Path, read: Read | None, dates: list[datetime], **more: Any) -> Any:
    """Return the intervals of a recording, in samples: one that a table gives by dates, of class b."""
    first, last = (date.isoformat(" ") for date in dates)
    names = [path.name]
    for number in range(2):
        names.append(f"{number}{path.name}")
        shutil.copy(path, path.with_name(names[-1]))
    rows = [{"file": name, "from": first, "to": last, "kind": "b", **more} for name in names]
    given: dict[str, Any] = {"read": read} if read is not None else {"sampling_rate": RATE, "units": "uV"}
    found = Recordings.from_folder(
        folder, f"*{path.suffix}", table=pd.DataFrame(rows), name="file", label="kind", classes=("a", "b"),
        start="from", end="to", window_seconds=1, **given, **{name: name for name in more},
    )  # fmt: skip
    source = next(iter(found.sources()))
    if isinstance(source, ReadFile):
        ((source,), _) = source.recordings(found.common)
    assert isinstance(source, Portion)
    assert source.intervals is not None
    stretches, _ = source.intervals.stretches(RATE, len(SIGNAL))
    return [tuple(stretch) for stretch in stretches]


@pytest.mark.parametrize("write", WITH_START)
@given(begin=begins(), after=st.floats(0, SECONDS - 2), zone_of_table=st.integers(-12, 12))
@settings(max_examples=4, deadline=None, derandomize=True, phases=[Phase.generate])
def test_readers_agree_on_the_start(
    write: Callable[[Path, Begin], tuple[Path, Read, datetime]], begin: Begin, after: float, zone_of_table: int
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        path, read, expected = write(folder, begin)
        start = read(path).start
        if start is not None:  # timestamps give the others
            assert (start.tzinfo is None) == (expected.tzinfo is None)
            assert abs(start - expected) <= 20 * MICROSECOND
        dates = [expected + timedelta(seconds=round(after, 2) + late) for late in (0, 1)]
        if expected.tzinfo is not None:
            dates = [each.astimezone(timezone(timedelta(hours=zone_of_table))) for each in dates]
        at = round(round(after, 2) * RATE)
        assert _intervals(folder, path, read, dates) == [(at, at + RATE, 1)]
        other = [each.replace(tzinfo=UTC if each.tzinfo is None else None) for each in dates]
        with pytest.raises(UsageError, match=r"time zone.*expected both alike"):
            _intervals(folder, path, read, other)


def npy(folder: Path) -> tuple[Path, Read | None]:
    np.save(folder / "r.npy", SIGNAL)
    return folder / "r.npy", None


def csv(folder: Path) -> tuple[Path, Read | None]:
    pd.DataFrame({"I": SIGNAL}).to_csv(folder / "r.csv", index=False)
    return folder / "r.csv", None


def parquet(folder: Path) -> tuple[Path, Read | None]:
    pd.DataFrame({"I": SIGNAL}).to_parquet(folder / "r.parquet")
    return folder / "r.parquet", None


FACTS: dict[str, Any] = {"channels": ("I",), "units": "uV", "sampling_rate": RATE}


def mat(folder: Path) -> tuple[Path, Read | None]:
    savemat(folder / "r.mat", {"x": SIGNAL})
    return folder / "r.mat", lambda path: Recording(np.ravel(from_mat(path, "x").signal), **FACTS)


def npz(folder: Path) -> tuple[Path, Read | None]:
    np.savez(folder / "r.npz", x=SIGNAL)
    return folder / "r.npz", lambda path: Recording(from_npz(path, "x").signal, **FACTS)


def hdf5(folder: Path) -> tuple[Path, Read | None]:
    with h5py.File(folder / "r.h5", "w") as file:
        file["x"] = SIGNAL

    def read(path: Path) -> Recording:
        with h5py.File(path) as file:
            return Recording(file["x"][:], **FACTS)

    return folder / "r.h5", read


def anonymous_edf(folder: Path) -> tuple[Path, Read | None]:
    signal = edfio.EdfSignal(SIGNAL, RATE, label="I", physical_dimension="uV", physical_range=(-400, 400))
    file = edfio.Edf([signal], recording=edfio.Recording(startdate=date(2020, 1, 1)))
    file.anonymize()
    file.write(folder / "r.edf")
    return folder / "r.edf", from_edf


def anonymous_edf_by_mne(folder: Path) -> tuple[Path, Read | None]:
    path, _ = anonymous_edf(folder)
    return path, from_mne


def undated_dicom(folder: Path) -> tuple[Path, Read | None]:
    write_dicom(folder / "r.dcm", [dicom_group([("I", SIGNAL)], str(RATE))])
    return folder / "r.dcm", from_ecg


WITHOUT_START = [npy, csv, parquet, mat, npz, hdf5, anonymous_edf, anonymous_edf_by_mne, undated_dicom]


@pytest.mark.parametrize("write", WITHOUT_START)
@given(begin=begins(), zoned=st.booleans(), after=st.floats(0, SECONDS - 2))
@settings(max_examples=4, deadline=None, derandomize=True, phases=[Phase.generate])
def test_a_table_gives_the_start_that_a_file_has_not(
    write: Callable[[Path], tuple[Path, Read | None]], begin: Begin, zoned: bool, after: float
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        path, read = write(folder)
        start = begin.at(zoned)
        dates = [start + timedelta(seconds=round(after, 2) + late) for late in (0, 1)]
        at = round(round(after, 2) * RATE)
        assert _intervals(folder, path, read, dates, time=start.isoformat(" ")) == [(at, at + RATE, 1)]
        with pytest.raises(UsageError, match=r"start:? is a date.*give time, the column with"):
            _intervals(folder, path, read, dates)
        with pytest.raises(UsageError, match=r"time zone.*expected both alike"):
            _intervals(folder, path, read, dates, time=begin.at(not zoned).isoformat(" "))
