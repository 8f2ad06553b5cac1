"""Process-wide state that affects numbers, restored after users' code that may have changed it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

_CUDNN_FLAGS = ("enabled", "benchmark", "deterministic", "allow_tf32")


class TorchState:
    """PyTorch's settings in this thread at the time of creation."""

    def __init__(self) -> None:
        self._dtype = torch.get_default_dtype()
        self._device = torch.get_default_device()
        self._gradients = torch.is_grad_enabled()
        self._threads = torch.get_num_threads()
        self._deterministic = torch.are_deterministic_algorithms_enabled()
        self._precision = torch.get_float32_matmul_precision()

    def restore(self) -> None:
        """Restore the settings."""
        torch.set_default_dtype(self._dtype)
        if torch.get_default_device() != self._device:
            torch.set_default_device(None if self._device.type == "cpu" else self._device)
        torch.set_grad_enabled(self._gradients)
        if torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)
        if torch.are_deterministic_algorithms_enabled() != self._deterministic:  # imports a compiler, which takes 1 s
            torch.use_deterministic_algorithms(self._deterministic)
        torch.set_float32_matmul_precision(self._precision)


class ProcessState(TorchState):
    """PyTorch's state, cuDNN's flags, the global random streams, and NumPy's errors.

    This package does not draw from the global streams. They are restored so that users' code that draws from
    them gives the same numbers regardless of earlier runs.
    """

    def __init__(self) -> None:
        super().__init__()
        self._flags = {name: getattr(torch.backends.cudnn, name) for name in _CUDNN_FLAGS}
        self._streams = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
        self._numpy_errors = np.geterr()

    def restore(self) -> None:
        """Restore the state."""
        super().restore()
        for name, value in self._flags.items():
            setattr(torch.backends.cudnn, name, value)
        pythons, numpys, torchs = self._streams
        random.setstate(pythons)
        np.random.set_state(numpys)  # noqa: NPY002
        torch.set_rng_state(torchs)
        np.seterr(**self._numpy_errors)


@contextmanager
def torch_state_kept() -> Iterator[None]:
    """Return a context whose end restores PyTorch's settings."""
    state = TorchState()
    try:
        yield
    finally:
        state.restore()
