"""Facts about recordings from a table, from the recordings, or from both."""

from __future__ import annotations

import re
from pathlib import Path

import edfio
import numpy as np
import pytest

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare

SPACE = """
from clops_sweep import from_edf

def night(path):
    number = int(path.stem[1:])
    return Recording(np.load(path), sampling_rate=10, channels=("c",), units="mV"{own})

@dataset("own", files=["nights"])
def own(data_root):
    folder = data_root / "nights"
    return Recordings.from_folder(folder, "*.npy", read=night, classes=("W", "N2"), window_seconds=3{more})
"""
STAGES = ("W", "N2")
TABLE = ", table='people.csv', name='record'"


def _frames(root: Path, own: str = "", more: str = "") -> FrameSet:
    declare(root / "space.py", SPACE.format(own=own, more=more))
    prepare("own", prepared_root=root / "prepared", data_root=root, workers=1)
    return open_frames("own", prepared_root=root / "prepared", leads="all")


@pytest.fixture
def nights(tmp_path: Path) -> Path:
    """Eight recordings of four people, with a table of label, person, date, site and sex."""
    folder = tmp_path / "nights"
    folder.mkdir()
    lines = ["record,stage,person,date,site,sex,part"]
    for number in range(8):
        np.save(folder / f"n{number}.npy", np.random.default_rng(number).normal(size=(1, 60)).astype(np.float32))
        part = "test" if number < 4 else "train"
        row = f"{STAGES[number % 2]},p{number // 2},2020-01-0{number + 1},{'AB'[number % 2]},{'fm'[number // 4]}"
        lines.append(f"n{number},{row},{part}")
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


INTERVALS = ", intervals=[(0, 3, 'W'), (3, 6, 'N2')]"


def test_people_from_a_table_and_labels_from_intervals(nights: Path) -> None:
    more = TABLE + ", patient='person', time='date', domains={'site': 'site'}, groups={'sex': 'sex'}, split='part'"
    frames = _frames(nights, INTERVALS, more)
    assert frames.labels.tolist() == [0, 1] * 8
    assert [frames.patient_names[code] for code in frames.patients] == [f"p{n // 4}" for n in range(16)]
    assert frames.times is not None
    assert frames.times.astype("datetime64[D]").astype(str).tolist() == [f"2020-01-0{n // 2 + 1}" for n in range(16)]
    codes, names = frames.domains["site"]
    assert [names[code] for code in codes] == list("AABB" * 4)


def test_a_list_names_columns_as_they_are_called(nights: Path) -> None:
    frames = _frames(nights, INTERVALS, TABLE + ", patient='person', domains=['site'], groups=['sex']")
    codes, names = frames.domains["site"]
    assert [names[code] for code in codes] == list("AABB" * 4)
    with pytest.raises(UsageError, match=re.escape("groups: expected a list of columns, or a mapping such as")):
        _frames(nights, INTERVALS, TABLE + ", patient='person', groups=[3]")


def test_people_from_a_table_beside_edf_files_with_annotations(nights: Path) -> None:
    for number in range(8):
        signal = edfio.EdfSignal(np.random.default_rng(number).normal(size=600), 10, label="c", physical_dimension="mV")
        notes = [edfio.EdfAnnotation(0, 30, "W"), edfio.EdfAnnotation(30, 30, "N2")]
        edfio.Edf([signal], annotations=notes).write(nights / f"nights/n{number}.edf")
    body = SPACE.format(own="", more=TABLE + ", patient='person'")
    body = body.replace("*.npy", "*.edf").replace("read=night", "read=lambda path: from_edf(path, annotations=True)")
    declare(nights / "space.py", body)
    prepare("own", prepared_root=nights / "prepared", data_root=nights, workers=1)
    frames = open_frames("own", prepared_root=nights / "prepared", leads="all")
    assert frames.labels.tolist() == ([0] * 10 + [1] * 10) * 8
    assert frames.patient_names == ("p0", "p1", "p2", "p3")


def test_labels_from_a_table_and_people_from_recordings(nights: Path) -> None:
    own = ", patient=f'q{number // 2}', domains={'site': 'AB'[number % 2]}, groups={'age': 'old'}"
    frames = _frames(nights, own, TABLE + ", label='stage', groups={'sex': 'sex'}")
    assert frames.labels.tolist() == [0, 0, 1, 1] * 4
    assert frames.patient_names == ("q0", "q1", "q2", "q3")


def test_both_sides_that_agree(nights: Path) -> None:
    own = ", label=['W', 'N2'][number % 2], patient=f'p{number // 2}', time=f'2020-01-0{number + 1}'"
    own += ", domains={'site': 'AB'[number % 2]}"
    more = TABLE + ", label='stage', patient='person', time='date', domains={'site': 'site'}"
    assert _frames(nights, own, more).labels.tolist() == [0, 0, 1, 1] * 4


@pytest.mark.parametrize(
    ("own", "more", "sentence"),
    [
        (", label='W'", ", label='stage'", "label: the table says 'N2' and the recording 'W'; correct one of them, or"),
        (", label='R'", ", label='stage'", "label: the table has one that is in classes and the recording 'R'"),
        (", label=1", ", label='stage'", "label: the table says 'W' and the recording 'N2'"),
        (INTERVALS, ", label='stage'", "label: both the table and the intervals of the recording give labels"),
        (INTERVALS + ", patient=number", ", patient='person'", "patient: the table says 'p0' and the recording '0'"),
        (INTERVALS + ", time='2020-01-01'", ", time='date'", "time: the table says '2020-01-02T.*' and the recording "),
        (
            INTERVALS + ", domains={'site': 'A'}",
            ", domains={'site': 'site'}",
            r"domains\['site'\]: the table says 'B' a",
        ),
        (
            INTERVALS + ", groups={'sex': 'm'}",
            ", groups={'sex': 'sex'}",
            r"groups\['sex'\]: the table says 'f' and the",
        ),
        (INTERVALS + ", split='train'", ", split='part'", "split: the table and the recording differ"),
        ("", ", patient='person'", "label: is missing; expected one, or intervals"),
    ],
)
def test_both_sides_that_differ(own: str, more: str, sentence: str, nights: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        _frames(nights, own, TABLE + more)


@pytest.mark.parametrize("own", [INTERVALS, ", label='W'"])
def test_intervals_of_a_table_and_labels_of_recordings(own: str, nights: Path) -> None:
    rows = [f"n{number},{start},{start + 3},{stage}" for number in range(8) for start, stage in ((0, "W"), (3, "N2"))]
    (nights / "nights/people.csv").write_text("\n".join(["record,on,off,stage", *rows]) + "\n")
    more = TABLE + ", label='stage', start='on', end='off'"
    assert _frames(nights, "", more).labels.tolist() == [0, 1] * 8
    with pytest.raises(UsageError, match=r"both the .*table and the recording give|both .* leave one"):
        _frames(nights, own, more)


def test_several_recordings_of_a_file_with_one_person(nights: Path) -> None:
    body = SPACE.format(own=INTERVALS, more=TABLE + ", patient='person'")
    body = body.replace("return Recording(np.load(path)", "return [Recording(np.load(path) + shift")
    body = body.replace(INTERVALS + ")", INTERVALS + ") for shift in (0, 1)]")
    declare(nights / "space.py", body)
    prepare("own", prepared_root=nights / "prepared", data_root=nights, workers=1)
    frames = open_frames("own", prepared_root=nights / "prepared", leads="all")
    assert frames.patient_names == ("p0", "p1", "p2", "p3")


def test_a_column_without_a_table_is_refused(nights: Path) -> None:
    with pytest.raises(UsageError, match="patient: 'person' is a column, which needs a table"):
        _frames(nights, INTERVALS, ", patient='person'")


def test_files_without_labels_of_their_own_need_a_column(nights: Path) -> None:
    more = TABLE + ", patient='person', sampling_rate=10, units='mV'"
    body = SPACE.format(own="", more=more).replace("read=night, ", "")
    declare(nights / "space.py", body)
    with pytest.raises(
        UsageError, match="label: expected the column with the labels; only recordings of read=function"
    ):
        prepare("own", prepared_root=nights / "prepared", data_root=nights, workers=1)


HEADS = {
    "comments with another number of commas": "# exported by X, 2020-01-01, 3 rows\n# all\nrecord,stage,person\n",
    "names in a comment": "# a, b, c\n#record,stage,person\n",
    "percent, and a quote": '% said "so\n\nrecord,stage,person\n',
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_comments_of_a_table_are_no_rows(head: str, nights: Path) -> None:
    rows = [f"n{number},{STAGES[number % 2]},p{number // 2}" for number in range(8)]
    rows.insert(3, "# the second half")
    (nights / "nights" / "people.csv").write_text(head + "\n".join(rows) + "\n")
    frames = _frames(nights, more=TABLE + ", label='stage', patient='person'")
    assert frames.labels.tolist() == [0, 0, 1, 1] * 4
    assert [frames.patient_names[code] for code in frames.patients] == [f"p{n // 4}" for n in range(16)]


def test_recordings_whose_names_begin_as_comments(nights: Path) -> None:
    for number in range(8):
        (nights / f"nights/n{number}.npy").rename(nights / f"nights/#{number}.npy")
    rows = [f"#{number},{STAGES[number % 2]}" for number in range(8)]
    (nights / "nights" / "people.csv").write_text("\n".join(rows) + "\n")
    assert _frames(nights, more=", table='people.csv', name=0, label=1").labels.tolist() == [0, 0, 1, 1] * 4


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ("2020-01-31T22:59:59Z", None),
        ("2020-01-31T22:59:59", "start: has a time zone, and the start of the recording has none"),
    ],
)
def test_intervals_of_a_table_with_a_time_zone(start: str, said: str | None, nights: Path) -> None:
    rows = ["record,stage,from,to"]
    for number in range(8):
        rows.append(f"n{number},W,2020-01-31T23:59:59+01:00,2020-02-01T00:00:02+01:00")
        rows.append(f"n{number},N2,2020-02-01T00:00:02+01:00,2020-02-01T00:00:05+01:00")
    (nights / "nights" / "t.csv").write_text("\n".join(rows) + "\n")
    more = ", table='t.csv', name='record', label='stage', start='from', end='to'"
    own = f", patient=number, start='{start}'"
    if said is None:
        assert _frames(nights, own, more).labels.tolist() == [0, 1] * 8
    else:
        with pytest.raises(UsageError, match=said):
            _frames(nights, own, more)


def test_an_interval_before_the_recording_is_named_so(nights: Path) -> None:
    with pytest.raises(UsageError, match="the interval from -1 to 3 s starts before the recording"):
        _frames(nights, ", label=None, patient=number, intervals=[(-1, 3, 'W'), (3, 6, 'N2')]")
