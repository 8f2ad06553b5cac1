"""Runs trained in lockstep, with equal or different settings, equal each run alone."""

from __future__ import annotations

import pytest
import torch

from clops_sweep import ContinualRun, native
from clops_sweep.errors import UsageError
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Batch
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.backend import make_learner
from clops_sweep.learning.lockstep import free_fields, lockstep_key
from clops_sweep.testing import tiny_config, tiny_frames

VARIANTS = (
    {},
    {"seed": 3},
    {"weight_seed": 4},
    {"storage_order": "random"},
    {"storage_order": "random", "acquisition": "random", "seed": 1},
    {"acquisition": "bald_mcp", "perturbation_std": 0.3},
    {"mc_samples": 3, "storage_order": "bottom"},
    {"beta_learning_rate": 1e-2, "beta_penalty": 0.5, "weight_replay": True},
    {"storage_function": "squared_area", "acquisition": "balc_kld", "beta_learning_rate": 1e-2},
)


KINDS = ("class_il", "time_il", "domain_il")
PLACES = [*((name, kind) for name in native.available()[:1] for kind in KINDS), ("off", KINDS[0])]
SLOWER = [pytest.param("off", kind, marks=pytest.mark.nightly) for kind in KINDS[1:]]


@pytest.mark.parametrize(("backend", "kind"), [*PLACES, *SLOWER])
def test_runs_that_differ_in_what_they_replay(backend: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(native.ENVIRONMENT, backend)
    frames = tiny_frames(kind)
    configs = [tiny_config(kind, **variant) for variant in VARIANTS]
    assert {field for variant in VARIANTS for field in variant} == free_fields("clops")
    together = ContinualRun(configs, frames).run()
    for config in configs:
        alone = ContinualRun(config, frames).run()
        part = together.of(config.run_id(frames.data_hash))
        for name, table in part.tables.items():
            expected = getattr(alone, name)
            for column in set(table.columns) - {"lockstep", "started_at"}:
                if "seconds" not in column:
                    assert table[column].equals(expected[column]), f"{config}: {name}.{column}"


@pytest.mark.parametrize(
    "other",
    [
        {"storage_fraction": 0.5},
        {"acquisition_fraction": 0.3},
        {"batch_size": 4},
        {"learning_rate": 1e-2},
        {"split_seed": 1},
        {"strategy": "replay"},
    ],
)
def test_what_changes_sizes_or_steps_keeps_runs_apart(other: dict[str, object]) -> None:
    one, two = tiny_config("class_il"), tiny_config("class_il", **other)
    assert lockstep_key(one) != lockstep_key(two)
    with pytest.raises(UsageError, match="may differ in nothing but"):
        ContinualRun([one, two], tiny_frames("class_il"))


@pytest.mark.parametrize("kind", ["class_il", "time_il"])
def test_networks_computed_together_are_those_computed_one_by_one(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU computes for all runs at once, on a CPU: equal up to rounding."""
    frames = tiny_frames(kind)
    outputs, loss_kind = (1, "binary") if kind == "class_il" else (4, "softmax")
    seeds = [2, 7, 9]
    monkeypatch.setenv(native.ENVIRONMENT, "off")
    bank = FrameBank(frames, torch.device("cpu"))
    learners = [make_learner(seeds, loss_kind, outputs, 1e-3, bank, together=together) for together in (True, False)]
    assert [learner.backend for learner in learners] == ["torch-stacked", "torch-module"]
    stream = torch.Generator().manual_seed(0)
    for step in range(3):
        rows = torch.randint(0, len(frames.frames), (3, 11), generator=stream)
        targets = torch.eye(4)[torch.randint(0, 4, (3, 11), generator=stream)]
        if outputs == 1:
            targets = targets[..., :1]
        batch = Batch(rows, targets, torch.rand(3, 11, generator=stream) / 11, torch.arange(11))
        keys = streams.keys(seeds, "test", step)
        results = []
        for learner in learners:
            memory = learner.memory_gradient(batch, keys).clone()
            instance_losses = learner.train_step(batch, keys)
            passes = learner.dropout_probabilities(rows, 3, keys)
            statistics = [each for of_run in learner.state()["buffers"] for each in of_run.values()]
            results.append((memory, instance_losses, learner.logits(rows), passes, *statistics))
        for one, other in zip(*results, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
