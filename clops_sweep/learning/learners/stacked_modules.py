"""StackedModules: the modules of S runs computed at once, by `torch.func.vmap` over their parameters and buffers.

Dropout is the only randomness allowed: as in the paper's network, its masks are functions of the run's keys and of a
counter, so they do not depend on the other runs. All other draws within `vmap` are errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial

import torch
from torch.func import functional_call, vmap

from clops_sweep.learning.networks.dropout import CountedDropout
from clops_sweep.learning.networks.run_module import Mode, RunModule

Views = Mapping[str, torch.Tensor]
"""Parameters of S modules by name, each [S, ...]."""


class StackedModules:
    """Modules of one network, moved to memory that all of them share.

    Args:
        modules: one module per run, on their device.
        parameters: the trained parameters.
        dropout: source of the masks.
    """

    def __init__(
        self, modules: Sequence[RunModule], parameters: Views, dropout: type[CountedDropout] = CountedDropout
    ) -> None:
        self._first, self._dropout = modules[0], dropout
        self._parameters = parameters
        each = [dict(module.module.named_parameters()) for module in modules]
        self._frozen = {
            name: torch.stack([of_run[name].detach() for of_run in each]) for name in each[0] if name not in parameters
        }
        self.buffers = {name: torch.stack([module.buffers[name] for module in modules]) for name in modules[0].buffers}
        for run, module in enumerate(modules):
            for name, buffer in module.buffers.items():
                buffer.data = self.buffers[name][run]

    def logits(
        self,
        frames: torch.Tensor,
        mode: Mode,
        keys: torch.Tensor | None = None,
        draws: torch.Tensor | None = None,
        *,
        parameters: Views | None = None,
        track_statistics: bool = True,
    ) -> torch.Tensor:
        """Return the logits, [S, B, C], of frames, float32 [S, B, channels, samples].

        Args:
            frames: the modules may write to them.
            mode: mode of all layers.
            keys: int32 [S, 2], keys of the dropout masks, in modes with dropout.
            draws: int64 [B], counters of the masks; a multiple of the number of frames if dropout repeats instances.
            parameters: replacements of the modules' parameters.
            track_statistics: whether the buffers change in training mode.

        Raises:
            ValueError: the modules returned anything else.
        """
        self._first.set(mode)
        learns = mode.startswith("training")
        buffers = {name: values.clone() if learns else values for name, values in self.buffers.items()}
        values = {**(self._parameters if parameters is None else parameters), **self._frozen, **buffers}

        def of_run(
            values: dict[str, torch.Tensor], frames: torch.Tensor, keys: torch.Tensor | None = None
        ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
            with nullcontext() if keys is None or draws is None else self._dropout(keys, draws):
                call = partial(functional_call, self._first.module, values)
                logits = self._first.computed(call, frames, len(frames if draws is None else draws))
            return logits, {name: values[name] for name in buffers}  # also if a layer has replaced a buffer

        logits, after = vmap(of_run, randomness="error")(values, frames, *(() if keys is None else (keys,)))
        if learns and track_statistics:
            with torch.no_grad():
                for name, buffer in self.buffers.items():
                    buffer.copy_(after[name])
        return logits
