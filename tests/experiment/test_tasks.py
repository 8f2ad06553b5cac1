"""What a strategy asks of the outputs of a scenario."""

from __future__ import annotations

import pytest

from clops_sweep import ContinualRun
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.declarations import Declaration
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.experiment.tasks import scenario_of
from clops_sweep.learning.strategies.finetune import FineTuning
from clops_sweep.testing import tiny_config, tiny_frames

BEGINNING = "strategy 'by_class' needs one output a class, as class_il_union has, and "


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("class_il", "'class_il' on 'synthetic' has an output for each place in a task"),
        ("domain_il", "'domain_il' on 'synthetic' has multilabel targets"),
        ("class_il_union", None),
        ("time_il", None),
    ],
)
def test_one_output_a_class(kind: str, sentence: str | None) -> None:
    frames = tiny_frames(kind)
    with STRATEGIES.temporarily("by_class", FineTuning, Declaration(per_class_outputs=True)):
        config = tiny_config(kind, strategy="by_class")
        if sentence is None:
            assert len(scenario_of(config, frames).tasks) == 3
            return
        for asked in (scenario_of, ContinualRun):
            with pytest.raises(UsageError) as refused:
                asked(config, frames)
            assert str(refused.value) == BEGINNING + sentence
