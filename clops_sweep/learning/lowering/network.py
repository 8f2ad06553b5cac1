"""LoweredNetwork: a program over the parameters and buffers of a module, computed by the native kernels."""

from __future__ import annotations

import torch
from torch import nn

from clops_sweep import native
from clops_sweep.learning.arrays import array_of, optional_array
from clops_sweep.learning.lowering.derivations import derived
from clops_sweep.learning.lowering.program import Program
from clops_sweep.learning.parameters import Parameters


class LoweredNetwork:
    """A module's program with a workspace for one pass at a time.

    Parameters and buffers stay where they are, and are read in each pass. Weights that are derived from them lie behind
    a copy of the parameters, in a vector of their own, and are computed by PyTorch.

    Args:
        program: the program.
        variant: name of the kernels, from `native.available()`.
        module: the module.
        parameters: its trained parameters, in one vector.
    """

    def __init__(self, program: Program, variant: str, module: nn.Module, parameters: Parameters) -> None:
        self._program = program
        self._parameters = parameters
        self._buffers = dict(module.named_buffers())
        self._frozen = dict[str, torch.Tensor]()
        for name, parameter in module.named_parameters():
            if not parameter.requires_grad:
                self._frozen[name] = parameter
        self._counters = [self._buffers[name] for name in program.counters]
        self._weights = Parameters.zeros(program.derived, torch.device("cpu"), parameters.multiple)
        self._size = len(parameters.flat)
        self._vector = parameters.flat
        if program.derived:
            self._vector = torch.zeros(self._size + len(self._weights.flat))
        self._gradient = torch.empty_like(self._vector)
        self._results = dict[str, torch.Tensor]()
        self._leaf = parameters.flat
        self.kernels = native.program(
            variant=variant,
            layers=program.as_dicts(self._offsets()),
            shape=program.shapes[0],
            parameters=self._vector.numpy(),
            buffers=[self._buffers[name].numpy() for name in program.buffers],
        )

    @property
    def derives(self) -> bool:
        """Whether weights are derived from parameters."""
        return bool(self._program.derived)

    def _offsets(self) -> dict[str, int]:
        """Return the first entry of each parameter and each derived weight in the vector."""
        offsets = dict[str, int]()
        start = self._parameters.flat.storage_offset()
        for name, view in self._parameters.views.items():
            offsets[name] = int(view.storage_offset() - start)
        for name, view in self._weights.views.items():
            offsets[name] = self._size + int(view.storage_offset())
        return offsets

    def _derive(self, parameters: torch.Tensor) -> None:
        """Write parameters, [P], and the weights derived from them to the vector."""
        self._leaf = parameters.detach().requires_grad_()
        with torch.enable_grad():
            trained = self._parameters.like(self._leaf).views
            self._results = derived(self._program, {**trained, **self._frozen}, self._buffers)
        self._vector[: self._size].copy_(parameters)
        for name, view in self._weights.views.items():
            view.copy_(self._results[name].detach())
        self._vector[self._size :].copy_(self._weights.flat)

    def forward(
        self,
        frames: torch.Tensor,
        *,
        batch_statistics: bool,
        track: bool,
        keys: torch.Tensor | None = None,
        draws: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the logits of a pass that `backward` can follow, [B, outputs].

        Args:
            frames: float32 [B, channels, samples].
            batch_statistics: whether batch norm uses the statistics of the batch.
            track: whether these update the running statistics.
            keys: int32 [2], keys of the dropout masks; None without dropout.
            draws: int64 [B], counters of the dropout masks.
        """
        if self.derives:
            self._derive(self._parameters.flat)
        if keys is None:
            draws = None
        logits = torch.empty(len(frames), self._program.outputs)
        self.kernels.forward(
            array_of(frames.detach()),
            optional_array(keys),
            optional_array(draws),
            batch_statistics,
            track,
            logits.numpy(),
        )
        if batch_statistics and track:
            self.count_passes(1)
        return logits

    def count_passes(self, passes: int) -> None:
        """Count passes that updated the running statistics, as the module's buffers do."""
        for counter in self._counters:
            counter += passes

    def backward(self, by_logits: torch.Tensor, gradient: torch.Tensor) -> None:
        """Write the gradient of the last pass, [P], given that with respect to its logits; once a pass."""
        if not self.derives:
            self.kernels.backward(array_of(by_logits), gradient.numpy(), False)
            return
        self.kernels.backward(array_of(by_logits), self._gradient.numpy(), False)
        gradient.copy_(self._gradient[: self._size])
        results = []
        by_results = []
        for name, by_weight in self._weights.like(self._gradient[self._size :]).views.items():
            result = self._results[name]
            if result.requires_grad:
                results.append(result)
                by_results.append(by_weight)
        if results:
            (through_weights,) = torch.autograd.grad(results, self._leaf, by_results)
            gradient.add_(through_weights)

    def predict(
        self,
        frames: torch.Tensor,
        *,
        parameters: torch.Tensor | None = None,
        samples: int = 1,
        keys: torch.Tensor | None = None,
        first: int = 0,
    ) -> torch.Tensor:
        """Return logits with running statistics, [m, T, outputs], with dropout if there are keys.

        Args:
            frames: float32 [m, channels, samples].
            parameters: other parameters, [P].
            samples: T.
            keys: int32 [2], keys of the dropout masks.
            first: counter of the first draw; sample t of instance i has the counter first + i T + t.
        """
        if self.derives:  # the kernels then read the vector, with the parameters that weights are derived from
            self._derive(self._parameters.flat if parameters is None else parameters)
            parameters = None
        if parameters is not None:
            parameters = parameters.detach()
        logits = torch.empty(len(frames), samples, self._program.outputs)
        self.kernels.predict(
            array_of(frames.detach()),
            optional_array(parameters),
            samples,
            optional_array(keys),
            logits.numpy(),
            first=first,
        )
        return logits

    def sum_of_instance_gradients(
        self, frames: torch.Tensor, by_logits: torch.Tensor, sums: torch.Tensor, *, absolute: bool
    ) -> None:
        """Add the squares, or absolute values, of each instance's gradient in evaluation mode to sums, [P].

        Not for a network with derived weights.
        """
        self.kernels.sum_of_instance_gradients(array_of(frames), array_of(by_logits), absolute, sums.numpy())
