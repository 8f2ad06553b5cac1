"""Runs never train on prepared frames that have changed, whatever the times of their files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepared.freshness import state_of
from clops_sweep.data.prepared.prepared_folder import PreparedSet, is_to_be_made_again
from clops_sweep.data.prepared.prepared_split import make_splits, split_of
from clops_sweep.data.prepared.verified_frames import VERIFIED
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import DamagedStore
from tests.data.declared_files import declare

TWELVE = """
@dataset("twelve", files=["twelve.npy"])
def twelve(data_root):
    x = np.load(data_root / "twelve.npy")
    return Recordings(x, 8, ["a"], "g", np.arange(12) % 2, ("p", "q"), np.arange(12))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The prepared folder of a small data set."""
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "twelve.npy", np.random.default_rng(0).normal(size=(12, 1, 8)))
    declare(tmp_path / "space.py", TWELVE)
    prepare("twelve", prepared_root=tmp_path / "prepared", data_root=tmp_path / "data")
    return tmp_path / "prepared" / "twelve"


def _open(folder: Path) -> FrameSet:
    return open_frames("twelve", prepared_root=folder.parent)


def _edit(file: Path) -> None:
    with open(file, "r+b") as opened:
        opened.seek(-4, os.SEEK_END)
        opened.write(b"\0\0\0\x40")


def _keeping_times(file: Path) -> None:
    before = file.stat()
    _edit(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def _replacing(file: Path) -> None:
    other = file.with_name("other")
    shutil.copy2(file, other)
    _keeping_times(other)
    os.replace(other, file)


def _in_the_future(file: Path) -> None:
    _edit(file)
    os.utime(file, (2**32, 2**32))


@pytest.mark.parametrize("edit", [_edit, _keeping_times, _replacing, _in_the_future])
@pytest.mark.parametrize("opened_before", [False, True])
def test_a_launch_refuses_frames_that_have_changed(
    folder: Path, edit: Callable[[Path], None], opened_before: bool
) -> None:
    key = DataKey("twelve", 0, "none", "all")
    data = PreparedData.found(folder.parent, folder.parents[1] / "data")
    before = data.frames(key).frames[-1, -1] if opened_before else None
    edit(folder / "frames.npy")
    for _ in range(2):
        data.prepare([key])
        with pytest.raises(DamagedStore, match=r"frames\.npy: its content has changed since it was prepared; run"):
            data.frames(key)
    assert is_to_be_made_again("twelve", prepared_root=folder.parent, data_root=data.source, on_error="stop")
    prepare("twelve", prepared_root=folder.parent, data_root=data.source, anew=True)
    assert data.frames(key).frames[-1, -1] in ({before} if opened_before else np.load(folder / "frames.npy")[-1])


def test_frames_whose_file_was_only_touched_are_read_once(folder: Path) -> None:
    frames = folder / "frames.npy"
    assert str(state_of(frames))[1:] in (folder / VERIFIED).read_text()
    for moment in (1, 2**32):  # a wrong clock, in either direction
        os.utime(frames, (moment, moment))
        _open(folder)
        assert str(state_of(frames))[1:] in (folder / VERIFIED).read_text()
    shutil.copytree(folder, folder.parent / "copy")
    shutil.rmtree(folder)
    (folder.parent / "copy").rename(folder)  # another inode
    _open(folder)
    assert str(state_of(frames))[1:] in (folder / VERIFIED).read_text()


def test_a_kept_split_that_has_changed_is_solved_anew(small_mitbih: PreparedSet) -> None:
    split = np.array(split_of(small_mitbih, 7))
    kept = small_mitbih.folder / "splits" / "7.npy"
    other = np.where(split == 0, 2, np.where(split == 2, 0, split)).astype(np.int8)
    np.save(kept, other)
    from clops_sweep.data.prepared import prepared_split

    prepared_split.SOLVED.clear()
    np.testing.assert_array_equal(split_of(small_mitbih, 7), split)
    np.testing.assert_array_equal(np.load(kept), split)
    kept.with_suffix(".sha256").unlink()
    np.save(kept, other)
    prepared_split.SOLVED.clear()
    np.testing.assert_array_equal(split_of(small_mitbih, 7), split)


def test_missing_splits_are_counted_in_plain_words(
    small_mitbih: PreparedSet, capsys: pytest.CaptureFixture[str]
) -> None:
    """It said "solving 2 of 3 patient splits"."""
    split_of(small_mitbih, 7)
    make_splits(small_mitbih, [7, 1008, 1009], progress=True)
    said = capsys.readouterr().err
    assert "mitbih: dividing people into training, validation and test for " in said
    assert "3 patient splits ..." in said
