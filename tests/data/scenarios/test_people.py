"""subject_il: groups of people in a requested order, evaluated on other people or on later parts of recordings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clops_sweep import Recordings, UsageError, dataset, open_frames, prepare
from clops_sweep.data.frames import TEST, TRAINING, VALIDATION, Encoded, FrameSet
from clops_sweep.data.preparing.prepare import data_hash
from clops_sweep.data.scenarios import build_scenario
from clops_sweep.data.scenarios.leaks import check_leaks
from tests.data.declared_files import forget

PARTS = ("train", "validation", "test")


@pytest.fixture(scope="module", params=[(4, None), (3, 1.5)])
def root(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A random data set of overlapping 2 s windows, with one to three recordings of 20 to 60 s per person."""
    seed, stride = request.param
    random = np.random.default_rng(seed)
    owner = np.concatenate([np.arange(20), random.integers(0, 20, 15)])
    recordings: dict[str, Any] = {
        "signals": [random.standard_normal((2, 10 * int(random.integers(20, 60)))) for _ in owner],
        "sampling_rate": 10, "channels": ["I", "II"], "units": "mV", "labels": random.integers(0, 3, len(owner)),
        "classes": list("abc"), "patients": owner, "window_seconds": 2, "stride_seconds": stride,
        "times": np.datetime64("2020-01-01") + random.integers(0, 900, len(owner)),
    }  # fmt: skip

    @dataset("monitors", scenarios=("class_il",), reference_channel="II")
    def monitors(data_root: Path | None) -> Recordings:
        return Recordings(**recordings)

    folder = tmp_path_factory.mktemp("people")
    prepare("monitors", prepared_root=folder, data_root=None, workers=1)
    yield folder
    forget()


def samples(frames: FrameSet, rows: Any) -> set[tuple[int, int]]:
    """Return recording and sample index of all samples of some instances."""
    begins = np.rint(frames.start[rows] * 10).astype(int)
    return {(int(r), b + i) for r, b in zip(frames.recordings[rows], begins, strict=True) for i in range(20)}


@pytest.mark.parametrize("view", [{"leads": "all"}, {"split_seed": 2}, {"split": "fold:2/3"}])
def test_by_time_no_sample_is_in_two_parts_and_no_other_person_in_any(root: Path, view: dict[str, Any]) -> None:
    frames = open_frames("monitors", prepared_root=root, split_within="time", **view)
    by_people = open_frames("monitors", prepared_root=root, **view)
    assert frames.data_hash != by_people.data_hash
    assert frames.data_hash == data_hash("monitors", prepared_root=root, split_within="time", **view)
    built = build_scenario(frames, "subject_il", split_within="time", people_per_task=3)
    of_parts = [[getattr(task, part) for task in built.tasks] for part in PARTS]
    there = [samples(frames, np.concatenate([it.rows for it in subsets])) for subsets in of_parts]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not there[one] & there[other]
    people = [[set(frames.patients[subset.rows].tolist()) for subset in subsets] for subsets in of_parts]
    assert people[0] == people[1] == people[2]
    assert sum(map(len, people[0])) == len(set.union(*people[0]))
    blurred = build_scenario(frames, "subject_il", split_within="time", people_per_task=3, blurry=0.4)
    assert samples(frames, np.concatenate([task.train.rows for task in blurred.tasks])) == there[0]
    held_out = set(by_people.patients[by_people.split == TEST].tolist())
    assert set(frames.patients[built.unseen.rows].tolist()) == held_out
    assert not held_out & set.union(*people[0])
    # the check finds windows half a window apart, and a person who is both in a task and in none
    row, other = built.tasks[1].train.rows[0], built.tasks[1].test.rows[0]
    recordings, start = frames.recordings.copy(), frames.start.copy()
    recordings[other], start[other] = recordings[row], start[row] + 1
    with pytest.raises(UsageError, match=r"samples of patient '\d+' are in training and in test"):
        check_leaks(built, replace(frames, recordings=recordings, start=start))
    patients = frames.patients.copy()
    patients[built.unseen.rows[0]] = patients[row]
    with pytest.raises(UsageError, match="is in unseen and in a task"):
        check_leaks(built, replace(frames, patients=patients))
    (code,) = list(held_out)[:1]
    flags = frames.patients == code
    encoded = Encoded("it", "", "", flags, np.zeros((len(frames), 1), np.uint64), 1, 1, "mV")
    with pytest.raises(UsageError, match=f"patient '{frames.patient_names[code]}' is evaluated, and was seen"):
        check_leaks(built, replace(frames, encoded=encoded))


def test_other_people_are_held_out_and_every_task_has_them(root: Path) -> None:
    frames = open_frames("monitors", prepared_root=root)
    built = build_scenario(frames, "subject_il", people_per_task=5)
    groups = [set(frames.patients[task.train.rows].tolist()) for task in built.tasks]
    trained = set(frames.patients[frames.split == TRAINING].tolist())
    assert len(groups) == -(-len(trained) // 5)
    assert max(map(len, groups)) <= min(5, 1 + min(map(len, groups)))
    assert sum(map(len, groups)) == len(trained)
    assert set.union(*groups) == trained
    assert [task.name for task in built.tasks] == [f"Group {it}" for it in range(1, len(groups) + 1)]
    lead = frames.leads == frames.lead_names.index("II")
    for part, code in (("validation", VALIDATION), ("test", TEST)):
        expected = np.flatnonzero(lead & (frames.split == code))
        assert all(np.array_equal(getattr(task, part).rows, expected) for task in built.tasks)
    assert built.unseen is None


def test_people_come_by_date_then_in_the_order_of_the_data_or_shuffled(root: Path) -> None:
    frames = open_frames("monitors", prepared_root=root)

    def order(frames: FrameSet, **options: Any) -> list[int]:
        tasks = build_scenario(frames, "subject_il", people_per_task=1, **options).tasks
        return [int(frames.patients[task.train.rows[0]]) for task in tasks]

    trained = np.unique(frames.patients[frames.split == TRAINING])
    first = {int(p): frames.times[frames.patients == p].min() for p in trained}
    assert order(frames) == sorted(first, key=lambda person: first[person])
    place = {int(p): frames.recordings[frames.patients == p].min() for p in trained}
    assert order(replace(frames, times=None)) == sorted(place, key=lambda person: place[person])
    assert order(replace(frames, times=None, recordings=None)) == sorted(place)
    shuffled = order(frames, people_order=3)
    assert sorted(shuffled) == sorted(place)
    assert shuffled != order(frames)
    assert shuffled == order(frames, people_order=3) != order(frames, people_order=4)
