"""Some rows of a mapped file, or of an array in shared memory, without the rest of it in the process."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_AT_ONCE: Final = 2**24
"""Bytes of a mapped array over which rows are copied before its pages are given back."""

_AROUND: Final = 2**16
"""Bytes around one that is read which Linux may map along with it."""


def copied_rows(array: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """A copy of some rows, which are sorted; no page of a mapped array stays mapped for having been read.

    The system maps the neighbours of a page along with it, so that a row in ten, read where it lies, is soon the whole
    array in the process's resident size.
    """
    found = np.empty((len(rows), *array.shape[1:]), array.dtype)
    of_row = max(1, array[:1].nbytes)
    many, before = max(1, _AT_ONCE // of_row), -(-_AROUND // of_row)
    for begin in range(0, len(array), many):
        first, last = np.searchsorted(rows, [begin, begin + many])
        if first < last:
            found[first:last] = array[rows[first:last]]
            _unmap(array[max(0, begin - before) : begin + many])  # and what was given back, and came along again
    return found


def _unmap(array: NDArray[Any]) -> None:
    """Gives back the pages of an array that were mapped when it was read; they are mapped again when it is read again.

    On Linux alone, and only where they are shared with a file or with other processes: what is private would be lost.
    """
    begin, end = array.ctypes.data, array.ctypes.data + array.nbytes
    begin, end = begin // mmap.PAGESIZE * mmap.PAGESIZE, -(-end // mmap.PAGESIZE) * mmap.PAGESIZE
    with contextlib.suppress(OSError), open("/proc/self/maps", "rb") as maps:
        for line in maps:
            addresses, kind, *_ = line.split()
            first, last = (int(address, 16) for address in addresses.split(b"-"))
            if first <= begin < end <= last and kind.endswith(b"s"):
                ctypes.CDLL(None).madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), mmap.MADV_DONTNEED)
                return
