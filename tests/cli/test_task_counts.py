"""Tables of tasks at a plan and at a launch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from clops_sweep.cli.commands import command
from clops_sweep.errors import AbsentData
from tests.data.declared_files import forget

FILE = """
import numpy as np

from clops_sweep import Recordings, RunConfig, SearchSpace, dataset

PERSON = np.arange(480) // 16


@dataset("wearable", scenarios=["class_il_union"])
def wearable(data_root):
    y = np.arange(480) % 4
    x = np.random.default_rng(0).normal(size=(480, 1, 50)) + y[:, None, None]
    names = ["lie", "sit", "stand", "walk"]
    return Recordings(x, 50, ["az"], "g", labels=y, classes=names, patients=PEOPLE)


BASE = RunConfig(dataset="wearable", scenario="SCENARIO", network="linear", epochs_per_task=1)
AXES = {"strategy": ["finetune", "er"], "split_seed": range(3)}
SPACE = SearchSpace("own", BASE, AXES, seeds=range(2))
"""

SAME_RUNS = "give the same runs"
"""Part of the sentence about split seeds without effect."""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    forget("wearable", "other")
    yield
    forget("wearable", "other")


ENVIRONMENT = {"CLOPS_PREPARED_ROOT": "prepared", "CLOPS_DATA_ROOT": None}
"""Prepared frames are below the working folder, which is also where the files of data are looked for."""


def _run(*words: str) -> Result:
    done = CliRunner(env=ENVIRONMENT).invoke(command, words)
    assert done.exit_code == 0, done.output
    return done


def _write(people: str = "PERSON", scenario: str = "class_il_union") -> None:
    Path("own.py").write_text(FILE.replace("PEOPLE", people).replace("SCENARIO", scenario))


def test_tasks_have_frames_and_people_of_one_split() -> None:
    _write()
    before = _run("plan", "own.py").output
    assert not any(line.startswith("tasks of") for line in before.splitlines())
    remedy = "clops-sweep data prepare wearable --plugins own.py"
    said = "not checked before the frames of wearable are prepared: labels, people, tasks; a launch prepares and checks"
    assert f"{said} them first, or now: {remedy}\n" in before
    (unknown,) = json.loads(_run("plan", "own.py", "--json").stdout)["tasks"]
    assert (unknown["tasks"], unknown["splits"], unknown["split_seed"]) == (None, 3, 0)
    counted = json.loads(_run(*remedy.split()[1:], "--json").stdout)
    after = _run("plan", "own.py").output
    assert "not checked" not in after
    lines = after.splitlines()
    first = lines.index("tasks of wearable, class_il_union, split_seed 0 of 3 splits: frames (people)")
    assert lines[first + 1].split() == ["task", "training", "validation", "test"]
    rows = counted["tasks"]["class_il_union"]
    for line, row in zip(lines[first + 2 :], rows, strict=False):
        counts = (f"{row['frames'][part]} ({row['patients'][part]})" for part in ("training", "validation", "test"))
        assert line.split("  ")[0] == row["name"]
        assert all(count in line for count in counts)
    (table,) = json.loads(_run("plan", "own.py", "--json").stdout)["tasks"]
    assert table["tasks"] == rows
    assert sum(row["frames"][part] for row in rows for part in row["frames"]) == 480


def test_plan_names_all_that_data_are_not_checked_for() -> None:
    """A misspelt domain or too many folds are found by the launch, after it has prepared the data."""
    text = FILE.replace("PEOPLE", "PERSON").replace('["class_il_union"]', '["domain_il"]')
    text = text.replace('scenario="SCENARIO"', 'scenario="domain_il", domain="sight", stratify="ward"')
    Path("own.py").write_text(text.replace('"split_seed": range(3)', '"split": [f"fold:{i}/5" for i in range(1, 6)]'))
    said = "are prepared: labels, people, tasks, domain 'sight', stratify 'ward', 5 folds; a launch"
    assert said in _run("plan", "own.py").output


def test_many_tasks_are_one_row_of_ranges() -> None:
    _write(scenario="subject_il")
    _run("data", "prepare", "wearable", "--plugins", "own.py")
    output = _run("plan", "own.py").output
    (line,) = (line for line in output.splitlines() if line.startswith("each of "))
    assert line.split("  ")[0] == "each of 9 tasks, Group 1 (2 people) to Group 9 (2 people)"
    assert [cell.strip() for cell in line.split("  ")[1:] if cell] == ["32 (2)", "96 (6)", "96 (6)"]


def test_without_people_only_frames_are_counted() -> None:
    _write("None")
    _run("data", "prepare", "wearable", "--plugins", "own.py")
    assert "class_il_union, split_seed 0 of 3 splits: frames\n" in _run("plan", "own.py").output


def test_a_table_for_each_choice_of_tasks() -> None:
    _write()
    text = Path("own.py").read_text()
    groups = '{"task_classes": [[[0, 1], [2, 3]], [[0, 2], [1, 3]]]}'
    Path("own.py").write_text(text.replace("BASE, AXES", f"BASE, {groups}"))
    _run("data", "prepare", "wearable", "--plugins", "own.py")
    output = _run("plan", "own.py").output
    assert output.count("tasks of wearable, class_il_union, task_classes = ") == 2
    assert "lie / stand" in output


GIVEN = "PERSON, split=np.array(['train', 'test'])[PERSON % 2]"


def test_a_launch_counts_the_tasks_before_the_first_run() -> None:
    _write(GIVEN)
    output = _run("own.py", "--no-ray", "--no-report").output
    first = output.index("[1/12] finished")
    assert output.index("tasks of wearable, class_il_union, the given split: frames (people)\n") < first
    said = f"wearable: its split is given in the data, so all 3 split seeds {SAME_RUNS}; leave out split_seed"
    assert output.index(said) < first


def test_the_first_tasks_by_difficulty_are_planned_and_launched() -> None:
    """Plan and launch ended with an error: which tasks come first follows from a run."""
    _write()
    text = Path("own.py").read_text()
    base = 'strategy="clops", first_tasks=1, task_order="curriculum", epochs_per_task=1, task_classes=GROUPS'
    text = text.replace("epochs_per_task=1", base).replace("BASE, AXES, seeds=range(2)", "BASE, seeds=range(1)")
    Path("own.py").write_text(text.replace("BASE =", "GROUPS = [[0, 1], [2, 3]]\nBASE ="))
    assert _run("own.py", "--no-ray", "--no-report").exit_code == 0
    output = _run("plan", "own.py", "--results", "fresh").output
    title = "tasks of wearable, class_il_union, first_tasks = 1, task_order = 'curriculum', split_seed 0: frames"
    rows = output[output.index(title) :].splitlines()[2:4]
    assert [row.split("  ")[0] for row in rows] == ["0-1 (lie / sit)", "2-3 (stand / walk)"]


def test_tasks_of_tuning_are_apart_from_all_tasks() -> None:
    """The title of the reported tasks had "first_tasks = None"."""
    _write()
    text = Path("own.py").read_text()
    search = "OptunaSearch(methods={'er': {'replay_ratio': [0.5, 1.0]}}, sampler='grid', tune_on=TuneOn(tasks=1))"
    text = text.replace("SearchSpace,", "OptunaSearch, SearchSpace, TuneOn,")
    Path("own.py").write_text(text.replace("BASE, AXES, seeds=range(2)", f"BASE, seeds=range(1), search={search}"))
    _run("data", "prepare", "wearable", "--plugins", "own.py")
    output = _run("plan", "own.py").output
    assert "tasks of wearable, class_il_union, first_tasks = 1, split_seed 0" in output
    assert "tasks of wearable, class_il_union, all tasks, split_seed 0" in output


def test_plan_refuses_files_that_do_not_exist() -> None:
    _write()
    text = Path("own.py").read_text()
    Path("own.py").write_text(
        text.replace('scenarios=["class_il_union"]', 'scenarios=["class_il_union"], files=["x.npy"]')
    )
    done = CliRunner(env=ENVIRONMENT).invoke(command, ["plan", "own.py"])
    assert isinstance(done.exception, AbsentData)
    assert str(done.exception).startswith(f"dataset 'wearable': files: data root {Path.cwd()} has no x.npy")


def test_plan_names_the_files_that_changed_since_the_preparation() -> None:
    text = FILE.replace("PEOPLE", "PERSON").replace("SCENARIO", "class_il_union")
    text = text.replace("np.random.default_rng(0).normal(size=(480, 1, 50))", 'np.load(data_root / "x" / "a.npy")')
    Path("own.py").write_text(text.replace('"class_il_union"])', '"class_il_union"], files=["x"])'))
    Path("x").mkdir()
    for name in ("a", "b", "c"):
        np.save(f"x/{name}.npy", np.random.default_rng(0).normal(size=(480, 1, 50)))
    _run("data", "prepare", "wearable", "--plugins", "own.py")
    assert "changed" not in _plan("own.py")
    np.save("x/a.npy", np.random.default_rng(1).normal(size=(480, 1, 50)))
    Path("x/b.npy").rename("x/d.npy")
    Path("x/c.npy").touch()
    said = (
        "frames of wearable were prepared before its code or files changed (edited: x/a.npy; removed: x/b.npy; added: "
        "x/d.npy)"
    )
    for _ in range(2):
        output = _plan("own.py")
        assert f"{said}: runs that are finished count as pending until they are prepared again\n" in output
        assert "declare a data set once" not in output


def test_equal_declarations_of_two_files_are_prepared_once_each() -> None:
    """An import on the same line as that of the data set is part of its code, so that the two have other hashes."""
    _write()
    text = Path("own.py").read_text()
    Path("other.py").write_text(text.replace("import Recordings, ", "import Recordings, Claim, "))
    _run("data", "prepare", "wearable", "--plugins", "own.py")
    outdated = "frames of wearable were prepared before its code or files changed (edited: the code in other.py)"
    assert outdated not in _plan("own.py")
    assert outdated in _plan("other.py")
    _run("data", "prepare", "wearable", "--plugins", "other.py")
    assert [outdated in _plan(file) or "not checked" in _plan(file) for file in ("own.py", "other.py")] == [
        False,
        False,
    ]


def _plan(file: str) -> str:
    forget("wearable", "other")
    return _run("plan", file).output


@pytest.mark.parametrize("drawn", ["validation=0.2", "blurry=0.2"])
def test_split_seeds_that_draw_from_a_given_split_are_splits(drawn: str) -> None:
    """The validation set and the blurry tasks are drawn with the split seed: the runs differ."""
    _write(GIVEN)
    text = Path("own.py").read_text()
    Path("own.py").write_text(text.replace("epochs_per_task=1", f"epochs_per_task=1, {drawn}"))
    _run("data", "prepare", "wearable", "--plugins", "own.py")
    planned = _run("plan", "own.py").output
    assert "tasks of wearable, class_il_union, split_seed 0 of 3 splits: frames (people)\n" in planned
    assert SAME_RUNS not in planned


WARDS = """
import numpy as np

from clops_sweep import Recordings, RunConfig, SearchSpace, dataset, folds

PERSON = np.arange(480) // 16


@dataset("wearable", scenarios=["class_il_union", "domain_il"])
def wearable(data_root):
    y = np.arange(480) % 4
    x = np.random.default_rng(0).normal(size=(480, 2, 50)) + y[:, None, None]
    names, ward = ["lie", "sit", "stand", "walk"], np.array(["A", "B"])[PERSON % 2]
    return Recordings(
        x, 50, ["ax", "az"], "g", labels=y, classes=names, patients=PERSON, domains={"ward": ward}
    )


BASE = RunConfig(
    dataset="wearable", scenario="domain_il", domain="ward", task_order=["B", "A"], stratify="ward", network="small_cnn"
)
WARDS = SearchSpace("by ward", BASE, {"strategy": ["finetune", "er"], "split_seed": [4, 5]})
CLASSES = RunConfig(dataset="wearable", scenario="class_il_union", network="small_cnn")
UNION = SearchSpace("of classes", CLASSES, {"split": folds(3)})
"""
"""A data set by lead and by ward, and two search spaces."""


def _of_wards(space: str) -> None:
    Path("own.py").write_text(f"{WARDS}SPACE = {space}\n")


def test_data_prepare_has_the_tasks_and_the_split_of_the_search_space() -> None:
    _of_wards("WARDS")
    counted = json.loads(_run("data", "prepare", "wearable", "--plugins", "own.py", "--json").stdout)
    (table,) = json.loads(_run("plan", "own.py", "--json").stdout)["tasks"]
    assert counted["tasks"] == {"domain_il by ward": table["tasks"]}
    assert [row["name"] for row in table["tasks"]] == ["ward B", "ward A"]
    shown = _run("data", "prepare", "own.py").output
    split = "split_seed 4 of 2 splits, stratified by ward"
    assert f"wearable: frames (patients) per class, {split}\n" in shown
    assert f"\nwearable, domain_il by ward: frames (patients) per task, {split}, of search space 'by ward'\n" in shown
    assert "split_seed 0" not in shown
    other = _run("data", "counts", "own.py", "--split-seed", "7").output
    assert "per task, split_seed 7, stratified by ward, of search space 'by ward'\n" in other


def test_data_prepare_has_a_table_for_the_tasks_of_each_search_space() -> None:
    _of_wards("[UNION, WARDS]")
    shown = _run("data", "prepare", "wearable", "--plugins", "own.py").output
    headings = [line for line in shown.splitlines() if "per task" in line]
    assert headings == [
        "wearable, class_il_union: frames (patients) per task, split fold:1/3 of 3 splits, "
        "of search space 'of classes'",
        "wearable, domain_il by ward: frames (patients) per task, split_seed 4 of 2 splits, stratified by ward, "
        "of search space 'by ward'",
    ]


def test_data_prepare_has_default_tasks_beside_those_that_a_search_space_cannot_have() -> None:
    _of_wards('SearchSpace("wrong", BASE.replace(task_order=["B", "X"]))')
    done = CliRunner(env=ENVIRONMENT).invoke(command, ["data", "prepare", "own.py"])
    shown = done.output
    assert "no tasks: domain_il by ward: " in shown
    assert str(done.exception) == (
        "wearable: the frames are prepared, but a launch of search space 'wrong' is refused; the reason is above, "
        'after "no tasks"'
    )
    headings = [line for line in shown.splitlines() if "per task" in line]
    assert headings == [
        "wearable, class_il_union: frames (patients) per task, split_seed 0",
        "wearable, domain_il: frames (patients) per task, split_seed 0",
    ]


def test_a_file_as_a_data_set_has_one_data_set() -> None:
    Path("own.py").write_text(WARDS + WARDS.replace('"wearable"', '"other"') + "SPACE = [WARDS]\n")
    done = CliRunner(env=ENVIRONMENT).invoke(command, ["data", "prepare", "own.py"])
    forget("other")
    assert str(done.exception) == (
        "own.py: has the data sets other, wearable; expected one of these names, and --plugins own.py"
    )
    Path("none.py").write_text("x = 1\n")
    done = CliRunner(env=ENVIRONMENT).invoke(command, ["data", "prepare", "none.py"])
    assert "none.py: declares no data set and has no SPACE" in str(done.exception)


def test_data_prepare_names_the_splits_that_a_launch_would_refuse() -> None:
    small = WARDS.replace('np.array(["A", "B"])[PERSON % 2]', 'np.array(["A", "B"])[(PERSON < 5) * 1]')
    space = 'SearchSpace("small", BASE.replace(stratify=None), {"split_seed": range(6)})'
    Path("own.py").write_text(f"{small}SPACE = {space}\n")
    shown = _run("data", "prepare", "own.py").output
    refused = str(CliRunner(env=ENVIRONMENT).invoke(command, ["plan", "own.py"]).exception)
    assert "these have each class of each task in each part" in refused
    (line,) = [line for line in shown.splitlines() if line.startswith("no tasks")]
    has_table = "of search space 'small'" in shown
    assert line == f"no tasks{' in some splits' if has_table else ''}: domain_il by ward: {refused}"
