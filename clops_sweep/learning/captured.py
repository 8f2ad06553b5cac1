"""Training steps that are captured once on a GPU and replayed, so that a step costs one launch and not five hundred."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable

import torch

_WARM_UP = 2
"""Calls that are computed as they come, so that libraries have chosen and allocated before anything is captured."""


class CapturedSteps:
    """Calls functions that read and write fixed memory on a device; on a GPU as CUDA graphs after the first few calls.

    Such a function may not look at a tensor's values from the host, and whatever it computes must end in memory that
    was there before. It is remembered by its key alone: under one key it must do the same each time.

    Args:
        device: where the functions compute. On a CPU every call is an ordinary one.

    Attributes:
        captures: whether the host is not there any more when a step is taken.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.captures = device.type == "cuda"
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._calls: Counter[Hashable] = Counter()
        on_a_gpu = device.type == "cuda"
        self._pool = torch.cuda.graph_pool_handle() if on_a_gpu else None
        # Left to itself, PyTorch captures on the GPU that was the current one when it first captured anything.
        self._stream = torch.cuda.Stream(device) if on_a_gpu else None

    def __call__(self, key: Hashable, function: Callable[[], None]) -> None:
        """Does what the function does."""
        if self._device.type != "cuda":
            function()
            return
        if key not in self._graphs:
            self._calls[key] += 1
            if self._calls[key] <= _WARM_UP:
                self._aside(function)
                return
            self._graphs[key] = self._capture(function)
        self._graphs[key].replay()

    def _aside(self, function: Callable[[], None]) -> None:
        """Calls a function on a stream of its own, as is asked for before a capture."""
        assert self._stream is not None
        current = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            function()
        current.wait_stream(self._stream)

    def _capture(self, function: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """The function as a graph. Nothing is computed by capturing it."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            function()
        return graph
