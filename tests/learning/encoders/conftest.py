"""The place of `place.py`, once for tests that only read it and anew for those that change it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clops_sweep.experiment.plugins.registry import REGISTRIES
from tests.data.declared_files import forget
from tests.learning.encoders.place import Place


def forgotten() -> None:
    for registry in REGISTRIES.values():
        for name in registry.added:
            registry.forget(name)
    forget()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    yield Place(tmp_path)
    forgotten()
