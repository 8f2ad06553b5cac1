"""ModuleLearner: any `torch.nn.Module` by autograd, for S runs one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any, Self

import torch
from torch import nn

from clops_sweep.data.scenarios import LossKind
from clops_sweep.experiment.plugins.registry import NETWORKS, PAPER_NETWORK
from clops_sweep.learning import losses
from clops_sweep.learning.batches import Batch, Epoch, EpochBatch
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.global_streams import GlobalStreams, seed_of
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.learners.passes import Passes
from clops_sweep.learning.networks.dropout import PaperDropout
from clops_sweep.learning.networks.module_probe import probed
from clops_sweep.learning.networks.run_module import Mode, RunModule, made, trained, weights_of
from clops_sweep.learning.parameters import Parameters

_MULTIPLE = 32
"""Alignment in entries: every parameter of every run has the same alignment in memory, hence the same numerics."""

_VALUES, _VALUES_ON_A_GPU = 600_000, 8_000_000
"""Number of frames per pass without a gradient."""


MODES: dict[tuple[bool, bool], Mode] = {
    (True, True): "training",
    (True, False): "training without dropout",
    (False, True): "sampling",
    (False, False): "evaluation",
}
"""Modes, by whether batch norm uses the batch's statistics, and whether dropout is on."""


class ModuleLearner(Learner):
    """Learner with a module for each run and all parameters in one vector, as strategies and Adam expect.

    Each run is computed separately, and the generators that its layers draw from are seeded before every pass. On a CPU
    its numbers are bit for bit the same alone as with other runs, and the same with or without a checkpoint.

    Args:
        seeds: one seed per run, which determines the initial parameters.
        kind: kind of output.
        outputs: C.
        learning_rate: learning rate of Adam.
        bank: the frames of each row.
        network: name of the network.
        options: options of the network.

    Raises:
        UsageError: the modules cannot be trained; see `module_probe`.
    """

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
        make, shape, options = NETWORKS[network], (1, *bank.shape)[-2:], options or {}
        found = probed(network, make, shape, outputs, options)
        self.smallest_batch = found.smallest_batch
        modules = [made(network, make, seed, shape, outputs, options).to(bank.device) for seed in seeds]
        shapes = {name: tuple(parameter.shape) for name, parameter in trained(modules[0]).items()}
        super().__init__(
            seeds, kind, outputs, learning_rate, bank, Parameters.zeros(len(seeds), shapes, bank.device, _MULTIPLE)
        )
        self._network, self._options, self._shape, self._probed = network, options, shape, found
        self._modules = [RunModule(module, outputs, found.statistics) for module in modules]
        for run, module in enumerate(self._modules):
            views, gradients = (
                {name: view[run] for name, view in each.views.items()} for each in (self.parameters, self._gradient)
            )
            module.live_in(views, gradients)
        self._dropout = PaperDropout if network == PAPER_NETWORK else None
        if self._dropout is not None and self.backend == "torch":
            self.backend = "torch-module"  # up to version 0.2, "torch" was another implementation of this network
        self._generators = GlobalStreams(bank.device)
        self._at_a_time = (_VALUES if bank.device.type == "cpu" else _VALUES_ON_A_GPU) // (shape[0] * shape[1])

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
            self._probed.check_batch(self._network, batch.rows.shape[1])
        mode = MODES[batch_statistics, True]
        self._gradient.flat.zero_()  # parameters that this batch does not reach have a gradient of zero
        place, found = int(batch.draws[0]), []
        with self._generators.kept(), torch.enable_grad():
            for run, module in enumerate(self._modules):
                with nullcontext() if track_statistics else module.buffers_kept():
                    frames = self._augmented(run, batch.rows[run], batch_statistics)
                    with self._random(dropout_keys[run], place, batch.draws):
                        logits = module.logits(frames, mode)
                    of_run = losses.instance_losses(self.kind, logits, batch.targets[run])
                    of_run.backward(batch.weights[run])  # the gradient of sum_i weights_i l_i, in fewer operations
                found.append(of_run.detach())
        return torch.stack(found), self._gradient.flat

    def backpropagate(
        self,
        rows: torch.Tensor,
        draws: torch.Tensor | None,
        dropout_keys: torch.Tensor | None,
        by_logits: Callable[..., torch.Tensor],
        *given: torch.Tensor,
        batch_statistics: bool = True,
        track_statistics: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `Learner.backpropagate`; layers draw from a stream of the keys and the index of the batch in its epoch."""
        if batch_statistics:
            self._probed.check_batch(self._network, rows.shape[1])
        mode = MODES[batch_statistics, dropout_keys is not None]
        self._gradient.flat.zero_()
        found = []
        with self._generators.kept(), ExitStack() as buffers:
            for run, module in enumerate(self._modules):
                random: AbstractContextManager[Any] = nullcontext()
                if dropout_keys is not None and draws is not None:
                    random = self._random(dropout_keys[run], int(draws[0]), draws)
                if batch_statistics and not track_statistics:
                    buffers.enter_context(module.buffers_kept())
                frames = self._augmented(run, rows[run], batch_statistics)
                with torch.enable_grad(), random:
                    found.append(module.logits(frames, mode))
            logits = torch.stack([of_run.detach() for of_run in found])
            for of_run, by in zip(found, self._by_runs(by_logits)(logits, *given), strict=True):
                of_run.backward(by)
        return logits, self._gradient.flat

    def compute_in_bfloat16(self) -> None:
        """Make all later passes with a gradient run under `torch.autocast` in bfloat16."""
        for module in self._modules:
            module.bfloat16 = True

    def passes(self) -> Passes:
        """As `Learner.passes`."""
        return _ModulePasses(self)

    def _random(self, keys: torch.Tensor, place: int, draws: torch.Tensor) -> AbstractContextManager[Any]:
        """Return a context in which layers draw from a stream of a run's keys, int32 [2], and its progress.

        Args:
            keys: keys of the run's stream.
            place: index of the first instance, for layers that draw from the global generators.
            draws: int64 [B], counters, for masks that are functions of them.
        """
        if self._dropout is not None:
            return self._dropout(keys, draws)
        first, second = keys.tolist()
        self._generators.seed(seed_of((first, second), place))
        return nullcontext()

    def _repeated(self, frames: torch.Tensor, samples: int) -> torch.Tensor:
        """Return frames [..., B, channels, samples] repeated T times each; once if `PaperDropout` repeats them."""
        return frames if self._dropout is not None else frames.repeat_interleave(samples, dim=-3)

    def run_epoch(self, epoch: Epoch, step: Callable[[EpochBatch, int], None], phases: int = 1) -> None:
        """As `Learner.run_epoch`."""
        with self._generators.kept():  # once per epoch, because it takes longer than seeding
            super().run_epoch(epoch, step, phases)

    @torch.no_grad()
    def logits(
        self, rows: torch.Tensor, *, noise: torch.Tensor | None = None, shift: torch.Tensor | None = None
    ) -> torch.Tensor:
        """As `Learner.logits`."""
        before = None if shift is None else self.parameters.flat.clone()
        if shift is not None:
            self.parameters.flat.add_(shift)
        found = []
        for run, module in enumerate(self._modules):
            chunks = self._chunks(rows[run], None if noise is None else noise[run], self._at_a_time)
            found.append(torch.cat([module.logits(frames, "evaluation") for _, frames in chunks]))
        if before is not None:
            self.parameters.flat.copy_(before)
        return torch.stack(found)

    @torch.no_grad()
    def dropout_probabilities(
        self, rows: torch.Tensor, samples: int, dropout_keys: torch.Tensor, *, noise: torch.Tensor | None = None
    ) -> torch.Tensor:
        """As `Learner.dropout_probabilities`; layers draw from a stream of the keys and a chunk's first index.

        Instances are computed in chunks. Their size depends only on T and the shape of a frame.
        """
        found = []
        with self._generators.kept():
            for run, module in enumerate(self._modules):
                parts = []
                at_a_time = self._at_a_time // samples
                for place, frames in self._chunks(rows[run], None if noise is None else noise[run], at_a_time):
                    draws = torch.arange(place * samples, (place + len(frames)) * samples, device=rows.device)
                    with self._random(dropout_keys[run], place, draws):
                        logits = module.logits(self._repeated(frames, samples), "sampling", len(draws))
                    parts.append(losses.probabilities(self.kind, logits).unflatten(0, (-1, samples)))
                found.append(torch.cat(parts))
        return torch.stack(found)

    def _chunks(
        self, rows: torch.Tensor, noise: torch.Tensor | None, at_a_time: int
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield the index of each chunk's first instance, and the chunk's frames, of one run or of all."""
        axis, count, step = rows.dim() - 1, rows.shape[-1], max(1, at_a_time)
        for place in range(0, count, step):
            part = axis, place, min(step, count - place)
            yield place, self._frames(rows.narrow(*part), None if noise is None else noise.narrow(*part))

    def _augmented(self, run: int, rows: torch.Tensor, training: bool) -> torch.Tensor:
        """Return the frames of a run, augmented in a training pass."""
        frames = self._frames(rows, None)
        return frames if self.augment is None or not training else self.augment(frames, run)

    def _frames(self, rows: torch.Tensor, noise: torch.Tensor | None) -> torch.Tensor:
        """Return frames that the module may write to: float32 [..., B, channels, samples]."""
        frames = self.bank.gather(rows)
        if noise is not None:
            frames = frames + noise
        return frames.view(*rows.shape, *self._shape)

    def _of_seeds(self, seeds: Sequence[int]) -> Self:
        return type(self)(seeds, self.kind, self.outputs, self.learning_rate, self.bank, self._network, self._options)

    def _take_statistics(self, whole: Self, runs: Sequence[int]) -> None:
        for module, run in zip(self._modules, runs, strict=True):
            module.take_buffers(whole._modules[run].buffers)

    @torch.no_grad()
    def _draw_parameters(self, task: int) -> None:
        make = NETWORKS[self._network]
        for run, (seed, module) in enumerate(zip(self.seeds, self._modules, strict=True)):
            fresh = made(self._network, make, seed, self._shape, self.outputs, self._options, task)
            for name, parameter in trained(fresh).items():
                self.parameters.views[name][run].copy_(parameter)
            module.take_buffers(dict(fresh.named_buffers()))

    def module(self, run: int) -> nn.Module:
        """As `Learner.module`."""
        self._modules[run].set("evaluation")
        return self._modules[run].module

    def weights(self, run: int) -> dict[str, torch.Tensor]:
        """As `Learner.weights`."""
        return weights_of(self._network, self._modules[run].module)

    def state(self) -> dict[str, Any]:
        """As `Learner.state`."""
        return super().state() | {"buffers": [module.buffers for module in self._modules]}

    def restore(self, state: dict[str, Any]) -> None:
        """As `Learner.restore`."""
        super().restore(state)
        for module, buffers in zip(self._modules, state["buffers"], strict=True):
            module.take_buffers(buffers)


class _ModulePasses(Passes):
    """Passes of a module. Gradients with respect to its parameters lie in the learner's vector, others are separate."""

    def __init__(self, learner: ModuleLearner) -> None:
        super().__init__(learner)
        self._learner = learner

    def _train(self, x: torch.Tensor, keys: torch.Tensor, draws: torch.Tensor, number: int) -> torch.Tensor:
        del number
        learner = self._learner
        learner._probed.check_batch(learner._network, len(x))
        with learner._random(keys[0], int(draws[0]), draws):
            return learner._modules[0].logits(x.clone(), "training")  # a module may write to its frames

    @torch.no_grad()
    def predict(self, x: torch.Tensor, parameters: torch.Tensor | None = None) -> torch.Tensor:
        """As `Passes.predict`."""
        module, flat = self._learner._modules[0], self._learner.parameters.flat
        before = None if parameters is None else flat.clone()
        if parameters is not None:
            flat.copy_(parameters)
        at_a_time = max(1, self._learner._at_a_time)
        found = torch.cat([module.logits(part.clone(), "evaluation") for part in self.checked(x).split(at_a_time)])
        if before is not None:
            flat.copy_(before)
        return found

    def gradient(self, loss: torch.Tensor) -> torch.Tensor | None:
        """As `Passes.gradient`."""
        of_modules = self._learner._gradient.flat.zero_()
        self.parameters.grad = None
        loss.backward()
        beside, self.parameters.grad = self.parameters.grad, None
        return of_modules.clone() if beside is None else of_modules + beside
