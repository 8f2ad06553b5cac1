"""Warnings of libraries about files: no reader drops one without naming it."""

from __future__ import annotations

import ast
import logging
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import ecgdatakit
import edfio
import h5py
import numpy as np
import pandas as pd
import pymatreader
import pytest
import scipy.io
from pydicom.data import get_testdata_file

import clops_sweep
from clops_sweep import Recordings, from_ecg, from_edf, from_mat, from_npz
from clops_sweep.data.files.library_warnings import Harmless, warnings_refused
from clops_sweep.data.files.wfdb_records import load_wfdb, read_annotations, read_header, read_stored
from clops_sweep.data.published.chapman_files import read_diagnostics
from clops_sweep.errors import UsageError
from tests.data.declared_files import write_notes

READERS = Path(clops_sweep.__file__).parent / "data"


def _suppressions(source: str) -> list[int]:
    """Return the lines that drop warnings by neither a message nor a category."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("simplefilter", "filterwarnings", "catch_warnings"):
            action = [argument.value for argument in node.args[:1] if isinstance(argument, ast.Constant)]
            action += [word.value.value for word in node.keywords if word.arg == "action"]  # type: ignore[attr-defined]
            is_named = len(node.args) > 1 or any(word.arg in ("message", "category") for word in node.keywords)
            if action == ["ignore"] and not is_named:
                lines.append(node.lineno)
        if name in ("disable", "setLevel") and ast.unparse(node.func).startswith("logging"):
            lines.append(node.lineno)
        if name == "suppress" and any(ast.unparse(argument).endswith("Warning") for argument in node.args):
            lines.append(node.lineno)
    return lines


def test_no_reader_suppresses_warnings_without_naming_them() -> None:
    files = sorted(READERS.rglob("*.py"))
    assert len(files) > 50
    assert {str(file): _suppressions(file.read_text()) for file in files if _suppressions(file.read_text())} == {}


@pytest.mark.parametrize(
    "line",
    [
        "warnings.simplefilter('ignore')",
        "simplefilter(action='ignore')",
        "warnings.filterwarnings('ignore')",
        "warnings.catch_warnings(action='ignore')",
        "logging.disable()",
    ],
)
def test_a_suppression_without_a_name_is_seen(line: str) -> None:
    assert _suppressions(line) == [1]
    assert _suppressions("warnings.filterwarnings('ignore', message='one', category=UserWarning)") == []


def _edf(folder: Path) -> object:
    signal = edfio.EdfSignal(np.arange(200.0), 100, label="EEG", physical_dimension="uV", physical_range=(-400, 400))
    edfio.Edf([signal]).write(folder / "r.edf")
    return from_edf(folder / "r.edf")


def _bdf(folder: Path) -> object:
    signal = edfio.BdfSignal(np.arange(200.0), 100, label="EEG", physical_dimension="uV", physical_range=(-400, 400))
    edfio.Bdf([signal]).write(folder / "r.bdf")
    return from_edf(folder / "r.bdf")


def _old_mat(folder: Path) -> object:
    scipy.io.savemat(folder / "r.mat", {"val": np.zeros((2, 9))})
    return from_mat(folder / "r.mat")


def _new_mat(folder: Path) -> object:
    with h5py.File(folder / "r.mat", "w", userblock_size=512) as file:
        file["val"] = np.zeros((9, 2))
        file["val"].attrs["MATLAB_class"] = np.bytes_(b"double")
    with open(folder / "r.mat", "r+b") as binary:
        binary.write(b"MATLAB 7.3 MAT-file".ljust(116) + b"\0" * 8 + b"\x00\x02IM")
    return from_mat(folder / "r.mat")


def _npz(folder: Path) -> object:
    np.savez(folder / "r.npz", signal=np.zeros((2, 9)))
    return from_npz(folder / "r.npz")


def _ecg(folder: Path) -> object:
    return from_ecg(str(get_testdata_file("waveform_ecg.dcm")))


def _hdf5(folder: Path) -> object:
    if not (folder / "r.h5").exists():
        with h5py.File(folder / "r.h5", "w") as file:
            file["x"] = np.zeros((4, 1, 9))
    table = pd.DataFrame({"file": ["0", "1", "2", "3"], "kind": ["x", "y", "x", "y"]})
    return Recordings.from_hdf5(
        folder, "*.h5", signals="x", ids=None, table=table, label="kind", channels=["I"], units="mV", sampling_rate=100
    )


def _wfdb_signal(folder: Path) -> object:
    with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):
        load_wfdb().wrsamp("r", 100, ["mV"], ["I"], d_signal=np.arange(100)[:, None], fmt=["80"], adc_gain=[200.0],
                           baseline=[0], write_dir=str(folder))  # fmt: skip
    return read_stored(read_header(folder / "r.hea"))


def _wfdb_annotations(folder: Path) -> object:
    write_notes(folder, "r", [1, 5], ["(N", "(AFIB"])
    return read_annotations(folder / "r.atr", 100.0)


def _xlsx(folder: Path) -> object:
    pd.DataFrame({"FileName": ["a"], "Rhythm": ["SR"]}).to_excel(folder / "r.xlsx")
    return read_diagnostics(folder / "r.xlsx")


@pytest.mark.parametrize("logged", [False, True], ids=["warned", "logged"])
@pytest.mark.parametrize(
    ("read", "library", "function"),
    [
        (_edf, edfio, "read_edf"),
        (_bdf, edfio, "read_bdf"),
        (_old_mat, scipy.io, "loadmat"),
        (_new_mat, pymatreader, "read_mat"),
        (_npz, np, "load"),
        (_ecg, ecgdatakit.FileParser, "parse"),
        (_hdf5, h5py, "File"),
        (_wfdb_signal, load_wfdb(), "rdrecord"),
        (_wfdb_annotations, load_wfdb(), "rdann"),
        (_xlsx, pd, "read_excel"),
    ],
)
def test_a_warning_of_a_library_refuses_the_file(
    read: Callable[[Path], object],
    library: object,
    function: str,
    logged: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert read(tmp_path) is not None
    of_the_library = getattr(library, function)

    def warning(*arguments: object, **options: object) -> object:
        if logged:
            logging.getLogger("a.library").warning("half of it is lost")
        else:
            warnings.warn("half of it is lost", stacklevel=2)
        return of_the_library(*arguments, **options)

    monkeypatch.setattr(library, function, warning)
    with pytest.raises(
        UsageError, match=r"(r\.|waveform_ecg).*: not wholly readable as .*: half of it is lost; repair"
    ):
        read(tmp_path)


def test_named_warnings_and_those_about_code_are_dropped() -> None:
    with warnings_refused(Path("x"), "table", [Harmless("as .*ly", "a test")]):
        warnings.warn("as likely", stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        logging.getLogger("a.library").warning("as rarely")
        logging.getLogger("a.library").info("busy")
    for message in ("not as likely", "other"):
        with (
            pytest.raises(UsageError, match=re.escape(message)),
            warnings_refused(Path("x"), "table", [Harmless("as", "")]),
        ):
            warnings.warn(message, stacklevel=1)


def test_a_log_that_does_not_reach_the_root_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("a_library")
    monkeypatch.setattr(logger, "propagate", False)
    refused = pytest.raises(UsageError, match=r"x\.bin: not wholly readable as file: part 2 is not loaded")
    with refused, warnings_refused(tmp_path / "x.bin", "file", library="a_library.reader"):
        logging.getLogger("a_library.reader.parts").warning("part 2 is not loaded")
    assert logger.handlers == []
