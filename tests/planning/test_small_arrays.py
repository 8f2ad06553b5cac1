"""Small arrays that are not prepared: a plan refuses what a launch refuses, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from clops_sweep.cli.commands import command
from clops_sweep.planning import small_arrays
from tests.data.declared_files import forget

SPACE = """
import numpy as np
from clops_sweep import Recordings, RunConfig, SearchSpace, dataset

x = np.random.default_rng(0).normal(size=(120, 1, 50))
labels = np.arange(120) % 4
people = np.arange(120) // 8
ward = np.array(["A", "B"])[people % 2]
CHANGE

@dataset("arrays", scenarios=["class_il_union", "domain_il"], files=FILES)
def arrays(data_root):
    signals = SIGNALS
    return Recordings(
        signals, 50, ["ECG"], "mV", labels=labels, classes=list("abcd"), patients=people, domains={"ward": ward}
    )

BASE = RunConfig(dataset="arrays", network="small_cnn", epochs_per_task=1, SETTINGS)
SPACE = SearchSpace("arrays", BASE, {}, seeds=1)
"""
USUAL = 'scenario="class_il_union"'
BY_WARD = 'scenario="domain_il", domain="ward"'


def _run(folder: Path, *words: str) -> Result:
    forget("arrays")
    try:
        return CliRunner().invoke(command, [*words, "--data-root", str(folder)])
    finally:
        forget("arrays")


def _plan(folder: Path, change: str = "", settings: str = USUAL, signals: str = "x", files: str = "[]") -> Result:
    text = SPACE.replace("CHANGE", change).replace("SETTINGS", settings)
    (folder / "space.py").write_text(text.replace("SIGNALS", signals).replace("FILES", files))
    return _run(folder, "plan", *_arguments(folder))


def _arguments(folder: Path) -> list[str]:
    return [str(folder / "space.py"), "--prepared-root", str(folder / "prepared"), "--results", str(folder / "results")]


@pytest.mark.parametrize(
    ("change", "settings", "sentence"),
    [
        ("labels[3] = 4", USUAL, "labels: 4 is no position in classes; expected 0 to 3"),
        ("x[3, 0, 7] = np.nan", USUAL, "recording '3': channel ECG has samples that are NaN"),
        ("people = people[:-1]", USUAL, "patients: there are 119; expected one for each of 120 recordings"),
        ("labels[people % 2 == 0] = 0", BY_WARD, "task ward A"),
        ("", f'{BY_WARD}, stratify="site"', "stratify = 'site'"),
    ],
)
def test_a_plan_refuses_arrays_as_a_launch_does(change: str, settings: str, sentence: str, tmp_path: Path) -> None:
    plan = _plan(tmp_path, change, settings)
    assert sentence in str(plan.exception)
    assert not (tmp_path / "prepared").exists()
    launch = _run(tmp_path, *_arguments(tmp_path), "--no-ray", "--no-report")
    assert str(launch.exception) == str(plan.exception)


def test_a_plan_counts_the_tasks_of_arrays_that_are_not_prepared(tmp_path: Path) -> None:
    before = _plan(tmp_path).output
    assert "data set arrays is not prepared on this machine" in before
    assert "not checked" not in before
    assert not (tmp_path / "prepared").exists()
    _run(tmp_path, "data", "prepare", str(tmp_path / "space.py"), "--prepared-root", str(tmp_path / "prepared"))
    after = _plan(tmp_path).output
    table = after[after.index("tasks of arrays") : after.index("memory of ")]
    assert table.count("\n") == 4, "a title, headings and two tasks"
    assert table in before


@pytest.mark.parametrize("most", [1e9, 10])
def test_arrays_in_files_are_checked_if_they_are_small(
    most: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "x.npy", np.full((120, 1, 50), np.nan))
    monkeypatch.setattr(small_arrays, "SMALL", most)
    plan = _plan(tmp_path, signals='np.load(data_root / "x.npy")', files='["x.npy"]')
    is_refused = "has samples that are NaN" in str(plan.exception)
    is_unchecked = "not checked before the frames of arrays are prepared" in plan.output
    assert (is_refused, is_unchecked) == ((True, False) if most == 1e9 else (False, True))


def test_arrays_that_a_function_makes_are_not_checked(tmp_path: Path) -> None:
    plan = _plan(tmp_path, "del x", signals="np.full((120, 1, 50), np.nan)")
    assert plan.exit_code == 0, plan.exception
    assert "not checked before the frames of arrays are prepared" in plan.output
