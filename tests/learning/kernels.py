"""The variants of the native kernels, as parameters of tests."""

from __future__ import annotations

import pytest

from clops_sweep import native

KERNELS = [
    *native.available()[:1],
    *(pytest.param(name, marks=pytest.mark.slow) for name in native.available()[1:]),
]
"""The variant that runs use here; the others are slow, for each is compared with float64 in `tests/native`."""
