"""Whole runs of EWC, SI, MAS, LwF and joint training against an independent implementation: torch.nn, autograd,
float64.

It is written from the papers, with one penalty per past task, and a copy of the network before the task. It shares with
the package only what is not numerics: the scenario's rows, the initial weights, the named random streams and the
counters of the dropout masks.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from clops_sweep import ContinualRun, RunConfig
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios import build_scenario
from clops_sweep.experiment.plugins.registry import PAPER_NETWORK
from clops_sweep.learning import streams
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.module_learner import ModuleLearner
from clops_sweep.testing import tiny_config, tiny_frames
from tests.helpers.at_night import mostly_at_night
from tests.learning.layer_masks import layer_masks

Vectors = list[torch.Tensor]


class Program:
    """One run of one seed. Values laid out like the parameters are lists with a tensor for each."""

    def __init__(self, config: RunConfig, frames: FrameSet, network: Any) -> None:
        self.config, self.frames = config, frames
        scenario = build_scenario(frames, config.scenario, config.task_order)
        self.kind = scenario.kind
        self.tasks = [(task.train.rows, torch.from_numpy(task.train.targets).double()) for task in scenario.tasks]
        self.validation = [
            (task.validation.rows, torch.from_numpy(task.validation.targets).double()) for task in scenario.tasks
        ]
        bank = FrameBank(frames, torch.device("cpu"))
        common = (config.seed, self.kind, scenario.outputs, 1.0, bank, PAPER_NETWORK)
        self.new = lambda: network.of(ModuleLearner(*common))
        self.start(0)
        self.anchors: list[tuple[Vectors, Vectors]] = []
        """For each past task, the importance of the parameters and their values; the penalty is a sum of squares."""
        self.omega = [torch.zeros_like(p) for p in self.parameters]
        self.losses: list[list[float]] = []

    def start(self, task: int) -> None:
        self.network = self.new()
        if task:  # as the package draws initial weights, from another stream
            shapes = {name: p.shape for name, p in self.network.named_parameters()}
            generator = streams.generator(self.config.seed, "initial parameters", task)
            with torch.no_grad():
                for name, p in self.network.named_parameters():
                    layer = name.partition(".")[0]
                    if int(layer) not in (1, 6, 11):  # of batch norm
                        bound = shapes[f"{layer}.weight"][1:].numel() ** -0.5
                        p.copy_(torch.from_numpy(generator.uniform(-bound, bound, tuple(p.shape)).astype("float32")))
        self.parameters = list(self.network.parameters())
        self.adam = torch.optim.Adam(self.parameters, lr=self.config.learning_rate)

    def logits(self, network: Any, rows: Any, masks: Any = None, *, training: bool = False) -> torch.Tensor:
        signal = torch.from_numpy(self.frames.signal(np.asarray(rows))).double()[:, None]
        return network.norms_in_training(training).masked(masks)(signal)

    def cross_entropies(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if self.kind == "softmax":
            return -(targets * logits.log_softmax(1)).sum(1)
        p = logits.sigmoid()
        return -(targets * p.log() + (1 - targets) * (1 - p).log()).mean(1)

    def run(self) -> Program:
        for task, (rows, targets) in enumerate(self.tasks):
            self.before, self.path = copy.deepcopy(self.network), [torch.zeros_like(p) for p in self.parameters]
            epochs = [[(task, epoch)] for epoch in range(self.config.epochs_per_task)]
            if self.config.strategy == "joint":
                self.start(task)
                rows = np.concatenate([rows for rows, _ in self.tasks[: task + 1]])
                targets = torch.cat([targets for _, targets in self.tasks[: task + 1]])
                epochs = [[(task, e * (task + 1) + i) for i in range(task + 1)] for (_, e), *_ in epochs]
            for passes in epochs:
                for place in passes:
                    self.epoch(task, rows, targets, place)
                with torch.no_grad():
                    means = [self.cross_entropies(self.logits(self.network, r), y).mean() for r, y in self.validation]
                    self.losses.append([float(mean) for mean in means])
            self.end(task, rows, targets)
        return self

    def epoch(self, task: int, rows: Any, targets: torch.Tensor, place: tuple[int, int]) -> None:
        order = streams.permutation(self.config.seed, len(rows), "batch order", *place)
        keys = streams.keys(self.config.seed, "training dropout", *place)
        for start in range(0, len(rows), self.config.batch_size):
            batch = order[start : start + self.config.batch_size]
            masks = layer_masks(keys, torch.arange(start, start + len(batch)))
            logits = self.logits(self.network, rows[batch], masks, training=True)
            loss = self.cross_entropies(logits, targets[batch]).mean()
            slopes = torch.autograd.grad(loss, self.parameters, retain_graph=True)
            for importance, anchor in self.anchors:
                for a, p, c in zip(importance, self.parameters, anchor, strict=True):
                    loss = loss + (a * (p - c) ** 2).sum()
            if self.config.strategy == "lwf" and task:
                loss = loss + self.config.get("lwf_strength") * self.distillation(task, logits, rows[batch])
            if self.config.strategy == "flip_penalty" and task:
                loss = loss + self.config.get("flip_strength") * self.pull(logits, rows[batch], targets[batch])
            was = [p.detach().clone() for p in self.parameters]
            self.adam.zero_grad()
            loss.backward()
            for place_of in (
                0,
                5,
                10,
            ):  # batch statistics cancel a convolution's bias: its gradient is only rounding
                self.network[place_of].bias.grad.zero_()
            self.adam.step()
            for w, g, p, old in zip(self.path, slopes, self.parameters, was, strict=True):
                w -= g * (p.detach() - old)

    def distillation(self, task: int, logits: torch.Tensor, rows: Any) -> torch.Tensor:
        temperature = self.config.get("lwf_temperature")
        with torch.no_grad():
            answers = self.logits(self.before, rows)
        if self.kind != "softmax":
            return F.binary_cross_entropy((logits / temperature).sigmoid(), (answers / temperature).sigmoid())
        known = torch.cat([targets for _, targets in self.tasks[:task]]).sum(0) > 0
        answers, logits = answers[:, known] / temperature, logits[:, known] / temperature
        return -(answers.softmax(1) * logits.log_softmax(1)).sum(1).mean()

    def pull(self, logits: torch.Tensor, rows: Any, targets: torch.Tensor) -> torch.Tensor:
        """Return the mean squared distance of logits from the old network's, 0 where the latter was wrong."""
        with torch.no_grad():
            old = self.logits(self.before, rows)
        said = F.one_hot(old.argmax(1), old.shape[1]) if self.kind == "softmax" else old.sigmoid() > 0.5
        found = [((z - o) ** 2).mean() * all(s == y) for z, o, s, y in zip(logits, old, said, targets, strict=True)]
        return torch.stack(found).mean()

    def end(self, task: int, rows: Any, targets: torch.Tensor) -> None:
        option, now = self.config.get, [p.detach().clone() for p in self.parameters]
        if self.config.strategy == "ewc":
            labels = 1 if self.kind == "softmax" else targets.shape[1]
            fisher = self.mean_over_instances(
                rows, lambda z, i: -labels * self.cross_entropies(z, targets[[i]]).sum(), torch.square
            )
            if option("ewc_online"):
                self.omega = [option("ewc_decay") * o + f for o, f in zip(self.omega, fisher, strict=True)]
                self.anchors = [([option("ewc_strength") / 2 * o for o in self.omega], now)]
            else:
                self.anchors.append(([option("ewc_strength") / 2 * f for f in fisher], now))
        if self.config.strategy == "mas":
            found = self.mean_over_instances(rows, lambda z, i: (z**2).sum(), torch.abs)
            self.omega = [o + f for o, f in zip(self.omega, found, strict=True)]
            self.anchors = [([option("mas_strength") * o for o in self.omega], now)]
        if self.config.strategy == "si":
            began = list(self.before.parameters())
            for o, w, p, old in zip(self.omega, self.path, now, began, strict=True):
                o += w / ((p - old.detach()) ** 2 + option("si_damping"))
                o.clamp_(min=0)
            self.anchors = [([option("si_strength") * o for o in self.omega], now)]

    def mean_over_instances(self, rows: Any, what: Any, of_each: Any) -> Vectors:
        total = [torch.zeros_like(p) for p in self.parameters]
        for i, row in enumerate(rows):
            slopes = torch.autograd.grad(what(self.logits(self.network, [row]), i), self.parameters)
            total = [t + of_each(g) / len(rows) for t, g in zip(total, slopes, strict=True)]
        return total


SETTINGS: dict[str, dict[str, Any]] = {
    "ewc": {"strategy": "ewc", "ewc_strength": 1000.0},
    "ewc, online": {"strategy": "ewc", "ewc_strength": 1000.0, "ewc_online": True, "ewc_decay": 0.5},
    "si": {"strategy": "si", "si_strength": 10.0, "si_damping": 1e-2},
    "mas": {"strategy": "mas", "mas_strength": 10.0},
    "lwf": {"strategy": "lwf", "lwf_strength": 2.0, "lwf_temperature": 1.5},
    "joint": {"strategy": "joint"},
    "flip_penalty": {"strategy": "flip_penalty", "flip_strength": 2.0},
}
CASES = [
    *((name, kind, "native") for name in SETTINGS for kind in ("class_il", "time_il", "domain_il")),
    # the old network is never right on classes that it has not seen, so the penalty is 0
    *((name, "class_il_union", "native") for name in SETTINGS if name != "flip_penalty"),
    *((name, "class_il", "torch") for name in ("ewc", "si", "mas", "lwf")),
]


def is_core(case: tuple[str, str, str]) -> bool:
    """Whether a case is in the core suite: every method in one scenario, one of them in all."""
    name, kind, backend = case
    return (kind, backend) == ("time_il", "native") or name == "ewc"


@pytest.mark.parametrize(("name", "kind", "backend"), mostly_at_night(CASES, is_core))
def test_a_whole_run_is_that_of_the_second_program(
    name: str, kind: str, backend: str, paper_network: Any, monkeypatch: pytest.MonkeyPatch, run: Any
) -> None:
    """Up to rounding in float32; without the method's term, losses differ by hundreds of times as much."""
    if backend == "torch":
        monkeypatch.setenv("CLOPS_NATIVE", "off")
    config, frames = tiny_config(kind, learning_rate=5e-3, **SETTINGS[name]), tiny_frames(kind)
    expected = Program(config, frames, paper_network).run().losses
    found = ContinualRun(config, frames).run().curves["loss"].to_numpy().reshape(-1, 3)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    plain = run(kind, strategy="finetune", learning_rate=5e-3).curves["loss"].to_numpy().reshape(-1, 3)
    assert np.abs(found - plain)[2:].max() > 3e-3
