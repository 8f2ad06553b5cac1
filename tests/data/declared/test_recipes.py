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
from tests.data.declared_files import forget

DOCUMENT = (Path(__file__).parents[3] / "docs" / "own_data.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)```", DOCUMENT, re.MULTILINE | re.DOTALL)
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


def _code15(root: Path) -> None:
    """Write two parts as CODE-15% has them, with exams that the table lacks, and rows of a part that is not there."""
    folder, stream = root / "code15", np.random.default_rng(1)
    folder.mkdir()
    rows = ["exam_id,age,patient_id,1dAVb,RBBB,LBBB,SB,ST,AF,trace_file"]
    for part in range(3):
        ids = 100 * part + np.arange(20)
        for number in ids.tolist():
            flags = ",".join(str(place == number % 7) for place in range(6))
            rows.append(f"{number},60,{number // 2},{flags},exams_part{part}.hdf5")
        if part < 2:
            with h5py.File(folder / f"exams_part{part}.hdf5", "w") as file:
                file["exam_id"] = np.append(ids, 0)  # a row of zeros ends each file
                file["tracings"] = np.append(stream.standard_normal((20, 400, 12)), np.zeros((1, 400, 12)), 0)
    rows = [row for row in rows if not row.startswith("0,")]
    (folder / "exams.csv").write_text("\n".join(rows))


@pytest.mark.parametrize(("word", "write"), [("Hypnogram", _sleep), ("from_hdf5", _code15)])
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
