"""Arrays of prepared folders: their statistics, their checksums, and their files."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from clops_sweep.data.arrays import write_npy
from clops_sweep.data.manifest import array_sha256
from clops_sweep.data.normalization import frame_statistics


@settings(max_examples=20)
@given(st.sampled_from([np.int16, np.int32, np.float32, np.float64]), st.integers(1, 2000), st.integers(2, 400))
def test_statistics_are_the_same_by_however_many_threads(kind: type, rows: int, samples: int) -> None:
    """Bit for bit; the extremes are numpy's own, mean and deviation those of float64 to its rounding."""
    stored = (1000 * np.random.default_rng(rows).standard_normal((rows, samples))).astype(kind)
    found = frame_statistics(stored)
    with ThreadPoolExecutor(3) as helpers:
        for _ in range(2):
            assert np.array_equal(frame_statistics(stored, helpers), found)
    assert np.array_equal(found[:, :2], np.stack([stored.min(1), stored.max(1)], axis=1))
    exact = stored.astype(np.float64)
    np.testing.assert_allclose(found[:, 2:], np.stack([exact.mean(1), exact.std(1)], axis=1), rtol=1e-12, atol=1e-9)


def test_what_is_not_finite_shows_whoever_computes_it() -> None:
    stored = np.zeros((900, 400), np.float32)
    stored[[0, 500, 899], 7] = np.nan, np.inf, -np.inf
    with ThreadPoolExecutor(2) as helpers:
        found = frame_statistics(stored, helpers)
    assert np.flatnonzero(~np.isfinite(found[:, :2]).all(1)).tolist() == [0, 500, 899]


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
    assert write_npy(tmp_path / "array.npy", array) == (tmp_path / "array.npy").stat().st_size
    assert np.array_equal(np.load(tmp_path / "array.npy"), array)
