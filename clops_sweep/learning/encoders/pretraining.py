"""A run that becomes an encoder, and the runs on its features, before either is computed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clops_sweep.data.frames import Encoded, FrameSet
from clops_sweep.data.scenarios.leaks import Seen
from clops_sweep.errors import shown
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.tasks import in_sequential_order, scenario_of
from clops_sweep.learning.encoders.adapting import Signals, adapter
from clops_sweep.learning.encoders.encoders import taken_by_run


def check_pretraining(config: RunConfig, frames: FrameSet, pretraining: RunConfig, frames_before: FrameSet) -> None:
    """Check that a run fits its encoder, a run to come, and is not evaluated on what that will have seen.

    Args:
        config: the config of the run.
        frames: its signals.
        pretraining: the config of the run that becomes its encoder.
        frames_before: the signals of that run.

    Raises:
        UsageError: the signals do not fit, or a person is evaluated and in the pretraining (see `check_leaks`).
    """
    if pretraining.encoder is None:
        taken = taken_by_run(Signals.of(frames_before))
        adapter(shown(pretraining), taken, Signals.of(frames))
    scenario_before = scenario_of(in_sequential_order(pretraining), frames_before)
    seen = Seen.of(scenario_before, frames_before, ("train", "validation"))
    known = seen.recognised(frames, np.arange(len(frames)))
    no_digests = np.zeros(0, np.uint64)
    encoded = Encoded(shown(pretraining), "", "", known, no_digests, frames.channels, frames.samples, frames.unit)
    scenario_of(in_sequential_order(config), replace(frames, encoded=encoded))
