"""Rows are copied out of mapped arrays, of which no page then counts as the process's; other memory is left alone."""

from __future__ import annotations

import sys
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from clops_sweep.learning import mapped_rows
from clops_sweep.learning.mapped_rows import copied_rows

ROWS = np.arange(0, 3000, 12)


def _resident(array: NDArray[np.int16]) -> int:
    """KiB that are mapped just now where an array begins."""
    address, inside = array.ctypes.data, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, _, last = line.split()[0].partition("-")
        if last and not line.startswith("VmFlags"):
            inside = int(first, 16) <= address < int(last, 16)
        elif inside and line.startswith("Rss:"):
            return int(line.split()[1])
    raise AssertionError("not mapped")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere pages are not given back")
@pytest.mark.parametrize("kind", ["file", "shared memory"])
def test_no_page_stays_mapped(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = np.random.default_rng(0).integers(-9, 9, (3000, 2500)).astype(np.int16)
    shared = SharedMemory(create=True, size=content.nbytes)
    try:
        if kind == "file":
            np.save(tmp_path / "frames.npy", content)
            array = np.load(tmp_path / "frames.npy", mmap_mode="r").view(np.ndarray)
        else:
            array = np.ndarray(content.shape, np.int16, shared.buf)
            array[:] = content
        array[ROWS].sum()
        before = _resident(array)
        for at_once in (2**40, 2**20):
            monkeypatch.setattr(mapped_rows, "_AT_ONCE", at_once)
            np.testing.assert_array_equal(copied_rows(array, ROWS), content[ROWS], strict=True)
            assert _resident(array) <= 128 < content[ROWS].nbytes / 1024 < before
        np.testing.assert_array_equal(array, content)
        del array
    finally:
        shared.close()
        shared.unlink()


def test_what_is_private_is_left_alone(tmp_path: Path) -> None:
    np.save(tmp_path / "frames.npy", np.zeros((3000, 250), np.int16))
    changed = np.load(tmp_path / "frames.npy", mmap_mode="c")  # of which changes are in this process alone
    for array in (np.zeros((3000, 250), np.int16), changed):
        array[:] = 7
        assert (copied_rows(array, ROWS) == 7).all()
        assert (array == 7).all()
