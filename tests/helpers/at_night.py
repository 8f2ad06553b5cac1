"""Long lists of parameters, of which the core suite takes a few; the nightly tests take all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def mostly_at_night(cases: Iterable[Any], core: Callable[[Any], bool]) -> list[Any]:
    """Return the cases as parameters; those that `core` does not hold for are marked as nightly."""
    parameters = []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        marks = () if core(case) else (pytest.mark.nightly,)
        parameters.append(pytest.param(*values, marks=marks))
    return parameters
