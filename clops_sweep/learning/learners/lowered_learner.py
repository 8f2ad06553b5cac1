"""LoweredLearner: a user's network on a CPU, as a program of layers for the native kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

import torch

from clops_sweep.data.scenarios import LossKind
from clops_sweep.learning import losses
from clops_sweep.learning.batches import Batch, Epoch, EpochBatch
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.learner import ByLogits, Learner, Loss
from clops_sweep.learning.learners.module_learner import ModuleLearner, ModulePasses
from clops_sweep.learning.learners.passes import OpenPass, Passes, WeightedLoss, Workspace
from clops_sweep.learning.lowering.compared import close
from clops_sweep.learning.lowering.network import LoweredNetwork
from clops_sweep.learning.lowering.program import Program


class LoweredLearner(ModuleLearner):
    """Learner with the numbers of a `ModuleLearner`, up to rounding and dropout masks, but several times faster.

    The module keeps its parameters and buffers; the kernels read and write them. Dropout masks are functions of keys
    and counters (see `dropout`).

    Args:
        seed: determines the initial parameters.
        kind: kind of output.
        outputs: C.
        learning_rate: learning rate of Adam.
        bank: the frames of each row, on the CPU.
        network: name of the network.
        options: options of the network.
        program: the network's program.
        variant: name of the kernels, from `native.available()`.
    """

    def __init__(
        self,
        seed: int,
        kind: LossKind,
        outputs: int,
        learning_rate: float,
        bank: FrameBank,
        network: str,
        options: Mapping[str, Any] | None = None,
        *,
        program: Program,
        variant: str,
    ) -> None:
        super().__init__(seed, kind, outputs, learning_rate, bank, network, options)
        self.backend = f"native-{variant}"
        self._program = program
        self._variant = variant
        self._lowered = self.lowered()
        self._evaluated = self.lowered()
        """The network of predictions, which a loss may ask for between the two halves of a pass."""

    @torch.no_grad()
    def agrees(self) -> bool:
        """Return whether module and program give the same logits: a function may make other layers for other seeds."""
        frames = torch.randn(2, *self._shape, generator=torch.Generator().manual_seed(0))
        expected = self._module.logits(frames.clone(), "evaluation")
        return close(self._evaluated.predict(frames).squeeze(1), expected)

    def lowered(self) -> LoweredNetwork:
        """Return the network for passes of its own: the same parameters and buffers, and another workspace."""
        return LoweredNetwork(self._program, self._variant, self._module.module, self.parameters)

    def weighted_losses(
        self, logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `losses.weighted`."""
        return losses.weighted(self.kind, logits, targets, weights)

    def weighted_loss(
        self, logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return sum_i weights_i l_i, a scalar, and its gradient with respect to the logits, [B, C]."""
        instance_losses, by_logits = self.weighted_losses(logits, targets, weights)
        loss = torch.dot(instance_losses, weights)
        return loss, by_logits

    def gradient(
        self,
        batch: Batch,
        dropout_keys: torch.Tensor,
        *,
        batch_statistics: bool = True,
        track_statistics: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `Learner.gradient`."""
        logits = self._forward(batch.rows, batch.draws, dropout_keys, batch_statistics, track_statistics)
        instance_losses, by_logits = self.weighted_losses(logits, batch.targets, batch.weights)
        self._lowered.backward(by_logits, self._gradient.flat)
        return instance_losses, self._gradient.flat

    def backpropagate(
        self,
        rows: torch.Tensor,
        draws: torch.Tensor | None,
        dropout_keys: torch.Tensor | None,
        by_logits: ByLogits,
        *given: torch.Tensor,
        batch_statistics: bool = True,
        track_statistics: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `Learner.backpropagate`."""
        logits = self._forward(rows, draws, dropout_keys, batch_statistics, track_statistics)
        self._lowered.backward(by_logits(logits, *given), self._gradient.flat)
        return logits, self._gradient.flat

    def _forward(
        self,
        rows: torch.Tensor,
        draws: torch.Tensor | None,
        dropout_keys: torch.Tensor | None,
        batch_statistics: bool,
        track_statistics: bool,
    ) -> torch.Tensor:
        if batch_statistics:
            self.check_batch(len(rows))
        frames = self._augmented(rows, batch_statistics)
        return self._lowered.forward(
            frames,
            batch_statistics=batch_statistics,
            track=track_statistics,
            keys=dropout_keys,
            draws=draws,
        )

    def mean_of_instance_gradients(
        self, rows: torch.Tensor, loss: Loss, *given: torch.Tensor, of_each: Literal["square", "abs"]
    ) -> torch.Tensor:
        """As `Learner.mean_of_instance_gradients`, many instances at a time."""
        if self._lowered.derives:
            return super().mean_of_instance_gradients(rows, loss, *given, of_each=of_each)
        sums = torch.zeros_like(self.parameters.flat)
        by_logits = self._instances_by_logits(rows, loss, given)
        for first, frames in self._chunks(rows, None, self._at_a_time):
            of_chunk = by_logits[first : first + len(frames)]
            self._lowered.sum_of_instance_gradients(frames, of_chunk, sums, absolute=of_each == "abs")
        return sums.div_(len(rows))

    def run_epoch(self, epoch: Epoch, step: Callable[[EpochBatch], None]) -> None:
        """As `Learner.run_epoch`; no layer draws from the global generators."""
        Learner.run_epoch(self, epoch, step)

    def logits(
        self, rows: torch.Tensor, *, noise: torch.Tensor | None = None, shift: torch.Tensor | None = None
    ) -> torch.Tensor:
        """As `Learner.logits`."""
        parameters = None if shift is None else self.parameters.flat + shift
        logits = []
        for _, frames in self._chunks(rows, noise, self._at_a_time):
            logits.append(self._evaluated.predict(frames, parameters=parameters).squeeze(1))
        return torch.cat(logits)

    def dropout_probabilities(
        self, rows: torch.Tensor, samples: int, dropout_keys: torch.Tensor, *, noise: torch.Tensor | None = None
    ) -> torch.Tensor:
        """As `Learner.dropout_probabilities`."""
        probabilities = []
        for first, frames in self._chunks(rows, noise, self._at_a_time):
            logits = self._evaluated.predict(frames, samples=samples, keys=dropout_keys, first=first * samples)
            probabilities.append(losses.probabilities(self.kind, logits))
        return torch.cat(probabilities)

    def passes(self) -> Passes:
        """As `Learner.passes`."""
        return _LoweredPasses(self)

    def _alike(self) -> Self:
        return type(self)(
            self.seed,
            self.kind,
            self.outputs,
            self.learning_rate,
            self.bank,
            self._network,
            self._options,
            program=self._program,
            variant=self._variant,
        )


class _LoweredPasses(ModulePasses):
    """Passes of a program, each with a workspace of its own.

    A pass over frames that require a gradient, which the kernels do not compute, is one of the module.
    """

    def __init__(self, learner: LoweredLearner) -> None:
        super().__init__(learner)
        self._lowered_learner = learner
        self._evaluated = learner.lowered()
        self._workspaces: list[_Workspace] = []
        self._by_module = False

    def begin_step(self) -> None:
        """As `Passes.begin_step`."""
        super().begin_step()
        self._by_module = False

    def _train(self, x: torch.Tensor, keys: torch.Tensor, first: int, number: int) -> torch.Tensor:
        if x.requires_grad:
            self._by_module = True
            return super()._train(x, keys, first, number)
        self._learner.check_batch(len(x))
        while number >= len(self._workspaces):
            self._workspaces.append(_Workspace(self._lowered_learner.lowered()))
        workspace = self._workspaces[number]
        network = workspace.network
        pass_number = workspace.begin()
        draws = torch.arange(first, first + len(x))

        def forward() -> torch.Tensor:
            return network.forward(x, batch_statistics=True, track=True, keys=keys, draws=draws)

        def backward(by_logits: torch.Tensor) -> torch.Tensor:
            workspace.end(pass_number)
            gradient = torch.empty(len(self.parameters))
            network.backward(by_logits, gradient)
            return gradient

        logits: torch.Tensor = OpenPass.apply(self.parameters, forward, backward)  # type: ignore[no-untyped-call]
        return logits

    @torch.no_grad()
    def predict(self, x: torch.Tensor, parameters: torch.Tensor | None = None) -> torch.Tensor:
        """As `Passes.predict`."""
        logits = self._evaluated.predict(self.checked(x), parameters=parameters)
        return logits.squeeze(1)

    def criterion(self, logits: torch.Tensor, y: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """As `Passes.criterion`, with the numbers of the learner's `gradient`."""
        if not WeightedLoss.suits(logits, y, weights):
            return super().criterion(logits, y, weights)
        weighted_loss = self._lowered_learner.weighted_loss
        loss: torch.Tensor = WeightedLoss.apply(logits, y, weights, weighted_loss)  # type: ignore[no-untyped-call]
        return loss

    def gradient(self, loss: torch.Tensor) -> torch.Tensor | None:
        """As `Passes.gradient`."""
        if self._by_module:
            return super().gradient(loss)
        return Passes.gradient(self, loss)


class _Workspace(Workspace):
    """A network with memory of its own."""

    def __init__(self, network: LoweredNetwork) -> None:
        super().__init__()
        self.network = network
