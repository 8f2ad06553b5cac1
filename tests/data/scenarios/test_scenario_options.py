"""Groups of classes, one head for all of them, columns of domains, declared terms: against brute force."""

from __future__ import annotations

from typing import Any

import pytest

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios import Scenario, build_scenario, class_targets
from clops_sweep.errors import UsageError
from clops_sweep.testing import tiny_frames

PARTS = ("train", "validation", "test")


def held(scenario: Scenario) -> list[list[dict[int, list[float]]]]:
    """Return for every task and split the target of each instance."""
    parts = [[getattr(task, part) for part in PARTS] for task in scenario.tasks]
    return [[dict(zip(it.rows.tolist(), it.targets.tolist(), strict=True)) for it in task] for task in parts]


def by_hand(frames: FrameSet, tasks: list[Any], target: Any) -> list[list[dict[int, list[float]]]]:
    """Return the same, instance by instance; `target` returns an instance's target in a task, or None."""
    found = []
    for task in tasks:
        parts: list[dict[int, list[float]]] = [{}, {}, {}]
        for instance in range(len(frames)):
            value = target(instance, task)
            if value is not None:
                parts[frames.split[instance]][instance] = [float(v) for v in value]
        found.append(parts)
    return found


@pytest.mark.parametrize("channels", [1, 3])
def test_groups_of_three_have_a_softmax_over_their_places(channels: int) -> None:
    frames = tiny_frames("class_il", group=3, channels=channels)
    groups = ((0, 4, 2), ("D", 8, "B"))
    scenario = build_scenario(frames, "class_il", task_classes=groups)
    assert (scenario.kind, scenario.outputs, scenario.by_position) == ("softmax", 3, True)
    assert [(task.name, task.title) for task in scenario.tasks] == [("0-4-2", "A / E / C"), ("3-8-1", "D / I / B")]

    def target(instance: int, group: tuple[int, ...]) -> Any:
        label = frames.labels[instance]
        return [label == number for number in group] if label in group else None

    assert held(scenario) == by_hand(frames, [(0, 4, 2), (3, 8, 1)], target)


@pytest.mark.parametrize("unknown", ["Z", 6])
def test_a_class_that_the_data_set_lacks_is_refused(unknown: int | str) -> None:
    with pytest.raises(UsageError, match=rf"task_classes: '?{unknown}'? is no class of .*, which has 0 A, 1 B"):
        build_scenario(tiny_frames("class_il"), "class_il", task_classes=((unknown, 0),))


@pytest.mark.parametrize("scenario", ["class_il", "class_il_union"])
def test_an_odd_number_of_classes_needs_groups(scenario: str) -> None:
    """The union is proposed to those who have not set it."""
    with pytest.raises(UsageError, match="needs an even number of classes to pair them") as refused:
        build_scenario(tiny_frames("class_il", group=3), scenario)
    assert str(refused.value).endswith("task_classes = [[0, 1, 2], [3, 4], [5, 6], [7, 8]]")
    assert ("set scenario = 'class_il_union' and" in str(refused.value)) == (scenario == "class_il")


def test_pairs_in_any_order_have_one_sigmoid() -> None:
    frames = tiny_frames("class_il")
    scenario = build_scenario(frames, "class_il", task_classes=((5, 0), (2, 3)))
    assert (scenario.kind, scenario.outputs) == ("binary", 1)
    found = held(scenario)
    assert found == by_hand(
        frames, [(5, 0), (2, 3)], lambda i, pair: [frames.labels[i] == pair[1]] if frames.labels[i] in pair else None
    )
    default = build_scenario(frames, "class_il")
    assert held(default) == held(build_scenario(frames, "class_il", task_classes=((0, 1), (2, 3), (4, 5))))


@pytest.mark.parametrize("channels", [1, 2])
def test_the_union_has_an_output_a_class_over_all_tasks(channels: int) -> None:
    frames = tiny_frames("class_il_union", channels=channels)
    scenario = build_scenario(frames, "class_il_union", task_classes=((5, 0, 2), (1, 4)))
    assert (scenario.kind, scenario.outputs, scenario.by_position) == ("softmax", 5, False)
    assert [task.outputs for task in scenario.tasks] == [(4, 0, 2), (1, 3)]
    classes = [0, 1, 2, 4, 5]

    def target(instance: int, group: tuple[int, ...]) -> Any:
        label = frames.labels[instance]
        return [label == number for number in classes] if label in group else None

    assert held(scenario) == by_hand(frames, [(5, 0, 2), (1, 4)], target)
    assert [task.name for task in build_scenario(frames, "class_il_union").tasks] == ["0-1", "2-3", "4-5"]


@pytest.mark.parametrize(("kind", "output"), [("class_il", "softmax"), ("domain_il", "multilabel")])
def test_domains_by_a_column(kind: str, output: str) -> None:
    frames = tiny_frames(kind)
    scenario = build_scenario(frames, "domain_il", domain="site")
    assert (scenario.kind, scenario.outputs) == (output, len(frames.classes))
    assert [(task.name, task.title) for task in scenario.tasks] == [("site A", "site A"), ("site B", "site B")]
    codes, _ = frames.domains["site"]
    targets = class_targets(frames)
    lead = frames.lead_names.index("II")
    assert held(scenario) == by_hand(
        frames, [0, 1], lambda i, code: targets[i] if codes[i] == code and frames.leads[i] == lead else None
    )
    whole = tiny_frames(kind, channels=3)
    assert sum(len(task.train.rows) for task in build_scenario(whole, "domain_il", domain="site").tasks) == sum(
        whole.split == 0
    )


# --- user-defined scenarios -------------------------------------------------------------------------------------------
