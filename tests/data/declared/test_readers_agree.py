"""Every reader returns what another library wrote: random rates, units, gaps, and orders of channels.

`test_start_times` does the same for start times.
"""

from __future__ import annotations

import copy
import shutil
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import edfio
import h5py
import mne
import numpy as np
import pandas as pd
import pydicom
import pyedflib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom.data import get_testdata_file
from scipy.io import savemat

from clops_sweep import Recording, Recordings, from_ecg, from_edf, from_mat, from_mne, from_npz
from clops_sweep.data.declared.formats.read_files import ReadFile
from clops_sweep.data.declared.portions import Portion
from clops_sweep.data.files.wfdb_records import load_wfdb

MICROVOLTS = {"uV": 1.0, "mV": 1000.0}
LEADS = ("I", "II", "III", "aVR")
TABLE = pd.DataFrame({"file": ["r", "s", "t"], "kind": ["a", "b", "a"]})


@dataclass(frozen=True)
class Case:
    """One recording.

    Attributes:
        signals: samples of each channel in its unit; NaN if missing.
        rates: sampling rate of each channel in Hz.
        units: unit of each channel.
        wanted: the channels to read, in another order.
    """

    signals: list[np.ndarray[Any, Any]]
    rates: list[int]
    units: list[str]
    wanted: list[str]

    @property
    def names(self) -> list[str]:
        """Names of all channels."""
        return list(LEADS[: len(self.signals)])

    @property
    def places(self) -> list[int]:
        """Positions of the wanted channels."""
        return [self.names.index(name) for name in self.wanted]


@st.composite
def cases(draw: st.DrawFn, one_rate: bool = False, one_unit: bool = False, gaps: bool = True) -> Case:
    """Draw a recording of whole steps of 1/8, which float32 and integers of 16 bits hold."""
    count = draw(st.integers(1, 4))
    seconds = draw(st.integers(2, 6))
    fastest = draw(st.sampled_from([40, 120, 240]))
    divisors = [1 if one_rate else draw(st.sampled_from([1, 2, 4, 8])) for _ in range(count)]
    rates = [fastest // divisor for divisor in divisors]
    same = draw(st.sampled_from(sorted(MICROVOLTS)))
    units = [same if one_unit else draw(st.sampled_from(sorted(MICROVOLTS))) for _ in range(count)]
    stream = np.random.default_rng(draw(st.integers(0, 2**32)))
    signals = [stream.integers(-2000, 2000, seconds * rate) / 8 for rate in rates]
    if gaps and draw(st.booleans()):
        channel = draw(st.integers(0, count - 1))
        begin = draw(st.integers(1, len(signals[channel]) - 3))
        signals[channel][begin : begin + draw(st.integers(1, 9))] = np.nan
        signals[channel][-1] = 1.0
    names = draw(st.permutations(LEADS[:count]))
    return Case(signals, rates, units, names[: draw(st.integers(1, count))])


def _read(found: Recordings) -> tuple[np.ndarray[Any, Any], float]:
    """Return the samples of the only recording in its units, NaN if missing, and their rate."""
    source = next(iter(found.sources()))
    if isinstance(source, ReadFile):
        ((source,), _) = source.recordings(found.common)
    assert isinstance(source, Portion)
    signal = source.signal()
    values = signal.gain[:, None] * signal.stored[0].astype(np.float64) + signal.offset[:, None]
    if signal.missing is not None:
        values[signal.missing[0]] = np.nan
    return values, signal.rate


def _agree(case: Case, found: Recordings) -> None:
    """Compare each channel at its own instants, where a filter for whole ratios of rates changes nothing."""
    values, rate = _read(found)
    rates = [case.rates[place] for place in case.places]
    assert list(found.common.channels) == case.wanted
    assert rate == max(rates)
    assert values.shape == (len(rates), len(case.signals[0]) // case.rates[0] * max(rates))
    shown = found.common.units.split(", ")
    for channel, place in enumerate(case.places):
        unit = shown[channel] if len(shown) == len(case.places) else shown[0]
        expected = case.signals[place] * MICROVOLTS[case.units[place]] / MICROVOLTS[unit]
        step = max(rates) // case.rates[place]
        np.testing.assert_allclose(values[channel][::step], expected, rtol=1e-5, atol=1e-4)
        lost = np.isnan(values[channel]).reshape(-1, step)
        np.testing.assert_array_equal(lost, np.isnan(expected)[:, None].repeat(step, 1))


def _files(folder: Path, case: Case, pattern: str, read: Callable[[Path], Recording], **more: Any) -> Recordings:
    return Recordings.from_folder(
        folder, pattern, read=lambda path: replace(read(path), label="a"), classes=("a", "b"), channels=case.wanted,
        units="uV", **more,
    )  # fmt: skip


def _table(folder: Path, case: Case, pattern: str, channels: Sequence[Any] | None = None) -> Recordings:
    return Recordings.from_folder(
        folder, pattern, table=TABLE, name="file", label="kind", classes=("a", "b"), units=case.units[0],
        sampling_rate=case.rates[0], channels=case.wanted if channels is None else channels,
    )  # fmt: skip


def edf(folder: Path, case: Case) -> Recordings:
    signals = [
        edfio.EdfSignal(signal, rate, label=name, physical_dimension=unit, physical_range=(-4096, 4095.875))
        for signal, rate, name, unit in zip(case.signals, case.rates, case.names, case.units, strict=True)
    ]
    edfio.Edf(signals).write(folder / "r.edf")
    return _files(folder, case, "*.edf", from_edf)


def bdf(folder: Path, case: Case) -> Recordings:
    with pyedflib.EdfWriter(str(folder / "r.bdf"), len(case.signals), pyedflib.FILETYPE_BDFPLUS) as file:
        for place, (name, rate, unit) in enumerate(zip(case.names, case.rates, case.units, strict=True)):
            file.setSignalHeader(place, {
                "label": name, "dimension": unit, "sample_frequency": rate, "physical_min": -(2**23),
                "physical_max": 2**23 - 1, "digital_min": -(2**23), "digital_max": 2**23 - 1, "transducer": "",
                "prefilter": "",
            })  # fmt: skip
        file.writeSamples(case.signals)
    return _files(folder, case, "*.bdf", from_edf)


def records(folder: Path, case: Case) -> Recordings:
    """WFDB; a missing sample is the least integer."""
    lowest = min(case.rates)
    stored = [np.where(np.isnan(signal), -32768, np.nan_to_num(signal) * 8).astype(int) for signal in case.signals]
    for name in ("r", "s", "t"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            load_wfdb().wrsamp(
                name, lowest, case.units, case.names, e_d_signal=stored, fmt=["16"] * len(stored),
                adc_gain=[8.0] * len(stored), baseline=[0] * len(stored), write_dir=str(folder),
                samps_per_frame=[rate // lowest for rate in case.rates],
            )  # fmt: skip
    return Recordings.from_wfdb(
        folder, table=TABLE, name="file", label="kind", classes=("a", "b"), channels=case.wanted
    )


def csv(folder: Path, case: Case) -> Recordings:
    pd.DataFrame(dict(zip(case.names, case.signals, strict=True))).to_csv(folder / "r.csv", index=False)
    shutil.copy(folder / "r.csv", folder / "s.csv")
    shutil.copy(folder / "r.csv", folder / "t.csv")
    return _table(folder, case, "*.csv")


def parquet(folder: Path, case: Case) -> Recordings:
    pd.DataFrame(dict(zip(case.names, case.signals, strict=True))).to_parquet(folder / "r.parquet")
    shutil.copy(folder / "r.parquet", folder / "s.parquet")
    shutil.copy(folder / "r.parquet", folder / "t.parquet")
    return _table(folder, case, "*.parquet")


def npy(folder: Path, case: Case) -> Recordings:
    np.save(folder / "r.npy", np.stack([case.signals[place] for place in case.places]))
    shutil.copy(folder / "r.npy", folder / "s.npy")
    shutil.copy(folder / "r.npy", folder / "t.npy")
    return _table(folder, case, "*.npy")


def arrays(folder: Path, case: Case) -> Recordings:
    signals = np.stack([case.signals[place] for place in case.places])[None].repeat(3, 0)
    return Recordings(
        signals, sampling_rate=case.rates[0], channels=case.wanted, units=case.units[0], labels=[0, 1, 0],
        classes=("a", "b"), patients=["r", "s", "t"], missing="drop_windows",
    )  # fmt: skip


def _raw(case: Case) -> Any:
    """Return the data of MNE, which are in volts."""
    volts = [1e-6 * MICROVOLTS[unit] * signal for signal, unit in zip(case.signals, case.units, strict=True)]
    return mne.io.RawArray(np.stack(volts), mne.create_info(case.names, case.rates[0], "eeg"), verbose="error")


def fif(folder: Path, case: Case) -> Recordings:
    _raw(case).save(folder / "r_raw.fif", fmt="double", verbose="error")
    return _files(folder, case, "*.fif", from_mne)


def raw_of_mne(folder: Path, case: Case) -> Recordings:
    (folder / "r.raw").touch()
    return _files(folder, case, "*.raw", lambda path: from_mne(_raw(case)))


def hdf5(folder: Path, case: Case) -> Recordings:
    with h5py.File(folder / "r.hdf5", "w") as file:
        file["x"] = np.stack([case.signals[place] for place in case.places])[None].repeat(3, 0).astype("f4")
        file["id"] = ["r", "s", "t"]
    return Recordings.from_hdf5(
        folder, signals="x", ids="id", table=TABLE, name="file", label="kind", classes=("a", "b"),
        channels=case.wanted, units=case.units[0], sampling_rate=case.rates[0],
    )  # fmt: skip


def mat(folder: Path, case: Case) -> Recordings:
    savemat(folder / "r.mat", {"ecg": {"data": np.stack(case.signals)}})
    facts = {"channels": case.names, "units": case.units[0], "sampling_rate": case.rates[0]}
    return _files(folder, case, "*.mat", lambda path: replace(from_mat(path, "ecg.data"), **facts))


def npz(folder: Path, case: Case) -> Recordings:
    """An array for each channel, of its own rate."""
    np.savez(folder / "r.npz", **dict(zip(case.names, case.signals, strict=True)))

    def read(path: Path) -> Recording:
        signals = [from_npz(path, name).signal for name in case.names]
        return Recording(signals, channels=case.names, units=case.units, sampling_rate=case.rates)

    return _files(folder, case, "*.npz", read)


def dicom(folder: Path, case: Case) -> Recordings:
    file = pydicom.dcmread(get_testdata_file("waveform_ecg.dcm"))
    (group, *_) = file.WaveformSequence
    definitions = []
    for unit, definition in zip(case.units, group.ChannelDefinitionSequence, strict=False):
        described = copy.deepcopy(definition)
        described.ChannelSensitivity = "0.125"
        described.ChannelBaseline = "0"
        described.ChannelSensitivityCorrectionFactor = "1"
        described.ChannelSensitivityUnitsSequence[0].CodeValue = unit
        definitions.append(described)
    group.ChannelDefinitionSequence = pydicom.sequence.Sequence(definitions)
    group.NumberOfWaveformChannels = len(case.signals)
    group.NumberOfWaveformSamples = len(case.signals[0])
    group.SamplingFrequency = str(case.rates[0])
    group.WaveformData = (8 * np.stack(case.signals, 1)).astype("<i2").tobytes()
    file.WaveformSequence = pydicom.sequence.Sequence([group])
    file.save_as(folder / "r.dcm")
    return _files(folder, case, "*.dcm", from_ecg)


def _check(write: Callable[[Path, Case], Recordings], case: Case) -> None:
    if write is bdf:  # of whole steps
        case = replace(case, signals=[np.floor(signal) for signal in case.signals])
    with TemporaryDirectory() as folder:
        _agree(case, write(Path(folder), case))


@pytest.mark.parametrize("write", [edf, bdf])
@given(case=cases(gaps=False))
@settings(max_examples=4, deadline=None, derandomize=True)
def test_channels_of_several_rates(write: Callable[[Path, Case], Recordings], case: Case) -> None:
    _check(write, case)


@pytest.mark.parametrize("write", [records, npz])
@given(case=cases())
@settings(max_examples=4, deadline=None, derandomize=True)
def test_channels_of_several_rates_with_gaps(write: Callable[[Path, Case], Recordings], case: Case) -> None:
    _check(write, case)


@pytest.mark.parametrize("write", [csv, parquet, npy, arrays, hdf5, mat])
@given(case=cases(one_rate=True, one_unit=True))
@settings(max_examples=4, deadline=None, derandomize=True)
def test_channels_of_one_rate_with_gaps(write: Callable[[Path, Case], Recordings], case: Case) -> None:
    _check(write, case)


@pytest.mark.parametrize("write", [fif, raw_of_mne])
@given(case=cases(one_rate=True))
@settings(max_examples=4, deadline=None, derandomize=True)
def test_channels_of_mne(write: Callable[[Path, Case], Recordings], case: Case) -> None:
    _check(write, case)


@given(case=cases(one_rate=True, gaps=False))
@settings(max_examples=4, deadline=None, derandomize=True)
def test_dicom_waveforms(case: Case) -> None:
    _check(dicom, case)
