"""`from_mat` and `from_npz`: classes of MATLAB in files as MATLAB writes them, of versions 7 and 7.3."""

from __future__ import annotations

import struct
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import csc_array

from clops_sweep import from_mat, from_npz
from clops_sweep.errors import UsageError

_REFERENCE = np.array([[0xDD000000, 2, 1, 1, 1, 1]], "u4")
"""What a file holds instead of the value of an object."""


def _element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + b"\0" * (-len(data) % 8)


def _object(name: str, kind: str) -> bytes:
    """Return an object as a file of version 7 holds it."""
    numbers = _element(6, struct.pack("<II", 13, 0)) + _element(5, struct.pack("<ii", 6, 1)) + _element(1, b"")
    numbers += _element(6, _REFERENCE.tobytes())
    texts = b"".join(_element(1, text.encode()) for text in (name, "MCOS", kind))
    return _element(14, _element(6, struct.pack("<II", 17, 0)) + texts + _element(14, numbers))


def _cell_of_object(name: str, kind: str) -> bytes:
    dimensions = _element(5, struct.pack("<ii", 1, 2)) + _element(1, name.encode())
    return _element(14, _element(6, struct.pack("<II", 1, 0)) + dimensions + 2 * _object("", kind))


def _old(path: Path) -> None:
    cell = np.empty(2, object)
    cell[:] = ["AF", "SR"]
    ecg = {"data": np.arange(6.0).reshape(2, 3), "person": "p1", "label": "AF"}
    variables = {"val": np.ones((2, 3)), "ecg": ecg, "kinds": cell, "none": "", "sparse": csc_array(np.eye(2, 3))}
    savemat(path, {**variables, "small": np.int8(7), "yes": np.bool_(True)})
    with open(path, "ab") as binary:
        binary.write(_object("who", "string") + _object("when", "datetime") + _cell_of_object("two", "string"))


def _put(group: h5py.Group, name: str, value: object, kind: str) -> None:
    data = group.create_dataset(name, data=value)
    data.attrs["MATLAB_class"] = np.bytes_(kind.encode())


def _text(group: h5py.Group, name: str, text: str) -> None:
    units = np.frombuffer(text.encode("utf-16-le"), "<u2")[:, None]
    _put(group, name, units, "char")


def _cell(file: h5py.File, name: str, parts: list[str]) -> None:
    data = file.create_dataset(name, shape=(1, len(parts)), dtype=h5py.ref_dtype)
    data[0] = [file[part].ref for part in parts]
    data.attrs["MATLAB_class"] = np.bytes_(b"cell")


def _new(path: Path) -> None:
    with h5py.File(path, "w", userblock_size=512) as file:
        _put(file, "val", np.ones((3, 2)), "double")
        ecg, parts = file.create_group("ecg"), file.create_group("#refs#")
        _put(ecg, "data", np.arange(6.0).reshape(2, 3).T, "double")
        _text(ecg, "person", "p1")
        _text(ecg, "label", "AF")
        _text(parts, "a", "AF")
        _text(parts, "b", "SR")
        _text(file, "name", "\N{GREEK SMALL LETTER OMEGA}\N{ANATOMICAL HEART}")
        for group, name, kind in (
            (file, "who", "string"),
            (file, "when", "datetime"),
            (file, "list", "table"),
            (parts, "c", "string"),
            (ecg, "note", "string"),
        ):
            _put(group, name, _REFERENCE, kind)
        _cell(file, "kinds", ["#refs#/a", "#refs#/b"])
        _cell(file, "one", ["#refs#/c"])
        _cell(file, "two", ["#refs#/a", "#refs#/c"])
        _put(file, "none", np.zeros(2, "u8"), "char")
        file["none"].attrs["MATLAB_empty"] = np.uint8(1)
        _put(file, "small", np.array([[7]], "i1"), "int8")
        _put(file, "yes", np.array([[1]], "u1"), "logical")
        sparse = file.create_group("sparse")
        sparse.attrs["MATLAB_class"], sparse.attrs["MATLAB_sparse"] = np.bytes_(b"double"), np.uint64(2)
        sparse["data"], sparse["ir"], sparse["jc"] = [1.0, 1.0], [0, 1], [0, 1, 2, 2]
    with open(path, "r+b") as binary:
        binary.write(b"MATLAB 7.3 MAT-file, Platform: PCWIN64".ljust(116) + b"\0" * 8 + b"\x00\x02IM")


@pytest.fixture(params=["old", "new"])
def mat(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of version 7 or 7.3 with variables of many classes."""
    (_old if request.param == "old" else _new)(tmp_path / "x.mat")
    return tmp_path / "x.mat"


def test_values_that_a_file_holds(mat: Path) -> None:
    fields = {"label": "ecg.label", "patient": "ecg.person", "split": "none", "name": "small", "channels": "kinds"}
    found = from_mat(mat, "ecg.data", **fields)
    np.testing.assert_array_equal(found.signal, np.arange(6.0).reshape(2, 3))
    assert (found.label, found.patient, found.split, found.name) == ("AF", "p1", "", 7)
    assert found.channels == ["AF", "SR"]
    np.testing.assert_array_equal(from_mat(mat, "sparse", label="yes").signal, np.eye(2, 3))
    assert from_mat(mat, label="yes").label == 1


@pytest.mark.parametrize("argument", ["label", "patient", "time", "split", "name"])
def test_objects_of_version_7_are_refused(argument: str, tmp_path: Path) -> None:
    _old(tmp_path / "x.mat")
    sentence = r"x\.mat: has no variable 'who'; it has val, .*, strings, tables or other objects of MATLAB, which only"
    with pytest.raises(UsageError, match=sentence):
        from_mat(tmp_path / "x.mat", **{argument: "who"})


@pytest.mark.parametrize("argument", ["label", "patient", "time", "split", "name"])
@pytest.mark.parametrize(
    ("variable", "kind"),
    [
        ("who", "a string, an object that only MATLAB reads; save char"),
        ("when", "a datetime, an object that only MATLAB reads; save char"),
        ("list", "a table, an object that only MATLAB reads; save its columns"),
        ("one", "a string"),
        ("two", "a string"),
        ("ecg.note", "a string"),
    ],
)
def test_objects_of_version_7_3_are_refused(variable: str, kind: str, argument: str, tmp_path: Path) -> None:
    _new(tmp_path / "x.mat")
    with pytest.raises(UsageError, match=rf"x\.mat: variable '{variable}' is or holds {kind}"):
        from_mat(tmp_path / "x.mat", **{argument: variable})


def test_texts_of_version_7_3(tmp_path: Path) -> None:
    _new(tmp_path / "x.mat")
    name = "\N{GREEK SMALL LETTER OMEGA}\N{ANATOMICAL HEART}"
    assert from_mat(tmp_path / "x.mat", patient="name").patient == name
    with pytest.raises(UsageError, match=r"x\.mat: variable 'name' is empty or text; expected samples"):
        from_mat(tmp_path / "x.mat", "name")
    with pytest.raises(UsageError, match=r"no variable 'ecg\.x'; 'ecg' has the fields data, label, note, person"):
        from_mat(tmp_path / "x.mat", label="ecg.x")


def test_objects_within_cells_of_version_7_are_refused(tmp_path: Path) -> None:
    _old(tmp_path / "x.mat")
    with pytest.raises(UsageError, match=r"x\.mat: variable 'two' is or holds a string, an object that only MATLAB"):
        from_mat(tmp_path / "x.mat", patient="two")


def test_npz_files_name_their_variables(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", signal=np.zeros((2, 9)), who="p1")
    assert from_npz(tmp_path / "x.npz", patient="who").patient == "p1"
    with pytest.raises(UsageError, match=r"x\.npz: has no variable 'x'; it has signal, who"):
        from_npz(tmp_path / "x.npz", "x")
