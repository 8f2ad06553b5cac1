"""Names with Cyrillic or Greek letters that look like Latin ones: of people, domains, groups and labels."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import pytest

from clops_sweep.data.misspelt import latin, written
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, waves

CYRILLIC_A = "\N{CYRILLIC CAPITAL LETTER A}"
CYRILLIC_P = "\N{CYRILLIC CAPITAL LETTER ER}"
GREEK_A = "\N{GREEK CAPITAL LETTER ALPHA}"
RUSSIAN = "\N{CYRILLIC SMALL LETTER DE}\N{CYRILLIC SMALL LETTER A}"


def notes(folder: Path, people: str = "P", ward: str = "A", sex: str = "c", labels: str = "AB") -> list[str]:
    """Return the notes on recordings of which one in six has another spelling of person, ward, sex and label."""
    rows = []
    for number, signal in enumerate(waves(24, 1, 100)):
        np.save(folder / f"r{number}.npy", signal)
        is_odd = number % 6 == 0
        label = labels[number % len(labels)]
        person = f"{people if is_odd else 'P'}{number // 6}"
        rows.append(f"r{number},{label},{person},{ward if is_odd else 'AB'[number // 2 % 2]},{sex if is_odd else 'c'}")
    (folder / "table.csv").write_text("\n".join(["file,label,who,ward,sex", *rows]), "utf-8")
    declare(
        folder / "space.py",
        """
        @dataset("own")
        def own(data_root):
            columns = dict(table="table.csv", name="file", label="label", patient="who", domains=["ward"])
            rest = dict(groups=["sex"], sampling_rate=50, units="mV", channels=["x"])
            return Recordings.from_folder(data_root, "*.npy", **columns, **rest)
        """,
    )
    made = prepare("own", prepared_root=folder / "prepared", data_root=folder, workers=1).manifest
    return [note for note in made.notes if "alike" in note]


def test_letters_that_look_alike_are_those_of_unicode() -> None:
    """Each letter that is replaced has another script than Latin, and the case of the letter that replaces it."""
    replaced = [chr(code) for code in range(0x370, 0x500) if latin(chr(code)) != chr(code)]
    assert len(replaced) == 40
    for letter in replaced:
        plain = latin(letter)
        assert unicodedata.name(letter).partition(" ")[0] in ("CYRILLIC", "GREEK")
        assert plain.isascii()
        assert plain.isupper() == letter.isupper()
    assert latin("AF, P07") == "AF, P07"
    assert written(CYRILLIC_P + "07") == written("p7")


def test_people_of_two_alphabets_are_noted(tmp_path: Path) -> None:
    (note,) = notes(tmp_path, people=CYRILLIC_P)
    assert note.startswith("people with names that look alike, with letters of two alphabets: 4, such as")
    assert note.endswith("one person may be in two splits; give each person one name")


@pytest.mark.parametrize("letter", [CYRILLIC_A, GREEK_A])
def test_domains_of_two_alphabets_are_noted(letter: str, tmp_path: Path) -> None:
    (note,) = notes(tmp_path, ward=letter)
    assert note.startswith("domains of 'ward' with names that look alike, with letters of two alphabets: 1, such as")


def test_groups_of_two_alphabets_are_noted(tmp_path: Path) -> None:
    (note,) = notes(tmp_path, sex="\N{CYRILLIC SMALL LETTER ES}")
    assert note.startswith("groups of 'sex' with names that look alike, with letters of two alphabets: 1, such as 'c'")


def test_names_of_one_alphabet_have_no_note(tmp_path: Path) -> None:
    assert notes(tmp_path, ward=RUSSIAN, sex=RUSSIAN) == []


def test_labels_of_two_alphabets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"label: 'A' and '.' differ only in the alphabet of letters that look alike"):
        notes(tmp_path, labels=f"AB{CYRILLIC_A}")
