"""Tasks: pairs, terms and leads, their names, order and targets."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.frames import TEST, TRAINING, FrameSet
from clops_sweep.data.scenarios import build_scenario
from clops_sweep.data.sets.named import data_set
from clops_sweep.errors import UsageError

PAIRS = ["0-1", "2-3", "4-5", "6-7", "8-9", "10-11"]


def test_class_il_pairs_consecutive_classes_in_one_lead(synthetic: FrameSet) -> None:
    scenario = build_scenario(synthetic, "class_il")
    assert (scenario.kind, scenario.outputs) == ("binary", 1)
    assert [task.name for task in scenario.tasks] == PAIRS
    assert scenario.tasks[0].title == "AFIB / AVB"
    for position, task in enumerate(scenario.tasks):
        for split, subset in enumerate((task.train, task.validation, task.test)):
            labels = synthetic.labels[subset.rows]
            assert set(labels) == {2 * position, 2 * position + 1}
            assert subset.rows.dtype == np.int64
            assert subset.targets.dtype == np.float32
            assert np.array_equal(subset.targets, (labels == 2 * position + 1)[:, None])
            assert (synthetic.split[subset.rows] == split).all()
            assert (synthetic.leads[subset.rows] == synthetic.lead_names.index("II")).all()


def test_time_il_has_three_terms_that_do_not_overlap(synthetic: FrameSet) -> None:
    scenario = build_scenario(synthetic, "time_il")
    assert (scenario.kind, scenario.outputs) == ("softmax", 12)
    assert [task.name for task in scenario.tasks] == ["Term 1", "Term 2", "Term 3"]
    times = [synthetic.times[task.train.rows] for task in scenario.tasks]
    assert times[0].max() < times[1].min()
    assert times[1].max() < times[2].min()
    assert (scenario.tasks[0].train.targets.sum(1) == 1).all()


def test_domain_il_has_one_task_per_lead_with_the_same_recordings(synthetic: FrameSet) -> None:
    scenario = build_scenario(synthetic, "domain_il")
    assert (scenario.kind, scenario.outputs) == ("multilabel", 12)
    leads = ["I", "II", "III", "aVL", "aVR", "aVF", "V1", "V2", "V3", "V4", "V5", "V6"]
    assert [task.name for task in scenario.tasks] == [f"Lead {lead}" for lead in leads]
    first = scenario.tasks[0].train.targets
    assert all(np.array_equal(task.train.targets, first) for task in scenario.tasks)


@pytest.mark.parametrize("name", DATASETS)
def test_the_catalogue_has_the_classes_and_leads_of_the_declaration(name: str) -> None:
    info, common = DATASETS[name], data_set(name).common
    assert info.classes == len(common.classes)
    assert info.simultaneous_leads == (len(common.channels) if "domain_il" in info.scenarios else 1)
    assert info.terms == () or len(info.terms) == info.task_count("time_il")


def test_task_order(synthetic: FrameSet) -> None:
    def names(*order: Any) -> list[str]:
        return [task.name for task in build_scenario(synthetic, "class_il", *order).tasks]

    assert names() == PAIRS
    assert names((5, 4, 2, 1, 0, 3)) == ["10-11", "8-9", "4-5", "2-3", "0-1", "6-7"]
    assert names(1) == [PAIRS[position] for position in random.Random(1).sample(range(6), 6)]
    with pytest.raises(UsageError, match="6 tasks"):
        names((1, 0))
    with pytest.raises(UsageError, match="earlier run"):
        names("curriculum")


def test_a_class_missing_in_a_split_is_named_with_task_and_split(synthetic: FrameSet) -> None:
    split = synthetic.split.copy()
    split[(synthetic.labels == 3) & (split == TEST)] = 0
    with pytest.raises(UsageError, match="task 2-3 has no instance of EAR in the test split, so it cannot be scored"):
        build_scenario(replace(synthetic, split=split), "class_il")
    split[(synthetic.labels == 2) & (split == TEST)] = 0
    with pytest.raises(
        UsageError,
        match="task 2-3 has no instance in the test split; leave it out of the data or pool it with another one",
    ):
        build_scenario(replace(synthetic, split=split), "class_il")


@pytest.mark.parametrize(("people", "can_help"), [(1, False), (2, False), (3, True)])
def test_another_split_seed_is_recommended_only_where_a_split_can_have_the_class(
    synthetic: FrameSet, people: int, can_help: bool
) -> None:
    with_class = np.unique(synthetic.patients[synthetic.labels == 3])
    kept = np.isin(synthetic.patients, with_class[:people])
    labels = np.where((synthetic.labels == 3) & ~kept, 2, synthetic.labels)
    split = np.where(labels == 3, TRAINING, synthetic.split)
    with pytest.raises(UsageError, match="task 2-3 has no instance of EAR in the validation split") as refused:
        build_scenario(replace(synthetic, labels=labels, split=split), "class_il")
    assert ("use another split_seed" in str(refused.value)) == can_help
    only = f"only {people} {'person has' if people == 1 else 'people have'} EAR, and each of the 3 parts of a split"
    assert (only in str(refused.value)) == (not can_help)


def test_a_task_of_fewer_people_than_parts_is_told_so(synthetic: FrameSet) -> None:
    labels = synthetic.labels.copy()
    of_pair = np.isin(labels, [2, 3])
    one = of_pair & (synthetic.patients == synthetic.patients[of_pair][0])
    labels[of_pair & ~one] = 0
    labels[one] = np.random.default_rng(0).integers(2, 4, one.sum())
    split = np.where(one, TRAINING, synthetic.split)
    with pytest.raises(UsageError, match="has no instance in the validation split; only 1 person has task 2-3, and"):
        build_scenario(replace(synthetic, labels=labels, split=split), "class_il")
