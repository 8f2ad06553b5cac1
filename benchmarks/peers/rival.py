"""One run of Avalanche, in a separate process: ``python -m benchmarks.peers.rival CASE SEED``."""

from __future__ import annotations

import random
import sys
import time
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.peers import settings
from benchmarks.peers.network import PaperNetwork
from benchmarks.peers.outcome import Outcome
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios import Scenario, Subset
from clops_sweep.experiment.tasks import scenario_of
from clops_sweep.learning import losses
from clops_sweep.learning.metrics.auc import TaskAucs
from clops_sweep.learning.networks.network import initial_parameters

_OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor",
)
"""Operators that torchvision looks up in PyTorch on import, even if its compiled library is not loaded."""
_declared: list[torch.library.Library] = []


def avalanche() -> ModuleType:
    """Import Avalanche, even if torchvision was compiled for another PyTorch; its operators are not needed."""
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for operator in _OPERATORS:
            library.define(operator)
        _declared.append(library)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import avalanche

    return avalanche


def criterion(kind: str, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean loss of a batch: of one sigmoid, or of a softmax over the classes."""
    if kind == "binary":
        return F.binary_cross_entropy_with_logits(logits[:, 0], targets.float())
    return F.cross_entropy(logits, targets)


class Judge:
    """Computes the AUC of every task on the validation split, as clops-sweep does."""

    def __init__(self, scenario: Scenario, frames: FrameSet) -> None:
        parts = [task.validation for task in scenario.tasks]
        names, own = [task.name for task in scenario.tasks], [len(task.outputs) for task in scenario.tasks]
        self._aucs = TaskAucs([part.targets for part in parts], names, torch.device("cpu"), own)
        self._inputs = torch.cat([inputs_of(part, frames) for part in parts])
        self._kind = scenario.kind

    @torch.no_grad()
    def __call__(self, network: torch.nn.Module) -> list[float]:
        """Return the AUC of each task."""
        network.eval()
        logits = torch.cat([network(chunk) for chunk in self._inputs.split(128)])
        return self._aucs(losses.log_odds(logits) if self._kind == "softmax" else logits).tolist()


def inputs_of(part: Subset, frames: FrameSet) -> torch.Tensor:
    """Return the frames of a split, float32 [n, 1, 2500]."""
    return torch.from_numpy(frames.signal(part.rows)).view(-1, 1, frames.samples)


def experiences(scenario: Scenario, frames: FrameSet) -> Sequence[Any]:
    """Return the tasks as Avalanche's experiences, with tensors in memory."""
    from avalanche.benchmarks import benchmark_from_datasets
    from avalanche.benchmarks.utils import AvalancheDataset, DataAttribute, as_taskaware_classification_dataset
    from torch.utils.data import TensorDataset

    datasets = []
    for task in scenario.tasks:
        targets = torch.from_numpy(task.train.targets)
        numbers = targets[:, 0].long() if scenario.kind == "binary" else targets.argmax(1)
        tensors = TensorDataset(inputs_of(task.train, frames), numbers)
        attributes = [
            DataAttribute(numbers, "targets"),
            DataAttribute(torch.zeros_like(numbers), "targets_task_labels", use_in_getitem=True),
        ]
        datasets.append(as_taskaware_classification_dataset(AvalancheDataset([tensors], data_attributes=attributes)))
    return benchmark_from_datasets(train=datasets).train_stream


def run(case: settings.Case, seed: int) -> Outcome:
    """Time a complete run with an evaluation after every task, without loading frames and building the network."""
    avalanche()
    from avalanche.training.plugins import EvaluationPlugin

    from benchmarks.peers.plugins import strategy_of

    config, frames = case.config(seed), settings.frames()
    scenario = scenario_of(config, frames)
    judge, tasks = Judge(scenario, frames), experiences(scenario, frames)
    for seeded in (random.seed, np.random.seed, torch.manual_seed):
        seeded(seed)
    network = PaperNetwork(scenario.outputs)
    initial = initial_parameters([seed], scenario.outputs)
    network.load_state_dict(network.state_dict() | {name: view[0] for name, view in initial.views.items()})
    start, clock = time.process_time(), time.perf_counter()
    strategy = strategy_of(
        case,
        settings.memory_of(sum(len(task.train.rows) for task in scenario.tasks)),
        len(scenario.tasks),
        model=network,
        optimizer=torch.optim.Adam(network.parameters(), lr=config.learning_rate),
        criterion=lambda logits, targets: criterion(scenario.kind, logits, targets),
        train_mb_size=config.batch_size,
        train_epochs=config.epochs_per_task,
        evaluator=EvaluationPlugin(),
    )
    matrix = []
    for task in tasks:
        strategy.train(task)
        matrix.append(judge(strategy.model))
    return Outcome.of(case.name, "rival", seed, matrix, time.process_time() - start, time.perf_counter() - clock)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    print(run(settings.CASES[sys.argv[1]], int(sys.argv[2])).line())
