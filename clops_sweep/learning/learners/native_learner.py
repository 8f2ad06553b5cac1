"""NativeLearner: the paper's network on a CPU. The native kernels work on the memory of PyTorch tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import torch

from clops_sweep import native
from clops_sweep.data.frames import FRAME_LENGTH
from clops_sweep.data.scenarios import LossKind
from clops_sweep.learning.arrays import array_of, optional_array
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.kernel_learner import KernelLearner
from clops_sweep.learning.learners.learner import Loss
from clops_sweep.learning.learners.native_passes import NativePasses
from clops_sweep.learning.learners.passes import Passes
from clops_sweep.learning.networks.network import CHANNELS, PaperNetwork, initial_parameters


class NativeLearner(KernelLearner):
    """Learner with the numbers of `PaperNetwork` in a `ModuleLearner`, up to rounding, but several times faster.

    Methods that are not overridden use PyTorch, on the same memory as the kernels.

    Args:
        seed: seed of the initial parameters.
        kind: kind of output.
        outputs: C.
        learning_rate: learning rate of Adam.
        bank: the frames of each row, on the CPU.
        variant: name of the kernels, from `native.available()`.

    Attributes:
        statistics: running means of the three blocks, [channels] each, and their running variances.
    """

    def __init__(
        self,
        seed: int,
        kind: LossKind,
        outputs: int,
        learning_rate: float,
        bank: FrameBank,
        variant: str,
    ) -> None:
        parameters = initial_parameters(seed, outputs)
        super().__init__(seed, kind, outputs, learning_rate, bank, parameters)
        self._means = [torch.zeros(channels) for channels in CHANNELS[1:]]
        self._variances = [torch.ones(channels) for channels in CHANNELS[1:]]
        self.statistics = [*self._means, *self._variances]
        self.variant = variant
        self.backend = f"native-{variant}"
        self.core = self._kernels()

    def _kernels(self) -> Any:
        """Return kernels over the network, with a workspace of their own."""
        bank = self.bank
        means = [mean.numpy() for mean in self._means]
        variances = [variance.numpy() for variance in self._variances]
        return native.core(
            variant=self.variant,
            softmax=self.kind == "softmax",
            outputs=self.outputs,
            parameters=self.parameters.flat.numpy(),
            gradient=self._gradient.flat.numpy(),
            means=means,
            variances=variances,
            frames=bank.stored.numpy(),
            gain=optional_array(bank.gain),
            offset=optional_array(bank.offset),
        )

    def passes(self) -> Passes:
        """As `Learner.passes`."""
        return NativePasses(self, self._kernels)

    def mean_of_instance_gradients(
        self, rows: torch.Tensor, loss: Loss, *given: torch.Tensor, of_each: Literal["square", "abs"]
    ) -> torch.Tensor:
        """As `Learner.mean_of_instance_gradients`, many instances at a time."""
        stored_rows = self._stored_rows(rows)
        by_logits = self._instances_by_logits(rows, loss, given)
        sums = torch.zeros_like(self.parameters.flat)
        self.core.sum_of_each(stored_rows, array_of(by_logits), absolute=of_each == "abs", sums=sums.numpy())
        return sums.div_(len(rows))

    def _alike(self) -> Self:
        return type(self)(self.seed, self.kind, self.outputs, self.learning_rate, self.bank, self.variant)

    def _draw_parameters(self, task: int) -> None:
        drawn = initial_parameters(self.seed, self.outputs, task)
        self.parameters.flat.copy_(drawn.flat)
        for mean in self._means:
            mean.fill_(0)
        for variance in self._variances:
            variance.fill_(1)

    def _load(self, weights: Mapping[str, torch.Tensor]) -> None:
        own = self.weights()
        shapes = {name: value.shape for name, value in weights.items()}
        if shapes != {name: value.shape for name, value in own.items()}:
            raise RuntimeError("names or shapes differ from those of the paper's network")
        for name, view in self.parameters.views.items():
            view.copy_(weights[name])
        for block, (mean, variance) in enumerate(zip(self._means, self._variances, strict=True), start=1):
            mean.copy_(weights[f"norm{block}.running_mean"])
            variance.copy_(weights[f"norm{block}.running_var"])

    def module(self) -> torch.nn.Module:
        """As `Learner.module`."""
        with torch.device("meta"):  # no random draw, because the weights are replaced
            network = PaperNetwork(1, FRAME_LENGTH, self.outputs).eval()
        network.load_state_dict(self.weights(), assign=True)
        return network

    def weights(self) -> dict[str, torch.Tensor]:
        """As `Learner.weights`."""
        weights = {name: view.clone() for name, view in self.parameters.views.items()}
        for block, (mean, variance) in enumerate(zip(self._means, self._variances, strict=True), start=1):
            norm = f"norm{block}"
            weights[f"{norm}.running_mean"] = mean.clone()
            weights[f"{norm}.running_var"] = variance.clone()
            weights[f"{norm}.num_batches_tracked"] = torch.tensor(0)
        return weights

    def state(self) -> dict[str, Any]:
        """As `Learner.state`."""
        return super().state() | {"statistics": self.statistics}

    def restore(self, state: dict[str, Any]) -> None:
        """As `Learner.restore`."""
        super().restore(state)
        for tensor, value in zip(self.statistics, state["statistics"], strict=True):
            tensor.copy_(value)

    def logits(
        self, rows: torch.Tensor, *, noise: torch.Tensor | None = None, shift: torch.Tensor | None = None
    ) -> torch.Tensor:
        """As `Learner.logits`."""
        parameters = None if shift is None else self.parameters.flat + shift
        logits = self._predict(rows, noise, parameters=parameters)
        return logits.squeeze(1)

    def probabilities(self, rows: torch.Tensor, *, noise: torch.Tensor | None = None) -> torch.Tensor:
        """As `Learner.probabilities`."""
        probabilities = self._predict(rows, noise, probabilities=True)
        return probabilities.squeeze(1)

    def dropout_probabilities(
        self, rows: torch.Tensor, samples: int, dropout_keys: torch.Tensor, *, noise: torch.Tensor | None = None
    ) -> torch.Tensor:
        """As `Learner.dropout_probabilities`."""
        return self._predict(rows, noise, probabilities=True, samples=samples, dropout_keys=dropout_keys)

    def _predict(
        self,
        rows: torch.Tensor,
        noise: torch.Tensor | None,
        *,
        parameters: torch.Tensor | None = None,
        probabilities: bool = False,
        samples: int = 1,
        dropout_keys: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return predictions in evaluation mode, [m, T, C], with dropout if there are keys."""
        flat_noise = None if noise is None else noise.flatten(1)
        predictions = torch.empty(len(rows), samples, self.outputs)
        self.core.predict(
            rows=self._stored_rows(rows),
            noise=optional_array(flat_noise),
            parameters=optional_array(parameters),
            probabilities=probabilities,
            samples=samples,
            keys=optional_array(dropout_keys),
            result=predictions.numpy(),
        )
        return predictions
