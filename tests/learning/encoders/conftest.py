"""Fixtures of the folder of `place.py`: shared by tests that only read it, and new for those that change it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clops_sweep.experiment.plugins.registry import ENCODERS
from tests.data.declared_files import forget
from tests.learning.encoders.place import Place


def forgotten() -> None:
    """Unregister what the file declares."""
    for name in ENCODERS.added:
        ENCODERS.forget(name)
    forget("small", "other", "slow", "third")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    yield Place(tmp_path)
    forgotten()
