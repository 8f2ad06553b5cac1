"""`clops-sweep data`: list, prepare, verify, download; exit statuses and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from clops_sweep.cli.data import data
from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.prepared.manifest import read_manifest
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from tests.data.declared_files import declare, forget, waves
from tests.data.published_formats import (
    cardiology,
    physionet2020,
)
from tests.helpers.documentation import examples


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(data, [str(argument) for argument in arguments], env={"COLUMNS": "220"})


def _states(shown: str) -> dict[str, str]:
    rows = [line.split() for line in shown.splitlines()]
    return {cells[0]: cells[1] for cells in rows if cells and cells[0] in DATASETS}


def test_list_shows_every_data_set_with_its_state(prepared_root: Path, tmp_path: Path) -> None:
    cardiology(tmp_path)
    own = tmp_path / "prepared"  # other tests prepare what they need in the one that all share
    own.mkdir()
    (own / "synthetic").symlink_to(prepared_root / "synthetic")
    shown = _run("list", "--prepared-root", own, "--data-root", tmp_path).output
    state = _states(shown)
    assert set(state) == set(DATASETS)
    assert state["synthetic"] == "prepared"
    assert state["cardiology"] == "raw"
    assert state["ptbxl"] == "absent"
    for info in DATASETS.values():
        assert f"{info.name}: {info.title}\n  licence: {info.licence}\n  source: {info.source}\n" in shown


def test_prepare_prints_counts_per_class_task_and_patient(mitbih: PreparedSet) -> None:
    shown = _run("prepare", "mitbih", "--patients", "--prepared-root", mitbih.folder.parent)
    assert shown.exit_code == 0, shown.output
    for text in ("0-1 (AFIB / APB)", "PVC", "frames per patient", "201", "dropped: 171 frames (mixture of beats)"):
        assert text in shown.output


def test_of_many_patients_the_first_are_listed_unless_all_are_asked_for(prepared_root: Path) -> None:
    """A row for each of 60 people hid the notes."""
    where = ("synthetic", "--prepared-root", prepared_root)
    folded = _run("counts", *where).output
    many = len(read_manifest(prepared_root / "synthetic").patient_names)
    assert 10 < many <= 100
    rest = f"and {many - 3} more patients; --patients lists all\n"
    assert rest in folded
    whole = _run("counts", *where, "--patients").output
    assert rest not in whole
    assert len(whole.splitlines()) - len(folded.splitlines()) == many - 3 - 1


@pytest.mark.usefixtures("nothing_declared")
def test_a_warning_on_top_says_that_half_of_the_recordings_are_dropped(tmp_path: Path) -> None:
    body = """
    @dataset("own", files=["n*.npy"])
    def own(data_root):
        table = pd.DataFrame({"file": [f"n{n}" for n in range(12)], "label": ["a", "b", "c", "c"] * 3})
        return Recordings.from_folder(
            data_root, "n*.npy", table=table, name="file", label="label", classes=("a", "b"), channels=["I"],
            units="mV", sampling_rate=100,
        )
    """
    for number, signal in enumerate(waves(12, 1, 400)):
        np.save(tmp_path / f"n{number}.npy", signal)
    declare(tmp_path / "own.py", body)
    done = _run("prepare", "own", "--prepared-root", tmp_path / "prepared", "--data-root", tmp_path)
    first = next(line for line in done.output.splitlines() if not line.startswith("preparing"))
    assert first == ("warning: 6 of 12 recordings are dropped, all labelled c; the data set uses the classes a, b")
    assert "\ndropped: 6 recordings labelled c: n2, n3, n6 and 3 more\nall names: left_out in " in done.output


def test_prepare_with_options_and_skipping(tmp_path: Path) -> None:
    physionet2020(tmp_path / "data")
    where = ("--prepared-root", tmp_path / "prepared", "--data-root", tmp_path / "data")
    (tmp_path / "data" / "cpsc2018" / "A0003.hea").unlink()
    stopped = _run("prepare", "physionet2020", *where)
    assert "A0003.hea: the header is missing" in str(stopped.exception)
    skipped = _run("prepare", "physionet2020", *where, "--on-error", "skip")
    assert skipped.exit_code == 0
    assert "skipped: A0003" in skipped.output


@pytest.mark.usefixtures("nothing_declared")
def test_brackets_in_sentences_are_printed(tmp_path: Path) -> None:
    body = """
    def night(path):
        if path.stem == "n0":
            raise ValueError("pip install 'clops-sweep[edf]'")
        number = int(path.stem[1:])
        return Recording(np.load(path), "ab"[number % 2], number, channels=["I"], units="mV", sampling_rate=100)

    @dataset("own", files=["n*.npy"])
    def own(data_root):
        return Recordings.from_folder(data_root, "n*.npy", read=night, classes=("a", "b"))
    """
    for number, signal in enumerate(waves(13, 1, 400)):
        np.save(tmp_path / f"n{number}.npy", signal)
    space = declare(tmp_path / "own.py", body)
    where = ("--prepared-root", tmp_path / "prepared", "--data-root", tmp_path, "--on-error", "skip")
    shown = _run("prepare", "own", "--plugins", space, *where)
    assert shown.exit_code == 0, shown.output
    (line,) = [line for line in shown.output.splitlines() if line.startswith("skipped:")]
    assert line.endswith("night() raises ValueError: pip install 'clops-sweep[edf]'")


ARRAYS, *_ = examples("own_data")
(WITH_TABLE,) = (example for example in examples("own_data") if example.startswith('"""gait.py"""'))


@pytest.fixture
def nothing_declared() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.mark.usefixtures("nothing_declared")
def test_declared_data_are_prepared_listed_verified_and_counted(tmp_path: Path) -> None:
    (tmp_path / "wearable.py").write_text(ARRAYS)
    n = np.arange(80)
    file = {"x": waves(80, 3, 50), "y": n % 4, "subject": n // 4, "site": np.where(n < 40, "A", "B")}
    np.savez(tmp_path / "wearable.npz", **file)
    roots = ["--prepared-root", tmp_path / "prepared", "--data-root", tmp_path]
    plugins = ["--plugins", tmp_path / "wearable.py"]
    unknown = _run("prepare", "wearable", *roots)
    assert "'wearable' is not known" in str(unknown.exception)
    assert "--plugins FILE" in str(unknown.exception)
    assert _state_of_wearable(_run("list", *plugins, *roots)) == "raw"
    assert "80 frames in" in _run("prepare", "wearable", *plugins, *roots).output
    assert _state_of_wearable(_run("list", *plugins, *roots)) == "prepared"
    assert "80 records are intact" in _run("verify", "wearable", *plugins, *roots).output
    forget()
    shown = _run("counts", "wearable", "--prepared-root", tmp_path / "prepared").output
    assert "wearable, class_il: frames (patients) per task" in shown
    assert "Lead ax" in shown


def test_arrays_with_a_table_are_prepared_without_windows_that_lack_samples(tmp_path: Path) -> None:
    (tmp_path / "gait.py").write_text(WITH_TABLE)
    signals = waves(80, 3, 200)
    signals[0, :, 150] = np.nan
    np.save(tmp_path / "gait.npy", signals)
    names = ["rest", "walk", "run", "stairs"]
    rows = [f"{names[i % 4]},{i // 4:03}" for i in range(80)]
    (tmp_path / "gait.csv").write_text("\n".join(["activity,person", *rows]))
    roots = ["--prepared-root", tmp_path / "prepared", "--data-root", tmp_path]
    try:
        shown = _run("prepare", "gait", "--plugins", tmp_path / "gait.py", *roots).output
    finally:
        forget("gait")
    assert "dropped: 1 frame (missing samples)" in shown
    assert "159 frames in" in shown


def _state_of_wearable(shown: Result) -> str:
    return next(line.split()[1] for line in shown.output.splitlines() if line.startswith("wearable "))
