"""The walks of docs/own_data.md, from a folder of files of a format to a report."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import edfio
import h5py
import numpy as np
import pytest
from click.testing import CliRunner

from clops_sweep.cli.commands import command
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.experiment.spaces.selection import load_plugins
from tests.data.declared_files import forget, waves

DOCUMENT = (Path(__file__).parents[3] / "docs" / "own_data.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)```", DOCUMENT, re.MULTILINE | re.DOTALL)
X = np.round(waves(12, 2, 6000), 2).astype(float)
STAGES = ("Sleep stage W", "Sleep stage 2", "Sleep stage 3", "Sleep stage R")


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    forget()
    yield
    forget()


def _recipe(word: str) -> str:
    (found,) = (block for block in BLOCKS if word in block)
    assert len([line for line in found.splitlines() if line.strip()]) <= 20
    return found


def _sleep(root: Path) -> None:
    """Write nights as Sleep-EDF has them: 12 epochs of four stages, and an unscored rest."""
    folder = root / "sleep-cassette"
    folder.mkdir()
    stream = np.random.default_rng(0)
    for person in range(6):
        time = np.arange(13 * 3000) / 100
        eeg = 40 * np.sin(2 * np.pi * (1 + 3 * (time // 90)) * time) + 5 * stream.standard_normal(len(time))
        signals = [(eeg, 100, "EEG Fpz-Cz", "uV"), (np.arange(13 * 30) % 7, 1, "Temp rectal", "DegC")]
        edfio.Edf([
            edfio.EdfSignal(signal, rate, label=label, physical_dimension=unit, physical_range=(-80, 80))
            for signal, rate, label, unit in signals
        ]).write(folder / f"SC4{person:02}1E0-PSG.edf")  # fmt: skip
        notes = [edfio.EdfAnnotation(90 * place, 90, stage) for place, stage in enumerate(STAGES)]
        unscored = edfio.EdfAnnotation(360, 86_000, "Sleep stage ?")
        edfio.Edf([], annotations=[*notes, unscored]).write(folder / f"SC4{person:02}1EC-Hypnogram.edf")


def _hdf5(root: Path) -> None:
    with h5py.File(root / "ecg.hdf5", "w") as file:
        file["tracings"] = X.swapaxes(1, 2)
        file["exam_id"], file["patient_id"] = np.arange(12) + 100, np.arange(12) // 2
        file["code"] = [(426783006, 164889003)[number % 2] for number in range(12)]


@pytest.mark.parametrize(("word", "write"), [("Hypnogram", _sleep)])
def test_a_walk_leads_to_a_report(
    word: str, write: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", os.environ | {"CLOPS_PREPARED_ROOT": str(tmp_path / "prepared")})
    Path("walk.py").write_text(_recipe(word))
    given = ["walk.py", "--data-root", ".", "--no-ray", "--set", "epochs_per_task=1", "--limit", "1"]
    done = CliRunner().invoke(command, given)
    assert done.exit_code == 0, done.output
    assert "report" in done.output.lower()
    assert list(tmp_path.rglob("*.html"))


def test_the_recipe_for_hdf5_files_reads_what_was_written(tmp_path: Path) -> None:
    _hdf5(tmp_path)
    (tmp_path / "space.py").write_text(_recipe("h5py"))
    load_plugins(tmp_path / "space.py")
    prepare("hdf5", prepared_root=tmp_path / "prepared", data_root=tmp_path)
    frames = open_frames("hdf5", prepared_root=tmp_path / "prepared", leads="all")
    np.testing.assert_allclose(frames.signal(slice(None)), X, atol=2e-3)
    assert frames.labels.tolist() == [0, 1] * 6
    assert frames.patient_names == tuple("012345")
