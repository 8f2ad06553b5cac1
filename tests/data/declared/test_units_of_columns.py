"""Units that text and Parquet files state in names of columns, comments or attributes: another one is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clops_sweep.data.declared.text_table import unit_of
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, waves

X = waves(8, 2, 120).astype(float)


def prepared(folder: Path, ending: str, more: str = "") -> tuple[str, ...]:
    """Prepare the files r0 to r7 as in mV, and return the notes."""
    rows = [f"r{number},{'AB'[number % 2]}" for number in range(8)]
    (folder / "labels.csv").write_text("\n".join(["name,label", *rows]))
    declare(
        folder / "space.py",
        f"""
        @dataset("own", one_recording_per_person=True)
        def own(data_root):
            more = dict(table="labels.csv", name="name", label="label", sampling_rate=100, units="mV"{more})
            return Recordings.from_folder(data_root, "r*.{ending}", **more)
        """,
    )
    return prepare("own", prepared_root=folder / "prepared", data_root=folder, workers=1).manifest.notes


def texts(folder: Path, head: str) -> None:
    for number, signal in enumerate(X):
        lines = [",".join(f"{value:.4f}" for value in row) for row in signal.T]
        (folder / f"r{number}.csv").write_text("\n".join([head, *lines]), "utf-8")


@pytest.mark.parametrize(
    ("title", "unit"),
    [
        ("ecg_uV", "uV"),
        ("EEG Fpz mV", "mV"),
        ("a/\N{MICRO SIGN}V", "\N{MICRO SIGN}V"),
        ("lead II in millivolts", "millivolts"),
        ("acc_x_m/s2", "m/s2"),
        ("ecg [uV]", "uV"),
        ("ecg", ""),
        ("acc_g", ""),  # g may be a name
        ("lead_V", ""),
        ("rmv", ""),
        ("mV", ""),
    ],
)
def test_the_unit_in_the_name_of_a_column(title: str, unit: str) -> None:
    assert unit_of(title) == unit


@pytest.mark.parametrize(
    "head",
    [
        "a_uV,b_uV",
        "a in uV,b in uV",
        "# units: uV\na,b",
        "# Unit = uV\na,b",
        "# units: uV, uV\na,b",
        "# units: mV,uV\na,b",
    ],
)
def test_another_unit_in_a_text_is_refused(head: str, tmp_path: Path) -> None:
    texts(tmp_path, head)
    with pytest.raises(UsageError, match=r"column '[ab].*' is in uV, not in mV; give its unit as units"):
        prepared(tmp_path, "csv")
    prepared(tmp_path, "csv", ", gain=0.001")


@pytest.mark.parametrize(
    "head", ["a_mV,b_mV", "# units: mV\na,b", "# units: of the recorder\na,b", "# united: uV\na,b"]
)
def test_the_same_unit_or_none_is_read(head: str, tmp_path: Path) -> None:
    texts(tmp_path, head)
    assert not [note for note in prepared(tmp_path, "csv") if "unit" in note]


@pytest.mark.parametrize("attributes", [{"units": "uV"}, {"unit": "uV"}, {"units": {"a": "mV", "b": "uV"}}])
def test_another_unit_in_the_attributes_of_pandas_is_refused(attributes: dict[str, object], tmp_path: Path) -> None:
    for number, signal in enumerate(X):
        frame = pd.DataFrame(signal.T, columns=["a", "b"])
        frame.attrs = attributes
        frame.to_parquet(tmp_path / f"r{number}.parquet")
    with pytest.raises(UsageError, match=r"column '[ab]' is in uV, not in mV"):
        prepared(tmp_path, "parquet")
    prepared(tmp_path, "parquet", ", gain=0.001")


def test_the_unit_of_a_column_counts_before_that_of_the_file(tmp_path: Path) -> None:
    for number, signal in enumerate(X):
        fields = [pa.field(name, pa.float64(), metadata={"unit": "mV"}) for name in "ab"]
        table = pa.table(list(signal), schema=pa.schema(fields, metadata={"units": "uV"}))
        pq.write_table(table, tmp_path / f"r{number}.parquet")
    assert not [note for note in prepared(tmp_path, "parquet") if "unit" in note]


@pytest.mark.parametrize("head", ["Sampling Rate,250\na,b", "fs,250\na,b", "Sample Frequency,250 Hz\na,b"])
def test_a_first_line_with_the_rate_is_no_line_of_names(head: str, tmp_path: Path) -> None:
    texts(tmp_path, head)
    with pytest.raises(UsageError, match=r"its first line says 250 samples a second and names no columns; give skip_l"):
        prepared(tmp_path, "csv")
    prepared(tmp_path, "csv", ", skip_lines=1")


def test_names_that_begin_as_a_rate_are_names(tmp_path: Path) -> None:
    texts(tmp_path, "fs,ps")
    prepared(tmp_path, "csv", ", channels=['fs', 'ps']")
    assert np.isfinite(X).all()
