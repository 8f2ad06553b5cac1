"""What the data tests share: data sets prepared once per session, and small WFDB records written by the tests."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepare import PreparedSet, open_frames, prepare
from clops_sweep.data.wfdb_records import load_wfdb


@pytest.fixture(scope="session")
def synthetic(prepared_root: Path) -> FrameSet:
    return open_frames("synthetic", prepared_root=prepared_root)


@pytest.fixture(scope="session")
def mitbih(data_root: Path, prepared_root: Path) -> PreparedSet:
    begin = time.perf_counter()
    prepared = prepare("mitbih", prepared_root=prepared_root, data_root=data_root)
    assert time.perf_counter() - begin < 60
    return prepared


@pytest.fixture(scope="session")
def mitbih_frames(mitbih: PreparedSet) -> FrameSet:
    return open_frames("mitbih", prepared_root=mitbih.folder.parent)


WriteRecord = Callable[..., None]


@pytest.fixture
def write_mitbih_record() -> WriteRecord:
    """Writes a WFDB record in the format of the MIT-BIH Arrhythmia Database: two leads, 360 Hz, 212, rhythm notes."""

    def write(
        folder: Path,
        name: str,
        rhythms: Sequence[tuple[str, float, str]],
        rate: float = 360,
        leads: Sequence[str] = ("MLII", "V1"),
        signal: NDArray[np.float64] | None = None,
    ) -> None:
        """`rhythms`: note, seconds and the beat symbol that occurs once a second."""
        wfdb = load_wfdb()
        folder.mkdir(parents=True, exist_ok=True)
        samples, symbols, notes, begin = [], [], [], 0
        for note, seconds, beat in rhythms:
            samples.append(begin + 1)
            symbols.append("+")
            notes.append(note + "\0")
            for second in range(int(seconds)):
                samples.append(begin + int((second + 0.5) * rate))
                symbols.append(beat)
                notes.append("")
            begin += int(seconds * rate)
        if signal is None:
            stream = np.random.default_rng(sum(map(ord, name)))
            signal = stream.normal(0, 0.3, (begin, len(leads)))
        with warnings.catch_warnings():  # wfdb uses what newer releases of pandas deprecate
            warnings.simplefilter("ignore")
            wfdb.wrsamp(
                name,
                fs=rate,
                units=["mV"] * len(leads),
                sig_name=list(leads),
                p_signal=signal,
                fmt=["212"] * len(leads),
                adc_gain=[200.0] * len(leads),
                baseline=[1024] * len(leads),
                write_dir=str(folder),
            )
            wfdb.wrann(name, "atr", np.array(samples), symbols, aux_note=notes, write_dir=str(folder), fs=rate)

    return write
