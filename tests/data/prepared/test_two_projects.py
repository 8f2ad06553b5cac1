"""Two projects with a data set of one name and one folder of prepared data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clops_sweep import prepare
from clops_sweep.data.preparing.prepared_data import PreparedData
from tests.data.declared_files import declare, forget

BODY = """
@dataset("own", one_recording_per_person=True)
def own(data_root):
    x = np.random.default_rng({seed}).normal(size=(12, 1, 20))
    return Recordings(x, 10, ["ECG"], "mV", labels=[n % 2 for n in range(12)], classes=("a", "b"), patients=None)
"""


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    forget("own")
    yield
    forget("own")


def _declared(folder: Path, seed: int, file: str = "own.py") -> Path:
    forget("own")
    folder.mkdir(exist_ok=True)
    return declare(folder / file, BODY.format(seed=seed))


def _said(root: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines on replaced frames of a preparation."""
    prepare("own", prepared_root=root, data_root=None, workers=1)
    return [line for line in capsys.readouterr().err.splitlines() if "replaces" in line]


def test_frames_of_another_project_are_not_replaced_in_silence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "prepared"
    one = _declared(tmp_path / "one", 0)
    assert _said(root, capsys) == []
    assert PreparedData(root).other_project("own") is None
    two = _declared(tmp_path / "two", 1)
    assert PreparedData(root).other_project("own") == str(one)
    (line,) = _said(root, capsys)
    assert line == (
        f"own: replaces the frames that were prepared for the data set of this name in {one}; to keep both, rename one "
        "of them, or give each project a folder of its own with --prepared-root or CLOPS_PREPARED_ROOT"
    )
    assert _said(root, capsys) == [], "they are ours now"
    _declared(tmp_path / "one", 0)
    (line,) = _said(root, capsys)
    assert f"in {two}; to keep both" in line


def test_files_of_one_project_and_moved_ones_are_not_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "prepared"
    _declared(tmp_path / "one", 0)
    assert _said(root, capsys) == []
    _declared(tmp_path / "one", 1, "other.py")
    assert _said(root, capsys) == [], "the code of one project changed"
    (tmp_path / "one").rename(tmp_path / "moved")
    _declared(tmp_path / "moved", 1, "other.py")
    before = (root / "own" / "frames.npy").stat().st_mtime_ns
    assert _said(root, capsys) == []
    assert (root / "own" / "frames.npy").stat().st_mtime_ns == before, "equal code and files need no preparation"
