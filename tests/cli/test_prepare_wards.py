"""`data prepare` on recordings of wards, with mistakes of a first use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from clops_sweep.cli.commands import command
from clops_sweep.data.frames import TEST
from clops_sweep.data.prepared.freshness import changes_in_words
from clops_sweep.data.preparing.prepare import open_frames
from clops_sweep.data.preparing.prepared_data import PreparedData
from tests.data.declared_files import forget

SPACE = """
from clops_sweep import Recordings, RunConfig, SearchSpace, dataset


@dataset("wards", files=["labels.csv"], scenarios=["domain_il"])
def wards(data_root):
    return Recordings.from_folder(
        data_root, "*.npy", table="labels.csv", name="file", label="rhythm", patient="person", domains=["ward"],
        classes=["sinus rhythm", "AF"], sampling_rate=10, channels=["ECG"], units="mV",
    )


BASE = RunConfig(dataset="wards", scenario="domain_il", domain="ward", network="small_cnn", epochs_per_task=1)
SPACE = SearchSpace("by ward", BASE, {"split_seed": [0, 1, 2]}, seeds=1)
"""


@pytest.fixture
def hospital(tmp_path: Path) -> Iterator[Path]:
    """60 people of three wards, of which ward C writes AF as "AFib"."""
    rows = ["file,rhythm,person,ward"]
    for number in range(60):
        ward = "ABC"[number % 3]
        has_fibrillation = number // 3 % 2 == 1
        rhythm = ("AFib" if ward == "C" else "AF") if has_fibrillation else "sinus rhythm"
        rows.append(f"r{number},{rhythm},p{number},{ward}")
        np.save(tmp_path / f"r{number}.npy", np.random.default_rng(number).normal(size=(1, 20)))
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    (tmp_path / "wards.py").write_text(SPACE)
    yield tmp_path
    forget("wards")


def _run(folder: Path, *words: str) -> Result:
    roots = {"CLOPS_DATA_ROOT": str(folder), "CLOPS_PREPARED_ROOT": str(folder / "prepared")}
    return CliRunner(env=roots).invoke(command, [*words, str(folder / "wards.py")])


def test_a_ward_that_spells_a_class_in_another_way_is_told_to_map_the_label(hospital: Path) -> None:
    shown = _run(hospital, "data", "prepare").output
    sentence = (
        "wards: task ward C has recordings of one class only (sinus rhythm) in the training split, so it cannot be "
        "scored; no split_seed helps, as the other parts of the split are alike; 10 of 20 recordings labelled AFib "
        "were left out of ward C: if that is AF, map the label with classes={'AFib': 'AF', ...}; or leave the task out "
        "of the data, or pool it with another one: give both one name in the column that domains= names as 'ward'"
    )
    refused = [line for line in shown.splitlines() if line.startswith("no tasks: ")]
    assert refused == [f"no tasks: domain_il by ward: {sentence}"], "nothing else is proposed"


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ('domain="wards"', "has no column 'wards' of domains (did you mean 'ward'?); domain may be lead, ward"),
        pytest.param(
            'domain="ward", task_order=["A", "B", "D"]',
            "no task is called 'D'; the tasks are A, B, C",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            'domain="ward", task_order=["A", "B", "ward c"]', "no task is called 'ward c'", marks=pytest.mark.nightly
        ),
    ],
)
def test_tasks_that_no_split_has_are_refused(setting: str, reason: str, hospital: Path) -> None:
    labels = hospital / "labels.csv"
    labels.write_text(labels.read_text().replace("AFib", "AF"))
    (hospital / "wards.py").write_text(SPACE.replace('domain="ward"', setting))
    for words in (("data", "prepare"), ("data", "counts"), ("data", "counts", "--json")):
        done = _run(hospital, *words)
        assert done.exit_code != 0
        assert reason in done.output
        if "--json" not in words:
            assert str(done.exception) == (
                "wards: the frames are prepared, but a launch of search space 'by ward' is refused; the reason is "
                'above, after "no tasks"'
            )


DECLARE_WARDS = (
    "; for tasks by ward, declare domains={'ward': [...]} with arrays, domains=['ward'], a column of the table, with "
    "files, or domains={'ward': ...} in each Recording, and set domain='ward'"
)
ARRAYS = """
    names = [f"r{number}" for number in range(60)]
    signals = np.stack([np.load(data_root / f"{name}.npy") for name in names])
    wards = [*"ABC"] * 20
    labels = [number // 3 % 2 for number in range(60)]
"""
WAYS = {
    "arrays": """
    return Recordings(
        signals, 10, ["ECG"], "mV", labels=labels, classes=["sinus rhythm", "AF"], patients=names, DOMAINS
    )
""",
    "recordings": """
    for signal, label, name, ward in zip(signals, labels, names, wards, strict=True):
        yield Recording(
            signal, label, name, classes=["sinus rhythm", "AF"], sampling_rate=10, channels=["ECG"], units="mV", DOMAINS
        )
""",
}


@pytest.mark.parametrize(
    ("way", "remedy"),
    [
        ("files", 'domains=["ward"],'),
        pytest.param("arrays", 'domains={"ward": wards}', marks=pytest.mark.nightly),
        pytest.param("recordings", 'domains={"ward": ward}', marks=pytest.mark.nightly),
    ],
)
def test_data_without_domains_are_answered_with_how_to_declare_them(way: str, remedy: str, hospital: Path) -> None:
    labels = hospital / "labels.csv"
    labels.write_text(labels.read_text().replace("AFib", "AF"))
    text = SPACE.replace('domains=["ward"],', "DOMAINS")
    if way != "files":
        begin, end = text.index("    return Recordings"), text.index("BASE =")
        text = (
            "import numpy as np\nfrom clops_sweep import Recording\n" + text[:begin] + ARRAYS + WAYS[way] + text[end:]
        )
    file = hospital / "wards.py"
    for setting, begin in (
        ("", "domain_il needs recordings of several leads, which 'wards' does not have"),
        ('domain="ward", ', "domain_il: 'wards' has no column 'ward' of domains; domain may be lead"),
    ):
        file.write_text(text.replace("DOMAINS", "").replace('domain="ward", ', setting))
        forget("wards")
        assert f"{begin}{DECLARE_WARDS}" in _run(hospital, "data", "prepare").output
    file.write_text(text.replace("DOMAINS", remedy))
    forget("wards")
    done = _run(hospital, "data", "prepare")
    assert done.exit_code == 0, done.output
    assert "ward C" in done.output


@pytest.mark.nightly
def test_copies_in_training_are_named_for_every_split_of_the_space(hospital: Path) -> None:
    labels = hospital / "labels.csv"
    labels.write_text(labels.read_text().replace("AFib", "AF"))
    np.save(hospital / "r7.npy", np.load(hospital / "r1.npy"))
    (hospital / "wards.py").write_text(SPACE.replace("[0, 1, 2]", "range(9)"))
    shown = _run(hospital, "data", "prepare").output
    assert "records with the samples of an earlier record: 1 (r7 repeats r1); 1 of them is of another patient" in shown
    (warning,) = (line for line in shown.splitlines() if "people in test have recordings" in line)
    apart = []
    for seed in range(9):
        frames = open_frames("wards", prepared_root=hospital / "prepared", data_root=hospital, split_seed=seed)
        parts = {name: frames.split[frames.patients == number][0] for number, name in enumerate(frames.patient_names)}
        person, other = ("p1", "p7") if parts["p1"] == TEST else ("p7", "p1")
        if parts[person] == TEST != parts[other]:
            people = len(np.unique(frames.patients[frames.split == TEST]))
            apart.append(f"split_seed {seed}: 1 of {people} people in test ({person} those of {other})")
    assert len(apart) > 1, "a poor example"
    assert warning == (
        "warning: people in test have recordings that are in training or validation under another name, so scores can "
        f"be too high; give both one patient, or leave one out: {'; '.join(apart)}"
    )


@pytest.mark.nightly
def test_what_was_dropped_is_said_once(hospital: Path) -> None:
    labels = hospital / "labels.csv"
    written = labels.read_text().replace("AFib", "AF").replace("r4,AF", "r4,AFF")
    labels.write_text("\n".join(line for line in written.splitlines() if not line.startswith("r8,")))
    shown = _run(hospital, "data", "prepare").output.splitlines()
    misspelt = [line for line in shown if "AFF" in line]
    assert misspelt[:1] == ["dropped: 1 recording labelled AFF (did you mean AF?): r4"], misspelt
    assert not any(line.startswith("note: left out") for line in shown)
    (unlisted,) = (line for line in shown if "does not list" in line)
    assert unlisted == "dropped: 1 recording that the table does not list: r8.npy"


def test_a_pattern_without_files_is_answered_with_the_endings_that_are_there(hospital: Path) -> None:
    (hospital / "wards.py").write_text(SPACE.replace("*.npy", "*.NPY"))
    said = str(_run(hospital, "data", "prepare").exception)
    assert "no file there matches *.NPY; in it or below it are 60 .npy, 1 .csv, 1 .py; look at the folder" in said


def test_a_changed_table_is_named_before_the_many_recordings_that_came_with_it(hospital: Path) -> None:
    (hospital / "wards.py").write_text(SPACE.replace('"labels.csv"]', '"labels.csv", "*.npy"]'))
    _run(hospital, "data", "prepare")
    labels = hospital / "labels.csv"
    added = [f"a{number},AF,q{number},A" for number in range(9)]
    labels.write_text("\n".join([labels.read_text().replace("AFib", "AF").replace("r3,AF,p3,A\n", ""), *added]))
    for number in range(9):
        np.save(hospital / f"a{number}.npy", np.random.default_rng(100 + number).normal(size=(1, 20)))
    (hospital / "r3.npy").unlink()
    changes = PreparedData(hospital / "prepared", hospital).changes("wards")
    news = [(f"a{number}.npy", "added") for number in range(9)]
    of_kinds = {(change.what, change.how) for change in changes}
    assert of_kinds == {("labels.csv", "edited"), ("r3.npy", "removed"), *news}
    assert changes_in_words(changes).startswith("edited: labels.csv; removed: r3.npy; added: a0.npy, a1.npy, ")


def _with_a_misspelt_ward(hospital: Path) -> None:
    labels = hospital / "labels.csv"
    written = labels.read_text().replace("AFib", "AF").replace(",A\n", ",general\n")
    assert "r3,AF,p3,general" in written
    labels.write_text(written.replace("r3,AF,p3,general", "r3,AF,p3,genral"))


@pytest.mark.nightly
def test_a_ward_that_is_probably_a_misspelling_is_asked_about(hospital: Path) -> None:
    _with_a_misspelt_ward(hospital)
    done = _run(hospital, "data", "prepare")
    (note,) = (line for line in done.output.splitlines() if line.startswith("warning: domains of"))
    assert note == (
        "warning: domains of 'ward': 'genral' (did you mean 'general'?) has 1 recording: r3; each is a task of its "
        "own; give each domain one name"
    )
    (refused,) = (line for line in done.output.splitlines() if line.startswith("no tasks: domain_il by ward"))
    assert "wards: task ward genral (did you mean 'general'?) has " in refused
    forget("wards")
    split = 'domain="ward", stratify="ward", split="fold:1/5"'
    (hospital / "wards.py").write_text(SPACE.replace('domain="ward"', split).replace("[0, 1, 2]", "[0]"))
    done = _run(hospital, "data", "prepare")
    assert (
        "split = 'fold:1/5' needs 5 people of each ward, and genral (did you mean 'general'?) has 1; expected one name "
        "for each ward, fewer folds, or split_seed alone"
    ) in f"{done.output}{done.exception}"
