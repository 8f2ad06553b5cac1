"""Annotations and tables of intervals that have another clock than the recording, or no durations."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from pathlib import Path

import edfio
import numpy as np
import pytest

from clops_sweep import Recordings, from_edf
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare

Notes = list[tuple[float, float | None, str]]
DAY = date(2020, 1, 1)
TEN = datetime.combine(DAY, time(22))


def frames_of(tmp_path: Path, body: str) -> FrameSet:
    """Return the frames of the data set that a body declares."""
    declare(tmp_path / "space.py", body)
    prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)
    return open_frames("own", prepared_root=tmp_path / "prepared", leads="all")


def _edf(path: Path, start: datetime | None, seconds: int = 300, notes: Notes | None = None) -> Path:
    """Write an EDF+ file, at 100 uV from 90 to 210 s and 0 uV elsewhere, without signals if it has 0 seconds."""
    path.parent.mkdir(exist_ok=True)
    level = np.zeros(seconds * 100)
    level[9000:21000] = 100
    level += np.random.default_rng(0).normal(0, 5, len(level))
    signals = []
    if seconds:
        signals = [edfio.EdfSignal(level, 100, label="EEG", physical_dimension="uV", physical_range=(-400, 400))]
    edfio.Edf(
        signals,
        recording=None if start is None else edfio.Recording(startdate=start.date()),
        starttime=None if start is None else start.time(),
        annotations=[edfio.EdfAnnotation(*note) for note in notes or []],
    ).write(path)
    return path


STAGES: Notes = [(0, 90, "W"), (90, 120, "N2"), (210, 90, "W")]


@pytest.mark.parametrize("later", [0.0, 60.0, -45.5, 0.25, 7200.0 + 0.5])
@pytest.mark.parametrize("fraction", [0, 375_000])
def test_onsets_of_a_hypnogram_count_from_its_own_start(later: float, fraction: int, tmp_path: Path) -> None:
    start = TEN.replace(microsecond=fraction)
    signal = _edf(tmp_path / "n.edf", start, 9000)
    notes = [(onset + 50, duration, stage) for onset, duration, stage in STAGES]
    hypnogram = _edf(tmp_path / "n-hyp.edf", start + timedelta(seconds=later), 0, notes)
    found = from_edf(signal, annotations=hypnogram)
    expected = [(onset + later, onset + duration + later, stage) for onset, duration, stage in notes]
    assert [stage for _, _, stage in found.intervals] == [stage for _, _, stage in expected]
    np.testing.assert_allclose(
        [each[:2] for each in found.intervals], [each[:2] for each in expected], rtol=0, atol=1e-6
    )
    assert bool(found.notes) == (later != 0)
    given = from_edf(signal, annotations=hypnogram, annotations_offset=0)
    assert [each[0] for each in given.intervals] == [50, 140, 260]


def test_annotations_partly_outside_the_recording_are_cut_and_counted(tmp_path: Path) -> None:
    signal = _edf(tmp_path / "n.edf", TEN)
    hypnogram = _edf(tmp_path / "h.edf", TEN - timedelta(seconds=100), 0, STAGES)
    found = from_edf(signal, annotations=hypnogram)
    assert found.intervals == [(0, 110, "N2"), (110, 200, "W")]
    assert found.notes == (
        "its annotations start 100 s before the signal: their onsets are shifted by that",
        "1 annotation outside the recording left out",
    )


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        (TEN + timedelta(days=1, seconds=1), r"h\.edf: its header starts 1\.00 days after the signal"),
        (TEN - timedelta(days=400), r"h\.edf: its header starts 400\.00 days before the signal"),
        (TEN + timedelta(hours=2), r"h\.edf: none of its 3 annotations lies within the recording"),
        (None, r"h\.edf: its header has neither a date nor a time of day"),
    ],
)
def test_annotations_of_another_time_are_refused(start: datetime | None, sentence: str, tmp_path: Path) -> None:
    signal = _edf(tmp_path / "n.edf", TEN)
    hypnogram = _edf(tmp_path / "h.edf", start, 0, STAGES)
    with pytest.raises(UsageError, match=sentence):
        from_edf(signal, annotations=hypnogram)
    assert len(from_edf(signal, annotations=hypnogram, annotations_offset=0).intervals) == 3


def test_headers_without_dates_differ_by_their_time_of_day(tmp_path: Path) -> None:
    def anonymous(name: str, at: time, signals: int, notes: Notes) -> Path:
        path = _edf(tmp_path / name, TEN, signals, notes)
        file = edfio.read_edf(path)
        file.anonymize()
        file.starttime = at
        file.write(path)
        return path

    signal = anonymous("n.edf", time(23, 59), 300, [])
    hypnogram = anonymous("h.edf", time(0, 0, 30), 0, [(0, 30, "W")])
    assert from_edf(signal, annotations=hypnogram).intervals == [(90, 120, "W")]


EVENTS = "onset\tduration\t{column}\n{rows}\n"


def test_events_with_dates_count_from_the_start_of_the_signal(tmp_path: Path) -> None:
    signal = _edf(tmp_path / "n.edf", TEN.replace(microsecond=500_000))
    table = tmp_path / "n_events.tsv"
    rows = "2020-01-01T21:59:50\t5\tearly\n2020-01-01T22:01:00\t30\trest"
    table.write_text(EVENTS.format(column="trial_type", rows=rows))
    found = from_edf(signal, annotations=table)
    assert found.intervals == [(59.5, 89.5, "rest")]
    assert found.notes == ("1 annotation outside the recording left out",)
    for bad, sentence in (
        ("2020-01-03T22:01:00\t30\trest", "none of its 1 annotations lies within the recording"),
        ("2020-01-01T22:01:00+01:00\t30\trest", "has a time zone, and the start of the signal has none"),
        ("2020-01-01T22:01:00\t30\trest\n0\t1\trest", "some onsets are dates and others numbers"),
    ):
        table.write_text(EVENTS.format(column="trial_type", rows=bad))
        with pytest.raises(UsageError, match=sentence):
            from_edf(signal, annotations=table)


def test_events_before_the_signal_are_left_out_and_other_columns_named(tmp_path: Path) -> None:
    signal = _edf(tmp_path / "n.edf", TEN)
    table = tmp_path / "n_events.tsv"
    table.write_text(EVENTS.format(column="stage", rows="-40\t30\tW\n-10\t30\tW\n20\t30\tN2"))
    with pytest.raises(UsageError, match=r"has no column 'trial_type'; it has onset, duration, stage; give event_colu"):
        from_edf(signal, annotations=table)
    found = from_edf(signal, annotations=table, event_column="stage")
    assert found.intervals == [(0, 20, "W"), (20, 50, "N2")]
    assert found.notes == ("1 annotation outside the recording left out",)


NIGHTS = """
from clops_sweep import from_edf

def night(path):
    return from_edf(path, annotations=True{more})

@dataset("own", files=["nights"])
def own(data_root):
    return Recordings.from_folder(
        data_root / "nights", "*.edf", read=night, classes=("W", "N2"), window_seconds=30{rule})
"""


def test_stages_without_durations_last_until_the_next(tmp_path: Path) -> None:
    for number in range(6):
        notes = [(0, None, "W"), (90, None, "N2"), (120, 3, "arousal"), (210, None, "W")]
        _edf(tmp_path / f"nights/n{number}.edf", TEN, notes=notes)
    frames = frames_of(tmp_path, NIGHTS.format(more=", until_next=True", rule=""))
    assert frames.labels.tolist() == [0, 0, 0, 1, 1, 1, 1, 0, 0, 0] * 6
    means = frames.signal(slice(None)).mean(-1).ravel()
    np.testing.assert_allclose(means, 100.0 * frames.labels, atol=3)
    with pytest.raises(
        UsageError, match=r"n0\.edf: 3 of 3 labelled intervals have no duration; give their ends, until_"
    ):
        frames_of(tmp_path, NIGHTS.format(more="", rule=""))
    beats = frames_of(tmp_path, NIGHTS.format(more="", rule=', window_around="beat"'))
    assert set(beats.labels.tolist()) == {0, 1}


TABLE = """
from clops_sweep import from_edf

@dataset("own", files=["nights"])
def own(data_root):
    folder = data_root / "nights"
    return Recordings.from_folder(
        folder, "*.{kind}", table="stages.csv", name="night", label="stage", start="onset", window_seconds=30, {more})
"""
ARRAYS = "classes=('W', 'N2'), sampling_rate=100, units='uV'"


def _arrays(tmp_path: Path, header: str, rows: list[str]) -> None:
    """Write six NPY files, and a table whose rows begin with their names."""
    folder = tmp_path / "nights"
    folder.mkdir(exist_ok=True)
    lines = [header]
    for number in range(6):
        level = np.zeros((1, 30_000), np.float32)
        level[:, 9000:21000] = 100
        np.save(folder / f"n{number}.npy", level + np.random.default_rng(number).normal(0, 5, level.shape))
        lines += [f"n{number},{row}" for row in rows]
    (folder / "stages.csv").write_text("\n".join(lines) + "\n")


def test_a_table_of_stages_without_ends(tmp_path: Path) -> None:
    _arrays(tmp_path, "night,onset,stage", ["0,W", "90,N2", "210,W"])
    frames = frames_of(tmp_path, TABLE.format(kind="npy", more=ARRAYS + ", until_next=True"))
    assert frames.labels.tolist() == [0, 0, 0, 1, 1, 1, 1, 0, 0, 0] * 6
    with pytest.raises(
        UsageError, match=r"stages\.csv: row 1: 18 of 18 labelled intervals have no duration; give their"
    ):
        frames_of(tmp_path, TABLE.format(kind="npy", more=ARRAYS))
    with pytest.raises(UsageError, match="until_next: closes intervals of a table, so it goes with start"):
        frames_of(tmp_path, TABLE.replace('start="onset", ', "").format(kind="npy", more=ARRAYS + ", until_next=True"))


def test_a_table_of_intervals_with_dates(tmp_path: Path) -> None:
    rows = ["2020-01-01 21:59:00,2020-01-01 21:59:30,W,2020-01-01 22:00:30"]
    rows += ["2020-01-01 22:01:00,2020-01-01 22:02:00,W,2020-01-01 22:00:30"]  # from 30 to 90 s
    rows += ["2020-01-01 22:02:00,2020-01-01 22:03:30,N2,2020-01-01 22:00:30"]
    _arrays(tmp_path, "night,onset,off,stage,begin", rows)
    frames = frames_of(tmp_path, TABLE.format(kind="npy", more=ARRAYS + ", end='off', time='begin'"))
    assert frames.labels.tolist() == [0, 0, 1, 1, 1] * 6
    np.testing.assert_allclose(frames.signal(slice(None)).mean(-1).ravel(), 100.0 * frames.labels, atol=3)
    with pytest.raises(UsageError, match="start: is a date; give time, the column with the start of each recording"):
        frames_of(tmp_path, TABLE.format(kind="npy", more=ARRAYS + ", end='off'"))
    _arrays(tmp_path, "night,onset,off,stage,begin", [row[:-19] + "2020-02-01 22:00:30" for row in rows])
    with pytest.raises(
        UsageError, match=r"row 1: no interval lies within the recording of 300 s: .* 31\.00 days before"
    ):
        frames_of(tmp_path, TABLE.format(kind="npy", more=ARRAYS + ", end='off', time='begin'"))


def test_dates_of_a_table_have_the_format_that_is_given(tmp_path: Path) -> None:
    rows = ["01.02.2020 22.01.00,01.02.2020 22.02.00,W,01.02.2020 22.00.30"]
    rows += ["01.02.2020 22.02.00,01.02.2020 22.03.30,N2,01.02.2020 22.00.30"]
    _arrays(tmp_path, "night,onset,off,stage,begin", rows)
    more = ARRAYS + ", end='off', time='begin'"
    body = TABLE.format(kind="npy", more=more + ", date_format='%d.%m.%Y %H.%M.%S'")
    assert frames_of(tmp_path, body).labels.tolist() == [0, 0, 1, 1, 1] * 6
    with pytest.raises(UsageError, match="is not a number, nor a date such as"):
        frames_of(tmp_path, TABLE.format(kind="npy", more=more))
    with pytest.raises(
        UsageError, match=r"stages\.csv: line 2, \w+: '01\.02\.2020 22\.0\d\.\d\d' is no date of the format %Y/%m/%d"
    ):
        frames_of(tmp_path, TABLE.format(kind="npy", more=more + ", date_format='%Y/%m/%d'"))


def test_seconds_beside_a_time_with_a_format_stay_seconds(tmp_path: Path) -> None:
    _arrays(tmp_path, "night,onset,off,stage,begin", ["30,90,W,01.02.2020", "90,180,N2,01.02.2020"])
    more = ARRAYS + ", end='off', time='begin', date_format='%d.%m.%Y'"
    assert frames_of(tmp_path, TABLE.format(kind="npy", more=more)).labels.tolist() == [0, 0, 1, 1, 1] * 6


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"date_format": "%d.%m.%Y"}, "date_format: is the format of dates of a table; give time, start or end"),
        ({"date_format": "%d", "time": "#Date"}, "date_format: is the format of dates of a table; give time, start"),
        ({"date_format": "dd.mm.yyyy", "time": "day"}, 'date_format: expected a format of strptime such as "%d.%m.%Y"'),
    ],
)
def test_a_format_without_dates_is_refused(given: dict[str, str], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        Recordings.from_wfdb(tmp_path, "rhythm", table="labels.csv", **given)


def test_dates_of_a_table_count_from_the_header_of_the_recording(tmp_path: Path) -> None:
    _arrays(tmp_path, "night,onset,off,stage", [
        "2020-01-01 22:00:30,2020-01-01 22:01:30,W", "2020-01-01 22:01:30,2020-01-01 22:03:00,N2",
    ])  # fmt: skip
    for number in range(6):
        _edf(tmp_path / f"nights/n{number}.edf", TEN)
    frames = frames_of(tmp_path, TABLE.format(kind="edf", more="read=from_edf, classes=('W', 'N2'), end='off'"))
    assert frames.labels.tolist() == [0, 0, 1, 1, 1] * 6
    np.testing.assert_allclose(frames.signal(slice(None)).mean(-1).ravel(), 100.0 * frames.labels, atol=3)


@pytest.mark.parametrize(
    ("time", "sentence"),
    [
        ("2020-01-01 22:00:00", None),
        ("2020-01-01", None),
        ("2020-01-01 21:00:00", "time: the recording starts 3,600 s after the time that the table says"),
        ("2020-01-02", "time: the recording starts 7,200 s before the time that the table says"),
    ],
)
def test_the_time_of_a_table_and_the_header_of_the_recording_agree(
    time: str, sentence: str | None, tmp_path: Path
) -> None:
    _arrays(tmp_path, "night,onset,off,stage,begin", [
        f"2020-01-01 22:00:30,2020-01-01 22:01:30,W,{time}", f"2020-01-01 22:01:30,2020-01-01 22:03:00,N2,{time}",
    ])  # fmt: skip
    for number in range(6):
        _edf(tmp_path / f"nights/n{number}.edf", TEN)
    body = TABLE.format(kind="edf", more="read=from_edf, classes=('W', 'N2'), end='off', time='begin'")
    if sentence is None:
        assert frames_of(tmp_path, body).labels.tolist() == [0, 0, 1, 1, 1] * 6
    else:
        with pytest.raises(UsageError, match=sentence):
            frames_of(tmp_path, body)


def test_dates_of_intervals_count_from_the_first_timestamp(tmp_path: Path) -> None:
    body = """
@dataset("own", classes=("W", "N2"), channels=("c",), units="mV", sampling_rate=10, window_seconds=3)
def own(data_root):
    for number in range(6):
        signal = np.r_[np.zeros(90), np.ones(120)] + np.random.default_rng(number).normal(0, 0.1, 210)
        start = np.datetime64("2020-01-01T22:00:00.500", "ms")
        at = start + np.arange(210) * np.timedelta64(100, "ms")
        stages = [(start, start + np.timedelta64(9, "s"), "W"), (start + np.timedelta64(9, "s"), at[-1], "N2")]
        yield Recording(signal, patient=number, timestamps=at, intervals=stages)
"""
    frames = frames_of(tmp_path, body)
    assert frames.labels.tolist() == [0, 0, 0, 1, 1, 1] * 6
    np.testing.assert_allclose(frames.signal(slice(None)).mean(-1).ravel(), frames.labels, atol=0.2)

    declare(tmp_path / "space.py", body.replace("intervals=stages", "intervals=stages, start='2020-01-01 22:00'"))
    with pytest.raises(UsageError, match="start: is '2020-01-01 22:00' and the first of timestamps is"):
        prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)


@pytest.mark.parametrize(
    ("classes", "labels", "sentence"),
    [
        ("('W', 'N2')", "01", "label: the table has the whole numbers 0, 1 and classes has names; give the name of"),
        ("('1', '0')", "01", "label: 0 may be the class '0', or class '1' at position 0; give the name of each"),
        ("{'1': 'N2', '0': 'W'}", "01", None),
        ("('1', '2')", "12", None),
        ("('0', '1')", "01", None),
    ],
)
def test_whole_numbers_in_a_table_are_names(classes: str, labels: str, sentence: str | None, tmp_path: Path) -> None:
    first, second = labels
    _arrays(tmp_path, "night,onset,off,stage", [f"0,90,{first}", f"90,210,{second}"])
    more = f"classes={classes}, sampling_rate=100, units='uV', end='off'"
    if sentence is None:
        frames = frames_of(tmp_path, TABLE.format(kind="npy", more=more))
        order = [1, 0] if classes.startswith("{") else [0, 1]
        assert (
            frames.labels.tolist() == [order[0]] * 3 * 6
            or frames.labels.tolist() == ([order[0]] * 3 + [order[1]] * 4) * 6
        )
    else:
        with pytest.raises(UsageError, match=sentence):
            frames_of(tmp_path, TABLE.format(kind="npy", more=more))


NUMBERS = """
@dataset("own", classes={classes}, channels=("c",), units="mV", sampling_rate=10, window_seconds=3)
def own(data_root):
    for number in range(6):
        signal = np.r_[np.zeros(90), np.ones(120)] + np.random.default_rng(number).normal(0, 0.1, 210)
        yield Recording(signal, patient=number, intervals=[(0, 9, {first}), (9, 21, {second})])
"""


def test_whole_numbers_in_intervals_are_positions(tmp_path: Path) -> None:
    frames = frames_of(tmp_path, NUMBERS.format(classes="('W', 'N2')", first=0, second=1))
    assert frames.labels.tolist() == [0, 0, 0, 1, 1, 1, 1] * 6
    named = frames_of(tmp_path, NUMBERS.format(classes="('1', '2')", first="'1'", second="'2'"))
    assert named.labels.tolist() == frames.labels.tolist()
    with pytest.raises(UsageError, match="intervals: the label 1 may be the class '1', or class '2' at position 1"):
        frames_of(tmp_path, NUMBERS.format(classes="('1', '2')", first=1, second=2))


def test_intervals_with_dates_count_from_start(tmp_path: Path) -> None:
    body = NUMBERS.replace(
        "(0, 9, {first}), (9, 21, {second})]",
        "(datetime(2020, 1, 1, 0, 0, 10), datetime(2020, 1, 1, 0, 0, 19), 'W'),"
        " (datetime(2020, 1, 1, 0, 0, 19), datetime(2020, 1, 1, 0, 0, 31), 'N2')], start='2020-01-01 00:00:10'",
    )
    frames = frames_of(tmp_path, "from datetime import datetime\n" + body.format(classes="('W', 'N2')"))
    assert frames.labels.tolist() == [0, 0, 0, 1, 1, 1, 1] * 6
    with pytest.raises(UsageError, match="start: expected a date such as"):
        frames_of(
            tmp_path,
            "from datetime import datetime\n" + body.format(classes="('W', 'N2')").replace("start='2020", "start='x"),
        )
