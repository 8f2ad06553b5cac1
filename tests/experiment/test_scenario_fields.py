"""The fields that scenarios list among their options: checked, in the identity where they matter, kept by a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from clops_sweep import RunConfig
from clops_sweep.errors import UsageError
from clops_sweep.experiment.columns import config_from_row, config_row
from clops_sweep.experiment.plugins.registry import SCENARIOS

GROUPS = ((0, 1, "AFIB"), (3, 4, 5))


@pytest.fixture(autouse=True)
def _own() -> Iterator[None]:
    with SCENARIOS.temporarily("by_ward", lambda frames: None):
        yield


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"scenario": "series"},
            "scenario = 'series': not known; known: class_il, class_il_union, time_il, domain_il",
        ),
        (
            {"scenario": "class_il_union", "dataset": "ptbxl"},
            "does not go with dataset 'ptbxl', which has domain_il, t",
        ),
        (
            {"task_classes": "0-1"},
            r"task_classes = '0-1': expected groups of two classes or more, as in \[\[0, 1\], \[",
        ),
        ({"task_classes": []}, r"task_classes = \[\]: expected groups of two"),
        ({"task_classes": [[0], [1, 2]]}, "expected groups of two classes or more"),
        ({"task_classes": [[0, 1.5]]}, "expected groups of two classes or more, .* by number or name"),
        ({"task_classes": [[0, True]]}, "by number or name"),
        ({"task_classes": [[0, 1], [1, 2]]}, "class 1 is there twice; expected every class in one task"),
        (
            {"task_classes": [[0, 1], [2, 3, 4]]},
            "groups of 2 and of 3 classes; use groups of one size, or scenario = 'class_il_u",
        ),
        (
            {"scenario": "domain_il", "leads": "all"},
            "domain_il by lead takes instances of one lead; expected leads='single'",
        ),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as raised:
        RunConfig(**settings)
    assert "\n" not in str(raised.value)


def test_they_are_part_of_the_identity_only_where_a_scenario_lists_them() -> None:
    plain = RunConfig()
    assert plain.replace(domain="site").identity == plain.identity
    assert plain.replace(task_classes=GROUPS).identity != plain.identity
    written = (None, [[0, 1], [2, 3]], [["a", "b"], ["c", "d"]])  # the same tasks of four classes, as in the docs
    assert len({plain.replace(task_classes=groups).identity for groups in written}) == len(written)
    by_lead = RunConfig(scenario="domain_il")
    assert by_lead.replace(task_classes=GROUPS).identity == by_lead.identity
    assert by_lead.replace(domain="site").identity != by_lead.identity
    assert by_lead.replace(domain="lead").identity == by_lead.identity
    terms = RunConfig(scenario="time_il")
    assert terms.replace(domain="site", task_classes=GROUPS).identity == terms.identity


@pytest.mark.parametrize("settings", [{}, {"task_classes": GROUPS}, {"scenario": "domain_il", "domain": "site"}])
def test_a_row_gives_them_back(settings: dict[str, Any]) -> None:
    config = RunConfig(**settings)
    row = config_row(config)
    assert row["task_classes"] in (None, '[[0, 1, "AFIB"], [3, 4, 5]]')
    assert config_from_row(row) == config
    (from_pandas,) = pd.DataFrame([row]).to_dict("records")
    assert config_from_row(from_pandas) == config  # type: ignore[arg-type]
