"""SHA-256 of files, arrays and named values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.arrays import bytes_of, npy_header
from clops_sweep.data.files.regular_files import open_regular


def file_sha256(path: Path) -> str:
    """Return the hex SHA-256 of a file, read in pieces."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def npy_sha256(path: Path, kind: str, shape: Sequence[int]) -> str | None:
    """Return the `array_sha256` of an .npy file's array of this type and shape; None if its header differs."""
    dtype = np.dtype(kind)
    header = npy_header(dtype, tuple(shape))
    with open_regular(path) as file:
        if file.read(len(header)) != header:
            return None
        return hashlib.file_digest(file, partial(digest_of_array, dtype, tuple(shape))).hexdigest()


def array_sha256(array: NDArray[Any], rows_at_once: int = 1024) -> str:
    """Return the hex SHA-256 over dtype, shape and bytes of an array, which does not depend on its memory layout."""
    digest = digest_of_array(array.dtype, array.shape)
    at_once = max(1, len(array)) if array.flags.c_contiguous else rows_at_once
    for begin in range(0, len(array), at_once):
        digest.update(bytes_of(array[begin : begin + at_once]))
    return digest.hexdigest()


def digest_of_array(dtype: np.dtype[Any], shape: tuple[int, ...]) -> hashlib._Hash:
    """Return the SHA-256 of an array before its bytes, which the caller adds row by row."""
    return hashlib.sha256(f"{dtype.str}{shape}".encode())


def hash_of(**parts: Any) -> str:
    """Return the hex SHA-256 of named parts as canonical JSON."""
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
