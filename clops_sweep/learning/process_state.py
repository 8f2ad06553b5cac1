"""What a process keeps for all that runs in it: put back when somebody else's code may have changed it."""

from __future__ import annotations

import builtins
import contextlib
import os
import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


class TorchState:
    """How PyTorch computes in this thread, from what it was when this was made."""

    def __init__(self) -> None:
        self._dtype = torch.get_default_dtype()
        self._device = torch.get_default_device()
        self._gradients = torch.is_grad_enabled()
        self._threads = torch.get_num_threads()
        self._deterministic = torch.are_deterministic_algorithms_enabled()
        self._only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
        self._anomalies = torch.is_anomaly_enabled()
        self._precision = torch.get_float32_matmul_precision()

    def restore(self) -> None:
        """Makes it that again."""
        torch.set_default_dtype(self._dtype)
        if torch.get_default_device() != self._device:
            torch.set_default_device(None if self._device.type == "cpu" else self._device)
        torch.set_grad_enabled(self._gradients)
        if torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)
        # To be told so by its own function, PyTorch imports its compiler, which takes seconds.
        compiler = "torch._inductor.config" in sys.modules
        tell = torch.use_deterministic_algorithms if compiler else torch._C._set_deterministic_algorithms
        tell(self._deterministic, warn_only=self._only_warns)
        torch.set_anomaly_enabled(self._anomalies)
        torch.set_float32_matmul_precision(self._precision)


class ProcessState:
    """PyTorch's state, those of the global random streams, and what else a process has one of.

    Nothing of this package draws from the global streams: they are put back so that code of a user that does gives the
    same whatever ran before it.
    """

    def __init__(self) -> None:
        self._torch = TorchState()
        self._flags = {name: getattr(torch.backends.cudnn, name) for name in _CUDNN_FLAGS}
        self._streams = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
        self._numpy_errors = np.geterr()
        self._warnings = list(warnings.filters)
        self._environment = dict(os.environ)
        self._folder = _current_folder()
        self._path = list(sys.path)
        self._recursion = sys.getrecursionlimit()
        self._output = sys.stdout, sys.stderr
        self._builtins = dict(vars(builtins))

    def restore(self) -> None:
        """Makes all of it again what it was when this was made."""
        self._torch.restore()
        for name, value in self._flags.items():
            setattr(torch.backends.cudnn, name, value)
        mine, numpys, torchs = self._streams
        random.setstate(mine)
        np.random.set_state(numpys)  # noqa: NPY002
        torch.set_rng_state(torchs)
        np.seterr(**self._numpy_errors)
        if warnings.filters != self._warnings:
            warnings.resetwarnings()
            warnings.filters[:] = self._warnings  # type: ignore[index]
        if dict(os.environ) != self._environment:
            for name in os.environ.keys() - self._environment.keys():
                del os.environ[name]
            os.environ.update(self._environment)
        if self._folder is not None and _current_folder() != self._folder:
            with contextlib.suppress(OSError):  # it has gone: there is no way back
                os.chdir(self._folder)
        sys.path[:] = self._path
        sys.setrecursionlimit(self._recursion)
        sys.stdout, sys.stderr = self._output
        if vars(builtins) != self._builtins:
            vars(builtins).update(self._builtins)  # other threads use them meanwhile


_CUDNN_FLAGS = ("enabled", "benchmark", "deterministic", "allow_tf32")


@contextmanager
def torch_state_kept() -> Iterator[None]:
    """PyTorch computes afterwards as it did before."""
    state = TorchState()
    try:
        yield
    finally:
        state.restore()


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None
