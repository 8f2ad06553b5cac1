"""A network with values that are not finite is an error, on every kind of learner."""

from __future__ import annotations

import pytest

from clops_sweep.learning.run import ContinualRun
from clops_sweep.testing import tiny_config, tiny_frames


@pytest.mark.parametrize("backend", ["", "off"])
def test_a_parameter_that_is_not_finite_ends_the_run(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOPS_NATIVE", backend)
    config = tiny_config("class_il").replace(learning_rate=1e30)
    run = ContinualRun(config, tiny_frames("class_il"))
    with pytest.raises(FloatingPointError, match=r"diverged in epoch 1 of task 1.*learning_rate is 1e"):
        run.run()
