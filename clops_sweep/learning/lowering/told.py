"""Which networks of a sweep the native kernels compute, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clops_sweep import native
from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import NETWORKS, STRATEGIES
from clops_sweep.experiment.tasks import with_tasks
from clops_sweep.learning.lowering.chosen import program_of
from clops_sweep.learning.lowering.lower import NotLowered
from clops_sweep.learning.networks.module_probe import probed
from clops_sweep.learning.networks.multitask import joint_scenario
from clops_sweep.learning.networks.on_features import network_options


def networks_told(configs: Sequence[RunConfig], frames: Mapping[DataKey, FrameSet]) -> list[str]:
    """Return a sentence for each custom network: what computes it on a CPU, and which layer keeps it in PyTorch.

    Without kernels, PyTorch computes all of them, and there are no sentences.

    Args:
        configs: configs whose networks passed the checks of `check_networks`.
        frames: the frames of each.
    """
    variant = native.chosen_for_programs()
    if variant is None:
        return []
    first = dict[tuple[Any, ...], RunConfig]()
    for config in configs:
        if NETWORKS.is_foreign(config.network) and config.precision == "float32":
            first.setdefault((config.network, config.data_key, str(config.network_options)), config)
    sentences = dict[str, None]()
    for config, scenario in with_tasks(first.values(), frames):
        outputs = (joint_scenario(scenario) if STRATEGIES[config.strategy].joint else scenario).outputs
        sentences[_told(config, frames[config.data_key], outputs, variant)] = None
    return list(sentences)


def _told(config: RunConfig, frames: FrameSet, outputs: int, variant: str) -> str:
    name = config.network
    make = NETWORKS[name]
    shape = (frames.channels, frames.samples)
    options = network_options(config, frames)
    checked = probed(name, make, shape, outputs, options)
    program = program_of(name, make, shape, outputs, options, checked, variant)
    network = f"network {name!r} on frames of {shape[0]} x {shape[1]:,}"
    if isinstance(program, NotLowered):
        return f"{network}: PyTorch computes it, because {program}"
    return f"{network}: the native kernels compute it on a CPU"
