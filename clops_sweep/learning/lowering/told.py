"""Which networks of a sweep the native kernels compute, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import NETWORKS, STRATEGIES
from clops_sweep.experiment.tasks import with_tasks
from clops_sweep.learning.lowering.lower import NotLowered, lowered
from clops_sweep.learning.networks.module_probe import probed
from clops_sweep.learning.networks.multitask import joint_scenario
from clops_sweep.learning.networks.on_features import network_options
from clops_sweep.learning.networks.run_module import RunModule, made
from clops_sweep.learning.process_state import torch_state_kept
from clops_sweep.learning.threads import one_thread


def networks_told(configs: Sequence[RunConfig], frames: Mapping[DataKey, FrameSet]) -> list[str]:
    """Return a sentence for each custom network: what computes it on a CPU, and which layer keeps it in PyTorch.

    Args:
        configs: configs whose networks passed the checks of `check_networks`.
        frames: the frames of each.
    """
    first = dict[tuple[Any, ...], RunConfig]()
    for config in configs:
        if NETWORKS.is_foreign(config.network) and config.precision == "float32":
            first.setdefault((config.network, config.data_key, str(config.network_options)), config)
    sentences = dict[str, None]()
    for config, scenario in with_tasks(first.values(), frames):
        outputs = (joint_scenario(scenario) if STRATEGIES[config.strategy].joint else scenario).outputs
        sentences[_told(config, frames[config.data_key], outputs)] = None
    return list(sentences)


def _told(config: RunConfig, frames: FrameSet, outputs: int) -> str:
    name, shape, options = config.network, (frames.channels, frames.samples), network_options(config, frames)
    make = NETWORKS[name]
    statistics = probed(name, make, shape, outputs, options).statistics
    run = RunModule(made(name, make, 0, shape, outputs, options), outputs, statistics)
    with torch_state_kept(), one_thread():
        found = lowered(run, *shape)
    network = f"network {name!r} on frames of {shape[0]} x {shape[1]:,}"
    if isinstance(found, NotLowered):
        return f"{network}: PyTorch computes it, because {found}"
    return f"{network}: the native kernels compute it on a CPU"
