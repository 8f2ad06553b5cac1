"""Fixtures of the data tests: data sets prepared once per session, and small WFDB records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.data.published import download
from tests.conftest import prepare_once
from tests.data import published_formats
from tests.data.declared_files import forget
from tests.data.physionet_server import PhysioNet, publish_everything, serving

PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
WriteRecord = Callable[..., None]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Data sets of one test are unknown to the others."""
    before = set(DATASETS.added)  # those of fixtures of a module
    yield
    if added := set(DATASETS.added) - before:
        forget(*added)


@pytest.fixture(scope="session")
def synthetic(prepared_root: Path) -> FrameSet:
    return open_frames("synthetic", prepared_root=prepared_root)


@pytest.fixture(scope="session")
def mitbih(data_root: Path, prepared_root: Path) -> PreparedSet:
    begin = time.perf_counter()
    prepared = prepare_once("mitbih", prepared_root, data_root)
    assert time.perf_counter() - begin < 60
    return prepared


@pytest.fixture
def write_mitbih_record() -> WriteRecord:
    return published_formats.write_mitbih_record


@pytest.fixture
def small_mitbih(tmp_path: Path) -> PreparedSet:
    """Eight records of `mitbih`; only the split of seed 0 is cached, all others need the solver."""
    published_formats.small_mitbih(tmp_path / "data")
    return prepare("mitbih", prepared_root=tmp_path / "prepared", data_root=tmp_path / "data", workers=1)


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small projects in PhysioNet's layout, which the local server serves."""
    root = tmp_path_factory.mktemp("published")
    publish_everything(root)
    return root


@pytest.fixture
def physionet(published: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PhysioNet]:
    """The local server; downloads use it instead of physionet.org in this process."""
    for variable in PROXIES:
        monkeypatch.delenv(variable, raising=False)
    with serving(published) as server:
        monkeypatch.setattr(download, "SERVER", server.address)
        yield server
