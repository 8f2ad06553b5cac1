"""Methods with a memory of fixed size against an independent implementation: torch.nn, autograd, torch.optim, float64.

It shares with the package only what is not numerics: the scenario's rows, the initial weights, the named random streams
and the counters of the dropout masks. Memories are plain lists here.
"""

from __future__ import annotations

import math
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

Instance = tuple[int, int]
"""Task, and index in its training set."""


class Reference:
    """One run of one seed."""

    def __init__(self, config: RunConfig, frames: FrameSet, network: Any) -> None:
        self.config, self.options, self.frames, self.network_type = config, config.options, frames, network
        self.scenario = scenario = build_scenario(frames, config.scenario, config.task_order)
        self.train = [(task.train.rows, torch.from_numpy(task.train.targets).double()) for task in scenario.tasks]
        self.validation = [
            (task.validation.rows, torch.from_numpy(task.validation.targets).double()) for task in scenario.tasks
        ]
        self.weights = [
            torch.from_numpy(balanced(targets.numpy()) if config.class_weights else np.ones(len(rows)))
            for rows, targets in self.train
        ]
        self.total = sum(len(rows) for rows, _ in self.train)
        self.capacity = max(1, math.floor(self.options["memory_fraction"] * self.total + 1e-9))
        self.held: list[dict[str, Any]] = []
        self.replayed: dict[Instance, int] = {}
        self.losses: list[list[float]] = []
        self.projections = self.offered = 0
        self.begin_anew(0)

    def begin_anew(self, task: int) -> None:
        bank = FrameBank(self.frames, torch.device("cpu"))
        start = ModuleLearner(self.config.seed, self.scenario.kind, self.scenario.outputs, 1.0, bank, PAPER_NETWORK)
        start.begin_anew(task)
        self.network = self.network_type.of(start)
        self.adam = torch.optim.Adam(self.network.parameters(), lr=self.config.learning_rate)

    def stream(self, name: str, *counters: int) -> np.random.Generator:
        return streams.generator(self.config.seed, name, *counters)

    def forward(self, instances: list[Instance], draws: Any, stream: tuple[Any, ...], training: bool) -> torch.Tensor:
        keys = streams.keys(self.config.seed, *stream)
        masks = None if draws is None else layer_masks(keys, torch.as_tensor(list(draws)))
        rows = np.array([self.train[task][0][place] for task, place in instances])
        signal = torch.from_numpy(self.frames.signal(rows)).double()[:, None]
        return self.network.norms_in_training(training).masked(masks)(signal)

    def targets(self, instances: list[Instance]) -> torch.Tensor:
        return torch.stack([self.train[task][1][place] for task, place in instances])

    def weight(self, instances: list[Instance]) -> torch.Tensor:
        return torch.stack(
            [self.weights[task].view(len(self.train[task][0]), -1)[place, 0] for task, place in instances]
        )

    def each_loss(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if self.scenario.kind == "softmax":
            return F.cross_entropy(logits, targets, reduction="none")
        return F.binary_cross_entropy(logits.sigmoid(), targets, reduction="none").mean(1)

    def subset(self, uniform: Any, size: int) -> list[int]:
        """Apply Floyd's algorithm to given uniform numbers."""
        chosen: list[int] = []
        for u, last in zip(uniform, range(size - len(uniform), size), strict=True):
            new = int(u * (last + 1))
            chosen.append(last if new in chosen else new)
        return chosen

    def group(self, instance: Instance) -> Any:
        strategy = self.config.strategy
        division = {"agem": "task_balanced", "gdumb": "class_balanced"}.get(strategy) or self.options["memory_division"]
        labels = tuple(self.train[instance[0]][1][instance[1]].tolist())
        own = (instance[0], labels) if self.scenario.by_position else labels
        return {"reservoir": 0, "task_balanced": instance[0], "class_balanced": own}[division]

    def offer(self, task: int, priorities: Any, places: Any = None) -> None:
        offered = range(len(priorities)) if places is None else places
        new = [{"instance": (task, place), "priority": float(priorities[place])} for place in offered]
        groups: dict[Any, list[dict[str, Any]]] = {}
        for entry in self.held + new:
            groups.setdefault(self.group(entry["instance"]), []).append(entry)
        queues = [sorted(groups[name], key=lambda entry: -entry["priority"]) for name in sorted(groups)]
        chosen: list[Any] = []
        while len(chosen) < self.capacity and any(queues):  # one to each in turn
            for queue in queues:
                if queue and len(chosen) < self.capacity:
                    chosen.append(queue.pop(0)["instance"])
        self.held = [entry for entry in self.held + new if entry["instance"] in chosen]

    def run(self) -> Reference:
        config = self.config
        for task, (rows, _) in enumerate(self.train):
            random_priorities = self.stream("memory", task).random(len(rows))
            if config.strategy == "gdumb":
                self.offer(task, random_priorities)
                self.begin_anew(task)
            for epoch in range(config.epochs_per_task):
                self.epoch(task, epoch, [(task, place) for place in range(len(rows))])
                self.evaluate()
            if config.strategy not in ("gdumb", "derpp", "er_ace"):
                self.offer(task, random_priorities)
        return self

    def epoch(self, task: int, epoch: int, instances: list[Instance]) -> None:
        config, size = self.config, self.config.batch_size
        if config.strategy == "gdumb":
            instances = [entry["instance"] for entry in self.held]
        name = "memory order" if config.strategy == "gdumb" else "batch order"
        order = streams.permutation(config.seed, len(instances), name, task, epoch).tolist()
        batches = [[instances[place] for place in order[start : start + size]] for start in range(0, len(order), size)]
        count = min(max(1, round(config.replay_ratio * size)), len(self.held)) if task else 0
        sets = {"er": 1, "er_ace": 1, "derpp": 2}.get(config.strategy, 0)
        uniform = self.stream("replay", task, epoch).random((sets, len(batches), count))
        if config.strategy == "derpp":
            uniform = uniform.reshape(len(batches), sets, count).transpose(1, 0, 2)
        offering = self.stream("memory", task, epoch).random(len(instances))
        priorities = self.stream("memory", task).random(len(instances))
        first = 0
        for step, batch in enumerate(batches):
            draws = range(first, first + len(batch) + sets * count)
            first = draws.stop
            drawn = [self.subset(numbers[step], len(self.held)) for numbers in uniform]
            extra = [[self.held[place]["instance"] for place in places] for places in drawn]
            for instance in (one for part in extra for one in part):
                self.replayed[instance] = self.replayed.get(instance, 0) + 1
            if config.strategy == "gdumb":
                for past in (one for one in batch if one[0] < task):
                    self.replayed[past] = self.replayed.get(past, 0) + 1
            together = batch + [one for part in extra for one in part]
            reference = self.reference(task, epoch, step, len(batches)) if config.strategy == "agem" and task else None
            logits = self.forward(together, draws, ("training dropout", task, epoch), True)
            self.adam.zero_grad()
            self.loss(task, batch, logits, together, drawn).backward()
            if reference is not None:
                self.project(reference)
            self.adam.step()
            if config.strategy == "derpp":
                self.into_the_reservoir(batch, logits.detach(), offering[step * size :])
            if config.strategy == "er_ace" and not epoch:
                self.offer(task, priorities, [place for _, place in batch])

    def loss(self, task: int, batch: list[Instance], logits: torch.Tensor, together: Any, drawn: Any) -> torch.Tensor:
        own, targets = len(batch), self.targets(together)
        if self.config.strategy == "er_ace":
            classes = set(targets[:own].argmax(1).tolist())
            seen = {c for _, past in self.train[: task + 1] for c in past.argmax(1).tolist()}
            weight = self.weight(together)
            loss = self.over_classes(logits[:own], targets[:own], weight[:own], classes)
            return loss + self.over_classes(logits[own:], targets[own:], weight[own:], seen) if task else loss
        each = self.weight(together) * self.each_loss(logits, targets)
        loss = each[:own].mean()
        if task and self.config.strategy == "derpp":
            count = len(drawn[0])
            then = torch.stack([self.held[place]["logits"] for place in drawn[0]])
            loss = loss + self.options["derpp_alpha"] * F.mse_loss(logits[own : own + count], then)
            loss = loss + self.options["derpp_beta"] * each[own + count :].mean()
        elif len(each) > own:
            loss = loss + each[own:].mean()
        return loss

    @staticmethod
    def over_classes(
        logits: torch.Tensor, targets: torch.Tensor, weight: torch.Tensor, classes: set[int]
    ) -> torch.Tensor:
        columns = sorted(classes)
        return (weight * F.cross_entropy(logits[:, columns], targets[:, columns], reduction="none")).mean()

    def reference(self, task: int, epoch: int, step: int, steps: int) -> list[torch.Tensor]:
        count = min(self.options["agem_batch_size"], len(self.held))
        uniform = self.stream("memory batch", task, epoch).random((steps, count))[step]
        instances = [self.held[place]["instance"] for place in self.subset(uniform, len(self.held))]
        for instance in instances:
            self.replayed[instance] = self.replayed.get(instance, 0) + 1
        draws = range(step * count, (step + 1) * count)
        logits = self.forward(instances, draws, ("memory dropout", task, epoch), False)
        loss = (self.weight(instances) * self.each_loss(logits, self.targets(instances))).mean()
        return list(torch.autograd.grad(loss, list(self.network.parameters())))

    def project(self, reference: list[torch.Tensor]) -> None:
        gradients = [parameter.grad for parameter in self.network.parameters()]
        agreement = sum((g * r).sum() for g, r in zip(gradients, reference, strict=True))
        if agreement < 0:
            self.projections += 1
            length = sum((r * r).sum() for r in reference)
            for gradient, r in zip(gradients, reference, strict=True):
                gradient -= agreement / length * r

    def into_the_reservoir(self, batch: list[Instance], logits: torch.Tensor, uniform: Any) -> None:
        for place, instance in enumerate(batch):
            entry = {"instance": instance, "logits": logits[place]}
            if len(self.held) < self.capacity:
                self.held.append(entry)
            else:
                taken = int(uniform[place] * (self.offered + 1))
                if taken < self.capacity:
                    self.held[taken] = entry
            self.offered += 1

    def evaluate(self) -> None:
        with torch.no_grad():
            self.network.norms_in_training(False).masked(None)
            found = []
            for rows, targets in self.validation:
                signal = torch.from_numpy(self.frames.signal(rows)).double()[:, None]
                found.append(float(self.each_loss(self.network(signal), targets).mean()))
            self.losses.append(found)


EVERYWHERE = ("class_il", "time_il", "domain_il")
WEIGHTED = {"class_weights": "balanced"}
CASES: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("er", {"memory_fraction": 0.3}, EVERYWHERE),
    ("er", {"memory_division": "task_balanced", "replay_ratio": 0.5}, ("class_il",)),
    ("er", {"memory_division": "class_balanced"}, EVERYWHERE),
    ("er_ace", {}, ("class_il_union", "time_il")),
    ("er_ace", {"memory_fraction": 0.4, "memory_division": "class_balanced"}, ("class_il_union",)),
    ("derpp", {"memory_fraction": 0.3, "derpp_alpha": 0.7}, (*EVERYWHERE, "class_il_union")),
    ("derpp", {"memory_fraction": 0.9, "replay_ratio": 0.5}, ("class_il",)),
    ("derpp", {"batch_size": 12}, ("class_il",)),
    ("agem", {"agem_batch_size": 5}, EVERYWHERE),
    ("gdumb", {"memory_fraction": 0.4}, (*EVERYWHERE, "class_il_union")),
    ("er", WEIGHTED, ("class_il", "domain_il")),
    ("er_ace", WEIGHTED, ("time_il",)),
    ("derpp", {**WEIGHTED, "derpp_alpha": 0.7}, ("class_il_union",)),
    ("agem", {**WEIGHTED, "agem_batch_size": 5}, ("time_il",)),
    ("gdumb", WEIGHTED, ("time_il",)),
]
IDS = [f"{name}-{kind}-{number}" for number, (name, _, kinds) in enumerate(CASES) for kind in kinds]
PARAMETERS = [(name, settings, kind) for name, settings, kinds in CASES for kind in kinds]
IN_CORE = [(name, settings, kinds[0]) for name, settings, kinds in CASES]


def compare(config: RunConfig, network: Any) -> None:
    frames = uneven(tiny_frames(config.scenario)) if config.class_weights else tiny_frames(config.scenario)
    expected = Reference(config, frames, network).run()
    assert (config.class_weights is None) == all((of_task == 1).all() for of_task in expected.weights)
    result = ContinualRun(config, frames).run()
    found = result.curves["loss"].to_numpy().reshape(-1, 3)
    np.testing.assert_allclose(found, expected.losses, rtol=1e-4, atol=1e-4)
    rows = [[(task, place) for place in range(len(part))] for task, (part, _) in enumerate(expected.train)]
    instances = [instance for part in rows for instance in part]
    held = {entry["instance"] for entry in expected.held}
    assert result.instances["stored"].tolist() == [instance in held for instance in instances]
    times = [expected.replayed.get(instance, 0) for instance in instances]
    assert result.instances["times_replayed"].tolist() == times
    assert sum(times) > 0
    if config.strategy == "agem":
        assert result.runs["projections"].tolist() == [expected.projections]
        assert expected.projections > 0


@pytest.mark.parametrize(("name", "settings", "kind"), mostly_at_night(PARAMETERS, IN_CORE.__contains__), ids=IDS)
def test_a_whole_run_is_that_of_the_second_program(
    name: str, settings: dict[str, Any], kind: str, paper_network: Any
) -> None:
    compare(tiny_config(kind, strategy=name, **settings), paper_network)


@pytest.mark.parametrize("settings", [{}, WEIGHTED], ids=["", "weighted"])
@pytest.mark.parametrize(
    "name", mostly_at_night(["er", "er_ace", "derpp", "agem", "gdumb"], ("derpp", "gdumb").__contains__)
)
def test_so_is_one_in_pytorch(
    name: str, settings: dict[str, Any], paper_network: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOPS_NATIVE", "off")
    compare(tiny_config("time_il", strategy=name, **settings), paper_network)


@pytest.mark.parametrize("division", ["reservoir", "task_balanced", "class_balanced"])
def test_a_memory_of_fixed_size_is_as_large_as_it_may_be_and_divided_as_asked_for(division: str) -> None:
    config = tiny_config("time_il", strategy="er", memory_division=division, memory_fraction=0.5)
    result = ContinualRun(config, tiny_frames("time_il")).run()
    stored = result.instances[result.instances["stored"]]
    assert len(stored) == 18
    column = {"task_balanced": "task", "class_balanced": "label"}.get(division)
    if column:
        assert stored[column].value_counts().max() - stored[column].value_counts().min() <= 1
