"""The paper's network, written as a user would write it: what the built-in one gives, from equal weights and masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from clops_sweep import ContinualRun, native
from clops_sweep.data.scenarios import LossKind
from clops_sweep.experiment.registry import NETWORKS
from clops_sweep.learning import dropout, streams
from clops_sweep.learning.batches import Batch
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learner import Learner
from clops_sweep.learning.module_learner import ModuleLearner
from clops_sweep.learning.network import initial_parameters
from clops_sweep.learning.paper_learner import PaperLearner
from clops_sweep.learning.run_module import Mode, RunModule
from clops_sweep.testing import tiny_config, tiny_frames

CPU = torch.device("cpu")
LAYERS = {"conv1": 0, "norm1": 1, "conv2": 5, "norm2": 6, "conv3": 10, "norm3": 11, "linear1": 16, "linear2": 18}


@pytest.fixture
def masked(paper_network: Any, masks_of_run: Callable[..., Any]) -> Iterator[type[ModuleLearner]]:
    """A learner of such modules that begin as the built-in ones do, and whose dropout layers are given their masks."""

    class Masked(ModuleLearner):
        def __init__(
            self,
            seeds: Sequence[int],
            kind: LossKind,
            outputs: int,
            learning_rate: float,
            bank: FrameBank,
            network: str,
            options: Mapping[str, Any] | None = None,
        ) -> None:
            super().__init__(seeds, kind, outputs, learning_rate, bank, network, options)
            for name, values in initial_parameters(seeds, outputs, CPU).views.items():
                layer, _, what = name.partition(".")
                self.parameters.views[f"{LAYERS[layer]}.{what}"].copy_(values)

        def _mask(self, keys: torch.Tensor, draws: torch.Tensor) -> None:
            masks = dropout.masks(keys, draws)
            for run, module in enumerate(self._modules):
                for place, mask in zip((4, 9, 14), masks_of_run(masks, run), strict=True):
                    module.module[place].mask = mask  # type: ignore[index, union-attr]

        def _differentiated(self, batch: Batch, dropout_keys: torch.Tensor, *arguments: Any, **named: Any) -> Any:
            self._mask(dropout_keys, batch.draws)
            return super()._differentiated(batch, dropout_keys, *arguments, **named)

        def dropout_probabilities(
            self, rows: torch.Tensor, samples: int, dropout_keys: torch.Tensor, **named: Any
        ) -> Any:
            self._at_a_time = samples * rows.shape[1]
            self._mask(dropout_keys, torch.arange(self._at_a_time))
            return super().dropout_probabilities(rows, samples, dropout_keys, **named)

    def logits(self: RunModule, frames: torch.Tensor, mode: Mode) -> torch.Tensor:
        if mode == "evaluation":
            for place in (4, 9, 14):
                self.module[place].mask = None  # type: ignore[index, union-attr]
        return unmasked(self, frames, mode)

    unmasked = RunModule.logits
    with (
        NETWORKS.temporarily("paper", lambda channels, samples, outputs: paper_network(outputs)),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(RunModule, "logits", logits)
        patch.setattr("clops_sweep.learning.backend.ModuleLearner", Masked)
        patch.setenv(native.ENVIRONMENT, "off")
        yield Masked


def test_the_losses_of_fifty_steps(masked: type[ModuleLearner]) -> None:
    frames, seeds = tiny_frames("time_il"), (3, 8)
    bank = FrameBank(frames, CPU)
    learners: list[Learner] = [
        PaperLearner(seeds, "softmax", 4, 1e-4, bank),
        masked(seeds, "softmax", 4, 1e-4, bank, "paper"),
    ]
    stream = torch.Generator().manual_seed(0)
    for step in range(50):
        rows = torch.randint(0, len(frames), (2, 16), generator=stream)
        targets = torch.eye(4)[torch.from_numpy(frames.labels)[rows]]
        batch = Batch(rows, targets, torch.full((2, 16), 1 / 16), torch.arange(16 * step, 16 * step + 16))
        keys, losses = streams.keys(seeds, "test"), []
        for learner in learners:
            learner.announce(1)
            losses.append(learner.train_step(batch, keys).clone())
        torch.testing.assert_close(losses[0], losses[1], rtol=0, atol=1e-5)


@pytest.mark.parametrize("strategy", ["clops", "gem", "mir"])
def test_a_whole_run(strategy: str, masked: type[ModuleLearner]) -> None:
    frames = tiny_frames("class_il")
    config = tiny_config("class_il", strategy=strategy)
    built_in, own = (ContinualRun(each, frames).run() for each in (config, config.replace(network="paper")))
    np.testing.assert_allclose(own.r_matrix["auc"], built_in.r_matrix["auc"], rtol=0, atol=1e-3)
    np.testing.assert_allclose(own.curves["loss"], built_in.curves["loss"], rtol=1e-3)
    assert own.instances["times_replayed"].equals(built_in.instances["times_replayed"])
