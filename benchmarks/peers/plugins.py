"""Avalanche's plugins for each method, and the few lines in which some differ from how Avalanche ships them."""

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
    """Inside, batch norm uses its running statistics, whatever mode it is in."""
    norms = [module for module in network.modules() if isinstance(module, SwitchedNorm)]
    for norm in norms:
        norm.running = True
    try:
        yield
    finally:
        for norm in norms:
            norm.running = False


class FisherOfInstances(EWCPlugin):
    """The Fisher information from the gradient of each instance, and not of mini-batches."""

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
        """Batches of one."""
        return super().compute_importances(model, criterion, optimizer, dataset, device, 1, num_workers)


class MendedIntelligence(SynapticIntelligencePlugin):
    """Importance between 0 and infinity, not between minus infinity and 0.001, and of weights that are copied.

    On a CPU Avalanche keeps as the weights before a step, and before a task, the memory of the parameters themselves,
    which the step then changes: every path is 0, and so is the penalty.
    """

    def before_training_exp(self, strategy: Any, **kwargs: Any) -> None:
        """As in the base class, which calls this function by the class's name."""
        SynapticIntelligencePlugin.extract_weights = staticmethod(_copy_weights)
        super().before_training_exp(strategy, **kwargs)

    def after_training_exp(self, strategy: Any, **kwargs: Any) -> None:
        """Importance without the cap; what it falls below 0 by is forgotten."""
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
    """The network before the task answers in evaluation mode."""

    def after_training_exp(self, strategy: Any, **kwargs: Any) -> None:
        """After the copy has been made."""
        super().after_training_exp(strategy, **kwargs)
        self.lwf.prev_model.eval()


class QuarterOfEachTask(GEMPlugin):
    """A quarter of each task, 256 instances at most."""

    def update_memory(self, dataset: Any, t: int, batch_size: int) -> None:
        """With the number of patterns for this task."""
        self.patterns_per_experience = min(256, len(dataset) // 4)
        super().update_memory(dataset, t, batch_size)


class GEMAtRest(QuarterOfEachTask):
    """Memory gradients with running statistics, which they leave alone."""

    def before_training_iteration(self, strategy: Any, **kwargs: Any) -> None:
        """Where the gradients are computed."""
        with running_statistics(strategy.model):
            super().before_training_iteration(strategy, **kwargs)


class AGEMAtRest(AGEMPlugin):
    """The same for A-GEM's reference gradient."""

    def before_training_iteration(self, strategy: Any, **kwargs: Any) -> None:
        """Where the gradients are computed."""
        with running_statistics(strategy.model):
            super().before_training_iteration(strategy, **kwargs)


def _plugin(name: str, memory: int, tasks: int, options: Mapping[str, Any]) -> Any:
    """A plugin by the name that a case has for it."""
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
    """Avalanche's strategy for a case.

    Args:
        case: which.
        memory: how many instances may be stored.
        tasks: how many there are.
        common: what all strategies take.
    """
    if case.plugin == "DER":
        return DER(mem_size=memory, **case.options, **common)
    named = [] if case.plugin in (None, "Naive") else [_plugin(case.plugin, memory, tasks, case.options)]
    return SupervisedTemplate(plugins=named, **common)
