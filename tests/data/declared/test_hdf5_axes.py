"""HDF5 files as MATLAB writes them, with reversed axes, and complex numbers in every kind of file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy.io import savemat

from clops_sweep import Recording, from_mat, from_npz
from clops_sweep.data.declared.recordings import Recordings
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, waves

X = waves(20, 2, 400, seed=5)
BODY = """
@dataset("own", files=["h"])
def own(data_root):
    return Recordings.from_hdf5(data_root / "h", "*.mat", signals="x", ids={ids}, table="t.csv", label="kind",
        channels=("I", "II"), units="mV", sampling_rate=100)
"""


def _text(file: h5py.File, name: str, text: list[str]) -> None:
    """Write a matrix of characters as MATLAB does: [length, rows] for rows of text."""
    codes = np.array([[ord(letter) for letter in row] for row in text], "u2")
    data = file.create_dataset(name, data=codes.T)
    data.attrs["MATLAB_class"] = np.bytes_(b"char")


def _write(folder: Path, marked: bool, kind: str | None, axes: tuple[int, int, int]) -> None:
    names = [f"r{number:02}" for number in range(20)] if kind in ("char", "cell") else [str(n) for n in range(20)]
    (folder / "h").mkdir()
    rows = [f"{name},{'xy'[number % 2]}" for number, name in enumerate(names)]
    (folder / "h" / "t.csv").write_text("\n".join(["file,kind", *rows]))
    with h5py.File(folder / "h" / "x.mat", "w") as file:
        data = file.create_dataset("x", data=X.transpose(axes).T)
        if marked:
            data.attrs["MATLAB_class"] = np.bytes_(b"single")
        if kind == "char":
            _text(file, "id", names)
        if kind == "cell":
            references = file.create_dataset("id", shape=(1, 20), dtype=h5py.ref_dtype)
            references.attrs["MATLAB_class"] = np.bytes_(b"cell")
            for number, name in enumerate(names):
                _text(file, f"#refs#/{number}", [name])
                references[0, number] = file[f"#refs#/{number}"].ref
        if kind == "double":
            file.create_dataset("id", data=np.arange(20.0)[None]).attrs["MATLAB_class"] = np.bytes_(b"double")


@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2, 1)])
@pytest.mark.parametrize(
    ("marked", "kind"),
    [(True, None), (True, "char"), (True, "cell"), (True, "double"), (False, None), (False, "double")],
)
def test_arrays_of_matlab_are_read_by_their_own_axes(
    marked: bool, kind: str | None, axes: tuple[int, int, int], tmp_path: Path
) -> None:
    _write(tmp_path, marked, kind, axes)
    declare(tmp_path / "space.py", BODY.format(ids=None if kind is None else "'id'"))
    made = prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1).manifest
    frames = open_frames("own", prepared_root=tmp_path / "prepared", leads="all")
    np.testing.assert_array_equal(frames.signal(np.arange(20)), X)
    assert frames.labels.tolist() == [0, 1] * 10
    assert made.dropped == {}


def _complex_hdf5(path: Path, matlab: bool) -> None:
    values = (X[:, :, :50] + 1j).astype(np.complex64)
    if matlab:
        values = values.view([("real", "f4"), ("imag", "f4")])
    with h5py.File(path, "w") as file:
        file["x"] = values
    (path.parent / "t.csv").write_text("\n".join(["file,kind", *(f"{n},{'xy'[n % 2]}" for n in range(20))]))


def _refused(argument: str, call: Any) -> None:
    with pytest.raises(UsageError, match=argument):
        call()


@pytest.mark.parametrize("matlab", [False, True])
def test_complex_samples_of_hdf5_files_are_refused(matlab: bool, tmp_path: Path) -> None:
    _complex_hdf5(tmp_path / "x.hdf5", matlab)
    _refused(
        r"x\.hdf5: x holds complex numbers; expected real ones",
        lambda: Recordings.from_hdf5(
            tmp_path, signals="x", table="t.csv", label="kind", channels=("I", "II"), units="mV", sampling_rate=100
        ),
    )


@pytest.mark.parametrize("ending", ["mat", "npz", "npy", "arrays", "channels"])
def test_complex_samples_are_refused(ending: str, tmp_path: Path) -> None:
    values = (X[:, :, :50] + 1j).astype(np.complex64)
    given = {"channels": ("I", "II"), "units": "mV", "sampling_rate": 100}
    more = {"classes": ("x", "y")}

    def read(path: Path) -> Recording:
        label = "xy"[int(path.stem[1:]) % 2]
        if ending == "mat":
            return Recording(from_mat(path, "x").signal, label, **given)
        if ending == "channels":
            return Recording(list(values[0]), label, **given | {"sampling_rate": [100, 50]})
        return Recording(from_npz(path, "x").signal, label, **given)

    for number in range(4):
        path = tmp_path / f"r{number}.{ending}"
        if ending == "mat":
            savemat(path, {"x": values[number]})
        elif ending == "npz":
            np.savez(path, x=values[number])
        else:
            with path.open("wb") as file:
                np.save(file, values[number])
    if ending == "arrays":
        _refused("signals: .*complex", lambda: Recordings(values, **given, labels=[0, 1] * 10, patients=None, **more))
        return
    if ending == "npy":
        (tmp_path / "t.csv").write_text("file,kind\nr0,x\nr1,y\nr2,x\nr3,y\n")
        _refused("complex", lambda: Recordings.from_folder(tmp_path, "*.npy", table="t.csv", label="kind", **given))
        return
    found = Recordings.from_folder(tmp_path, f"*.{ending}", read=read, **more)
    source = next(iter(found.sources()))
    _refused("complex", lambda: source.read(found.common))


def test_a_file_where_a_folder_is_expected_names_both_forms(tmp_path: Path) -> None:
    _complex_hdf5(tmp_path / "e.hdf5", False)
    _refused(
        r'e\.hdf5: is a file where a folder is expected; give from_hdf5\(folder, "?\'?e\.hdf5.*"\*\.hdf5"',
        lambda: Recordings.from_hdf5(
            tmp_path / "e.hdf5", signals="x", table="t.csv", label="kind", channels=("I", "II"), units="mV",
            sampling_rate=100,
        ),
    )  # fmt: skip


ONE = """
@dataset("own", files=["h"])
def own(data_root):
    return Recordings.from_hdf5(data_root / "h", "*.h5", signals="{signals}", table="t.csv", label="kind",
        channels=("I",), units="mV", sampling_rate=100)
"""


def _of_one_channel(root: Path, signals: str) -> np.ndarray[Any, Any]:
    (root / "h" / "t.csv").write_text("\n".join(["file,kind", *(f"{n},{'xy'[n % 2]}" for n in range(20))]))
    declare(root / "space.py", ONE.format(signals=signals))
    prepare("own", prepared_root=root / "prepared", data_root=root, workers=1)
    return open_frames("own", prepared_root=root / "prepared", leads="all").signal(np.arange(20))


@pytest.mark.parametrize(("reverse", "marked"), [(False, False), (True, False), (True, True)])
def test_rows_of_one_channel_are_recordings(reverse: bool, marked: bool, tmp_path: Path) -> None:
    (tmp_path / "h").mkdir()
    with h5py.File(tmp_path / "h" / "x.h5", "w") as file:
        data = file.create_dataset("x", data=X[:, 0].T if reverse else X[:, 0])
        if marked:
            data.attrs["MATLAB_class"] = np.bytes_(b"single")
    assert np.array_equal(_of_one_channel(tmp_path, "x"), X[:, 0].astype(np.float32))


def test_groups_of_one_channel_beside_others(tmp_path: Path) -> None:
    (tmp_path / "h").mkdir()
    with h5py.File(tmp_path / "h" / "x.h5", "w") as file:
        file["meta/rate"] = 100
        for number, row in enumerate(X[:, 0]):
            file[f"{number}/ecg"] = row
    assert np.array_equal(_of_one_channel(tmp_path, "*/ecg"), X[:, 0].astype(np.float32))


def test_files_of_one_recording_with_an_axis_of_recordings(tmp_path: Path) -> None:
    (tmp_path / "h").mkdir()
    for number, row in enumerate(X[:, :1]):
        with h5py.File(tmp_path / "h" / f"{number}.h5", "w") as file:
            file["x"] = row[None]
    assert np.array_equal(_of_one_channel(tmp_path, "x"), X[:, 0].astype(np.float32))


def test_files_that_number_their_recordings_need_ids(tmp_path: Path) -> None:
    (tmp_path / "h").mkdir()
    for name in "ab":
        with h5py.File(tmp_path / "h" / f"{name}.h5", "w") as file:
            file["x"] = X[:10, :1]
    with pytest.raises(UsageError, match=r"b.h5: its recording '0' has the name of one in a.h5; give ids"):
        _of_one_channel(tmp_path, "x")


@pytest.mark.parametrize(("shape", "channels"), [((20, 2, 20), 2), ((4, 50, 4), 4), ((20, 20), 1)])
@pytest.mark.parametrize("marked", [False, True])
def test_a_shape_that_reads_the_same_in_both_orders_is_refused_without_a_mark(
    shape: tuple[int, ...], channels: int, marked: bool, tmp_path: Path
) -> None:
    """Recordings were taken as the first axis, which is the last one in files of h5write."""
    with h5py.File(tmp_path / "x.mat", "w") as file:
        data = file.create_dataset("x", data=np.arange(np.prod(shape), dtype="f4").reshape(shape))
        if marked:
            data.attrs["MATLAB_class"] = np.bytes_(b"single")
    rows = [f"{number},{'xy'[number % 2]}" for number in range(shape[0])]
    (tmp_path / "t.csv").write_text("\n".join(["file,kind", *rows]))

    def read() -> Recordings:
        names = [f"c{number}" for number in range(channels)]
        return Recordings.from_hdf5(
            tmp_path, "*.mat", signals="x", table="t.csv", label="kind", channels=names, units="mV", sampling_rate=100
        )

    if marked:
        read()
        return
    with pytest.raises(UsageError, match=r"x\.mat: x has the shape .*, which does not tell whether recordings are its"):
        read()
