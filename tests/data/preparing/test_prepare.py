"""Prepared folders: complete or absent, equal every time, quick to open, never written outside their root."""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clops_sweep.data.declared.data_set import DataSet
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepared import manifest
from clops_sweep.data.prepared.manifest import read_manifest
from clops_sweep.data.prepared.prepared_folder import default_prepared_root, prepared_problems, state
from clops_sweep.data.prepared.verified_frames import VERIFIED
from clops_sweep.data.preparing.prepare import data_hash, open_frames, prepare
from clops_sweep.errors import DamagedStore, UsageError
from tests.helpers.preloaded import Preloaded


def test_preparing_again_returns_at_once(prepared_root: Path) -> None:
    before = (prepared_root / "synthetic" / "manifest.json").stat().st_mtime_ns
    begin = time.process_time()
    prepare("synthetic", prepared_root=prepared_root, data_root=None)
    assert time.process_time() - begin < 0.3
    assert (prepared_root / "synthetic" / "manifest.json").stat().st_mtime_ns == before


def test_frames_are_plain_read_only_arrays_that_pickle_out_of_band(synthetic: FrameSet) -> None:
    buffers: list[pickle.PickleBuffer] = []
    in_band = pickle.dumps(synthetic, protocol=5, buffer_callback=buffers.append)
    assert type(synthetic.frames) is np.ndarray
    assert not synthetic.frames.flags.writeable
    assert synthetic.times is not None
    assert len(in_band) < synthetic.times.nbytes + 20_000  # numpy copies only dates
    again = pickle.loads(in_band, buffers=buffers)
    assert np.shares_memory(again.frames, synthetic.frames)
    assert again.data_hash == synthetic.data_hash


@pytest.mark.parametrize("split_seed", [0, 3])
@pytest.mark.parametrize("normalize", ["none", "minmax", "zscore"])
def test_data_hash_is_that_of_the_opened_frames(prepared_root: Path, split_seed: int, normalize: str) -> None:
    what = {"prepared_root": prepared_root, "split_seed": split_seed, "normalize": normalize}
    assert data_hash("synthetic", **what) == open_frames("synthetic", **what).data_hash


def test_data_hash_tells_splits_and_normalisations_apart(prepared_root: Path) -> None:
    hashes = {
        data_hash("synthetic", prepared_root=prepared_root, split_seed=seed, normalize=normalize)
        for seed in range(3)
        for normalize in ("none", "minmax", "zscore")
    }
    assert len(hashes) == 9


def test_data_hash_is_quick_and_light(prepared_root: Path) -> None:
    data_hash("synthetic", prepared_root=prepared_root, split_seed=5)
    script = f"""
import sys, time, pathlib
import pyarrow.parquet
from clops_sweep.data.preparing.prepare import data_hash
root = pathlib.Path({str(prepared_root)!r})
assert data_hash("synthetic", prepared_root=root)
begin = time.process_time()
assert data_hash("synthetic", prepared_root=root, split_seed=5)
assert time.process_time() - begin < 0.05
assert not {{"torch", "ray", "scipy", "pandas", "wfdb"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_opening_is_quick_and_takes_little_memory(synthetic: FrameSet, prepared_root: Path) -> None:
    script = f"""
import time, pathlib
import pyarrow.parquet
from clops_sweep.data.preparing.prepare import open_frames

def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096

before, begin = resident(), time.process_time()
frames = open_frames("synthetic", prepared_root=pathlib.Path({str(prepared_root)!r}))
assert time.process_time() - begin < 0.5
assert resident() - before < 50e6, resident() - before
"""
    subprocess.run([sys.executable, "-c", script], check=True)


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


@pytest.mark.parametrize("file", ["frames.npy", "index.parquet", "manifest.json"])
def test_a_truncated_file_is_noticed(copied_root: Path, file: str) -> None:
    path = copied_root / "synthetic" / file
    _rewrite(path, path.read_bytes()[:-7])
    assert state("synthetic", prepared_root=copied_root, data_root=None) == "damaged"
    with pytest.raises(DamagedStore, match="data prepare synthetic"):
        open_frames("synthetic", prepared_root=copied_root)


def test_preparing_repairs_a_damaged_set(synthetic: FrameSet, copied_root: Path) -> None:
    (copied_root / "synthetic" / "index.parquet").unlink()
    prepare("synthetic", prepared_root=copied_root, data_root=None)
    assert open_frames("synthetic", prepared_root=copied_root).data_hash == synthetic.data_hash
    assert [path.name for path in copied_root.iterdir()] == ["synthetic"]


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
    return prepared_problems(DataSet("synthetic"), prepared_root=root, files=[])


def test_a_flipped_bit_in_a_label_is_noticed(copied_root: Path) -> None:
    path = copied_root / "synthetic" / "index.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    _rewrite(path, bytes(content))
    with pytest.raises(DamagedStore, match="content has changed"):
        open_frames("synthetic", prepared_root=copied_root)


def test_the_state_of_a_set_with_a_flipped_bit_is_damaged(copied_root: Path) -> None:
    path = copied_root / "synthetic" / "index.parquet"
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    _rewrite(path, bytes(content))
    begin = time.perf_counter()
    assert state("synthetic", prepared_root=copied_root, data_root=None) == "damaged"
    assert time.perf_counter() - begin < 0.5


def test_a_file_that_may_not_be_read_is_one_sentence(
    synthetic: FrameSet, prepared_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(path: Path) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(manifest, "file_sha256", closed)
    with pytest.raises(UsageError, match=r"index\.parquet: permission is denied; make it accessible"):
        open_frames("synthetic", prepared_root=prepared_root)
    assert state("synthetic", prepared_root=prepared_root, data_root=None) == "damaged"


def test_a_file_in_place_of_the_root_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "root").write_text("")
    with pytest.raises(UsageError, match=r"root: .*file where a folder is needed"):
        prepare("synthetic", prepared_root=tmp_path / "root", data_root=None)


def test_the_file_size_limit_acts_as_a_full_disk(tmp_path: Path) -> None:
    script = f"""
import pathlib, resource, signal
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.errors import UsageError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
try:
    prepare("synthetic", prepared_root=pathlib.Path({str(tmp_path)!r}), data_root=None)
except UsageError as problem:
    print(problem)
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == (
        f"{tmp_path / 'synthetic'}: too large for the file system or for the limit of this process (ulimit -f); choose "
        "another folder or raise the limit\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_unknown_names_and_values(prepared_root: Path) -> None:
    with pytest.raises(UsageError, match=r"is not known \(did you mean 'mitbih'\?\)"):
        prepare("mitbhi", prepared_root=prepared_root, data_root=None)
    with pytest.raises(UsageError, match="expected one of none, minmax, zscore"):
        open_frames("synthetic", prepared_root=prepared_root, normalize="max")
    with pytest.raises(UsageError, match="has no option 'cap'"):
        prepare("synthetic", prepared_root=prepared_root, data_root=None, options={"cap": 1})
    assert data_hash("mitbih", prepared_root=prepared_root / "nowhere") is None


def test_the_default_root_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(tmp_path))
    assert default_prepared_root() == tmp_path
    monkeypatch.delenv("CLOPS_PREPARED_ROOT")
    assert default_prepared_root().parts[-2:] == ("clops-sweep", "prepared")


def test_the_manifest_counts_what_is_there(synthetic: FrameSet, prepared_root: Path) -> None:
    found = read_manifest(prepared_root / "synthetic")
    assert found is not None
    assert found.frames == len(synthetic)
    assert found.data_hash == synthetic.data_hash
