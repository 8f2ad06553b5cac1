"""Declared data sets: prepared like built-in ones, never stale, and errors in one sentence."""

from __future__ import annotations

import gc
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
from numpy.typing import NDArray

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepared.prepared_folder import PreparedSet, state
from clops_sweep.data.preparing.prepare import data_hash, open_frames, prepare
from clops_sweep.data.preparing.verify import verify
from clops_sweep.data.scenarios import build_scenario
from clops_sweep.data.sets import declared_set
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, forget, waves
from tests.helpers.at_night import mostly_at_night

WEARABLE = """
CLASSES = ("rest", "walk", "run", "stairs")

@dataset("wearable", scenarios=("class_il", "domain_il"), files=["wearable.npz"])
def wearable(data_root):
    file = np.load(data_root / "wearable.npz")
    return Recordings(
        signals=file["x"], sampling_rate=50, channels=("ax", "ay", "az"), units="g", labels=file["y"],
        classes=CLASSES, patients=file["subject"], domains={"site": file["site"]}, times=file["time"],
    )

SPACE = None
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A data root with `wearable.npz`: 80 recordings of 20 people at two sites."""
    folder = tmp_path / "data"
    folder.mkdir()
    _save(folder)
    return folder


def _save(folder: Path, **changes: Any) -> None:
    own = {
        "x": waves(80, 3, 64),
        "y": np.arange(80) % 4,
        "subject": np.arange(80) // 4,
        "site": np.where(np.arange(80) < 40, "A", "B"),
        "time": np.datetime64("2020-01-01") + np.arange(80) // 4,
    }
    np.savez(folder / "wearable.npz", **(own | changes))


def _prepare(root: Path, name: str = "wearable", **options: Any) -> PreparedSet:
    return prepare(name, prepared_root=root.parent / "prepared", data_root=root, **options)


def _open(root: Path, name: str = "wearable", **options: Any) -> FrameSet:
    return open_frames(name, prepared_root=root.parent / "prepared", **options)


def _hash(root: Path, name: str = "wearable", data_root: Path | None = None) -> str | None:
    return data_hash(name, prepared_root=root.parent / "prepared", leads="all", data_root=data_root)


def test_arrays_are_opened_as_they_were(root: Path, tmp_path: Path) -> None:
    declare(tmp_path / "space.py", WEARABLE)
    manifest = _prepare(root).manifest
    file = np.load(root / "wearable.npz")
    frames = _open(root, leads="all")
    everything = np.arange(80)
    np.testing.assert_array_equal(frames.signal(everything), file["x"])
    np.testing.assert_array_equal(frames.labels, file["y"])
    assert [frames.patient_names[code] for code in frames.patients] == [str(each) for each in file["subject"]]
    codes, sites = frames.domains["site"]
    assert [sites[code] for code in codes] == list(file["site"])
    assert (frames.times == file["time"].astype("datetime64[s]")).all()
    assert (frames.unit, frames.lead_names, manifest.samples, manifest.frame_seconds) == (
        "g",
        ("ax", "ay", "az"),
        64,
        1.28,
    )
    assert (frames.info.classes, frames.info.simultaneous_leads) == (4, 3)
    assert _hash(root) == frames.data_hash

    single = _open(root)
    assert (len(single), single.members) == (240, None)
    np.testing.assert_array_equal(single.signal(np.arange(3)), file["x"][0])
    assert [len(task.train.rows) for task in build_scenario(single, "domain_il").tasks] == [48, 48, 48]

    index = pd.read_parquet(root.parent / "prepared" / "wearable" / "index.parquet")
    assert list(index["domain_site"].astype(str)) == [site for site in file["site"] for _ in range(3)]
    found = verify("wearable", prepared_root=root.parent / "prepared", data_root=root)
    assert (found.records, found.prepared, found.problems) == (80, True, ())


def test_two_folders_with_equal_code_have_frames_of_their_own_files(tmp_path: Path) -> None:
    """Both declare one name, as files of one template do; the second has other recordings."""
    prepared = tmp_path / "prepared"
    hashes = {}
    for name, seed in (("one", 0), ("two", 1)):
        folder = tmp_path / name
        folder.mkdir()
        _save(folder, x=waves(80, 3, 250, seed))
        forget()
        declare(folder / "space.py", WEARABLE)
        known = data_hash("wearable", prepared_root=prepared)
        assert known is None, "the frames of the other folder are not those of these files"
        prepare("wearable", prepared_root=prepared, data_root=None)
        hashes[name] = data_hash("wearable", prepared_root=prepared)
    assert len(set(hashes.values())) == 2
    forget()
    declare(tmp_path / "space.py", WEARABLE)  # without files beside it, those of the preparation count
    assert data_hash("wearable", prepared_root=prepared) == hashes["two"]
    _save(tmp_path / "two", x=waves(80, 3, 250, 2))
    assert data_hash("wearable", prepared_root=prepared) is None


def test_frames_are_made_anew_when_code_or_files_change_and_only_then(root: Path, tmp_path: Path) -> None:
    space = tmp_path / "space.py"
    (tmp_path / "beside.py").write_text("FACTOR = 1\n")
    text = WEARABLE.replace("CLASSES = (", "import beside\nCLASSES = (").replace(
        'file["x"]', 'file["x"] * beside.FACTOR'
    )

    def again(body: str) -> tuple[str | None, str]:
        forget()
        declare(space, body)
        before = _hash(root, data_root=root)
        _prepare(root)
        return before, str(_hash(root))

    _, first = again(text)
    assert again(text.replace("SPACE = None", "SPACE = 3  # another search")) == (first, first)
    assert again(text.replace("    return Rec", "    # read\n    return Rec")) == (None, first)  # the same frames of it
    assert again(text) == (first, first), "both gave the same frames, so neither is prepared again"

    before, named = again(text.replace('"walk"', '"walking"'))
    assert before is None
    assert named != first
    (tmp_path / "beside.py").write_text("FACTOR = 2.5\n")  # another size, else Python keeps the bytecode
    before, scaled = again(text)
    assert before is None
    assert scaled not in (first, named)

    os.utime(root / "wearable.npz", ns=(1, 1))
    assert _hash(root, data_root=root) == scaled  # another time, the same content
    remembered = json.loads((root.parent / "prepared" / "wearable" / "files.json").read_bytes())
    assert remembered["files"]["wearable.npz"][1] == 1
    _save(root, y=np.arange(80)[::-1] % 4)
    assert _hash(root) is None  # also without the folder of the files, which is recorded
    with pytest.raises(UsageError, match=r"changed since it was prepared \(edited: wearable\.npz\)"):
        _open(root)
    assert state("wearable", prepared_root=root.parent / "prepared", data_root=root) == "changed"
    other = again(text)[1]
    assert other not in (first, scaled)
    (root / "wearable.npz").unlink()
    assert _hash(root, data_root=root) == other  # prepared frames do not need their sources
    forget()
    assert _hash(root) == other  # nor a file that declares them, as in a report


def test_frames_of_an_earlier_version_of_the_readers_are_made_anew(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(tmp_path / "space.py", WEARABLE)
    _prepare(root)
    first = _hash(root)
    later = replace(declared_set.RULES, version=declared_set.RULES.version + 1)
    monkeypatch.setattr(declared_set, "RULES", later)
    assert _hash(root) is None
    _prepare(root)
    assert _hash(root) == first
    monkeypatch.setattr(declared_set, "RULES", replace(later, version=later.version + 1))
    forget()
    assert _hash(root) == first  # no file declares them, as in a report


GENERATOR = """
@dataset(
    "many", classes=("a", "b"), channels=("x", "y"), units="g", sampling_rate=32, window_seconds=2, stride_seconds=1
)
def many(data_root):
    for number in range(24):
        signal = np.load(data_root / f"{number}.npy")
        yield Recording(signal, number % 2, number // 3, time="2020-01-01", gain=[1, 0.5], name=f"r{number}")
"""


def test_a_generator_is_cut_and_scaled(tmp_path: Path) -> None:
    stream = np.random.default_rng(0)
    lengths = stream.integers(50, 200, 24)
    kept = [stream.integers(-99, 99, (2, int(length))).astype(np.int16) for length in lengths]
    for number, signal in enumerate(kept):
        np.save(tmp_path / f"{number}.npy", signal)
    declare(tmp_path / "space.py", GENERATOR)
    manifest = prepare("many", prepared_root=tmp_path / "prepared", data_root=tmp_path).manifest
    frames = open_frames("many", prepared_root=tmp_path / "prepared", leads="all")
    expected = [
        signal[:, begin : begin + 64] * np.array([[1], [0.5]])
        for signal in kept
        for begin in range(0, signal.shape[1] - 64 + 1, 32)
    ]
    assert frames.frames.dtype == np.int16
    np.testing.assert_array_equal(frames.signal(np.arange(len(frames))), np.array(expected, np.float32))
    assert manifest.dropped == {"recording shorter than a frame": int((lengths < 64).sum())}


def test_flat_and_missing_samples(root: Path, tmp_path: Path) -> None:
    x = waves(80, 3, 64)
    x[0, 1] = 2.0  # one channel of three
    x[1] = 3.0
    _save(root, x=x)
    declare(tmp_path / "space.py", WEARABLE)
    assert _prepare(root).manifest.dropped == {"flat line": 1}
    frames = _open(root, leads="all", normalize="zscore")
    assert len(frames) == 79
    assert (frames.signal(np.array([0]))[0, 1] == 0).all()
    x[5, 2, 7] = np.nan
    _save(root, x=x)
    with pytest.raises(
        UsageError, match=r"^dataset 'wearable': signals: recording '5': channel az has samples that are NaN"
    ):
        _prepare(root)
    manifest = _prepare(root, on_error="skip").manifest
    assert not manifest.skipped
    assert manifest.dropped == {"flat line": 1, "missing samples": 1}
    assert (manifest.frames, manifest.instances, manifest.frame_words) == (3 * 78, 78, "frames")


def test_frames_of_single_channels_are_counted_as_such(root: Path, tmp_path: Path) -> None:
    x = waves(80, 3, 64)
    x[5, 2, 7] = np.nan
    _save(root, x=x)
    declare(tmp_path / "space.py", WEARABLE.replace('files=["wearable.npz"]', 'files=["wearable.npz"], leads="single"'))
    manifest = _prepare(root, on_error="skip").manifest
    assert manifest.dropped == {"missing samples": 3}
    assert (manifest.instances, manifest.frame_words) == (3 * 79, "frames of one channel each")


READ_BY_LIBRARIES = {
    "own.npz": "np.load(path)['x']",
    "own.npy": "np.load(path)",
    "own.mat": "scipy.io.loadmat(path)['x']",
    "own.h5": "h5py.File(path)['x'][()]",
    "own.parquet": "pd.read_parquet(path).to_numpy().reshape(12, 1, 8)",
}


def _write(path: Path, array: NDArray[np.float64]) -> None:
    """Write an array as a file of the format of its ending."""
    match path.suffix:
        case ".npz":
            np.savez(path, x=array)
        case ".npy":
            np.save(path, array)
        case ".mat":
            scipy.io.savemat(path, {"x": array})
        case ".h5":
            with h5py.File(path, "w") as file:
                file["x"] = array
        case ".parquet":
            pd.DataFrame(array.reshape(len(array), -1)).to_parquet(path)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # NumPy leaves a truncated .npz file open
@pytest.mark.parametrize("name", mostly_at_night(READ_BY_LIBRARIES, ("own.npz", "own.h5").__contains__))
def test_a_truncated_file_is_named(name: str, tmp_path: Path) -> None:
    """Libraries that read a truncated file leave its name out."""
    path = tmp_path / name
    _write(path, np.random.default_rng(0).normal(size=(12, 1, 8)))
    content = path.read_bytes()
    text = f"""
import h5py, scipy.io
@dataset("own")
def own(data_root):
    path = data_root / "{name}"
    return Recordings({READ_BY_LIBRARIES[name]}, 8, ["a"], "mV", np.arange(12) % 2, ("p", "q"), np.arange(12))
"""
    declare(tmp_path / "space.py", text)
    for size in (0, 3, 40, len(content) // 2, len(content) - 20, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(UsageError) as caught:
            prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path)
        said = str(caught.value)
        assert re.match(rf"dataset 'own': the function raises \w+ in line 8(, reading {re.escape(str(path))})?: ", said)
        assert said.count(name) == 1
        assert said.splitlines() == [said]
        del caught
        gc.collect()
    path.write_bytes(content)
    prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path)


REFUSED: dict[str, tuple[str, str]] = {
    "nothing is returned": ("return None", "the function returns nothing; expected Recordings"),
    "a dictionary is returned": ("return {}", "the function returns a dict; expected Recordings"),
    "it raises": ("raise KeyError('x')", "the function raises KeyError in line 7: 'x'"),
    "it raises an error of its own": ("raise type('Mine', (Exception,), {})('a\\nb')", "raises Mine in line 7: a b"),
    "a file is not there": ("np.load(data_root / 'no.npy')", "the function raises FileNotFoundError in line 7"),
    "infinite samples": ("return good(np.full((12, 1, 8), np.inf))", "signals: recording '0': channel a has samples"),
    "samples too large": ("return good(np.full((12, 1, 8), 1e300))", "signals: recording '0': channel a has samples"),
    "flat lines alone": ("return good(np.ones((12, 1, 8)))", "no usable frame; 12 frames dropped for flat line"),
    "frames too long": (
        "return good(X, window_seconds=9)",
        "classes: no frame|no usable frame; 12 frames dropped for rec",
    ),
    "frames of no sample": ("return good(X, window_seconds=0.001)", "window_seconds: gives frames of 0 samples"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_function_does_wrong_is_one_sentence(what: str, tmp_path: Path) -> None:
    body, says = REFUSED[what]
    text = f"""
X = np.random.default_rng(0).normal(size=(12, 1, 8))
@dataset("own")
def own(data_root):
    # in line 7
    {body}

def good(x, **more):
    return Recordings(x, 8, "a", "g", np.arange(12) % 2, ("p", "q"), np.arange(12), **more)
"""
    declare(tmp_path / "space.py", text.replace('"a", "g"', '["a"], "g"').replace("    # in line 7\n", ""))
    with pytest.raises(UsageError, match=says) as caught:
        prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path)
    assert "\n" not in str(caught.value)
    assert "own" in str(caught.value)
    assert list((tmp_path / "prepared").glob("*")) == []
