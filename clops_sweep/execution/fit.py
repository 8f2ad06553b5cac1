"""Checks that data, scenario, strategy and network fit together, for plan and launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clops_sweep.data.frames import VALIDATION
from clops_sweep.errors import UsageError
from clops_sweep.execution.tried_networks import TriedNetworks
from clops_sweep.experiment.spaces.tuned_tasks import check_tuning
from clops_sweep.experiment.tasks import in_sequential_order
from clops_sweep.learning.encoders.pretraining import check_pretraining
from clops_sweep.planning.state import State

if TYPE_CHECKING:
    from clops_sweep.data.catalog import DataKey
    from clops_sweep.data.frames import FrameSet


@dataclass(frozen=True)
class Fit:
    """Results of the checks of pending runs and trials.

    Attributes:
        frames: the data of those whose data are prepared on this machine.
        doubts: a sentence for each network whose outputs may not be logits.
    """

    frames: Mapping[DataKey, FrameSet]
    doubts: Sequence[str]


def check_fit(state: State) -> Fit:
    """Check all pending runs and trials on the data that are prepared on this machine.

    Raises:
        UsageError: data, scenario, strategy and network of a run do not fit, a network cannot be trained, or a search
            would select on test data.
    """
    request = state.resolved
    data = request.data
    to_compute = state.configs_to_compute
    selected_on = state.selected_on
    for tuned in request.selection.tuned:
        check_tuning(tuned, data)
    for config, encoder in request.selection.pretrained:
        key, key_before = config.data_key.signals, encoder.data_key.signals
        if data.data_hash(key) is not None and data.data_hash(key_before) is not None:
            check_pretraining(config, data.frames(key), encoder, data.frames(key_before))
    for key in dict.fromkeys(config.data_key for config in to_compute):
        data.check_encoder(key)
    prepared = [config for config in to_compute if data.data_hash(config.data_key) is not None]
    configs = [in_sequential_order(config) for config in prepared]
    frames = request.frames(configs)
    for key, subject in selected_on.items():
        if key in frames and not (frames[key].split == VALIDATION).any():
            raise UsageError(
                f"{subject}: dataset {key.dataset!r} has no validation set, and a search does not "
                "choose on test data; give its base config validation=0.2, a share of the training people"
            )
    if any(config.start_from for config in configs):
        from clops_sweep.learning.models.starting import check_starts

        check_starts(configs, frames)
    networks = TriedNetworks(data.root)
    return Fit(frames, networks.check(configs, frames, keep_models=request.store.keep_models is not None))
