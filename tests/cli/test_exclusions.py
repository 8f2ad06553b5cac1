"""What a preparation leaves out and which shortcuts it finds are reported alike by every command that counts frames."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from clops_sweep.cli.commands import command
from tests.data.declared_files import forget

FILE = """
import numpy as np
from clops_sweep import Recordings, RunConfig, SearchSpace, dataset

@dataset("wearable", scenarios=("class_il_union",))
def wearable(data_root):
    random = np.random.default_rng(0)
    people, labels = np.repeat(np.arange(20), 4), np.tile(np.arange(4), 20)
    signals = random.normal(size=(80, 3, 64)).astype(np.float32)
    signals[labels == 3] *= 8
    signals[[0, 5, 10], [0, 1, 2], 7] = np.nan
    return Recordings(
        signals, 32, ["x", "y", "z"], "g", labels, ("a", "b", "c", "loud"), people, window_seconds=2,
        missing="drop_windows",
    )

BASE = RunConfig(dataset="wearable", scenario="class_il_union", network="linear", epochs_per_task=1)
SPACE = SearchSpace("own", BASE, seeds=1)
"""
ROOT = "--prepared-root", "prepared"
LOST = "3 frames (missing samples)"
SHORTCUT = "class loud can be told without a network by amplitude"


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unpainted: None) -> Iterator[str]:
    """What a launch on 80 windows of three channels prints, three of them with a missing sample in one channel."""
    monkeypatch.chdir(tmp_path)
    Path("space.py").write_text(FILE)
    yield _printed("launch", "space.py", "--no-ray", *ROOT)
    forget()


def test_windows_that_were_dropped_have_one_number_everywhere(launched: str) -> None:
    assert f"wearable: dropped: {LOST}" in launched
    prepared = _printed("data", "prepare", "wearable", "--plugins", "space.py", *ROOT)
    assert "3 frames dropped for missing samples" in prepared
    assert f"dropped: {LOST}" in prepared
    assert "77 frames in " in prepared
    dates = "give their dates with times= of arrays, or time= of files and single recordings"
    assert f"recordings of a person are in natural order of their names; {dates}" in " ".join(prepared.split())
    listed = _printed("checklist", "space.py", *ROOT)
    assert "77 frames, of 20 people" in listed
    assert "frames by class: a 19, b 19, c 19, loud 20" in listed
    assert f"left out when it was prepared: {LOST}" in listed


def test_reports_and_checklists_name_shortcuts(launched: str) -> None:
    assert f"wearable: shortcuts: {SHORTCUT}" in launched
    assert f"  - wearable: {SHORTCUT}" in _printed("checklist", "space.py", *ROOT)
    (page,) = Path("results").glob("report/*/index.html")
    text = html.unescape(re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", page.read_text())))
    assert f"left out {LOST}" in text
    assert f"shortcuts {SHORTCUT}" in text


def _printed(*words: str) -> str:
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    return done.output
