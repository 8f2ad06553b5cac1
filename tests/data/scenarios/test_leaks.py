"""The check against leaks: all built-in scenarios pass on every split, and no leak does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clops_sweep import Recordings, ScenarioTasks, TaskInstances, UsageError, dataset, open_frames, prepare
from clops_sweep.data.frames import TEST, FrameSet
from clops_sweep.data.scenarios import Scenario, build_scenario, class_targets
from clops_sweep.data.scenarios.leaks import check_leaks, share_seen
from clops_sweep.testing import tiny_frames
from tests.data.declared_files import forget

PARTS = ("train", "validation", "test")
SCENARIOS: list[tuple[str, dict[str, Any], str]] = [
    ("class_il", {}, "all"),
    ("class_il_union", {"task_classes": ((0, 3), (1, 2))}, "all"),
    ("time_il", {}, "all"),
    ("domain_il", {"domain": "site"}, "all"),
    ("domain_il", {}, "single"),
    ("class_il_union", {"blurry": 0.4}, "all"),
    ("time_il", {"blurry": 0.4, "blur_seed": 1}, "single"),
    ("subject_il", {"blurry": 0.9}, "all"),
]
SPLITS: list[tuple[str, dict[str, Any]]] = [
    ("random", {}),
    ("random", {"split_seed": 3}),
    *(("random", {"split": f"fold:{i}/3", "split_seed": i}) for i in (1, 3)),
    ("given", {}),
    ("without validation", {}),
    ("without validation", {"validation": 0.4}),
]


@pytest.fixture(scope="module", params=[70, 150])
def root(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A prepared root with a random data set under three splits; people have any number of recordings and classes."""
    random = np.random.default_rng(request.param)
    n, people = 900, request.param
    owner = random.integers(0, people, n)
    order = random.permutation(people)
    train_and_test = np.where(order < 0.6 * people, "train", "test")
    parts = {
        "random": None,
        "given": np.where(order >= 0.8 * people, "validation", train_and_test)[owner],
        "without validation": train_and_test[owner],
    }
    recordings: dict[str, Any] = {
        "signals": random.standard_normal((n, 2, 8)), "sampling_rate": 8, "channels": ["I", "II"], "units": "mV",
        "labels": random.integers(0, 4, n), "classes": list("abcd"), "patients": owner,
        "domains": {"site": random.integers(0, 3, n)},
        "times": np.datetime64("2020-01-01") + random.integers(0, 900, n),
    }  # fmt: skip
    folder = tmp_path_factory.mktemp("leaks")
    for name, split in parts.items():

        def declared(data_root: Path | None, split: Any = split) -> Recordings:
            return Recordings(**recordings, split=split)

        scenarios = ("class_il", "time_il", "domain_il")
        dataset(name.replace(" ", "_"), scenarios=scenarios, reference_channel="II")(declared)
        prepare(name.replace(" ", "_"), prepared_root=folder, data_root=None, workers=1)
    yield folder
    forget()


@pytest.mark.parametrize(("scenario", "options", "leads"), SCENARIOS)
@pytest.mark.parametrize(("name", "view"), SPLITS)
def test_no_scenario_leaks_on_any_split(
    root: Path, name: str, view: dict[str, Any], scenario: str, options: dict[str, Any], leads: str
) -> None:
    frames = open_frames(name.replace(" ", "_"), prepared_root=root, leads=leads, **view)
    built = build_scenario(frames, scenario, **options)
    people = [
        {frames.patient_names[frames.patients[row]] for task in built.tasks for row in getattr(task, part).rows}
        for part in PARTS
    ]
    assert not people[0] & people[1]
    assert not people[0] & people[2]
    assert not people[1] & people[2]
    trained = np.concatenate([task.train.rows for task in built.tasks])
    assert len(trained) == len(np.unique(trained))  # no instance is in two tasks
    assert bool(people[1]) == (name != "without validation" or "validation" in view)
    # one evaluated instance of a training person is found in any task
    row = int(built.tasks[-1].train.rows[0])
    mine = np.flatnonzero(frames.patients == frames.patients[row])
    assert len(mine) > 1
    split = frames.split.copy()
    split[row] = TEST
    with pytest.raises(UsageError) as raised:
        build_scenario(replace(frames, split=split), scenario, **options)
    sentence = str(raised.value)
    assert frames.name in sentence
    assert f"patient {frames.patient_names[frames.patients[row]]!r} is in training and in test" in sentence


@pytest.mark.parametrize(("scenario", "options", "leads"), SCENARIOS)
def test_tuning_on_other_splits_and_data_is_refused_where_it_leaks(
    root: Path, scenario: str, options: dict[str, Any], leads: str
) -> None:
    views = [view for name, view in SPLITS if name == "random"]
    opened = [open_frames("random", prepared_root=root, leads=leads, **view) for view in views]
    built = [(build_scenario(frames, scenario, **options), frames) for frames in opened]
    parts = [{part: _people(*it, part) for part in PARTS} for it in built]
    for reported, of_reported in zip(built, parts, strict=True):
        for tuned_on, of_tuned in zip(built, parts, strict=True):
            if of_reported["test"] == of_tuned["test"]:
                with pytest.raises(UsageError, match="the tuning split has the same test people"):
                    check_leaks(*reported, tuned_on=[tuned_on])
            else:
                check_leaks(*reported, tuned_on=[tuned_on])
        seen = set[str]().union(*(of["validation"] for of in parts[:2]))
        share = len(of_reported["test"] & seen) / len(of_reported["test"])
        assert share_seen(*reported, built[:2]) == pytest.approx(share)
    scenario_of_it, frames = built[0]
    other = np.asarray(frames.frames).copy() + np.float32(1)  # other signals of people with the same names
    elsewhere = replace(frames, name="elsewhere", frames=other)
    check_leaks(scenario_of_it, frames, tuned_on=[(scenario_of_it, elsewhere)])
    evaluated = scenario_of_it.tasks[-1].test.rows[-1]
    there = scenario_of_it.tasks[0].train.rows[0]
    row, of = (it if frames.members is None else frames.members[it, 0] for it in (there, evaluated))
    other[row] = frames.frames[of]
    with pytest.raises(UsageError, match=r"patient .* is evaluated, and is also in dataset 'elsewhere'"):
        check_leaks(scenario_of_it, frames, tuned_on=[(scenario_of_it, elsewhere)])


def _people(scenario: Scenario, frames: FrameSet, part: str) -> set[str]:
    return {frames.patient_names[frames.patients[row]] for it in scenario.tasks for row in getattr(it, part).rows}


def tiny(**changes: Any) -> FrameSet:
    return replace(tiny_frames("class_il", tasks=2), **changes)


def recurring(frames: FrameSet) -> ScenarioTasks:
    """Return one task of all classes in which people recur."""
    targets = class_targets(frames)
    return ScenarioTasks("softmax", [TaskInstances("all", np.ones(len(frames), bool), targets)], people_recur=True)


def test_a_leak_from_one_task_to_another_is_found() -> None:
    frames = tiny()
    tasks = build_scenario(frames, "class_il").tasks
    patients = frames.patients.copy()
    patients[tasks[1].test.rows[0]] = patients[tasks[0].train.rows[0]]
    with pytest.raises(UsageError, match=r"^dataset 'synthetic', scenario 'class_il': patient 'P0\d\d' is in training"):
        build_scenario(replace(frames, patients=patients), "class_il")


def test_a_scenario_of_other_tasks_at_each_call_is_refused() -> None:
    generator = np.random.default_rng()

    def drawn(frames: FrameSet) -> ScenarioTasks:
        (task,) = recurring(frames).tasks
        return ScenarioTasks(
            "softmax", [replace(task, instances=generator.random(len(frames)) < 0.9)], people_recur=True
        )

    with pytest.raises(UsageError, match="the tasks differ when it is called again; draw random numbers from numpy"):
        build_scenario(tiny_frames("class_il", tasks=2), "drawn", function=drawn)


@pytest.mark.parametrize("channels", [1, 2])
def test_where_people_recur_no_sample_does(channels: int) -> None:
    frames = tiny_frames("class_il", tasks=2, channels=channels)
    frames = replace(frames, patients=np.zeros_like(frames.patients))
    built = build_scenario(frames, "again", function=recurring)
    (task,) = built.tasks
    if channels == 1:
        twice: Scenario = replace(built, tasks=(replace(task, test=task.train),))
        data = frames
    else:  # a test instance shares a channel with a training instance
        members = frames.members.copy()
        members[task.test.rows[0], 1] = members[task.train.rows[0], 0]
        twice, data = built, replace(frames, members=members)
    with pytest.raises(UsageError, match="an instance of patient 'P000' is in training and in test"):
        check_leaks(twice, data)
