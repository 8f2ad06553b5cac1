"""StackedLearner: all S runs of a `torch.nn.Module` computed at once on a GPU, if a trial shows that it works."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Any

import torch

from clops_sweep.errors import reason
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning import losses, streams
from clops_sweep.learning.batches import Batch
from clops_sweep.learning.global_streams import GlobalStreams
from clops_sweep.learning.learners.module_learner import MODES, ModuleLearner
from clops_sweep.learning.learners.stacked_modules import StackedModules, Views
from clops_sweep.learning.networks.dropout import CountedDropout
from clops_sweep.learning.networks.module_probe import probed
from clops_sweep.learning.networks.run_module import MakeModule, Mode, RunModule, made, trained
from clops_sweep.learning.process_state import torch_state_kept
from clops_sweep.learning.threads import one_thread

_log = logging.getLogger(__name__)

_APART, _APART_ON_A_DEVICE = 1e-5, 1e-2
"""Tolerances of stacked results relative to the largest entry, on the CPU in float64, and elsewhere in float32.

In float32 rounding may flip a ReLU; that trial mainly shows that the stacked computation runs at all.
"""

_TRIED: tuple[tuple[Mode, int, bool], ...] = (
    ("training", 3, True),
    ("sampling", 5, True),
    ("evaluation", 3, True),
    ("evaluation", 3, False),
)
"""Mode, number of frames, and whether a gradient is computed. Only the instance axis has length 3 or 5."""

_SLOW = "There is a performance drop because we have not yet implemented the batching rule"
"""Start of PyTorch's warning when `vmap` falls back to a loop."""


class StackedLearner(ModuleLearner):
    """`ModuleLearner` with all runs computed at once; parameters, buffers and checkpoints are the same.

    Only dropout is random. Its masks are a function of keys and draws, as in the paper's network.
    """

    backend = "torch-stacked"

    @cached_property
    def _leaves(self) -> Views:
        """Return the parameters as leaves of autograd."""
        return {name: view.detach().requires_grad_() for name, view in self.parameters.views.items()}

    @cached_property
    def _stack(self) -> StackedModules:
        return StackedModules(self._modules, self._leaves, self._dropout or CountedDropout)

    def gradient(
        self,
        batch: Batch,
        dropout_keys: torch.Tensor,
        *,
        batch_statistics: bool = True,
        track_statistics: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `Learner.gradient`."""

        def by_logits(logits: torch.Tensor) -> torch.Tensor:
            return batch.weights[..., None] * losses.loss_gradient(self.kind, logits, batch.targets)

        mode = MODES[batch_statistics, True]
        logits = self._backward(batch.rows, batch.draws, dropout_keys, mode, by_logits, track_statistics)
        return losses.instance_losses(self.kind, logits, batch.targets), self._gradient.flat

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
        """As `Learner.backpropagate`."""
        mode = MODES[batch_statistics, dropout_keys is not None]
        logits = self._backward(
            rows, draws, dropout_keys, mode, lambda logits: self._by_runs(by_logits)(logits, *given), track_statistics
        )
        return logits, self._gradient.flat

    def _backward(
        self,
        rows: torch.Tensor,
        draws: torch.Tensor | None,
        keys: torch.Tensor | None,
        mode: Mode,
        by_logits: Callable[[torch.Tensor], torch.Tensor],
        track_statistics: bool,
    ) -> torch.Tensor:
        """Write the gradient to `_gradient` and return the logits."""
        if mode.startswith("training"):
            self._probed.check_batch(self._network, rows.shape[1])
        with torch.enable_grad():
            logits = self._stack.logits(self._frames(rows, None), mode, keys, draws, track_statistics=track_statistics)
        for name, gradient in zip(
            self._leaves, _gradients(logits, self._leaves, by_logits(logits.detach())), strict=True
        ):
            self._gradient.views[name].copy_(gradient)
        return logits.detach()

    @torch.no_grad()
    def logits(
        self, rows: torch.Tensor, *, noise: torch.Tensor | None = None, shift: torch.Tensor | None = None
    ) -> torch.Tensor:
        """As `Learner.logits`."""
        parameters = None if shift is None else self.parameters.like(self.parameters.flat + shift).views
        chunks = self._chunks(rows, noise, self._at_a_time // len(rows))
        parts = [self._stack.logits(frames, "evaluation", parameters=parameters) for _, frames in chunks]
        return torch.cat(parts, dim=1)

    @torch.no_grad()
    def dropout_probabilities(
        self, rows: torch.Tensor, samples: int, dropout_keys: torch.Tensor, *, noise: torch.Tensor | None = None
    ) -> torch.Tensor:
        """As `Learner.dropout_probabilities`; the mask of sample t of instance i has the counter i T + t."""
        parts = []
        for place, frames in self._chunks(rows, noise, self._at_a_time // (len(rows) * samples)):
            draws = torch.arange(place * samples, (place + frames.shape[1]) * samples, device=rows.device)
            logits = self._stack.logits(self._repeated(frames, samples), "sampling", dropout_keys, draws)
            parts.append(losses.probabilities(self.kind, logits).unflatten(1, (-1, samples)))
        return torch.cat(parts, dim=1)


_KNOWN: dict[tuple[Any, ...], tuple[MakeModule, bool]] = {}


def can_be_stacked(
    network: str, shape: tuple[int, int], outputs: int, options: Mapping[str, Any], device: torch.device
) -> bool:
    """Return whether the runs of a network can be computed at once, by a trial of two runs on frames of noise.

    Stacked and separate runs must give the same logits, gradients and buffers in all modes: on the CPU, in float64, and
    on the device, which has other kernels. The reason for a negative answer is logged.

    Args:
        network: name of the network.
        shape: channels and samples of a frame.
        outputs: C.
        options: options of the network.
        device: device for training.
    """
    make, key = NETWORKS[network], (network, shape, outputs, tuple(sorted(options.items())), device)
    known = _KNOWN.get(key)
    if known is None or known[0] is not make:
        statistics = probed(network, make, shape, outputs, options).statistics
        cpu, because = torch.device("cpu"), None
        places = [(cpu, torch.float64, _APART), (device, torch.float32, _APART_ON_A_DEVICE)][: 1 + (device != cpu)]
        with torch_state_kept(), one_thread(), GlobalStreams(device).kept(), warnings.catch_warnings():
            warnings.filterwarnings("error", message=_SLOW)
            for where, dtype, apart in places:
                of_runs = [made(network, make, seed, shape, outputs, options).to(where, dtype) for seed in (0, 1)]
                modules = [RunModule(module, outputs, statistics) for module in of_runs]
                try:
                    because = because or _difference(modules, shape, apart)
                except Exception as error:  # whatever the error, the runs can still be computed separately
                    because = f"raises {reason(error)}"
        if because is not None:
            _log.info("runs of network %r are computed one after the other; stacked, it %s", network, because)
        known = _KNOWN[key] = make, because is None
    return known[1]


def _difference(modules: Sequence[RunModule], shape: tuple[int, int], apart: float) -> str | None:
    """Return the results that differ between stacked and separate modules."""
    leaves = [trained(module.module) for module in modules]
    common = {name: torch.stack([of_run[name].detach() for of_run in leaves]).requires_grad_() for name in leaves[0]}
    like = next(iter(common.values()))
    stack, keys = StackedModules(modules, common), streams.keys((0, 1), "noise").to(like.device)
    generator = torch.Generator().manual_seed(0)
    for mode, count, with_gradient in _TRIED:
        frames = torch.randn(2, count, *shape, generator=generator).to(like)
        given = (keys, torch.arange(count, device=like.device)) if mode in ("training", "sampling") else (None, None)
        before = _runs_of(stack.buffers.values())
        with torch.set_grad_enabled(with_gradient):
            logits = stack.logits(frames.clone(), mode, *given)
        after, by = _runs_of(stack.buffers.values()), torch.randn(logits.shape, generator=generator).to(like)
        gradients = _runs_of(_gradients(logits, common, by)) if with_gradient else ((), ())
        for run, module in enumerate(modules):
            module.take_buffers(dict(zip(stack.buffers, before[run], strict=True)))
            dropout = nullcontext() if given[0] is None else CountedDropout(given[0][run], given[1])
            with torch.set_grad_enabled(with_gradient), dropout:
                alone = module.logits(frames[run].clone(), mode)
            of_run = _gradients(alone, leaves[run], by[run]) if with_gradient else ()
            expected = [(alone,), of_run, *((each,) for each in module.buffers.values())]
            found = [(logits[run],), gradients[run], *((each,) for each in after[run])]
            for what, these, others in zip(("logits", "gradients", *stack.buffers), found, expected, strict=True):
                off = [one - other for one, other in zip(these, others, strict=True)]
                if not _largest(off) <= apart * (_largest(others) + 1e-6):
                    return f"gives other {what} in {mode}"
    return None


def _gradients(logits: torch.Tensor, parameters: Views, by: torch.Tensor) -> list[torch.Tensor]:
    """Return the gradient of each parameter, zeros if the logits do not depend on it in this mode."""
    found = torch.autograd.grad(logits, list(parameters.values()), by, allow_unused=True)
    kept = zip(found, parameters.values(), strict=True)
    return [torch.zeros_like(parameter) if each is None else each for each, parameter in kept]


def _runs_of(values: Iterable[torch.Tensor]) -> list[list[torch.Tensor]]:
    """Return copies of tensors [2, ...], run by run."""
    return [[each[run].clone() for each in values] for run in (0, 1)]


def _largest(values: Sequence[torch.Tensor]) -> float:
    return max((float(each.detach().abs().max()) for each in values), default=0.0)
