"""Stores in memory where there is such a thing: a run that is recorded waits for the disk ten times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import folder_in_memory


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    with folder_in_memory(tmp_path) as folder:
        yield folder
