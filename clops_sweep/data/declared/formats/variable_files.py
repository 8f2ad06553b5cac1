"""`from_mat` and `from_npz`: files of named variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from clops_sweep.arguments import named_arguments
from clops_sweep.data.declared.formats.readers import opened
from clops_sweep.data.declared.one_by_one import Recording, RecordingOfFile
from clops_sweep.data.declared.stated_variables import (
    DISTANCES,
    NAMES,
    RATES,
    TIMES,
    UNITS,
    StatedVariables,
)
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.files.library_warnings import Harmless
from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.errors import UsageError, shown

_PLAIN = frozenset((
    "char", "cell", "struct", "logical", "double", "single", "int8", "int16", "int32", "int64", "uint8", "uint16",
    "uint32", "uint64",
))  # fmt: skip
"""Classes of MATLAB whose values a file holds as they are; of others, such as string, it holds numbers of objects."""

_TEXTS = ("string", "datetime", "duration", "calendarDuration", "categorical")
_TABLES = ("table", "timetable")

_SAMPLES_OF_EEGLAB = (".fdt", ".dat")
"""Endings of files to which EEGLAB writes samples apart from the .set file, in lower case."""

_STATED = (*RATES, *DISTANCES, *TIMES, *UNITS, *NAMES)
"""Names of variables that state facts about the samples."""

_CHECKED = (
    Harmless(
        r"Complex objects \(like classes\) are not supported|pymatreader cannot import Matlab string variables",
        "_require_plain refuses each value in use that holds an object; others are not read",
    ),
)
_NAMES_ALONE = (
    *_CHECKED,
    Harmless(r'Duplicate variable name "None"', "scipy names each object so; none of their values is used"),
)


@named_arguments
def from_mat(path: str | PathLike[str], signal: str = "val", **fields: Any) -> Recording:
    """Return the recording of a MATLAB file; version 7.3 needs pymatreader.

    Args:
        path: the file.
        signal: the variable with the samples [channels, samples]; `"ecg.data"` is a field of a struct.
        fields: other fields of `Recording`: `label="rhythm"` is a variable of the file, other values are kept.

    Raises:
        UsageError: the file is invalid, lacks the variable, or holds it as an object, such as a MATLAB string or table.
    """
    path = Path(path)
    names = _named(signal, fields)
    tops = sorted({*(name.partition(".")[0] for name in names), *_STATED})
    is_new = False

    def read(scipy: Any) -> Any:
        nonlocal is_new
        try:
            with open_regular(path) as binary:
                return scipy.loadmat(binary, simplify_cells=True, variable_names=tops)
        except NotImplementedError:
            is_new = True
            return None

    variables = opened(path, "MAT file", "scipy.io", "mat", read)
    if not is_new:
        return _of_variables(path, variables, signal, fields, lambda: _old_names(path))
    variables = opened(
        path, "MAT file", "pymatreader", "mat", lambda library: library.read_mat(str(path), tops), _CHECKED
    )
    there = opened(path, "MAT file", "h5py", "mat", lambda h5py: _new_names(path, h5py, names))
    return _of_variables(path, variables, signal, fields, lambda: there)


@named_arguments
def from_npz(path: str | PathLike[str], signal: str = "signal", **fields: Any) -> Recording:
    """Return the recording of an NPZ file; arguments as in `from_mat`. Pickled arrays are refused."""
    path = Path(path)

    def read(numpy: Any) -> dict[str, Any]:
        with open_regular(path) as binary:
            if binary.read(2) != b"PK":
                raise ValueError("it is not a ZIP archive")
            binary.seek(0)
            with numpy.load(binary, allow_pickle=False) as file:
                return dict(file)

    variables = opened(path, "NPZ file", "numpy", "", read)
    return _of_variables(path, variables, signal, fields, lambda: list(variables))


def _named(signal: str, fields: dict[str, Any]) -> list[str]:
    """Return the names of the variables in use."""
    named = [value for key, value in fields.items() if isinstance(value, str) and key != "units"]
    return [signal, *named]


def _of_variables(
    path: Path, variables: Any, signal: str, fields: dict[str, Any], names: Callable[[], Sequence[str]]
) -> Recording:
    """Return a recording from named variables; `names` lists all of the file."""

    def value(name: str) -> Any:
        value = variables
        *outer, last = name.split(".")
        for number, key in enumerate([*outer, last]):
            if isinstance(value, dict) and key in value:
                value = value[key]
                continue
            if number == 0:
                there = f"it has {', '.join(names()) or 'none'}"
            else:
                inside = ".".join(outer[:number])
                fields = f"has the fields {', '.join(sorted(value))}" if isinstance(value, dict) else "is no struct"
                there = f"{shown(inside)} {fields}"
            raise UsageError(f"{shorten(path)}: has no variable {shown(name)}; {there}")
        for kind in _objects(value):
            _require_plain(path, name, kind)
        return _simple(value)

    samples = value(signal)
    if isinstance(samples, str) and samples.lower().endswith(_SAMPLES_OF_EEGLAB):
        raise UsageError(
            f"{shorten(path)}: variable {shown(signal)} names {samples}, the file of EEGLAB with the samples; read "
            "both by from_mne"
        )
    if isinstance(samples, str):
        raise UsageError(f"{shorten(path)}: variable {shown(signal)} is empty or text; expected samples")
    read = {key: value(each) if isinstance(each, str) and key != "units" else each for key, each in fields.items()}
    stated = _stated(variables, signal)
    if "timestamps" in read:
        stated = replace(stated, times={})
    if read.get("gain") is not None:
        stated = replace(stated, units={})
    recording = RecordingOfFile(signal=samples, **read, stated=stated)
    return recording.with_notes_on_given()


def _stated(variables: Mapping[str, Any], signal: str) -> StatedVariables:
    """Return what variables beside the samples, or at the top, state."""
    beside: Any = variables
    for key in signal.split(".")[:-1]:
        beside = beside[key]
    holders = []
    for holder in (beside, variables):
        if isinstance(holder, Mapping):
            holders.append({name: _simple(holder[name]) for name in _STATED if name in holder})
    return StatedVariables.of(holders)


def _simple(value: Any) -> Any:
    """Return a value without what files of MATLAB wrap it in."""
    if hasattr(value, "toarray"):  # a sparse matrix
        value = value.toarray()
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()
    if isinstance(value, np.ndarray) and not value.size and value.ndim < 2:
        return ""  # how both libraries give empty text
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        return value.tolist()
    if isinstance(value, str):  # version 7.3 has UTF-16
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def _require_plain(path: Path, name: str, kind: str) -> None:
    """Refuse a value of a class of which a file holds no values."""
    if kind in _PLAIN:
        return
    advice = "numbers or char"
    if kind in _TEXTS:
        advice = "char(x) for x"
    if kind in _TABLES:
        advice = "its columns, each a variable of numbers or char"
    article = "an" if kind == "object" else "a"
    raise UsageError(
        f"{shorten(path)}: variable {shown(name)} is or holds {article} {kind}, an object that only MATLAB reads; "
        f"save {advice}"
    )


def _objects(value: Any) -> Iterator[str]:
    """Yield the classes of the objects within a value that scipy read."""
    from scipy.io.matlab import MatlabFunction, MatlabOpaque

    if isinstance(value, MatlabFunction):
        yield "function_handle"
    elif isinstance(value, MatlabOpaque):
        record: Any = value.flat[0]
        texts = [part for part in record if isinstance(part, str | bytes)]
        names = [part.decode() if isinstance(part, bytes) else part for part in texts]
        yield next((name for name in reversed(names) if name and name != "MCOS"), "object")
    elif isinstance(value, dict):
        for part in value.values():
            yield from _objects(part)
    elif isinstance(value, list) or (isinstance(value, np.ndarray) and value.dtype.kind == "O"):
        for part in value:
            yield from _objects(part)


def _old_names(path: Path) -> list[str]:
    """Return the names of a file up to version 7; those of objects follow in a phrase, as scipy calls each "None"."""

    def read(scipy: Any) -> Any:
        with open_regular(path) as binary:
            return scipy.loadmat(binary)

    variables = opened(path, "MAT file", "scipy.io", "mat", read, _NAMES_ALONE)
    names = [name for name in variables if not name.startswith("__") and name != "None"]
    if "None" in variables:
        names.append("strings, tables or other objects of MATLAB, which only MATLAB reads (save char or numbers)")
    return names


def _new_names(path: Path, h5py: Any, used: Sequence[str]) -> list[str]:
    """Return the names of a file of version 7.3.

    Raises:
        UsageError: a variable in use holds an object.
    """
    with h5py.File(path) as file:
        for name in used:
            held = file.get(name.replace(".", "/"))
            for kind in () if held is None else _classes(h5py, held):
                _require_plain(path, name, kind)
        return [name for name in file if not name.startswith("#")]


def _classes(h5py: Any, held: Any) -> Iterator[str]:
    """Yield the classes of a variable of version 7.3 and of what its cells and fields hold."""
    kind = held.attrs.get("MATLAB_class")
    if kind is not None:
        yield kind.decode() if isinstance(kind, bytes) else str(kind)
    if isinstance(held, h5py.Group):
        for name in held:
            yield from _classes(h5py, held[name])
    elif held.dtype == h5py.ref_dtype:
        for reference in held[()].flat:
            yield from _classes(h5py, held.file[reference])
