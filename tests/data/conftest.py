"""What the data tests share: data sets prepared once per session, and what writes small WFDB records."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepare import PreparedSet, open_frames, prepare
from tests.data import published_formats

WriteRecord = Callable[..., None]


@pytest.fixture(scope="session")
def synthetic(prepared_root: Path) -> FrameSet:
    return open_frames("synthetic", prepared_root=prepared_root)


@pytest.fixture(scope="session")
def mitbih(data_root: Path, prepared_root: Path) -> PreparedSet:
    begin = time.perf_counter()
    prepared = prepare("mitbih", prepared_root=prepared_root, data_root=data_root)
    assert time.perf_counter() - begin < 60
    return prepared


@pytest.fixture(scope="session")
def mitbih_frames(mitbih: PreparedSet) -> FrameSet:
    return open_frames("mitbih", prepared_root=mitbih.folder.parent)


@pytest.fixture
def write_mitbih_record() -> WriteRecord:
    return published_formats.write_mitbih_record
