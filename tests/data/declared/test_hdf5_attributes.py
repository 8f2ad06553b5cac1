"""Attributes of an HDF5 dataset, as netCDF writes them, and WFDB files that hold more than their header counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from clops_sweep import Recordings
from clops_sweep.data.prepared.manifest import Manifest
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, forget, write_wfdb

SAMPLES = np.random.default_rng(0).integers(-2000, 2000, (8, 1, 40)).astype(np.int16)


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    forget()


def prepared(folder: Path, attributes: dict[str, Any], samples: np.ndarray = SAMPLES, more: str = "") -> Manifest:
    """Prepare eight recordings of a dataset with attributes, of 10 Hz in mV."""
    (folder / "data").mkdir()
    with h5py.File(folder / "data" / "a.h5", "w") as file:
        file.create_dataset("x", data=samples).attrs.update(attributes)
        file["id"] = [f"r{number}" for number in range(8)]
    declare(
        folder / "space.py",
        f"""
@dataset("own", files=["data"], one_recording_per_person=True)
def own(data_root):
    table = pd.DataFrame({{"id": [f"r{{n}}" for n in range(8)], "kind": ["a", "b"] * 4}})
    return Recordings.from_hdf5(
        data_root / "data", "*.h5", signals="x", ids="id", table=table, name="id", label="kind", classes=("a", "b"),
        channels=["x"], units="mV", sampling_rate=10, {more}
    )
""",
    )
    return prepare("own", prepared_root=folder / "prepared", data_root=folder, workers=1).manifest


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"scale_factor": 0.005}, r"a\.h5: x: says scale_factor = 0\.005; give gain=0\.005, the factor from samples"),
        ({"add_offset": 3.0}, r"a\.h5: x: says add_offset = 3; read it by from_folder"),
        ({"units": "uV"}, r"a\.h5: x: says that it is in uV, not in mV; give its unit, or the factor as gain"),
        ({"sampling_rate": 250}, r"a\.h5: x: says sampling_rate = 250; expected sampling_rate=250, not 10"),
        ({"fs": np.float32([12.5])}, r"a\.h5: x: says fs = 12\.5; expected sampling_rate=12\.5, not 10"),
    ],
)
def test_what_differs_from_the_declaration_is_refused(
    attributes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=sentence):
        prepared(tmp_path, attributes)


def test_what_agrees_is_read(tmp_path: Path) -> None:
    attributes = {"scale_factor": 0.005, "add_offset": 0.0, "units": "mV", "fs": 10, "long_name": "ECG", "gain": [1, 2]}
    assert prepared(tmp_path, attributes, more="gain=0.005").notes == ()
    frames = open_frames("own", prepared_root=tmp_path / "prepared")
    np.testing.assert_allclose(frames.signal(np.arange(8)), SAMPLES[:, 0] * 0.005, rtol=1e-6)


@pytest.mark.parametrize("kind", [np.int16, np.float32])
@pytest.mark.parametrize("name", ["_FillValue", "missing_value"])
def test_fill_values_are_missing_samples(name: str, kind: type, tmp_path: Path) -> None:
    samples = SAMPLES.astype(kind)
    samples[2, 0, 5] = -9999
    manifest = prepared(tmp_path, {name: kind(-9999)}, samples, 'missing="drop_windows"')
    assert manifest.dropped == {"missing samples": 1}
    assert manifest.frames == 7


def test_samples_beyond_those_that_a_wfdb_header_counts_are_noted(tmp_path: Path) -> None:
    stream = np.random.default_rng(0)
    for number in range(8):
        write_wfdb(tmp_path / "data", f"r{number}", stream.integers(-500, 500, (1, 300)), 10)
        header = tmp_path / "data" / f"r{number}.hea"
        lines = header.read_text().splitlines()
        lines[0] = f"r{number} 1 10 200" if number < 3 else lines[0]
        fields = lines[1].split()
        lines[1] = " ".join(fields[:5])  # without the checksum
        header.write_text("\n".join(lines) + "\n")
    declare(
        tmp_path / "space.py",
        """
@dataset("own", files=["data"], one_recording_per_person=True)
def own(data_root):
    table = pd.DataFrame({"id": [f"r{n}" for n in range(8)], "kind": ["a", "b"] * 4})
    return Recordings.from_wfdb(
        data_root / "data", table=table, name="id", label="kind", classes=("a", "b"), window_seconds=10
    )
""",
    )
    manifest = prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1).manifest
    assert manifest.frames == 3 * 2 + 5 * 3
    assert manifest.notes[0] == (
        "3 recordings: the signal file holds more samples than the header counts, which are not read"
    )


def test_a_dataset_that_is_not_read_is_refused_with_what_to_write(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file["x"] = np.zeros((4, 1, 100))
        with pytest.raises(UsageError, match=r"not <HDF5 dataset .*; read its values with \[:\]$"):
            Recordings(file["x"], 50, ["I"], "mV", labels=[0, 1] * 2, classes=["a", "b"], patients=range(4))
