"""Opening folds, data sets without validation, and a share for validation; and invalid requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clops_sweep import Recordings, data_hash, dataset, folds, open_frames, prepare
from clops_sweep.data.frames import TEST, TRAINING, VALIDATION, FrameSet
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.errors import UsageError
from tests.data.declared_files import forget, waves

Declare = Callable[..., PreparedSet]
GIVEN = ["train"] * 20 + ["test"] * 12


@pytest.fixture
def declared(tmp_path: Path) -> Iterator[Declare]:
    """Declare and prepare 32 recordings of 16 people with two of four classes each."""

    def declare(split: Sequence[str] | None = None, **changes: Any) -> PreparedSet:
        forget("people")

        @dataset("people", scenarios=("class_il",))
        def people(data_root: Path | None) -> Recordings:
            given = {"patients": np.arange(32) // 2, "labels": np.arange(32) % 4, "classes": list("abcd")}
            return Recordings(
                **{"signals": waves(32, 1, 16), "sampling_rate": 8, "channels": ["x"], "units": "g"} | given | changes,
                split=split,
            )

        return prepare("people", prepared_root=tmp_path, data_root=None, anew=True)

    yield declare
    forget("people")


def people(frames: FrameSet, part: int) -> set[str]:
    return {frames.patient_names[code] for code in np.unique(frames.patients[frames.split == part])}


def test_folds_are_opened_with_everybody_tested_once(declared: Declare, tmp_path: Path) -> None:
    declared()
    opened = [open_frames("people", prepared_root=tmp_path, split=name) for name in folds(4)]
    tested = [name for frames in opened for name in people(frames, TEST)]
    assert sorted(tested) == sorted(map(str, range(16)))
    for frames, following in zip(opened, [*opened[1:], opened[0]], strict=True):
        assert people(frames, VALIDATION) == people(following, TEST)
        parts = [people(frames, part) for part in (TRAINING, VALIDATION, TEST)]
        assert sum(map(len, parts)) == len(set.union(*parts)) == 16
        for part in (TRAINING, VALIDATION, TEST):
            assert set(frames.labels[frames.split == part]) == {0, 1, 2, 3}


def test_every_fold_has_a_data_hash_of_its_own_which_needs_no_frames(declared: Declare, tmp_path: Path) -> None:
    declared()
    views: list[dict[str, Any]] = [{}, *({"split": name} for name in (*folds(3), *folds(4)))]
    views += [{"split": "fold:1/4", "split_seed": 1}, {"split": "fold:1/4", "normalize": "zscore"}]
    hashes = [data_hash("people", prepared_root=tmp_path, **view) for view in views]
    assert len(set(hashes)) == len(views)
    assert hashes == [open_frames("people", prepared_root=tmp_path, **view).data_hash for view in views]


def test_a_share_of_the_training_people_becomes_validation(declared: Declare, tmp_path: Path) -> None:
    declared(GIVEN)
    views: list[dict[str, Any]] = [{}, {"validation": 0.4}, {"validation": 0.4, "split_seed": 1}, {"validation": 0.2}]
    opened = [open_frames("people", prepared_root=tmp_path, **view) for view in views]
    assert [len(people(frames, VALIDATION)) for frames in opened] == [0, 4, 4, 2]
    for view, frames in zip(views, opened, strict=True):
        assert (frames.split[20:] == TEST).all()
        assert (frames.split[:20] != TEST).all()
        assert not people(frames, TRAINING) & people(frames, VALIDATION)
        assert frames.data_hash == data_hash("people", prepared_root=tmp_path, **view)
    assert len({frames.data_hash for frames in opened}) == 4


def of_48(declare: Declare, label: Any, **changes: Any) -> PreparedSet:
    """Prepare 96 recordings of 48 people: 24 of them at site A, 16 at B and 8 at C."""
    person = np.arange(96) // 2
    site = np.repeat(["A", "B", "C"], [24, 16, 8])[np.random.default_rng(0).permutation(48)][person]
    columns = {"signals": waves(96, 1, 16), "patients": person, "labels": label, "domains": {"site": site}}
    return declare(**columns, classes=["a", "b"], **changes)


def people_per_site(frames: FrameSet) -> dict[str, list[int]]:
    """Return the people of each site in training, validation and test."""
    codes, names = frames.domains["site"]
    counted = {}
    for code, name in enumerate(names):
        parts = [frames.patients[(codes == code) & (frames.split == part)] for part in (TRAINING, VALIDATION, TEST)]
        counted[name] = [len(set(part.tolist())) for part in parts]
    return counted


@pytest.mark.parametrize("labels", [np.arange(96) // 2 % 2, np.arange(96) % 2])
def test_a_stratified_split_has_the_people_of_each_site_in_proportion(
    declared: Declare, tmp_path: Path, labels: Any
) -> None:
    of_48(declared, labels)
    found = set()
    for seed in range(12):
        view: dict[str, Any] = {"split_seed": seed, "stratify": "site"}
        frames = open_frames("people", prepared_root=tmp_path, **view)
        assert frames.data_hash == data_hash("people", prepared_root=tmp_path, **view)
        found.add(frames.data_hash)
        for site, many in (("A", 24), ("B", 16), ("C", 8)):
            counted = people_per_site(frames)[site]
            assert sum(counted) == many
            for people_of_part, share in zip(counted, (0.6, 0.2, 0.2), strict=True):
                assert abs(people_of_part - share * many) < 2
            assert min(counted) >= 1
            codes, names = frames.domains["site"]
            for part in (TRAINING, VALIDATION, TEST):
                there = (codes == names.index(site)) & (frames.split == part)
                assert set(frames.labels[there]) == {0, 1}
    assert len(found) == 12, "seeds give different splits"
    assert open_frames("people", prepared_root=tmp_path).data_hash not in found


def test_stratified_folds_have_the_people_of_each_site_in_each_part(declared: Declare, tmp_path: Path) -> None:
    of_48(declared, np.arange(96) % 2)
    tested = []
    for name in folds(4):
        frames = open_frames("people", prepared_root=tmp_path, split=name, stratify="site")
        assert people_per_site(frames) == {"A": [12, 6, 6], "B": [8, 4, 4], "C": [4, 2, 2]}
        assert frames.data_hash != data_hash("people", prepared_root=tmp_path, split=name)
        tested += people(frames, TEST)
    assert sorted(tested) == sorted(map(str, range(48)))


def test_an_invalid_column_is_refused(declared: Declare, tmp_path: Path) -> None:
    of_48(declared, np.arange(96) % 2)
    with pytest.raises(UsageError, match=r"stratify = 'ward': expected a column of its domains; its columns are site"):
        open_frames("people", prepared_root=tmp_path, stratify="ward")
    with pytest.raises(UsageError, match=r"split = 'fold:1/9' needs 9 people of each site, and C has 8"):
        open_frames("people", prepared_root=tmp_path, split="fold:1/9", stratify="site")
    declared()
    with pytest.raises(UsageError, match=r"stratify = 'site': .*; it has none; declare domains="):
        open_frames("people", prepared_root=tmp_path, stratify="site")
    declared(GIVEN, domains={"site": ["A", "B"] * 16})
    with pytest.raises(UsageError, match=r"a split fixed by its publisher; leave out stratify = 'site'"):
        open_frames("people", prepared_root=tmp_path, stratify="site")
