"""Arrays of prepared folders: their statistics, their checksums, and their files."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from clops_sweep.data.files.arrays import npy_bytes
from clops_sweep.data.files.hashes import array_sha256, hash_of
from clops_sweep.data.prepared.normalization import frame_statistics


def of_numpy(stored: NDArray[Any]) -> NDArray[np.float64]:
    """Return the same row by row, with the formulas of the numpy manual."""
    with np.errstate(invalid="ignore"):
        np.setbufsize(2**14)  # more than a row: older releases of numpy add longer ones piece by piece
        rows = [row.astype(np.float64) for row in stored]
        return np.array([[row.min(), row.max(), row.mean(), row.std()] for row in rows])


@settings(max_examples=100)
@given(
    st.sampled_from([np.int16, np.int32, np.float32, np.float64]),
    st.integers(1, 40),
    st.one_of(st.integers(1, 300), st.integers(1000, 9000)),
    st.integers(0, 3),
)
def test_statistics_of_frames_are_those_of_numpy(kind: type, rows: int, samples: int, seed: int) -> None:
    """Bit for bit; the native kernels must add in the same order."""
    stored = (1000 * np.random.default_rng([rows, seed]).standard_normal((rows, samples))).astype(kind)
    assert np.array_equal(frame_statistics(stored), of_numpy(stored))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_what_is_not_finite_is_not_in_the_extremes_either(kind: type) -> None:
    stored = np.zeros((90, 400), kind)
    stored[[0, 50, 89], 7] = np.nan, np.inf, -np.inf
    found = frame_statistics(stored)
    assert np.flatnonzero(~np.isfinite(found[:, :2]).all(1)).tolist() == [0, 50, 89]
    assert np.array_equal(found, of_numpy(stored), equal_nan=True)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6000).reshape(3000, 2),
        np.arange(6000.0).reshape(2, 3000).T,
        np.zeros((0, 4), np.int16),
        np.array(["2024-05-01", "2025-01-01"], "datetime64[s]"),
    ],
    ids=["as it lies", "turned", "empty", "dates"],
)
def test_the_checksum_of_an_array_is_that_of_its_type_shape_and_bytes(array: NDArray[Any], tmp_path: Path) -> None:
    expected = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode() + array.tobytes()).hexdigest()
    assert array_sha256(array) == expected
    (tmp_path / "array.npy").write_bytes(npy_bytes(array))
    assert np.array_equal(np.load(tmp_path / "array.npy"), array)


def test_the_hash_of_named_parts_does_not_depend_on_their_order() -> None:
    assert hash_of(b=1, a=[2.5]) == hash_of(a=[2.5], b=1) == hashlib.sha256(b'{"a":[2.5],"b":1}').hexdigest()
