"""The contract of every reader, on files in the publisher's format; a new reader needs one new writer."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.data.scenarios import build_scenario
from clops_sweep.data.sets.named import data_set
from clops_sweep.errors import UsageError
from tests.data.published_formats import WRITERS


@pytest.fixture(scope="module", params=WRITERS)
def published(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Name of a data set, and a data root with it in its publisher's format."""
    root = tmp_path_factory.mktemp(request.param.split()[0])
    WRITERS[request.param](root / "data")
    return request.param.split()[0], root / "data"


@pytest.fixture(scope="module")
def prepared(published: tuple[str, Path]) -> PreparedSet:
    name, root = published
    return prepare(name, prepared_root=root.parent / "prepared", data_root=root, workers=1)


@pytest.fixture(scope="module")
def opened(prepared: PreparedSet) -> FrameSet:
    return open_frames(prepared.manifest.name, prepared_root=prepared.folder.parent)


def test_all_classes_and_leads_occur(opened: FrameSet) -> None:
    labels = opened.labels if opened.multi_label else np.eye(len(opened.classes))[opened.labels]
    assert (labels.sum(0) > 0).all()
    assert set(opened.leads.tolist()) == set(range(len(opened.lead_names)))


def test_shapes_and_types(opened: FrameSet) -> None:
    count = len(opened)
    assert opened.frames.shape == (count, 2500)
    assert opened.frames.dtype in (np.float32, np.int16)
    for array in (opened.gain, opened.offset, opened.patients, opened.labels, opened.split, opened.leads):
        assert len(array) == count
        assert not array.flags.writeable
    assert opened.gain.dtype == opened.offset.dtype == np.float32
    assert np.isfinite(opened.signal(slice(None))).all()
    assert opened.times is None or opened.times.dtype == np.dtype("datetime64[s]")


def test_every_scenario_it_is_listed_for_can_be_built(opened: FrameSet) -> None:
    problems = []
    for scenario in DATASETS[opened.name].scenarios:
        try:
            assert len(build_scenario(opened, scenario).tasks) == DATASETS[opened.name].task_count(scenario)
        except UsageError as problem:
            problems.append(str(problem))
    # a few patients cannot cover every class in every split, and chapman's WFDB edition has no dates
    assert all("split" in problem or "dates" in problem for problem in problems)
    assert len(problems) < len(DATASETS[opened.name].scenarios) or opened.name == "cardiology"


def test_a_truncated_signal_is_one_sentence_or_skipped(published: tuple[str, Path], tmp_path: Path) -> None:
    name, root = published
    shutil.copytree(root, tmp_path / "data")
    source = data_set(name).find(tmp_path / "data")[2]
    signal = source.signal_file
    signal.write_bytes(signal.read_bytes()[:-200])
    with pytest.raises(UsageError, match=signal.name) as caught:
        prepare(name, prepared_root=tmp_path / "prepared", data_root=tmp_path / "data", workers=1)
    assert "\n" not in str(caught.value)
    assert str(caught.value).count(". ") == 0
    assert list((tmp_path / "prepared").iterdir()) == []
    manifest = prepare(
        name, prepared_root=tmp_path / "prepared", data_root=tmp_path / "data", workers=1, on_error="skip"
    ).manifest
    assert [record for record, _ in manifest.skipped] == [source.record]
