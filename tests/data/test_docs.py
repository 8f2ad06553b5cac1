"""The tables in docs/datasets.md equal the output of the command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from clops_sweep.cli.commands import command
from clops_sweep.data.frames import FrameSet
from tests.conftest import prepare_once
from tests.data.picture import draw_tracings, one_tracing_per_class

DOCUMENT = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")


def _rows(title: str) -> list[list[str]]:
    """Return the cells of the table after a title."""
    after = DOCUMENT.split(f"*{title}*", 1)[1].strip()
    table = after.split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


@pytest.mark.parametrize("name", ["mitbih", "mitbih_vfdb", "physionet2020", "ptbxl"])
def test_tables_of_real_data_are_what_the_command_prints(name: str, data_root: Path, prepared_root: Path) -> None:
    prepare_once(name, prepared_root, data_root)
    _assert_printed_is_documented(name, "--data-root", str(data_root), "--prepared-root", str(prepared_root))


def test_tables_of_generated_ecg_are_what_the_command_prints(prepared_root: Path) -> None:
    _assert_printed_is_documented("synthetic", "--prepared-root", str(prepared_root))


def _assert_printed_is_documented(name: str, *roots: str) -> None:
    printed = CliRunner().invoke(command, ["data", "prepare", name, "--markdown", *roots], standalone_mode=False)
    assert printed.exception is None
    tables = re.findall(rf"^ *({name}\b.*?) *\n(?: *\n)+((?:\|.*\n)+)", printed.stdout, re.MULTILINE)
    assert len(tables) >= 2
    for title, rows in tables:
        if title == "synthetic: frames per patient" or title.endswith(": signals"):  # long, or seen when one prepares
            continue
        assert f"*{title}*\n\n{rows}" in DOCUMENT


def test_every_section_with_counts_has_its_command() -> None:
    sections = {text.split("\n", 1)[0]: text for text in DOCUMENT.split("\n## ")}
    for name in ("mitbih", "mitbih_vfdb", "physionet2020", "ptbxl", "synthetic"):
        assert f"\nclops-sweep data prepare {name} " in sections[name]
        assert f"*{name}: frames (patients) per class" in sections[name]


def test_counts_of_mitbih_vfdb_per_patient_add_up_to_those_per_class() -> None:
    totals = {"training": [0] * 10, "validation": [0] * 10, "test": [0] * 10}
    for _, part, *counts in _rows("mitbih_vfdb: frames per patient"):
        totals[part] = [total + int(count or 0) for total, count in zip(totals[part], counts, strict=True)]
    for position, (_, *cells) in enumerate(_rows("mitbih_vfdb: frames (patients) per class")[:-1]):
        assert [totals[part][position] for part in totals] == [int(cell.split()[0]) for cell in cells]


def test_the_picture_shows_every_class_of_another_patient(synthetic: FrameSet) -> None:
    tracings = one_tracing_per_class(synthetic, seed=1)
    assert [tracing.label for tracing in tracings] == list(synthetic.classes)
    assert len({tracing.patient for tracing in tracings}) == 12
    figure = draw_tracings(tracings, 5.0, "mV")
    assert len(figure.axes) == 12
