"""Whole runs against an independent implementation: torch.nn, autograd and torch.optim in float64.

It is written from the method's text, and shares with the package only what is not numerics: the scenario's rows, the
initial weights, the named random streams and the counters of the dropout masks.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise
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
from tests.learning.class_balance import balanced, uneven
from tests.learning.layer_masks import layer_masks


class Reference:
    """One run of one seed."""

    def __init__(self, config: RunConfig, frames: FrameSet, network: Any) -> None:
        self.config, self.frames, self.seed = config, frames, config.seed
        scenario = build_scenario(frames, config.scenario, config.task_order)
        self.kind, self.outputs, self.names = scenario.kind, scenario.outputs, [task.name for task in scenario.tasks]
        self.train = [(task.train.rows, torch.from_numpy(task.train.targets).double()) for task in scenario.tasks]
        self.validation = [
            (task.validation.rows, torch.from_numpy(task.validation.targets).double()) for task in scenario.tasks
        ]
        self.weights = {
            int(row): weight if config.class_weights else 1.0
            for rows, targets in self.train
            for row, weight in zip(rows, balanced(targets.numpy()), strict=True)
        }
        assert len(self.weights) == sum(len(rows) for rows, _ in self.train), "a row is of one task"
        self.epochs = config.epochs_per_task
        if config.strategy == "multitask":
            self._join(len(scenario.tasks))
        bank = FrameBank(frames, torch.device("cpu"))
        start = ModuleLearner(self.seed, self.kind, self.outputs, config.learning_rate, bank, PAPER_NETWORK)
        self.network = network.of(start)
        self.adam = torch.optim.Adam(self.network.parameters(), lr=config.learning_rate)
        self.buffer: list[dict[str, Any]] = []
        self.losses: list[list[float]] = []
        self.s: list[list[float]] = []
        self.beta: list[list[float]] = []
        self.projections = 0
        self.scores: list[list[float]] = []

    def _join(self, tasks: int) -> None:
        self.epochs *= tasks
        if self.kind == "binary":
            self.kind, self.outputs = "softmax", 2 * tasks

            def numbered(part: tuple[Any, torch.Tensor], task: int) -> tuple[Any, torch.Tensor]:
                return part[0], torch.eye(2 * tasks).double()[2 * task + part[1][:, 0].long()]

            self.train = [numbered(part, task) for task, part in enumerate(self.train)]
            self.validation = [numbered(part, task) for task, part in enumerate(self.validation)]
        self.train = [
            (np.concatenate([rows for rows, _ in self.train]), torch.cat([targets for _, targets in self.train]))
        ]

    def masks(self, stream: str, counters: tuple[int, ...], draws: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return layer_masks(streams.keys(self.seed, stream, *counters), draws)

    def each_loss(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if self.kind == "softmax":
            return -(targets * logits.log_softmax(1)).sum(1)
        return F.binary_cross_entropy(logits.sigmoid(), targets, reduction="none").mean(1)

    def weight(self, rows: Any) -> torch.Tensor:
        return torch.tensor([self.weights[int(row)] for row in rows], dtype=torch.float64)

    def signal(self, rows: Any) -> torch.Tensor:
        return torch.from_numpy(self.frames.signal(np.asarray(rows))).double()[:, None]

    def forward(self, rows: Any, masks: Any, training: bool) -> torch.Tensor:
        return self.network.norms_in_training(training).masked(masks)(self.signal(rows))

    def flat(self, loss: torch.Tensor) -> torch.Tensor:
        parts = torch.autograd.grad(loss, list(self.network.parameters()))
        return torch.cat([part.flatten() for part in parts])

    def follow(self, gradient: torch.Tensor) -> None:
        start = 0
        for parameter in self.network.parameters():
            parameter.grad = gradient[start : start + parameter.numel()].view_as(parameter).clone()
            start += parameter.numel()
        self.adam.step()

    def run(self) -> Reference:
        for task, (rows, targets) in enumerate(self.train):
            weighted = self.config.strategy == "clops" and self.config.storage_order != "random"
            beta = torch.ones(len(rows), dtype=torch.float64, requires_grad=True)
            beta_adam = torch.optim.Adam([beta], lr=self.config.beta_learning_rate)
            history = []
            for epoch in range(self.epochs):
                replayed = self.acquire(task, epoch) if self.config.strategy in ("clops", "replay") else []
                size = len(rows) + len(replayed)
                order = streams.permutation(self.seed, size, "batch order", task, epoch).tolist()
                for step, start in enumerate(range(0, size, self.config.batch_size)):
                    batch = order[start : start + self.config.batch_size]
                    draws = torch.arange(start, start + len(batch))
                    chosen = [(rows[i], targets[i], None) if i < len(rows) else replayed[i - len(rows)] for i in batch]
                    own = [place for place, i in enumerate(batch) if i < len(rows)]
                    if task and self.config.strategy == "gem":
                        self.gem_step(chosen, draws, (task, epoch, step))
                        continue
                    if task and self.config.strategy == "mir":
                        extra = self.retrieve(chosen, draws, (task, epoch, step))
                        first = (1 << 20) + step * round(self.config.replay_ratio * self.config.batch_size)
                        chosen, draws = chosen + extra, torch.cat([draws, torch.arange(first, first + len(extra))])
                    masks = self.masks("training dropout", (task, epoch), draws)
                    each = self.each_loss(
                        self.forward([row for row, _, _ in chosen], masks, True),
                        torch.stack([target for _, target, _ in chosen]),
                    ) * self.weight([row for row, _, _ in chosen])
                    loss = torch.zeros((), dtype=torch.float64)
                    if own:
                        positions = [batch[place] for place in own]
                        if weighted:
                            loss = loss + (beta[positions] * each[own]).mean()
                            loss = loss + self.config.beta_penalty * ((beta[positions] - 1) ** 2).mean()
                        else:
                            loss = loss + each[own].mean()
                    others = [place for place in range(len(chosen)) if place not in own]
                    if others:
                        factors = torch.tensor([chosen[place][2] for place in others], dtype=torch.float64)
                        loss = loss + (factors * each[others]).mean()
                    self.adam.zero_grad()
                    beta_adam.zero_grad()
                    loss.backward()
                    self.adam.step()
                    if weighted:
                        if beta.grad is None:
                            beta.grad = torch.zeros_like(beta)
                        beta_adam.step()
                history.append(beta.detach().tolist())
                self.evaluate()
            self.store(task, rows, targets, history, weighted)
        return self

    def evaluate(self) -> None:
        with torch.no_grad():
            self.losses.append(
                [
                    float(self.each_loss(self.forward(rows, None, False), targets).mean())
                    for rows, targets in self.validation
                ]
            )

    def store(self, task: int, rows: Any, targets: torch.Tensor, history: list[list[float]], weighted: bool) -> None:
        count = max(1, math.floor(self.config.storage_fraction * len(rows) + 1e-9))
        if weighted:
            s = [sum((one[i] + other[i]) / 2 for one, other in pairwise(history)) for i in range(len(rows))]
            sign = -1 if self.config.storage_order == "top" else 1
            chosen = sorted(sorted(range(len(rows)), key=lambda i: (sign * s[i], i))[:count])
            self.s.append(s)
            self.beta.append(history[-1])
        else:
            chosen = streams.choice(self.seed, len(rows), count, "random storage", task).tolist()
        self.buffer.append(
            {
                "rows": [rows[i] for i in chosen],
                "targets": [targets[i] for i in chosen],
                "factors": [history[-1][i] if self.config.weight_replay else 1.0 for i in chosen],
                "times": [0] * count,
            }
        )

    def acquire(self, task: int, epoch: int) -> list[Any]:
        replayed = []
        for index, portion in enumerate(self.buffer):
            size = len(portion["rows"])
            count = max(1, math.floor(self.config.acquisition_fraction * size + 1e-9))
            acquisition = "random" if self.config.strategy == "replay" else self.config.acquisition
            if acquisition == "random":
                scores = streams.generator(self.seed, "random acquisition", task, epoch, index).random(size).tolist()
            else:
                scores = self.bald(portion, (task, epoch, index))
            for place in sorted(sorted(range(size), key=lambda i: (-scores[i], i))[:count]):
                portion["times"][place] += 1
                replayed.append((portion["rows"][place], portion["targets"][place], portion["factors"][place]))
        return replayed

    def bald(self, portion: dict[str, Any], counters: tuple[int, ...]) -> list[float]:
        samples, scores = self.config.mc_samples, []
        for i, row in enumerate(portion["rows"]):
            draws = torch.arange(i * samples, (i + 1) * samples)
            masks = self.masks("acquisition dropout", counters, draws)
            with torch.no_grad():
                logits = self.forward([row] * samples, masks, False)
            p = (logits.softmax(1) if self.kind == "softmax" else logits.sigmoid()).tolist()
            mean = [sum(sample[c] for sample in p) / samples for c in range(self.outputs)]
            scores.append(self.entropy(mean) - sum(self.entropy(sample) for sample in p) / samples)
        self.scores.append(scores)
        return scores

    def entropy(self, p: list[float]) -> float:
        if self.kind == "softmax":
            return -sum(v * math.log(v) for v in p)
        return -sum(v * math.log(v) + (1 - v) * math.log(1 - v) for v in p) / len(p)

    def gem_step(self, chosen: list[Any], draws: torch.Tensor, place: tuple[int, int, int]) -> None:
        memory = []
        for index, portion in enumerate(self.buffer):
            count = len(portion["rows"])
            masks = self.masks("memory dropout", (*place, index), torch.arange(count))
            each = self.each_loss(self.forward(portion["rows"], masks, False), torch.stack(portion["targets"]))
            memory.append(self.flat((self.weight(portion["rows"]) * each).mean()))
            portion["times"] = [times + 1 for times in portion["times"]]
        masks = self.masks("training dropout", place[:2], draws)
        each = self.each_loss(
            self.forward([row for row, _, _ in chosen], masks, True), torch.stack([target for _, target, _ in chosen])
        )
        weight = self.weight([row for row, _, _ in chosen])
        g, G = self.flat((weight * each).mean()), torch.stack(memory)
        if (G @ g < 0).any():
            self.projections += 1
            g = g + G.T @ self.dual(G @ G.T + 1e-3 * torch.eye(len(G)).double(), G @ g)
        self.follow(g)

    @staticmethod
    def dual(P: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        """Return the best v of min 1/2 v'Pv + q'v, v >= 1/2, over all sets of entries at the margin."""
        best, lowest = q, math.inf
        for number in range(len(q) + 1):
            for free in combinations(range(len(q)), number):
                v = torch.full_like(q, 0.5)
                if free:
                    rest = [i for i in range(len(q)) if i not in free]
                    pull = q[list(free)] + 0.5 * P[list(free)][:, rest].sum(1)
                    v[list(free)] = torch.linalg.solve(P[list(free)][:, list(free)], -pull)
                value = float(0.5 * v @ P @ v + q @ v)
                if (v >= 0.5 - 1e-12).all() and value < lowest:
                    best, lowest = v, value
        return best

    def retrieve(self, chosen: list[Any], draws: torch.Tensor, place: tuple[int, int, int]) -> list[Any]:
        total, portions = round(self.config.replay_ratio * len(chosen)), len(self.buffer)
        norms = [self.network[i] for i in (1, 6, 11)]
        kept = [(norm.running_mean.clone(), norm.running_var.clone()) for norm in norms]
        masks = self.masks("virtual dropout", place, draws)
        each = self.each_loss(
            self.forward([row for row, _, _ in chosen], masks, True), torch.stack([target for _, target, _ in chosen])
        )
        gradient = self.flat((self.weight([row for row, _, _ in chosen]) * each).mean())
        for norm, (mean, variance) in zip(norms, kept, strict=True):
            norm.running_mean.copy_(mean)
            norm.running_var.copy_(variance)
        extra = []
        for index, portion in enumerate(self.buffer):
            count = total // portions + ((index - place[2]) % portions < total % portions)
            if not count:
                continue
            size = len(portion["rows"])
            drawn = max(1, math.floor(self.config.acquisition_fraction * size + 1e-9))
            candidates = streams.choice(self.seed, size, drawn, "candidates", *place, index).tolist()
            rows, targets = [portion["rows"][i] for i in candidates], [portion["targets"][i] for i in candidates]
            with torch.no_grad():
                before = self.each_loss(self.forward(rows, None, False), torch.stack(targets))
                self.shift(-self.config.learning_rate * gradient)
                after = self.each_loss(self.forward(rows, None, False), torch.stack(targets))
                self.shift(self.config.learning_rate * gradient)
            scores = (after - before).tolist()
            for pick in sorted(sorted(range(drawn), key=lambda i: (-scores[i], i))[: min(count, drawn)]):
                place_in_portion = candidates[pick]
                portion["times"][place_in_portion] += 1
                extra.append((portion["rows"][place_in_portion], portion["targets"][place_in_portion], 1.0))
        return extra

    def shift(self, by: torch.Tensor) -> None:
        start = 0
        for parameter in self.network.parameters():
            parameter += by[start : start + parameter.numel()].view_as(parameter)
            start += parameter.numel()


SETTINGS: dict[str, dict[str, Any]] = {
    "finetune": {"strategy": "finetune"},
    "replay": {"strategy": "replay"},
    "multitask": {"strategy": "multitask"},
    "gem": {"strategy": "gem"},
    "mir": {"strategy": "mir"},
    "mir, ratio 1/2": {"strategy": "mir", "replay_ratio": 0.5, "acquisition_fraction": 1.0},
    "clops": {"acquisition": "bald_mcd"},
    "clops, bottom, weighted replay": {
        "acquisition": "random",
        "storage_order": "bottom",
        "weight_replay": True,
        "beta_learning_rate": 3e-2,
    },
    "clops, random storage": {"storage_order": "random"},
    "multitask, weighted": {"strategy": "multitask", "class_weights": "balanced"},
    "gem, weighted": {"strategy": "gem", "class_weights": "balanced"},
    "mir, weighted": {"strategy": "mir", "class_weights": "balanced"},
    "clops, weighted": {
        "acquisition": "random",
        "weight_replay": True,
        "beta_learning_rate": 3e-2,
        "class_weights": "balanced",
    },
}


WHERE = (("class_il", "native"), ("time_il", "native"), ("domain_il", "native"), ("class_il", "torch"))
CASES = [(name, kind, backend) for name in SETTINGS for kind, backend in WHERE]


def is_core(case: tuple[str, str, str]) -> bool:
    """Whether a case is in the core suite: every setting in one scenario, two of them in all."""
    name, kind, backend = case
    return (kind, backend) == ("class_il", "native") or name in ("clops", "mir, weighted")


@pytest.mark.parametrize(("name", "kind", "backend"), mostly_at_night(CASES, is_core))
def test_a_whole_run_is_that_of_the_second_program(
    name: str, kind: str, backend: str, paper_network: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend == "torch":
        monkeypatch.setenv("CLOPS_NATIVE", "off")
    config, frames = tiny_config(kind, **SETTINGS[name]), tiny_frames(kind)
    if config.class_weights:
        frames = uneven(frames)
    expected = Reference(config, frames, paper_network).run()
    assert (config.class_weights is None) == (set(expected.weights.values()) == {1.0})
    result = ContinualRun(config, frames).run()
    found = result.curves["loss"].to_numpy().reshape(-1, 3)
    np.testing.assert_allclose(found, expected.losses, rtol=1e-4, atol=1e-4)
    instances = result.instances
    if expected.s:
        np.testing.assert_allclose(instances["s"], np.concatenate(expected.s), rtol=0, atol=2e-4)
        np.testing.assert_allclose(instances["beta"], np.concatenate(expected.beta), rtol=0, atol=5e-4)
        assert instances["beta"].std() > 1e-3
    if config.strategy not in ("finetune", "multitask"):
        stored = instances[instances["stored"]]
        assert stored["instance"].tolist() == [row for portion in expected.buffer for row in portion["rows"]]
        assert stored["times_replayed"].tolist() == [times for part in expected.buffer for times in part["times"]]
        assert stored["times_replayed"].sum() > 0
    if config.strategy == "gem":
        assert result.runs["projections"].tolist() == [expected.projections]
        assert result.runs["projection_failures"].tolist() == [0]
