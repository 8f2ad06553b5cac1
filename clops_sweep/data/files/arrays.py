"""Arrays in .npy files."""

from __future__ import annotations

import io
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.folder import one_sentence
from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.errors import DamagedStore, UsageError


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of the .npy file of an array in C order, as `np.save` writes it."""
    buffer = io.BytesIO()
    fields = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, fields)
    return buffer.getvalue()


def npy_bytes(array: NDArray[Any]) -> bytes:
    """Return the content of the .npy file of an array in C order, as `np.save` writes it.

    NumPy does not report why writing failed; writing these bytes does, such as a full disk.
    """
    return npy_header(array.dtype, array.shape) + array.tobytes()


def bytes_of(array: NDArray[Any]) -> memoryview:
    """Return the bytes of an array in C order, without a copy if possible."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def load_npy(path: Path, *, mapped: bool = False) -> NDArray[Any]:
    """Return the array in an .npy file, read or mapped, read-only and never unpickled.

    Raises:
        DamagedStore: the file is not a complete .npy file.
    """
    try:
        with one_sentence(path), open_regular(path):
            array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except UsageError:
        raise
    except (ValueError, SyntaxError, TokenError):  # a damaged header raises the latter two
        raise DamagedStore(f"{path}: not a whole array file") from None
    # A plain ndarray view: subclasses such as memmap do not pickle into shareable buffers.
    plain: NDArray[Any] = array.view(np.ndarray)
    plain.flags.writeable = False
    return plain
