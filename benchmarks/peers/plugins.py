"""Avalanche's plugins for each method, some with small changes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from avalanche.training.plugins import (
    AGEMPlugin,
    EWCPlugin,
    GDumbPlugin,
    GEMPlugin,
    LwFPlugin,
    ReplayPlugin,
    SynapticIntelligencePlugin,
)
from avalanche.training.storage_policy import ReservoirSamplingBuffer
from avalanche.training.supervised import DER
from avalanche.training.templates import SupervisedTemplate

from benchmarks.peers.network import SwitchedNorm
from benchmarks.peers.settings import Case


@contextlib.contextmanager
def running_statistics(network: torch.nn.Module) -> Iterator[None]:
    """Make batch norm use its running statistics in the block, in any mode."""
    norms = [module for module in network.modules() if isinstance(module, SwitchedNorm)]
    for norm in norms:
        norm.running = True
    try:
        yield
    finally:
        for norm in norms:
            norm.running = False


class FisherOfInstances(EWCPlugin):
    """EWC with the Fisher information from gradients of single instances instead of mini-batches."""

    def compute_importances(
        self,
        model: Any,
        criterion: Any,
        optimizer: Any,
        dataset: Any,
        device: Any,
        batch_size: int,
        num_workers: int = 0,
    ) -> Any:
        """Compute importances with batches of one instance."""
        return super().compute_importances(model, criterion, optimizer, dataset, device, 1, num_workers)


class MendedIntelligence(SynapticIntelligencePlugin):
    """SI with copied weights, and with importances in [0, inf) instead of (-inf, 0.001].

    On a CPU, Avalanche does not copy the weights before a step or task: the reference shares memory with parameters
    that the step changes. Every path integral is then 0, and so is the penalty.
    """

    def before_training_exp(self, strategy: Any, **kwargs: Any) -> None:
        """Replace `extract_weights`, which the base class calls by the name of the class."""
        SynapticIntelligencePlugin.extract_weights = staticmethod(_copy_weights)
        super().before_training_exp(strategy, **kwargs)

    def after_training_exp(self, strategy: Any, **kwargs: Any) -> None:
        """Update the importance without the upper limit, and set negative values to 0."""
        self.update_ewc_data(
            strategy.model, self.ewc_data, self.syn_data, float("inf"), self.excluded_parameters, 1, eps=self.eps
        )
        for name, importance in self.ewc_data[1].items():
            importance.data = importance.data.clamp(min=0)
            self.syn_data["cum_trajectory"][name].data = -importance.data


@torch.no_grad()
def _copy_weights(model: torch.nn.Module, target: Any, excluded: set[str]) -> None:
    for name, parameter in SynapticIntelligencePlugin.allowed_parameters(model, excluded):
        target[name].data = parameter.detach().flatten().clone()


class TeacherAtRest(LwFPlugin):
    """LwF whose teacher, the network before the task, is in evaluation mode."""

    def after_training_exp(self, strategy: Any, **kwargs: Any) -> None:
        """Set the copied network to evaluation mode."""
        super().after_training_exp(strategy, **kwargs)
        self.lwf.prev_model.eval()


class QuarterOfEachTask(GEMPlugin):
    """GEM that stores a quarter of each task, at most 256 instances."""

    def update_memory(self, dataset: Any, t: int, batch_size: int) -> None:
        """Set the number of instances for this task, and store them."""
        self.patterns_per_experience = min(256, len(dataset) // 4)
        super().update_memory(dataset, t, batch_size)


class GEMAtRest(QuarterOfEachTask):
    """GEM whose memory gradients use running statistics of batch norm, without updating them."""

    def before_training_iteration(self, strategy: Any, **kwargs: Any) -> None:
        """Compute the gradients with running statistics."""
        with running_statistics(strategy.model):
            super().before_training_iteration(strategy, **kwargs)


class AGEMAtRest(AGEMPlugin):
    """A-GEM whose reference gradient uses running statistics of batch norm, without updating them."""

    def before_training_iteration(self, strategy: Any, **kwargs: Any) -> None:
        """Compute the gradients with running statistics."""
        with running_statistics(strategy.model):
            super().before_training_iteration(strategy, **kwargs)


def _plugin(name: str, memory: int, tasks: int, options: Mapping[str, Any]) -> Any:
    """Return the plugin that a case names."""
    match name:
        case "Replay":
            return ReplayPlugin(memory)
        case "ReservoirReplay":
            return ReplayPlugin(memory, storage_policy=ReservoirSamplingBuffer(memory))
        case "GDumb":
            return GDumbPlugin(memory)
        case "AGEM" | "AGEMAtRest":
            plugin = {"AGEM": AGEMPlugin, "AGEMAtRest": AGEMAtRest}[name]
            return plugin(patterns_per_experience=memory // (tasks - 1), **options)
        case "GEM" | "GEMAtRest":
            return {"GEM": QuarterOfEachTask, "GEMAtRest": GEMAtRest}[name](patterns_per_experience=0, **options)
    return {
        "EWC": EWCPlugin,
        "FisherOfInstances": FisherOfInstances,
        "SI": SynapticIntelligencePlugin,
        "MendedIntelligence": MendedIntelligence,
        "LwF": LwFPlugin,
        "TeacherAtRest": TeacherAtRest,
    }[name](**options)


def strategy_of(case: Case, memory: int, tasks: int, **common: Any) -> Any:
    """Return Avalanche's strategy for a case.

    Args:
        case: the case.
        memory: capacity of the memory in instances.
        tasks: number of tasks.
        common: arguments of all strategies.
    """
    if case.plugin == "DER":
        return DER(mem_size=memory, **case.options, **common)
    named = [] if case.plugin in (None, "Naive") else [_plugin(case.plugin, memory, tasks, case.options)]
    return SupervisedTemplate(plugins=named, **common)
