"""Identifiers are equal whatever type they arrive in; people are in one split, and labels name their classes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from clops_sweep import Recordings
from clops_sweep.data.declared.alike_names import alike_people
from clops_sweep.data.declared.label_table import by_name
from clops_sweep.data.left_out import sentences
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, waves, write_wfdb

NUMBERS = [7, 12, 7, 12, 30, 30, 7, 1001, 12, 5, 1001, 5]
SHAPES: dict[str, Callable[[list[int]], Any]] = {
    "int": list,
    "numpy": np.array,
    "int16": lambda it: np.array(it, np.int16),
    "unsigned": lambda it: np.array(it, np.uint16),
    "float": lambda it: np.array(it, float),
    "float32": lambda it: np.array(it, np.float32),
    "floats": lambda it: [float(each) for each in it],
    "text": lambda it: [str(each) for each in it],
    "numpy text": lambda it: np.array(it).astype(str),
    "text of floats": lambda it: [f"{each}.0" for each in it],
    "spaces": lambda it: [f" {each} " for each in it],
    "bytes": lambda it: np.array(it).astype("S"),
    "objects": lambda it: np.array(it, object),
    "mixed": lambda it: [float(each) if n % 2 else str(each) for n, each in enumerate(it)],
    "series": pd.Series,
    "nullable": lambda it: pd.Series(it, dtype="Int64"),
    "categorical": lambda it: pd.Categorical(it),
    "categorical text": lambda it: pd.Series([str(each) for each in it], dtype="category"),
    "strings": lambda it: pd.Series([str(each) for each in it], dtype="string"),
}


def _recordings(**changed: Any) -> Recordings:
    given: dict[str, Any] = {"labels": [n % 2 for n in range(12)], "classes": ("5", "6"), "patients": range(12)}
    return Recordings(waves(12, 1, 20), 10, ["a"], "mV", **{**given, **changed})


def test_groups_may_have_many_numbers_but_few_texts() -> None:
    many = {"labels": [n % 2 for n in range(60)], "classes": ("5", "6"), "patients": range(60)}
    recordings = Recordings(waves(60, 1, 20), 10, ["a"], "mV", **many, groups={"age": [20 + n / 2 for n in range(60)]})
    assert len(set(recordings.columns.groups["age"])) == 60
    with pytest.raises(UsageError, match="has 60 values; expected at most 50, or numbers alone"):
        Recordings(waves(60, 1, 20), 10, ["a"], "mV", **many, groups={"name": [f"n{n}" for n in range(60)]})


@pytest.mark.parametrize("name", ["unknown", "Unknown", "-1", -1, -999, "?", "-", "missing", "anonymous"])
def test_a_name_that_stands_for_a_missing_person_is_refused(name: object) -> None:
    """Its recordings would count as those of one person, who may be other people of the data set."""
    patients = [name if number in (3, 7) else f"P{number}" for number in range(12)]
    sentence = (
        f"patients: {str(name)!r} is no person, so several people may count as one; leave out the recordings that"
    )
    with pytest.raises(UsageError, match=re.escape(f"{sentence} have it (2: ")):
        _recordings(patients=patients)


@pytest.mark.parametrize("name", ["0", "99", "P-1", "unknown 7", "-x1", "\N{GREEK SMALL LETTER ALPHA}"])
def test_unusual_names_of_people_are_kept(name: str) -> None:
    patients = [name if number in (3, 7) else f"P{number}" for number in range(12)]
    assert _recordings(patients=patients).columns.patients[7] == name


@pytest.mark.parametrize("shape", SHAPES)
def test_arrays_of_every_type_name_the_same(shape: str) -> None:
    column = SHAPES[shape](NUMBERS)
    found = _recordings(patients=column, domains={"site": column}, groups={"sex": column})
    expected = [str(each) for each in NUMBERS]
    assert (found.columns.patients, found.columns.domains, found.columns.groups) == (
        expected, {"site": expected}, {"sex": expected}
    )  # fmt: skip
    codes = (
        SHAPES[shape]([426783006 if n % 2 else 164889003 for n in range(12)])
        if shape not in ("int16", "unsigned")
        else None
    )
    if codes is not None and shape != "float32":
        known = _recordings(classes=("426783006", "164889003"), labels=codes)
        assert np.asarray(known.columns.labels).tolist() == [1, 0] * 6


@pytest.mark.parametrize("shape", SHAPES)
def test_tables_of_every_type_name_the_same(shape: str, tmp_path: Path) -> None:
    for number in sorted(set(range(100, 112))):
        write_wfdb(tmp_path, str(number), 1000 * waves(1, 1, 20, number)[0], 10)
    make = SHAPES[shape]
    table = pd.DataFrame({"file": make(list(range(100, 112))), "label": make([n % 2 for n in range(12)])})
    table["who"] = pd.Series(make(NUMBERS))
    whole = Recordings.from_wfdb(tmp_path, label="label", table=table, name="file", patient="who", classes=(0, 1))
    assert list(whole.columns.names) == [str(n) for n in range(100, 112)]
    assert list(whole.columns.patients) == [str(each) for each in NUMBERS]
    assert np.asarray(whole.columns.labels).tolist() == [0, 1] * 6
    gap = table.astype(object)
    gap.loc[3, "label"] = np.nan
    some = Recordings.from_wfdb(tmp_path, label="label", table=gap, name="file", patient="who")
    assert (some.common.classes, len(some), sentences(some.common.left_out)) == (
        ("0", "1"), 11, ["1 recording without a label"]
    )  # fmt: skip
    gap.to_csv(tmp_path / "table.csv", index=False)
    gap.loc[3, "label"] = "NA"  # of R
    again = Recordings.from_wfdb(tmp_path, label="label", table=gap, name="file", patient="who")
    assert (again.common.classes, len(again)) == (("0", "1"), 11)
    gap.loc[4, "who"] = "NA"
    with pytest.raises(UsageError, match="patient: recording '104' has none"):
        Recordings.from_wfdb(tmp_path, label="label", table=gap, name="file", patient="who")
    if "bytes" not in shape:
        again = Recordings.from_wfdb(tmp_path, label="label", table="table.csv", name="file", patient="who")
        assert list(again.columns.patients) == list(some.columns.patients)


def test_a_name_that_looks_like_a_float_is_that_of_one_file() -> None:
    files = [Path("x/1.0.npy"), Path("x/1.1.npy")]
    assert by_name(files, Path("x"))["1"] == files[0]  # tables turn 1.0 into 1
    assert "1" not in by_name([*files, Path("x/1.npy")], Path("x"))


def test_a_person_is_never_in_two_splits(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", waves(40, 1, 20))
    declare(
        tmp_path / "space.py",
        """
        @dataset("own", classes=("p", "q"), channels=["a"], units="mV", sampling_rate=10)
        def own(data_root):
            for n, x in enumerate(np.load(data_root / "x.npy")):
                who = n // 4
                yield Recording(x, "pq"[n % 2], [who, float(who), str(who), f"{who}.0"][n % 4])
        """,
    )
    prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path)
    frames = open_frames("own", prepared_root=str(tmp_path / "prepared"), data_root=str(tmp_path))
    assert frames.patient_names == tuple(sorted(map(str, range(10))))
    for person in range(10):
        assert len(set(frames.split[4 * person : 4 * person + 4])) == 1


@pytest.mark.parametrize(
    ("names", "pairs"),
    [
        (["P1", "p1", "P2"], 1),
        (["7", "07", "007", "8"], 2),
        (["P 1", "P-1", "P_1", "P1"], 3),
        (["A-1", "A\u20131"], 1),
        (["1-2", "12", "1.10", "1.1", "a-b", "ab"], 0),
        (["0", "00", "!", "?"], 1),
    ],
)
def test_people_whose_names_differ_in_writing_alone_are_noted(names: list[str], pairs: int) -> None:
    note = alike_people(names)
    if not pairs:
        assert note is None
    else:
        assert note is not None
        assert f"leading zeros: {pairs}, such as {names[0]!r} and {names[1]!r}: one person may be in two splits" in note


def _numbered(folder: Path, person: str) -> None:
    """Declare recordings of 10 people, of whom each has one by its number in a table and one by the name of a file."""
    declare(
        folder / "space.py",
        f"""
        @dataset("own", classes=("p", "q"), channels=["a"], units="mV", sampling_rate=10)
        def own(data_root):
            for n, x in enumerate(np.load(data_root / "x.npy")):
                number = 1 + n // 2
                yield Recording(x, "pq"[n // 2 % 2], {person} if n % 2 else f"{{number:04d}}")
        """,
    )


def test_people_whose_numbers_have_lost_their_zeros_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", waves(20, 1, 20))
    _numbered(tmp_path, "number")
    given = {"prepared_root": tmp_path / "prepared", "data_root": tmp_path, "workers": 1}
    with pytest.raises(UsageError) as error:
        prepare("own", **given)  # type: ignore[arg-type]
    assert str(error.value).endswith(
        "patient: '1' and '0001' differ only in leading zeros (such pairs: 10), so one person may be in two splits; "
        'read the column as text, pandas.read_csv(..., dtype=str), or write the zeros, f"{number:04d}"; if they are '
        "two people, give one another name, such as 'B1'"
    )
    for person, people in (('f"{number:04d}"', 10), ('f"B{number}"', 20)):
        _numbered(tmp_path, person)
        prepare("own", **given)  # type: ignore[arg-type]
        assert len(open_frames("own", prepared_root=tmp_path / "prepared", data_root=tmp_path).patient_names) == people


def test_names_of_files_that_are_no_people_may_differ_in_leading_zeros(tmp_path: Path) -> None:
    for number in range(1, 13):
        write_wfdb(tmp_path, str(number), waves(1, 1, 40)[0].astype(np.int16), 10)
        write_wfdb(tmp_path, f"{number:04d}", waves(1, 1, 40)[0].astype(np.int16) + number, 10)
    rows = [f"{number},{'pq'[number % 2]}\n{number:04d},{'pq'[number % 2]}" for number in range(1, 13)]
    (tmp_path / "labels.csv").write_text("\n".join(["file,label", *rows]))
    declare(
        tmp_path / "space.py",
        """
        @dataset("own")
        def own(data_root):
            return Recordings.from_wfdb(data_root, table="labels.csv", name="file", label="label")
        """,
    )
    made = prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)
    assert len(made.manifest.patient_names) == 24


def test_domains_whose_names_differ_in_writing_alone_are_noted(tmp_path: Path) -> None:
    declare(
        tmp_path / "space.py",
        """
@dataset("own", scenarios=("domain_il",), one_recording_per_person=True)
def own(data_root):
    x = np.random.default_rng(0).normal(size=(12, 1, 20))
    sites = ["Ward A", "ward  a", "B"] * 4
    return Recordings(
        x, 10, ["x"], "mV", labels=[n // 3 % 2 for n in range(12)], classes=("a", "b"), patients=range(12),
        domains={"site": sites},
    )
""",
    )
    (note,) = prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1).manifest.notes
    assert note == (
        "domains of 'site' with names that differ only in case, marks, spaces or leading zeros: 1, such as 'Ward A' "
        "and 'ward  a' ('Ward A' has 4 recordings: 0, 3, 6, 9): each is a task of its own; give each domain one name"
    )


@pytest.mark.parametrize(
    ("moved", "noted"),
    [
        (0, ""),
        (1, "1 of 12; each of their domains counts them, and all their recordings are in one part of a split"),
        (12, "12 of 12; right if they were recorded in each, as with several devices or sessions; if each site numbers "
             "its people anew, write the site into their names"),
    ],
)  # fmt: skip
def test_people_in_several_domains_are_noted(moved: int, noted: str, tmp_path: Path) -> None:
    """If all people are in several, such as two devices, it may be meant so."""
    declare(
        tmp_path / "space.py",
        f"""
@dataset("own", scenarios=("domain_il",))
def own(data_root):
    people = np.arange(24) // 2
    x = np.random.default_rng(0).normal(size=(24, 1, 20))
    sites = np.where(people % 2, "A", "B")
    sites[1 : 2 * {moved} : 2] = "C"
    return Recordings(
        x, 10, ["x"], "mV", labels=people // 2 % 2, classes=("a", "b"), patients=people, domains={{"site": sites}},
    )
""",
    )
    notes = prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1).manifest.notes
    said = [note for note in notes if note.startswith("people in several domains")]
    assert said == ([f"people in several domains of 'site': {noted}"] if noted else [])


def test_people_who_are_numbered_anew_in_each_domain_differ_in_sex(tmp_path: Path) -> None:
    declare(
        tmp_path / "space.py",
        """
@dataset("own", scenarios=("domain_il",))
def own(data_root):
    person = np.arange(24) // 2  # of two sites, which both number from 0 to 5
    x = np.random.default_rng(0).normal(size=(24, 1, 20))
    return Recordings(
        x, 10, ["x"], "mV", labels=person // 2 % 2, classes=("a", "b"), patients=person % 6,
        domains={"site": np.where(person < 6, "A", "B")}, groups={"sex": np.where(person % 4 < 2, "f", "m")},
    )
""",
    )
    notes = prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1).manifest.notes
    sex = {person: "f" if person % 4 < 2 else "m" for person in range(12)}
    differing = sum(sex[person] != sex[person + 6] for person in range(6))
    (said,) = (note for note in notes if note.startswith("one name for two people?"))
    assert said == (
        f"one name for two people? 6 of 6 people are in several domains of 'site', and {differing} of these have "
        "several values of 'sex': if each site numbers its people anew, write the site into their names, or correct "
        "the table"
    )
