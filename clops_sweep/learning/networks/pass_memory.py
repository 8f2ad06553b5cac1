"""The memory that a run needs on a GPU, estimated from its network, its frames and one pass on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import UsageError, reason, user_code
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning.global_streams import GlobalStreams
from clops_sweep.learning.networks.on_features import network_options
from clops_sweep.learning.networks.run_module import made
from clops_sweep.learning.process_state import torch_state_kept

VALUES_ON_A_GPU = 8_000_000
"""Number of values of the frames in a pass without a gradient on a GPU."""

_PROCESS = 700_000_000
"""Bytes that a process needs on a GPU before it computes: context, libraries and their workspaces."""

_VECTORS = 10
"""Vectors of the size of the network: parameters, gradient, two of Adam, those of a method, results on the way."""

_INSTANCES = 2


@dataclass(frozen=True)
class PassMemory:
    """The memory of passes of a network, in bytes.

    Attributes:
        network: parameters and buffers.
        kept: what a training pass keeps for its gradient, for each instance.
        widest: the largest result of a layer, for each instance.
    """

    network: int
    kept: int
    widest: int

    @classmethod
    def of(cls, network: str, module: nn.Module, shape: tuple[int, int]) -> PassMemory:
        """Return the memory of a training pass on frames of zeros.

        Raises:
            UsageError: the module raises on frames of this shape.
        """
        bytes_by_address: dict[int, int] = {}

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            bytes_by_address[storage.data_ptr()] = storage.nbytes()
            return tensor

        weights = [*module.parameters(), *module.buffers()]
        module.train()
        widest = _Widest()

        def refused(error: BaseException) -> UsageError:
            return UsageError(
                f"network {network!r}: raises on frames [{_INSTANCES}, {shape[0]}, {shape[1]}] ({reason(error)})"
            )

        generators = GlobalStreams(torch.device("cpu"))
        hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
        with torch_state_kept(), generators.kept(), user_code(refused), torch.enable_grad(), hooks, widest:
            result = module(torch.zeros(_INSTANCES, *shape))
        del result
        network_bytes = 0
        for tensor in weights:
            bytes_by_address.pop(tensor.untyped_storage().data_ptr(), None)
            network_bytes += tensor.numel() * tensor.element_size()
        kept_bytes = sum(bytes_by_address.values())
        return cls(network_bytes, kept_bytes // _INSTANCES, widest.bytes // _INSTANCES)

    def of_run(self, frames: FrameSet, batch_size: int) -> int:
        """Return the bytes of a run on a GPU.

        They hold the frames; the vectors of the training; a computed and a recorded pass on a batch and as many
        replayed instances; and a computed and a recorded pass of an evaluation, with two results of the widest layer.
        """
        training = 2 * 2 * batch_size * self.kept
        chunk = max(1, VALUES_ON_A_GPU // (frames.channels * frames.samples))
        evaluation = 2 * 2 * min(chunk, len(frames)) * self.widest
        return _PROCESS + frames.frames.nbytes + _VECTORS * self.network + training + evaluation


class _Widest(TorchFunctionMode):
    """Context that remembers the bytes of the largest result."""

    bytes = 0

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.bytes = max(self.bytes, result.numel() * result.element_size())
        return result


def run_bytes(config: RunConfig, frames: FrameSet) -> int:
    """Return the bytes that a run of a config needs on a GPU.

    Raises:
        UsageError: the network cannot be made, or raises on such frames.
    """
    shape = (frames.channels, frames.samples)
    options = network_options(config, frames)
    module = made(config.network, NETWORKS[config.network], 0, shape, len(frames.classes), options)
    return PassMemory.of(config.network, module, shape).of_run(frames, config.batch_size)
