"""ModuleLearner: any `torch.nn.Module` by autograd."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, Self

import torch
from torch import nn

from clops_sweep.data.scenarios import LossKind
from clops_sweep.experiment.plugins.registry import NETWORKS, PAPER_NETWORK
from clops_sweep.learning import losses
from clops_sweep.learning.batches import Batch, Epoch, EpochBatch
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.global_streams import GlobalStreams, seed_of
from clops_sweep.learning.learners import graphs
from clops_sweep.learning.learners.learner import ByLogits, Learner
from clops_sweep.learning.learners.passes import Passes
from clops_sweep.learning.networks.dropout import PaperDropout
from clops_sweep.learning.networks.module_probe import probed
from clops_sweep.learning.networks.pass_memory import VALUES_ON_A_GPU
from clops_sweep.learning.networks.run_module import Mode, RunModule, load_weights, made, trained, weights_of
from clops_sweep.learning.parameters import Parameters

_MULTIPLE = 32
"""Alignment of parameters in entries, so that numbers do not depend on where a parameter begins in memory."""

_VALUES = 600_000
"""Number of values of the frames in a pass without a gradient on a CPU."""


MODES: dict[tuple[bool, bool], Mode] = {
    (True, True): "training",
    (True, False): "training without dropout",
    (False, True): "sampling",
    (False, False): "evaluation",
}
"""Modes, by whether batch norm uses the batch's statistics, and whether dropout is on."""


class ModuleLearner(Learner):
    """Learner with a module whose parameters lie in one vector, as strategies and Adam expect.

    The generators that its layers draw from are seeded before every pass, so its numbers are the same with or without a
    checkpoint.

    Args:
        seed: determines the initial parameters.
        kind: kind of output.
        outputs: C.
        learning_rate: learning rate of Adam.
        bank: the frames of each row.
        network: name of the network.
        options: options of the network.

    Raises:
        UsageError: the module cannot be trained; see `module_probe`.
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
    ) -> None:
        make = NETWORKS[network]
        shape = (1, *bank.shape)[-2:]
        options = options or {}
        checks = probed(network, make, shape, outputs, options)
        module = made(network, make, seed, shape, outputs, options).to(bank.device)
        shapes = {name: tuple(parameter.shape) for name, parameter in trained(module).items()}
        parameters = Parameters.zeros(shapes, bank.device, _MULTIPLE)
        super().__init__(seed, kind, outputs, learning_rate, bank, parameters)
        self.smallest_batch = checks.smallest_batch
        self._network = network
        self._options = options
        self._shape = shape
        self._probed = checks
        self._module = RunModule(module, outputs, checks.statistics)
        self._module.live_in(self.parameters.views, self._gradient.views)
        self._dropout = PaperDropout if network == PAPER_NETWORK else None
        if self._dropout is not None and self.backend == "torch":
            self.backend = "torch-module"
        self._generators = GlobalStreams(bank.device)
        make_recorder = graphs.recorder_of(bank.device)
        self._recordings: graphs.Recordings | None = None
        if make_recorder is not None:
            self._recordings = graphs.Recordings(network, self._module, make_recorder)
        self._first: tuple[torch.Tensor | None, int] = (None, 0)
        self._words: tuple[torch.Tensor | None, tuple[int, int]] = (None, (0, 0))
        values = _VALUES if bank.device.type == "cpu" else VALUES_ON_A_GPU
        self._at_a_time = values // (shape[0] * shape[1])

    def gradient(
        self,
        batch: Batch,
        dropout_keys: torch.Tensor,
        *,
        batch_statistics: bool = True,
        track_statistics: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `Learner.gradient`; layers draw from a stream of the keys and the index of the batch in its epoch."""
        if batch_statistics:
            self.check_batch(len(batch.rows))
        mode = MODES[batch_statistics, True]
        self._gradient.flat.zero_()  # parameters that this batch does not reach have a gradient of zero
        buffers = nullcontext() if track_statistics else self._module.buffers_kept()
        with self._generators.kept(), torch.enable_grad(), buffers:
            frames = self._augmented(batch.rows, batch_statistics)
            logits = self._pass(frames, mode, dropout_keys, batch.draws)
            instance_losses = losses.instance_losses(self.kind, logits, batch.targets)
            instance_losses.backward(batch.weights)  # the gradient of sum_i weights_i l_i, in fewer operations
        return instance_losses.detach(), self._gradient.flat

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
        """As `Learner.backpropagate`; layers draw from a stream of the keys and the index of the batch in its epoch."""
        if batch_statistics:
            self.check_batch(len(rows))
        mode = MODES[batch_statistics, dropout_keys is not None]
        self._gradient.flat.zero_()
        changes_none = track_statistics or not batch_statistics
        buffers = nullcontext() if changes_none else self._module.buffers_kept()
        with self._generators.kept(), buffers:
            frames = self._augmented(rows, batch_statistics)
            with torch.enable_grad():
                with_graph = self._pass(frames, mode, dropout_keys, draws)
            logits = with_graph.detach()
            with_graph.backward(by_logits(logits, *given))
        return logits, self._gradient.flat

    def check_batch(self, size: int) -> None:
        """Check that a training batch is large enough; see `Probed.check_batch`."""
        self._probed.check_batch(self._network, size)

    def compute_in_bfloat16(self) -> None:
        """Make all later passes with a gradient run under `torch.autocast` in bfloat16."""
        self._module.bfloat16 = True

    def passes(self) -> Passes:
        """As `Learner.passes`."""
        return ModulePasses(self)

    def _pass(
        self,
        frames: torch.Tensor,
        mode: Mode,
        keys: torch.Tensor | None = None,
        draws: torch.Tensor | None = None,
        first: int | None = None,
        number: int = 0,
    ) -> torch.Tensor:
        """Return the logits of frames, [B, C]; layers draw from a stream of the keys and the progress of the run.

        Args:
            frames: float32, of any number of instances.
            mode: mode of the layers.
            keys: int32 [2], keys of the stream; None without dropout.
            draws: int64 [B], counters, for masks that are functions of them.
            first: index of the first instance, for layers that draw from the global generators; None for the first
                counter.
            number: number of the pass among those whose gradients are computed together.
        """
        function: graphs.Function = partial(self._module.logits, mode=mode)
        inputs = [frames]
        seed = _no_seed
        if keys is not None and draws is not None:
            if self._dropout is None:
                seed = partial(self._seed, keys, draws, first)
            else:
                function = partial(self._with_masks, mode=mode)
                inputs = [frames, keys, draws]
        if self._recordings is not None:
            return self._recordings.logits((mode, number), function, inputs, seed)
        seed()
        return function(*inputs)

    def _with_masks(self, frames: torch.Tensor, keys: torch.Tensor, draws: torch.Tensor, mode: Mode) -> torch.Tensor:
        """Return the logits of frames with the dropout masks of the native kernels."""
        with PaperDropout(keys, draws):
            return self._module.logits(frames, mode, len(draws))

    def _seed(self, keys: torch.Tensor, draws: torch.Tensor, first: int | None) -> None:
        """Seed the global generators; arguments as in `_pass`. On a GPU, known numbers are not read from tensors."""
        known_keys, words = self._words
        if keys is not known_keys:
            word, other_word = keys.tolist()
            words = word, other_word
            self._words = keys, words
        if first is None:
            known_draws, first = self._first
            if draws is not known_draws:
                first = int(draws[0])
        self._generators.seed(seed_of(words, first))

    def _repeated(self, frames: torch.Tensor, samples: int) -> torch.Tensor:
        """Return frames [B, channels, samples] repeated T times each; once if `PaperDropout` repeats them."""
        return frames if self._dropout is not None else frames.repeat_interleave(samples, dim=0)

    def run_epoch(self, epoch: Epoch, step: Callable[[EpochBatch], None]) -> None:
        """As `Learner.run_epoch`."""
        first = 0

        def step_from(batch: EpochBatch) -> None:
            nonlocal first
            self._first = batch.draws, first
            first += len(batch.rows)
            step(batch)

        with self._generators.kept():  # once per epoch, because it takes longer than seeding
            super().run_epoch(epoch, step_from)

    @torch.no_grad()
    def logits(
        self, rows: torch.Tensor, *, noise: torch.Tensor | None = None, shift: torch.Tensor | None = None
    ) -> torch.Tensor:
        """As `Learner.logits`."""
        before = None if shift is None else self.parameters.flat.clone()
        if shift is not None:
            self.parameters.flat.add_(shift)
        logits = []
        for _, frames in self._chunks(rows, noise, self._at_a_time):
            logits.append(self._pass(frames, "evaluation"))
        if before is not None:
            self.parameters.flat.copy_(before)
        return torch.cat(logits)

    @torch.no_grad()
    def dropout_probabilities(
        self, rows: torch.Tensor, samples: int, dropout_keys: torch.Tensor, *, noise: torch.Tensor | None = None
    ) -> torch.Tensor:
        """As `Learner.dropout_probabilities`; layers draw from a stream of the keys and a chunk's first index.

        Instances are computed in chunks. Their size depends only on T and the shape of a frame.
        """
        probabilities = []
        with self._generators.kept():
            for first, frames in self._chunks(rows, noise, self._at_a_time // samples):
                last = first + len(frames)
                draws = torch.arange(first * samples, last * samples, device=rows.device)
                logits = self._pass(self._repeated(frames, samples), "sampling", dropout_keys, draws, first)
                of_passes = losses.probabilities(self.kind, logits)
                probabilities.append(of_passes.unflatten(0, (-1, samples)))
        return torch.cat(probabilities)

    def _chunks(
        self, rows: torch.Tensor, noise: torch.Tensor | None, at_a_time: int
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield the index of each chunk's first instance, and the chunk's frames."""
        step = max(1, at_a_time)
        for first in range(0, len(rows), step):
            chunk = slice(first, first + step)
            noise_of_chunk = None if noise is None else noise[chunk]
            yield first, self._frames(rows[chunk], noise_of_chunk)

    def _augmented(self, rows: torch.Tensor, training: bool) -> torch.Tensor:
        """Return frames, augmented in a training pass."""
        frames = self._frames(rows, None)
        return frames if self.augment is None or not training else self.augment(frames)

    def _frames(self, rows: torch.Tensor, noise: torch.Tensor | None) -> torch.Tensor:
        """Return frames that the module may write to: float32 [B, channels, samples]."""
        frames = self.bank.gather(rows)
        if noise is not None:
            frames = frames + noise
        return frames.view(len(rows), *self._shape)

    def _alike(self) -> Self:
        return type(self)(
            self.seed, self.kind, self.outputs, self.learning_rate, self.bank, self._network, self._options
        )

    @torch.no_grad()
    def _draw_parameters(self, task: int) -> None:
        make = NETWORKS[self._network]
        fresh = made(self._network, make, self.seed, self._shape, self.outputs, self._options, task)
        for name, parameter in trained(fresh).items():
            self.parameters.views[name].copy_(parameter)
        self._module.take_buffers(dict(fresh.named_buffers()))

    def _load(self, weights: Mapping[str, torch.Tensor]) -> None:
        load_weights(self._module.module, weights)

    def module(self) -> nn.Module:
        """As `Learner.module`."""
        self._module.set("evaluation")
        return self._module.module

    def weights(self) -> dict[str, torch.Tensor]:
        """As `Learner.weights`."""
        return weights_of(self._network, self._module.module)

    def state(self) -> dict[str, Any]:
        """As `Learner.state`."""
        return super().state() | {"buffers": self._module.buffers}

    def restore(self, state: dict[str, Any]) -> None:
        """As `Learner.restore`."""
        super().restore(state)
        self._module.take_buffers(state["buffers"])


def _no_seed() -> None:
    """Do nothing: layers draw nothing, or from masks that are given."""


class ModulePasses(Passes):
    """Passes of a module. Gradients with respect to its parameters lie in the learner's vector, others are separate."""

    def __init__(self, learner: ModuleLearner) -> None:
        super().__init__(learner)
        self._learner: ModuleLearner = learner

    def _train(self, x: torch.Tensor, keys: torch.Tensor, first: int, number: int) -> torch.Tensor:
        learner = self._learner
        learner.check_batch(len(x))
        draws = torch.arange(first, first + len(x), device=x.device)
        x = x.clone()  # a module may write to its frames
        return learner._pass(x, "training", keys, draws, first, number)

    @torch.no_grad()
    def predict(self, x: torch.Tensor, parameters: torch.Tensor | None = None) -> torch.Tensor:
        """As `Passes.predict`."""
        learner = self._learner
        flat = learner.parameters.flat
        before = None if parameters is None else flat.clone()
        if parameters is not None:
            flat.copy_(parameters)
        logits = []
        for frames in self.checked(x).split(max(1, learner._at_a_time)):
            logits.append(learner._pass(frames.clone(), "evaluation"))
        if before is not None:
            flat.copy_(before)
        return torch.cat(logits)

    def gradient(self, loss: torch.Tensor) -> torch.Tensor | None:
        """As `Passes.gradient`."""
        through_module = self._learner._gradient.flat.zero_()
        self.parameters.grad = None
        with self.differentiating():
            loss.backward()
        direct = self.parameters.grad
        self.parameters.grad = None
        return through_module.clone() if direct is None else through_module + direct
