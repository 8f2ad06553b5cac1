"""Files of one recording: HDF5 files that hold one, and files whose samples are in a second file."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.io import savemat

from clops_sweep import from_mat
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare

SPACE = """
@dataset("own", files=["h"])
def own(data_root):
    return Recordings.from_hdf5(
        data_root / "h", {pattern!r}, signals="ecg", table="table.csv", name="id", label="code", patient="person",
        channels={channels}, units="mV", sampling_rate=100, classes={{"1": "normal", "22": "slow"}},
        window_seconds=1{more})
"""


def _frames(root: Path, pattern: str = "*.h5", channels: str = "('a', 'b')", more: str = "") -> FrameSet:
    declare(root / "space.py", SPACE.format(pattern=pattern, channels=channels, more=more))
    prepare("own", prepared_root=root / "prepared", data_root=root, workers=1)
    return open_frames("own", prepared_root=root / "prepared", leads="all")


def _write(root: Path, layout: str, ending: str = "") -> list[np.ndarray]:
    """Write twelve files of one recording, of 2 to 4 s, with a table; return their samples [channels, samples]."""
    folder = root / "h"
    written = []
    lines = ["id,code,person"]
    for number in range(12):
        channels = 1 if layout == "flat" else 2
        samples = 200 + 100 * (number % 3)
        signal = np.random.default_rng(number).normal(size=(channels, samples)).astype(np.float16)
        place = folder / ("ab"[number % 2] if layout == "folders" else "") / f"A{number:05}.h5"
        place.parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(place, "w") as file:
            file["ecg"] = {"flat": signal[0], "samples first": signal.T}.get(layout, signal)
            file["id"] = np.array([f"x{number}"], "S") if layout == "ids" else 0
        name = f"x{number}" if layout == "ids" else f"A{number:05}{ending}"
        lines.append(f"{name},{(1, 22)[number % 2]},p{number}")
        written.append(signal)
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    return written


@pytest.mark.parametrize(
    ("layout", "pattern", "channels", "ending", "more"),
    [
        ("channels first", "*.h5", "('a', 'b')", "", ""),
        ("samples first", "*.h5", "('a', 'b')", ".h5", ""),
        ("folders", "**/*.h5", "('a', 'b')", "", ""),
        ("flat", "*.h5", "('a',)", "", ""),
        ("ids", "*.h5", "('a', 'b')", "", ", ids='id'"),
    ],
)
def test_hdf5_files_of_one_recording(
    layout: str, pattern: str, channels: str, ending: str, more: str, tmp_path: Path
) -> None:
    written = _write(tmp_path, layout, ending)
    frames = _frames(tmp_path, pattern, channels, more)
    numbers = range(12) if layout != "folders" else [*range(0, 12, 2), *range(1, 12, 2)]
    expected = [
        written[number][:, 100 * second : 100 * second + 100] for number in numbers for second in range(2 + number % 3)
    ]
    labels = [number % 2 for number in numbers for _ in range(2 + number % 3)]
    assert frames.labels.tolist() == labels
    found = frames.signal(slice(None))
    np.testing.assert_array_equal(found, np.float32(expected).reshape(found.shape))


def test_hdf5_files_that_are_not_of_one_recording(tmp_path: Path) -> None:
    _write(tmp_path, "channels first")
    with pytest.raises(
        UsageError, match=r"A00000\.h5: ecg has the shape \[2, 200\]; expected recordings of 3 channels"
    ):
        _frames(tmp_path, channels="('a', 'b', 'c')")
    with h5py.File(tmp_path / "h/A00000.h5", "a") as file:
        del file["id"]
        file["id"] = np.arange(2)
    with pytest.raises(UsageError, match=r"A00000\.h5: id has 2 names; expected one, as ecg is one recording"):
        _frames(tmp_path, more=", ids='id'")
    (tmp_path / "h/b").mkdir()
    (tmp_path / "h/A00000.h5").rename(tmp_path / "h/b/A00001.h5")
    with pytest.raises(UsageError, match="two files are named A00001"):
        _frames(tmp_path, "**/*.h5")


def test_a_file_of_eeglab_without_its_samples_names_what_reads_them(tmp_path: Path) -> None:
    savemat(tmp_path / "a.set", {"EEG": {"data": "a.fdt", "srate": 100.0, "nbchan": 2}}, appendmat=False)
    with pytest.raises(
        UsageError, match=r"a\.set: variable 'EEG\.data' names a\.fdt, the file of EEGLAB with the samples; r"
    ):
        from_mat(tmp_path / "a.set", "EEG.data", sampling_rate="EEG.srate")
