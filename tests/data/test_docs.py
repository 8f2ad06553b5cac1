"""The tables in docs/results/datasets.md equal the output of the command."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from clops_sweep.cli.commands import command
from clops_sweep.data.frames import FrameSet
from tests.conftest import prepare_once
from tests.data.picture import draw_tracings, one_tracing_per_class

FOLDER = Path(__file__).parents[2] / "docs" / "results"
DOCUMENT = (FOLDER / "datasets.md").read_text(encoding="utf-8")
TABLES = runpy.run_path(str(FOLDER / "datasets.py"))["tables"]


@pytest.mark.parametrize("name", ["mitbih", "mitbih_vfdb", "physionet2020", "ptbxl"])
def test_tables_of_real_data_are_what_the_command_prints(name: str, data_root: Path, prepared_root: Path) -> None:
    prepare_once(name, prepared_root, data_root)
    _assert_the_page_has(TABLES(name, "--data-root", str(data_root), "--prepared-root", str(prepared_root)))


def test_tables_of_generated_ecg_are_what_the_command_prints(prepared_root: Path) -> None:
    _assert_the_page_has(TABLES("synthetic", "--prepared-root", str(prepared_root)))


def _assert_the_page_has(tables: Iterator[str]) -> None:
    found = list(tables)
    assert len(found) >= 2
    for table in found:
        assert table in DOCUMENT


def test_counts_per_patient_add_up_to_those_per_class(prepared_root: Path) -> None:
    arguments = ["data", "prepare", "synthetic", "--markdown", "--prepared-root", str(prepared_root)]
    printed = CliRunner().invoke(command, arguments, standalone_mode=False).stdout
    totals = {"training": [0] * 12, "validation": [0] * 12, "test": [0] * 12}
    for _, part, *counts in _rows(printed, "synthetic: frames per patient"):
        totals[part] = [total + int(count or 0) for total, count in zip(totals[part], counts, strict=True)]
    classes = _rows(printed, "synthetic: frames (patients) per class, lead II of 12")[:-1]
    for position, (_, *cells) in enumerate(classes):
        leads = [totals[part][position] / int(cell.split()[0]) for part, cell in zip(totals, cells, strict=True)]
        assert leads in ([1.0] * 3, [12.0] * 3)


def _rows(printed: str, title: str) -> list[list[str]]:
    """Return the cells of the table after a title."""
    table = re.search(rf"^ *{re.escape(title)} *\n(?: *\n)+((?:\|.*\n)+)", printed, re.MULTILINE)
    assert table
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()[2:]]


def test_the_picture_shows_every_class_of_another_patient(synthetic: FrameSet) -> None:
    tracings = one_tracing_per_class(synthetic, seed=1)
    assert [tracing.label for tracing in tracings] == list(synthetic.classes)
    assert len({tracing.patient for tracing in tracings}) == 12
    figure = draw_tracings(tracings, 5.0, "mV")
    assert len(figure.axes) == 12
