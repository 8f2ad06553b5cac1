"""The walks of docs/formats.md and docs/data, from a folder of files of a format to a report."""

from __future__ import annotations

import inspect
import os
import re
import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import edfio
import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from scipy.signal import resample_poly

import clops_sweep
from clops_sweep import Recordings, dataset
from clops_sweep.cli.commands import command
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.experiment.spaces.executed_file import names_in
from tests.helpers.documentation import DOCS, examples

STAGES = ("Sleep stage W", "Sleep stage 2", "Sleep stage 3", "Sleep stage R")


def _recipe(word: str) -> str:
    (found,) = (block for block in examples("formats") if word in block)
    assert len([line for line in found.splitlines() if line.strip()]) <= 30
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


def _wesad(root: Path) -> None:
    """Write text of the chest belt and protocols of four people as WESAD has them, and pickles, which stay closed."""
    stream = np.random.default_rng(2)
    for person in ("S2", "S3", "S4", "S5"):
        folder = root / "WESAD" / person
        folder.mkdir(parents=True)
        counts = stream.integers(0, 2**16, (60 * 700, 10))
        comments = ["# OpenSignals Text File Format", '# {"respiban": {"sampling rate": 700}}', "# EndOfHeader"]
        rows = ["\t".join(map(str, row)) + "\t" for row in counts.tolist()]
        (folder / f"{person}_respiban.txt").write_text("\n".join([*comments, *rows]) + "\n")
        (folder / f"{person}_quest.csv").write_text(
            f"# Subj;{person};;;;;;\n# ORDER;Base;TSST;Medi 1;Fun;Medi 2;sRead;\n"
            "# START;0.00;0.1;0.2;0.3;0.4;0.55;\n# END;0.1;0.2;0.3;0.4;0.5;1;\n;;;;;;;\n# PANAS;1;3;2;1;2;4;\n"
        )
        (folder / f"{person}.pkl").write_bytes(b"cos\nabort\n(tR.")


def _e4(root: Path) -> None:
    """Write sessions of twelve people as they are downloaded, and their table."""
    (root / "e4").mkdir()
    rows, stream = ["file,condition,person"], np.random.default_rng(3)
    for number in range(24):
        rows.append(f"s{number}.zip,{('rest', 'stress')[number % 2]},p{number // 2}")
        with zipfile.ZipFile(root / "e4" / f"s{number}.zip", "w") as file:
            for sensor, rate, columns in (("BVP", 64, 1), ("EDA", 4, 1), ("TEMP", 4, 1), ("ACC", 32, 3)):
                lines = [[1_544_027_337] * columns, [rate] * columns, *stream.normal(size=(30 * rate, columns))]
                text = "".join(", ".join(f"{value:.6f}" for value in line) + "\n" for line in lines)
                file.writestr(f"{sensor}.csv", text)
    (root / "e4" / "sessions.csv").write_text("\n".join(rows))


def test_the_readers_and_arguments_that_the_page_names_are_there() -> None:
    page = (DOCS / "own_data.md").read_text("utf-8")
    readers = set(re.findall(r"`(?:Recordings\.)?(from_\w+)", page))
    assert {"from_wfdb", "from_edf", "from_hdf5", "from_ecg", "from_mne"} < readers
    assert [name for name in readers if not hasattr(Recordings, name) and not hasattr(clops_sweep, name)] == []
    _, of_recordings, of_dataset = re.findall(r"^\| (?:argument|recordings) \|.*?\n\n", page, re.MULTILINE | re.DOTALL)
    assert _arguments(of_recordings) == inspect.signature(Recordings).parameters.keys()
    assert _arguments(of_dataset) < inspect.signature(dataset).parameters.keys()


def _arguments(table: str) -> set[str]:
    """Return the arguments that a table describes in its first column."""
    first = [line.split("|")[1] for line in table.strip().splitlines()]
    return set(re.findall(r"`(\w+)", "".join(first)))


@pytest.mark.parametrize(("word", "write"), [("Hypnogram", _sleep), ("from_hdf5", _code15)])
@pytest.mark.nightly
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


@pytest.mark.nightly
def test_the_files_for_wearables_prepare_what_these_devices_write(tmp_path: Path) -> None:
    _wesad(tmp_path)
    _e4(tmp_path)
    for name in ("wesad", "e4"):
        names_in(DOCS / "data" / f"{name}.py")
        prepare(name, prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)
    chest, wrist = (open_frames(name, prepared_root=tmp_path / "prepared", leads="all") for name in ("wesad", "e4"))
    assert chest.labels.tolist() == [0, 1, 3, 2, 3] * 4
    counts = np.loadtxt(tmp_path / "WESAD" / "S2" / "S2_respiban.txt")[7000:14000, [2, 9]].T  # stress is the second
    values = (counts / 2**16 - 0.5) * [[3], [100]]
    reflected = np.pad(values, ((0, 0), (700, 700)), mode="reflect", reflect_type="odd")  # about both end samples
    expected = resample_poly(reflected, 1, 7, axis=1)[:, 100:1100]
    np.testing.assert_allclose(chest.signal(np.array([1]))[0], expected, atol=1e-3)
    with zipfile.ZipFile(tmp_path / "e4" / "s0.zip") as file:
        pulse = np.loadtxt(file.open("BVP.csv"), skiprows=2)[:640]
    np.testing.assert_allclose(wrist.signal(np.array([0]))[0][0], pulse, atol=1e-6)
    assert wrist.times is not None
    assert set(wrist.times.tolist()) == {datetime(2018, 12, 5, 16, 28, 57)}  # 1,544,027,337 s since 1970
    assert (len(wrist), wrist.labels[:6].tolist(), len(wrist.patient_names)) == (72, [0, 0, 0, 1, 1, 1], 12)
