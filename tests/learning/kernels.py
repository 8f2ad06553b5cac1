"""The variants of the native kernels, as parameters of tests."""

from __future__ import annotations

import pytest

from clops_sweep import native

KERNELS = [
    *native.available()[:1],
    *(pytest.param(name, marks=pytest.mark.nightly) for name in native.available()[1:]),
]
"""The variant that runs use here; `tests/native` compares the others, which are slow, with float64."""

BACKEND_OF_PROGRAMS = "torch" if native.chosen_for_programs() is None else f"native-{native.chosen_for_programs()}"
"""The backend of networks other than the paper's here, if all their layers are known."""
