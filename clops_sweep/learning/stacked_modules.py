"""StackedModules: the modules of S runs computed at once, by `torch.func.vmap` over their parameters and buffers.

Dropout is the one random thing that can be: its masks are functions of the run's keys and of a counter, as the paper
network's are, so a run's do not depend on what it is stacked with. All other draws within `vmap` are errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch.func import functional_call, vmap
from torch.overrides import TorchFunctionMode

from clops_sweep.learning.dropout import mixed
from clops_sweep.learning.run_module import Mode, RunModule

Views = Mapping[str, torch.Tensor]
"""Parameters of S modules by name, each [S, ...]."""

_DECIDED_TOGETHER: dict[Any, int | None] = {F.dropout: None, F.dropout1d: 2}
"""The kinds of dropout that take a mask: over how many axes units are decided, None for all."""


class CountedDropout(TorchFunctionMode):
    """Within it, dropout of one run takes its masks from a counter.

    An instance's units are numbered through all dropout layers in the order of their calls. Unit u of draw d is dropped
    if the word h(u) with keys (h(2 d), h(2 d + 1)), which have the run's keys themselves, is among the least p 2^32.

    Args:
        keys: int32 [2], of the run's stream.
        draws: int64 [B], counters, one for each instance of a batch.
    """

    def __init__(self, keys: torch.Tensor, draws: torch.Tensor) -> None:
        super().__init__()
        counters = (2 * draws).to(torch.int32) + torch.arange(2, dtype=torch.int32, device=draws.device)[:, None]
        self._first, self._second = mixed(counters, keys[:1], keys[1:])[:, :, None]
        self._units = 0

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if function in _DECIDED_TOGETHER:
            return self._drop(_DECIDED_TOGETHER[function], *args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))

    def _drop(
        self, axes: int | None, hidden: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> torch.Tensor:
        """Zeros with probability p, and what is left times 1 / (1 - p).

        Raises:
            ValueError: the first axis of `hidden` is none of instances.
        """
        if not training or p == 0:
            return hidden
        if hidden.shape[0] != len(self._first) or hidden.dim() <= (axes or 0):
            raise ValueError(f"dropout of a tensor {list(hidden.shape)}, whose first axis is not that of instances")
        shape = [*hidden.shape[:axes], *[1] * len(hidden.shape[axes or hidden.dim() :])]
        units = torch.Size(shape[1:]).numel()
        numbers = torch.arange(self._units, self._units + units, dtype=torch.int32, device=hidden.device)
        self._units += units
        kept = mixed(numbers, self._first, self._second) >= min(round(p * 2**32) - 2**31, 2**31 - 1)
        mask = kept.view(shape) * (0.0 if p == 1 else 1 / (1 - p))
        return hidden.mul_(mask) if inplace else hidden * mask


class StackedModules:
    """Modules of one network, which from now on live in memory that is common to all of them.

    Args:
        modules: one a run, on their device.
        parameters: those that are trained.
    """

    def __init__(self, modules: Sequence[RunModule], parameters: Views) -> None:
        self._first = modules[0]
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
        """Float32 [S, B, channels, samples] to [S, B, C].

        Args:
            frames: the modules may write to them.
            mode: of all layers.
            keys: int32 [S, 2], of the dropout masks, in the modes that have some.
            draws: int64 [B], their counters.
            parameters: others in the place of their own.
            track_statistics: whether their buffers change, in training.

        Raises:
            ValueError: the modules returned something else.
        """
        self._first.set(mode)
        learns = mode.startswith("training")
        buffers = {name: values.clone() if learns else values for name, values in self.buffers.items()}
        values = {**(self._parameters if parameters is None else parameters), **self._frozen, **buffers}

        def of_run(
            values: dict[str, torch.Tensor], frames: torch.Tensor, keys: torch.Tensor | None = None
        ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
            with nullcontext() if keys is None or draws is None else CountedDropout(keys, draws):
                logits = functional_call(self._first.module, values, (frames,))
            self._first.check(logits, len(frames))
            return logits, {name: values[name] for name in buffers}  # also where a layer has put others there

        logits, after = vmap(of_run, randomness="error")(values, frames, *(() if keys is None else (keys,)))
        if learns and track_statistics:
            with torch.no_grad():
                for name, buffer in self.buffers.items():
                    buffer.copy_(after[name])
        return logits
