"""Every requested config is checked, not one of those that share their tasks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.request import Request
from clops_sweep.store.run_store import RunStore

UNION = RunConfig(scenario="class_il_union", strategy="icarl")


@pytest.mark.parametrize(
    ("axes", "sentence"),
    [
        ({"head": ["cosine", "linear"]}, "head = 'cosine': strategy 'icarl' takes 'linear'"),
        (
            {"strategy": ["multitask"], "epochs_per_task": [2, 9], "early_stopping": [20]},
            "early_stopping = 20: multitask trains 12 epochs; expected at most 11, or leave it out",
        ),
        (
            {"strategy": ["aser"], "memory_size": [20], "batch_size": [4, 64], "aser_per_class": [40]},
            "aser_per_class = 40: the memory holds 20 and a batch 4; expected at most 24, or leave it out",
        ),
    ],
)
def test_a_config_that_does_not_fit_its_tasks(
    axes: dict[str, list[object]], sentence: str, tmp_path: Path, prepared_root: Path
) -> None:
    """The first config of each axis is wrong, and the last one is right."""
    selection = Selection.of([SearchSpace("s", UNION, axes)])
    request = Request(selection, PreparedData.found(prepared_root, None), RunStore(tmp_path))
    with pytest.raises(UsageError, match=re.escape(sentence)):
        request.frames(selection.configs)
