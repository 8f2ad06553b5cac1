"""Split seeds that leave a task without a class are named together with seeds that do not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clops_sweep import RunConfig, open_frames
from clops_sweep.cli.commands import command
from clops_sweep.errors import UsageError
from tests.data.declared_files import forget

SPACE = """
import numpy as np

from clops_sweep import OptunaSearch, Recordings, RunConfig, SearchSpace, TuneOn, dataset

PERSON = np.arange(48) // 2


@dataset("few_patients", scenarios=["domain_il"])
def few_patients(data_root):
    y = np.isin(PERSON, RARE) ^ (PERSON % 2 == 0)  # no in ward A and yes in ward B
    x = np.random.default_rng(0).normal(size=(48, 2, 50)) + y[:, None, None]
    ward = np.array(list("ABCD"))[PERSON % WARDS]
    return Recordings(x, 50, ["I", "II"], "mV", labels=y.astype(int), classes=["no", "yes"], patients=PERSON,
                      domains={"ward": ward}, split=SPLIT)


base = RunConfig(dataset="few_patients", scenario="domain_il", domain="ward", network="small_cnn", epochs_per_task=1)
SPACE = SearchSpace("few_patients", base, AXES, seeds=[0], search=SEARCH)
"""

HALF = range(0, 24, 4)
"""Half of the people of ward A."""
EACH = "each class of each task in each part"
PROBLEM = r"task ward [AB] has no instance of (yes|no) in the (training|validation|test) split, so it cannot be scored"


def _plan(
    folder: Path,
    axes: dict[str, Any],
    rare: list[int],
    split: str = "None",
    wards: int = 2,
    *,
    nothing_runs: bool = False,
    scarce: bool = False,
    search: str = "None",
) -> tuple[int, str]:
    file = folder / "wards.py"
    text = (
        SPACE.replace("RARE", repr(rare)).replace("AXES", repr(axes)).replace("SPLIT", split).replace("SEARCH", search)
    )
    file.write_text(text.replace("WARDS", str(wards)))
    prepared = ["--prepared-root", str(folder / "prepared")]
    try:
        done = CliRunner().invoke(command, ["data", "prepare", "few_patients", "--plugins", str(file), *prepared])
        if scarce:
            assert "few_patients: the frames are prepared, but a launch of search space " in str(done.exception)
        elif nothing_runs:
            assert "few_patients: nothing can be run on these frames" in str(done.exception)
        else:
            assert done.exit_code == 0, done.output
        _require_impossible_tasks_last(done.output)
        planned = CliRunner().invoke(command, ["plan", str(file), *prepared, "--results", str(folder / "results")])
        said = str(planned.exception or planned.output)
        if planned.exit_code and axes.get("split_seed") == [0]:
            assert f"no tasks: domain_il by ward: {said}\n" in done.output, "the sentence of the launch"
        return planned.exit_code, said
    finally:
        forget("few_patients")


def _require_impossible_tasks_last(prepared: str) -> None:
    """Check that sentences on tasks that cannot be are the last ones of `data prepare`."""
    lines = prepared.splitlines()
    impossible = [number for number, line in enumerate(lines) if line.startswith("no tasks: ")]
    assert impossible == list(range(len(lines) - len(impossible), len(lines))), prepared
    by_ward = [lines[number] for number in impossible if "domain_il by ward: few_patients: " in lines[number]]
    assert all(re.search(PROBLEM, line) for line in by_ward)


def _covers(folder: Path, seed: int) -> bool:
    """Return whether each part has both classes in both wards, from the frames alone."""
    frames = open_frames("few_patients", prepared_root=folder / "prepared", split_seed=seed)
    ward, _ = frames.domains["ward"]
    there = set(zip(frames.split.tolist(), ward.tolist(), frames.labels.tolist(), strict=True))
    return len(there) == 3 * 2 * len(set(ward.tolist()))


def test_seeds_that_fail_and_seeds_that_work_are_named(tmp_path: Path) -> None:
    status, said = _plan(tmp_path, {"split_seed": [*range(6)]}, rare=[*HALF, 1, 3, 5, 7])
    assert status != 0
    covering = [seed for seed in range(20) if _covers(tmp_path, seed)]
    failing = [seed for seed in range(6) if seed not in covering]
    assert min(len(covering), len(failing)) > 1  # otherwise the data are a poor example
    assert (
        f"few_patients: split_seed {', '.join(map(str, failing))}: a task lacks a class in a part of the split; "
        in said
    )
    assert re.search(rf"with {failing[0]}, {PROBLEM}", said), said
    assert said.endswith(
        f"of split_seed 0 to 19, these have {EACH}: \"split_seed\": {covering}; or give RunConfig stratify='ward', "
        f"with which split_seed {', '.join(map(str, failing))} have them"
    )
    one, said = _plan(tmp_path, {"split_seed": failing[:1]}, rare=[*HALF, 1, 3, 5, 7])
    assert one != 0
    assert re.match(rf"few_patients: split_seed {failing[0]}: {PROBLEM}", said), said
    status, said = _plan(tmp_path, {"split_seed": covering}, rare=[*HALF, 1, 3, 5, 7])
    assert status == 0, said


@pytest.mark.parametrize("tune_on", ["", ", tune_on=TuneOn(tasks=1)"])
def test_the_split_seed_of_the_base_is_not_checked_if_a_search_has_others(tune_on: str, tmp_path: Path) -> None:
    search = f"OptunaSearch(methods={{'er': {{'replay_ratio': [0.5, 1.0]}}}}, sampler='grid'{tune_on})"
    rare = [*HALF, 1, 3, 5]
    status, said = _plan(tmp_path, {}, rare, search=search)
    assert status != 0, said
    covering = [seed for seed in range(20) if _covers(tmp_path, seed)]
    assert RunConfig().split_seed not in covering, "a poor example"
    assert said.endswith(
        f"of split_seed 0 to 19, these have {EACH}: \"split_seed\": {covering}; or give RunConfig stratify='ward', "
        "with which split_seed 0 has them"
    )
    assert re.search(PROBLEM + r" \(\d people of this task have (yes|no)\)", said), said
    status, said = _plan(tmp_path, {"split_seed": covering[:2]}, rare, search=search)
    assert status == 0, said


def test_without_any_seed_that_works_the_sentence_says_what_would(tmp_path: Path) -> None:
    # Each of four wards has three people with each class: a split that covers all is hardly ever drawn.
    status, said = _plan(tmp_path, {"split_seed": [0]}, rare=[*range(12)], wards=4)
    assert status != 0
    assert not any(_covers(tmp_path, seed) for seed in range(20))
    assert said.endswith(
        f"none of split_seed 0 to 19 has {EACH}: divide the people yourself with split=..., a train, validation or "
        "test for each recording (a column, in a table), leave the task or class out of the data or pool it with "
        "another one, or add people who have it; or give RunConfig stratify='ward', with which split_seed 0 has them"
    )


def test_a_split_that_is_stratified_by_ward_covers_what_no_seed_does(tmp_path: Path) -> None:
    axes = {"split_seed": [*range(6)], "stratify": ["ward"]}
    status, said = _plan(tmp_path, axes, rare=[*range(12)], wards=4)
    assert (status, "ward D" in said) == (0, True), said


def test_a_split_of_ones_own_covers_what_no_seed_does(tmp_path: Path) -> None:
    """Each ward has six people, three with each class: the parts get one of each."""
    split = '[("train", "validation", "test")[person // 4 % 3] for person in PERSON]'
    status, said = _plan(tmp_path, {"split_seed": [0]}, rare=[*range(12)], split=split, wards=4)
    assert (status, "ward D" in said) == (0, True), said


def test_a_class_of_two_people_has_no_seed_that_helps(tmp_path: Path) -> None:
    status, said = _plan(tmp_path, {"split_seed": [0]}, rare=[*HALF, 1, 3], scarce=True)
    assert status != 0
    assert "only 2 people have yes, and each of the 3 parts of a split needs one, so no split_seed helps" in said


def test_a_fold_is_named_instead_of_seeds(tmp_path: Path) -> None:
    folds = {"split": ["fold:1/3", "fold:2/3", "fold:3/3"]}
    status, said = _plan(tmp_path, folds, rare=[*HALF, 1, 3, 5])
    assert status != 0
    assert re.match(rf"few_patients: split = 'fold:\d/3', split_seed 0: {PROBLEM}", said), said
    assert not re.search(r"split_seed \d+ to \d+", said)


def test_folds_name_the_stratification_that_covers_each_task(tmp_path: Path) -> None:
    """Each of four wards has three people with each class, one for each fold."""
    folds = {"split": ["fold:1/3", "fold:2/3", "fold:3/3"]}
    status, said = _plan(tmp_path, folds, rare=[*range(12)], wards=4)
    assert status != 0
    stratified = "; or give RunConfig stratify='ward', with which all 3 folds of split_seed 0 have "
    assert said.endswith(stratified + EACH), said
    status, said = _plan(tmp_path, folds | {"stratify": ["ward"]}, rare=[*range(12)], wards=4)
    assert status == 0, said


def test_a_given_split_has_no_seed_that_helps(tmp_path: Path) -> None:
    given = "np.array(['train', 'validation', 'test', 'train'])[PERSON // 2 % 4]"
    status, said = _plan(tmp_path, {"split_seed": [0]}, rare=[*HALF, 1, 9, 17], split=given, nothing_runs=True)
    assert status != 0
    assert re.match(f"few_patients: {PROBLEM}", said), said
    assert EACH not in said


@pytest.mark.parametrize(
    ("scenarios", "people", "status"),
    [
        (["domain_il"], 4, 2),  # two people in each ward: no split seed helps
        (["class_il_union", "domain_il"], 4, 2),  # the tasks of one scenario can be built: not that of the search space
        (["domain_il"], 12, 0),  # other split seeds work
    ],
)
def test_preparing_ends_with_status_2_if_nothing_can_be_run(
    scenarios: list[str], people: int, status: int, tmp_path: Path
) -> None:
    """It ended with 0, and named no split seed that works."""
    text = SPACE.replace('["domain_il"]', repr(scenarios)).replace(
        "np.random.default_rng(0).normal(size=(48, 2, 50))", "rng"
    )
    text = text.replace('["I", "II"]', '["I"]').replace(
        "rng + y", "np.random.default_rng(0).normal(size=(48, 1, 50)) + y"
    )
    text = (
        text.replace("np.arange(48) // 2", f"np.arange(48) % {people}").replace("SPLIT", "None").replace("WARDS", "2")
    )
    text = text.replace("y = np.isin(PERSON, RARE) ^ (PERSON % 2 == 0)", "y = np.arange(48) // 24 > 0")
    file = tmp_path / "wards.py"
    file.write_text(text.replace("AXES", "{'split_seed': [0]}").replace("SEARCH", "None"))
    prepared = ["--prepared-root", str(tmp_path / "prepared"), "--plugins", str(file)]
    try:
        done = CliRunner().invoke(command, ["data", "prepare", "few_patients", *prepared])
        as_json = CliRunner().invoke(command, ["data", "counts", "few_patients", *prepared, "--json"])
    finally:
        forget("few_patients")
    assert as_json.exit_code == status, as_json.output
    said = "few_patients: nothing can be run on these frames, as no scenario has tasks; the reason is above"
    if "class_il_union" in scenarios:
        said = (
            "few_patients: the frames are prepared, but a launch of search space 'few_patients' is refused; the reason "
            'is above, after "no tasks"'
        )
    if status:
        assert isinstance(done.exception, UsageError)
        assert str(done.exception) == said
    else:
        assert done.exit_code == 0, done.output
    (sentence,) = json.loads(as_json.stdout)["impossible"].values()
    assert f"no tasks: domain_il by ward: {sentence}\n" in done.output
    assert ("so no split_seed helps" in sentence) == (people == 4), sentence
    assert ('these have each class of each task in each part: "split_seed": [' in sentence) == (people == 12), sentence
