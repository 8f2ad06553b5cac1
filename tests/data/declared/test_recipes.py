"""The recipes of docs/own_data.md for other formats read files of these formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.experiment.spaces.selection import load_plugins
from tests.data.declared_files import forget, waves

DOCUMENT = (Path(__file__).parents[3] / "docs" / "own_data.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^### (\w+) files\n\n```python\n(.*?)```", DOCUMENT, re.MULTILINE | re.DOTALL))
X = np.round(waves(12, 2, 6000), 2).astype(float)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    forget()
    yield
    forget()


def _mat(root: Path) -> None:
    (root / "mat").mkdir()
    for number, signal in enumerate(X):
        file = {"val": np.rint(1000 * signal), "rhythm": ("N", "AF")[number % 2], "patient": number // 2}
        savemat(root / "mat" / f"m{number:02}.mat", file)


def _edf(root: Path) -> None:
    pyedflib = pytest.importorskip("pyedflib", reason="the recipe for EDF files needs pyedflib")
    (root / "edf").mkdir()
    lines = ["file,diagnosis,person"]
    for number, signal in enumerate(X):
        with pyedflib.EdfWriter(str(root / "edf" / f"e{number:02}.edf"), 3) as file:
            for place, label in enumerate(("EOG", "Resp", "EEG")):
                header: dict[str, Any] = {"label": label, "dimension": "uV", "sample_frequency": 100}
                ends = {"physical_min": -10, "physical_max": 10, "digital_min": -10000, "digital_max": 10000}
                file.setSignalHeader(place, {**header, **ends, "transducer": "", "prefilter": ""})
            file.writeSamples([signal[1], 0 * signal[0], signal[0]])
        lines.append(f"e{number:02}.edf,{('N', 'OSA')[number % 2]},{number // 2}")
    (root / "edf" / "labels.csv").write_text("\n".join(lines))


def _hdf5(root: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="the recipe for HDF5 files needs h5py")
    with h5py.File(root / "ecg.hdf5", "w") as file:
        file["tracings"] = X.swapaxes(1, 2)
        file["exam_id"], file["patient_id"] = np.arange(12) + 100, np.arange(12) // 2
        file["code"] = [(426783006, 164889003)[number % 2] for number in range(12)]


WRITERS: dict[str, Callable[[Path], None]] = {"MAT": _mat, "EDF": _edf, "HDF5": _hdf5}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_recipe_reads_what_was_written(kind: str, tmp_path: Path) -> None:
    assert set(RECIPES) == set(WRITERS)
    WRITERS[kind](tmp_path)
    (tmp_path / "space.py").write_text(RECIPES[kind])
    load_plugins(tmp_path / "space.py")
    prepare(kind.lower(), prepared_root=tmp_path / "prepared", data_root=tmp_path)
    frames = open_frames(kind.lower(), prepared_root=tmp_path / "prepared", leads="all")
    expected = X.reshape(12, 2, 2, 3000).swapaxes(1, 2).reshape(24, 2, 3000) if kind == "EDF" else X
    np.testing.assert_allclose(frames.signal(slice(None)), expected, atol=2e-3)
    assert frames.labels.tolist() == np.repeat([0, 1] * 6, len(expected) // 12).tolist()
    assert frames.patient_names == tuple("012345")


@pytest.mark.parametrize("kind", WRITERS)
def test_a_recipe_has_at_most_twenty_lines(kind: str) -> None:
    assert len([line for line in RECIPES[kind].splitlines() if line.strip()]) <= 20
