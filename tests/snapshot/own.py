"""A search-space file that declares one component of every kind, and asks for a grid and a search over them."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from clops_sweep import (
    FloatDistribution,
    FloatOption,
    IntOption,
    OptunaSearch,
    Recordings,
    RunConfig,
    ScenarioTasks,
    SearchSpace,
    Strategy,
    TaskInstances,
    acquisition_function,
    dataset,
    network,
    scenario,
    storage_function,
    strategy,
)
from clops_sweep.learning.losses import instance_losses

CLASSES = ("w", "x", "y", "z")


@dataset("snap_data", scenarios=("class_il", "domain_il"), files=[], leads="single", normalize="zscore")
def snap_data(data_root):
    """48 recordings of two channels: a wave of the class's frequency in noise, two recordings a patient."""
    stream = np.random.default_rng(7)
    labels = np.arange(48) % 4
    period = np.array([50, 80, 125, 200])[labels][:, None, None]
    square = np.where(np.arange(2500) % period < period // 2, 400, -400)
    signals = (square * np.array([[1], [2]]) + stream.integers(-9000, 9000, (48, 2, 2500))).astype(np.int16)
    return Recordings(
        signals=signals,
        sampling_rate=500,
        channels=("a", "b"),
        units="mV",
        gain=0.001,
        labels=labels,
        classes=CLASSES,
        patients=np.arange(48) // 2,
        split=np.array(["train", "validation", "test"])[np.arange(48) // 4 % 3],
        domains={"site": np.array(["north", "south"])[np.arange(48) // 4 % 2]},
    )


@scenario("snap_sites")
def snap_sites(frames):
    codes, sites = frames.domains["site"]
    targets = np.eye(len(frames.classes))[frames.labels]
    return ScenarioTasks("softmax", [TaskInstances(site, codes == code, targets) for code, site in enumerate(sites)])


@network("snap_network", options={"snap_width": IntOption(8, ge=1)})
def snap_network(channels, samples, outputs, *, snap_width):
    stem = [nn.Conv1d(channels, snap_width, 15, stride=10), nn.BatchNorm1d(snap_width), nn.ReLU(), nn.Dropout(0.2)]
    return nn.Sequential(*stem, nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(4 * snap_width, outputs))


@strategy("snap_ewc", options={"snap_strength": FloatOption(400.0, ge=0, log=True)})
class SnapEWC(Strategy):
    def setup(self):
        self.past = []

    def train_epoch(self, task, epoch, replay, order, dropout_keys):
        learner, batch_size = self.training.learner, self.training.config.batch_size
        current = learner.begin_epoch(self.training.tasks[task], replay, order, batch_size, dropout_keys)
        learner.run_epoch(current, lambda batch: self.step(batch, current.kept("dropout keys")))

    def step(self, batch, dropout_keys):
        learner, strength = self.training.learner, self.training.config.snap_strength
        _, gradient = learner.gradient(batch.plain(), dropout_keys)
        for fisher, anchor in self.past:
            gradient = gradient + strength * fisher * (learner.parameters.flat - anchor)
        learner.apply(gradient)

    def end_task(self, task):
        learner, instances = self.training.learner, self.training.tasks[task]
        rows, targets = instances.rows, instances.targets
        gradients = learner.instance_gradients(rows, lambda z, y: instance_losses(learner.kind, z, y), targets)
        self.past.append([sum(map(torch.square, gradients)) / len(rows), learner.parameters.flat.clone()])


@acquisition_function("snap_unsure", options={"snap_power": FloatOption(1.0, gt=0, log=True)})
def snap_unsure(context, rows, *, snap_power):
    return (1 - context.learner.probabilities(rows).max(1).values) ** snap_power


@storage_function("snap_last", options={"snap_scale": FloatOption(2.0, gt=0)})
def snap_last(trajectories, *, snap_scale):
    return snap_scale * trajectories[-1].to(torch.float64)


TINY = {"batch_size": 8, "epochs_per_task": 2, "mc_samples": 3, "storage_fraction": 0.4, "beta_learning_rate": 1e-2}
BASE = RunConfig(dataset="snap_data", learning_rate=1e-3, **TINY)
VARIANTS = {
    "clops": {},
    "EWC": {"strategy": "snap_ewc"},
    "acquisition": {"acquisition": "snap_unsure", "snap_power": 2.0},
    "storage": {"storage_function": "snap_last"},
    "sites": {"scenario": "snap_sites"},
    "network": {"network": "snap_network", "leads": "all"},
}
SPACE = [
    SearchSpace("snap_grid", BASE, {"variant": VARIANTS}, seeds=range(2)),
    SearchSpace(
        "snap_search",
        BASE.replace(epochs_per_task=1),
        search=OptunaSearch(
            parameters={
                "learning_rate": FloatDistribution(1e-4, 1e-2, log=True),
                "storage_fraction": FloatDistribution(0.2, 0.8, step=0.2),
                "acquisition": ["bald_mcd", "entropy", "snap_unsure"],
                "storage": {"by beta": {}, "random": {"storage_order": "random"}},
            },
            n_trials=10,
            max_concurrent=1,
            pruning=True,
        ),
        seeds=[0],
    ),
]
