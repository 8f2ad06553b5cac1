"""Recordings split by time: parts of random recordings share no sample, and gaps have the promised length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clops_sweep.data.frames import LEFT_OUT, TEST, TRAINING, UNSEEN, VALIDATION
from clops_sweep.data.splits.by_time import split_by_time
from clops_sweep.errors import UsageError

RATE = 100


def drawn(seed: int) -> dict[str, Any]:
    """Draw people with one to three recordings of two leads, whose windows overlap, are contiguous, or lie apart."""
    random = np.random.default_rng(seed)
    width = int(random.integers(20, 300))
    stride = int(random.integers(width // 4, 3 * width))
    people, columns = 12, []
    for recording in range(30):
        person = recording if recording < people else int(random.integers(people))
        begins = np.cumsum(random.integers(stride, stride + 5, 40))
        columns += [(person, recording, begin) for begin in begins[random.random(40) < 0.8] for _ in range(2)]
    patients, recordings, begins = np.array(columns)[random.permutation(len(columns))].T
    dates = random.integers(0, 5, 30)[recordings].astype("datetime64[D]").astype("datetime64[s]")
    of_person = np.where(np.arange(people) < 4, TEST, np.where(np.arange(people) < 7, VALIDATION, TRAINING))
    return {
        "people": of_person[patients].astype(np.int8),
        "patients": patients.astype(np.int32),
        "patient_names": [f"P{person}" for person in range(people)],
        "recordings": recordings.astype(np.int32),
        "start": begins / RATE,
        "times": dates if seed % 2 else None,
        "window": width / RATE,
    }


@pytest.mark.parametrize("seed", range(12))
def test_no_two_parts_of_a_person_have_a_sample_in_common(seed: int) -> None:
    given = drawn(seed)
    part = split_by_time(**given)
    assert ((part == UNSEEN) == (given["people"] == TEST)).all()
    width, begins = round(given["window"] * RATE), np.rint(given["start"] * RATE).astype(int)
    for person in range(4, 12):
        own = given["patients"] == person
        samples, recordings = list[set[tuple[int, int]]](), given["recordings"]
        for code in (TRAINING, VALIDATION, TEST):
            chosen = np.flatnonzero(own & (part == code))
            samples.append({(recordings[row], begins[row] + i) for row in chosen for i in range(width)})
            assert len(chosen) == 2 * len({(recordings[row], begins[row]) for row in chosen}) > 0  # both leads
        for earlier, later in ((0, 1), (1, 2), (0, 2)):
            assert not samples[earlier] & samples[later]
            for recording in {where for where, _ in samples[earlier]} & {where for where, _ in samples[later]}:
                last = max(sample for where, sample in samples[earlier] if where == recording)
                assert min(sample for where, sample in samples[later] if where == recording) > last + width
        # only moments that begin less than a window after an earlier part's end are left out
        for row in np.flatnonzero(own & (part == LEFT_OUT)):
            before = own & (part >= 0) & (given["recordings"] == given["recordings"][row]) & (begins < begins[row])
            assert begins[row] < begins[before].max() + 2 * width
        n = len({(given["recordings"][row], begins[row]) for row in np.flatnonzero(own)})
        assert (
            len({(given["recordings"][r], begins[r]) for r in np.flatnonzero(own & (part == TRAINING))}) == 6 * n // 10
        )


def test_the_order_of_the_frames_does_not_matter() -> None:
    given = drawn(1)
    order = np.random.default_rng(0).permutation(len(given["start"]))
    moved = {name: it[order] if isinstance(it, np.ndarray) else it for name, it in given.items()}
    assert (split_by_time(**moved) == split_by_time(**given)[order]).all()


@pytest.mark.parametrize(("count", "too_few"), [(1, True), (5, True), (7, True), (10, False)])
def test_windows_that_follow_one_another(count: int, too_few: bool) -> None:
    """Of ten windows: six, a gap, one, a gap, one."""
    given: dict[str, Any] = {
        "people": np.zeros(count, np.int8),
        "patients": np.zeros(count, np.int32),
        "patient_names": ["Ada"],
        "recordings": np.zeros(count, np.int32),
        "start": 5.0 * np.arange(count),
        "times": None,
        "window": 5.0,
    }
    if not too_few:
        assert split_by_time(**given).tolist() == [0] * 6 + [-1, 1, -1, 2]
        return
    with pytest.raises(UsageError, match=f"patient 'Ada' has {count} window"):
        split_by_time(**given)
    given["recordings"] = np.arange(count, dtype=np.int32)  # recordings of one window need no gap
    if count > 4:
        assert set(split_by_time(**given).tolist()) == {0, 1, 2}
