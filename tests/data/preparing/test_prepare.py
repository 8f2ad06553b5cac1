"""Prepared folders: complete or absent, equal every time, quick to open, never written outside their root."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepared.prepared_folder import prepared_problems, state
from clops_sweep.data.prepared.verified_frames import VERIFIED
from clops_sweep.data.preparing.prepare import data_hash, open_frames, prepare
from clops_sweep.data.sets.named import data_set
from clops_sweep.errors import DamagedStore, UsageError
from tests.helpers.preloaded import Preloaded


def test_frames_are_plain_read_only_arrays_that_pickle_out_of_band(synthetic: FrameSet) -> None:
    buffers: list[pickle.PickleBuffer] = []
    in_band = pickle.dumps(synthetic, protocol=5, buffer_callback=buffers.append)
    assert type(synthetic.frames) is np.ndarray
    assert not synthetic.frames.flags.writeable
    assert len(in_band) < synthetic.times.nbytes + 20_000  # numpy copies only dates
    again = pickle.loads(in_band, buffers=buffers)
    assert np.shares_memory(again.frames, synthetic.frames)
    assert again.data_hash == synthetic.data_hash


def test_data_hash_is_that_of_the_opened_frames_and_tells_views_apart(prepared_root: Path) -> None:
    root = {"prepared_root": prepared_root}
    views = [root | {"split_seed": seed, "normalize": it} for seed in (0, 1, 3) for it in ("none", "minmax", "zscore")]
    hashes = [data_hash("synthetic", **view) for view in views]
    assert len(set(hashes)) == 9
    assert hashes == [open_frames("synthetic", **view).data_hash for view in views]


def test_minmax_and_zscore_are_per_frame(synthetic: FrameSet, prepared_root: Path) -> None:
    rows = np.arange(0, len(synthetic), 997)
    signal = synthetic.signal(rows).astype(np.float64)
    low, high = signal.min(1, keepdims=True), signal.max(1, keepdims=True)
    minmax = open_frames("synthetic", prepared_root=prepared_root, normalize="minmax").signal(rows)
    np.testing.assert_allclose(minmax, (signal - low) / (high - low), atol=2e-6)
    zscore = open_frames("synthetic", prepared_root=prepared_root, normalize="zscore").signal(rows)
    expected = (signal - signal.mean(1, keepdims=True)) / signal.std(1, keepdims=True)
    np.testing.assert_allclose(zscore, expected, atol=2e-5)


def test_the_index_says_what_the_arrays_say(synthetic: FrameSet, prepared_root: Path) -> None:
    index = pd.read_parquet(prepared_root / "synthetic" / "index.parquet")
    columns = ["patient", "record", "lead", "start", "label", "time", "split", "gain", "offset"]
    assert list(index.columns) == [*columns, "minimum", "maximum", "mean", "deviation"]
    np.testing.assert_array_equal(index["gain"], synthetic.gain)
    assert (index["patient"].astype(str) == np.array(synthetic.patient_names)[synthetic.patients]).all()
    assert (index["label"].astype(str) == np.array(synthetic.classes)[synthetic.labels]).all()
    assert (index["lead"].astype(str) == np.array(synthetic.lead_names)[synthetic.leads]).all()
    assert (index["split"].astype(str) == np.array(["training", "validation", "test"])[synthetic.split]).all()
    assert (index["time"].to_numpy() == synthetic.times).all()


def _killed_preparation(root: Path, after: float, environment: dict[str, str], commands: Preloaded) -> None:
    script = (
        "import pathlib, sys; from clops_sweep.data.preparing.prepare import prepare\n"
        "print('begin', flush=True)\n"
        f"prepare('synthetic', prepared_root=pathlib.Path({str(root)!r}), data_root=None)"
    )
    process = commands.start(root, environment, program=script)
    process.stdout.readline()
    time.sleep(after)
    process.kill()
    process.communicate()


def _assert_bit_equal(found: Path, expected: Path) -> None:
    """Compare every file of two prepared folders, except the record of verifications."""
    files = [file for file in sorted(expected.iterdir()) if file.is_file() and file.name != VERIFIED]
    assert {"frames.npy", "index.parquet", "manifest.json"} <= {file.name for file in files}
    for file in files:
        assert (found / file.name).read_bytes() == file.read_bytes(), file.name


@pytest.mark.nightly
def test_a_killed_preparation_leaves_nothing_that_is_taken_for_whole_and_the_next_is_bit_equal_to_any(
    synthetic: FrameSet, prepared_root: Path, tmp_path: Path, environment: dict[str, str], commands: Preloaded
) -> None:
    for after in (0.05, 0.9):
        _killed_preparation(tmp_path, after, environment, commands)
        if state("synthetic", prepared_root=tmp_path, data_root=None) == "prepared":
            break  # on a fast machine it finished before the kill, and must then be complete
        assert data_hash("synthetic", prepared_root=tmp_path) is None
        with pytest.raises(UsageError, match="clops-sweep data prepare synthetic"):
            open_frames("synthetic", prepared_root=tmp_path)
    prepare("synthetic", prepared_root=tmp_path, data_root=None)
    _assert_bit_equal(tmp_path / "synthetic", prepared_root / "synthetic")
    assert open_frames("synthetic", prepared_root=tmp_path).data_hash == synthetic.data_hash
    assert [path.name for path in tmp_path.iterdir()] == ["synthetic"]


@pytest.fixture
def copied_root(synthetic: FrameSet, prepared_root: Path, tmp_path: Path) -> Path:
    """A separate root with `synthetic`, whose files are links to the session's."""
    shutil.copytree(prepared_root / "synthetic", tmp_path / "synthetic", copy_function=os.link)
    return tmp_path


def _rewrite(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


@pytest.mark.nightly
def test_every_byte_of_the_frames_file_is_verified(copied_root: Path) -> None:
    path = copied_root / "synthetic" / "frames.npy"
    whole = path.read_bytes()
    assert _problems(copied_root) == []
    path.unlink()
    for place in (*range(0, 128, 3), 128, len(whole) // 2, len(whole) - 1):
        with open(path, "wb") as file:
            file.write(whole)
            file.seek(place)
            file.write(bytes([whole[place] ^ 1]))
        (problem,) = _problems(copied_root)
        assert "frames.npy: its content has changed since it was prepared" in problem, place
        with suppress(DamagedStore):
            open_frames("synthetic", prepared_root=copied_root)


@pytest.mark.parametrize("entry", ["data_hash", "content_hash", "patient_names", "name"])
def test_an_edited_manifest_is_refused(copied_root: Path, entry: str) -> None:
    path = copied_root / "synthetic" / "manifest.json"
    entries = json.loads(path.read_bytes())
    _rewrite(path, json.dumps(entries | {entry: entries["unit"]}).encode())
    with pytest.raises(DamagedStore, match=r"manifest\.json: its content has changed"):
        open_frames("synthetic", prepared_root=copied_root)


def _problems(root: Path) -> list[str] | None:
    return prepared_problems(data_set("synthetic"), prepared_root=root, files=[])


def test_a_flipped_bit_in_a_label_is_noticed(copied_root: Path) -> None:
    path = copied_root / "synthetic" / "index.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    _rewrite(path, bytes(content))
    with pytest.raises(DamagedStore, match="content has changed"):
        open_frames("synthetic", prepared_root=copied_root)
