"""Computation of features in batches of fixed size, bit-equal for any number of threads."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from clops_sweep.data.encoders import Computing
from clops_sweep.data.frames import TRAINING, FrameSet
from clops_sweep.errors import UsageError, one_line, reason, shown, user_code
from clops_sweep.learning.encoders.adapting import Adapter
from clops_sweep.learning.global_streams import GlobalStreams
from clops_sweep.learning.networks.module_probe import changed_in, same_bits
from clops_sweep.learning.process_state import torch_state_kept
from clops_sweep.learning.threads import one_thread
from clops_sweep.machine import available_cores

BATCH: Final = 32
"""Instances per batch. Rounding may depend on it, so it is constant."""

FIT_ON: Final = 1_000
"""Most training instances that an encoder is fitted to."""

_APART = 1e-3
"""Tolerance, relative to the largest feature, for the dependence of features on other instances in the batch."""


def made_encoder(name: str, make: Callable[[Path | None], Any], weights: Path | None) -> nn.Module:
    """Return the module of an encoder in evaluation mode, frozen, on the CPU.

    Raises:
        UsageError: it cannot be created, or its weights do not fit.
    """
    with_weights = "" if weights is None else f" with weights {weights}"

    def refused(error: BaseException) -> UsageError:
        if isinstance(error, pickle.UnpicklingError):
            return UsageError(
                f"encoder {name!r}: weights {weights}: cannot be loaded without executing code in them; expected a "
                "state dict, as torch.save(module.state_dict(), FILE) writes it, or safetensors"
            )
        if "state_dict" in str(error):
            missing = one_line(str(error).split(":", 1)[-1])
            return UsageError(f"encoder {name!r}: weights {weights}: do not fit its module ({missing[:200]})")
        return UsageError(f"encoder {name!r}: raises when it is made{with_weights} ({reason(error)})")

    generators = GlobalStreams(torch.device("cpu"))
    with torch_state_kept(), generators.kept(), user_code(refused):
        generators.seed(0)
        module = make(weights)
    if not isinstance(module, nn.Module):
        raise UsageError(f"encoder {name!r}: returned {type(module).__name__}; expected a torch.nn.Module")
    if isinstance(module, torch.jit.ScriptModule):
        raise UsageError(f"encoder {name!r}: returned a scripted module; expected the torch.nn.Module it was made from")
    tensors = itertools.chain(module.parameters(), module.buffers())
    if any(nn.parameter.is_lazy(tensor) or tensor.is_meta for tensor in tensors):
        raise UsageError(f"encoder {name!r}: has a lazy layer or one on the device meta; expected layers with weights")
    return module.requires_grad_(False).eval()


def computing(name: str, module: nn.Module, adapter: Adapter, frames: FrameSet) -> Computing:
    """Return the features of all instances of a data set, computed lazily in batches.

    They are computed on a GPU if available, else by one thread per core; features do not depend on the number.

    Args:
        name: name of the encoder, for errors.
        module: the module in evaluation mode.
        adapter: converts frames to the encoder's signals.
        frames: the frames.

    Raises:
        UsageError: the module is not a valid encoder.
    """
    encoding = _Encoding(name, module, adapter, frames)
    with torch_state_kept(), one_thread(), GlobalStreams(encoding.device).kept():
        shape = encoding.probed()
    count = -(-len(frames) // BATCH)
    threads = 1 if encoding.device.type == "cuda" else min(count, available_cores())
    return Computing(shape, encoding.device.type, encoding.batches(shape, threads), count)


def training_signals(adapter: Adapter, frames: FrameSet) -> torch.Tensor:
    """Return the adapted signals of at most `FIT_ON` training instances, drawn with seed 0, without their labels."""
    training = np.flatnonzero(frames.split == TRAINING)
    few = np.random.default_rng(0).permutation(training)[:FIT_ON]
    return torch.from_numpy(_adapted(adapter, frames, np.sort(few)))


def _adapted(adapter: Adapter, frames: FrameSet, instances: slice | NDArray[np.int64]) -> NDArray[np.float32]:
    signals = frames.signal(instances)
    return adapter(signals.reshape(len(signals), frames.channels, -1))


def features_of(
    name: str, module: nn.Module, adapter: Adapter, frames: FrameSet, instances: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the features of some instances, computed in one batch on the device of `computing`.

    Raises:
        UsageError: the module raises, or returns something else than features.
    """
    encoding = _Encoding(name, module, adapter, frames)
    with torch_state_kept(), one_thread(), GlobalStreams(encoding.device).kept():
        return encoding.features(encoding.module, instances).numpy()


def adapting(name: str, module: nn.Module, adapter: Adapter, frames: FrameSet) -> Computing:
    """Return the signals of all instances adapted to an encoder, computed lazily, after a trial of the encoder on some.

    Raises:
        UsageError: the module is not a valid encoder.
    """
    computing(name, module, adapter, frames)
    begins = range(0, len(frames), BATCH)
    batches = (_adapted(adapter, frames, slice(begin, begin + BATCH)) for begin in begins)
    return Computing((len(adapter.picked), adapter.samples), "cpu", batches, len(begins))


class _Encoding:
    """Computation of features by a module, on a GPU if available."""

    def __init__(self, name: str, module: nn.Module, adapter: Adapter, frames: FrameSet) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.module = module.to(self.device)
        self._name = name
        self._adapter = adapter
        self._frames = frames

    def _refuse(self, problem: str) -> NoReturn:
        raise UsageError(f"encoder {self._name!r}: {problem}")

    def features(self, module: nn.Module, instances: slice | NDArray[np.int64]) -> torch.Tensor:
        """Return the features of some instances, on the CPU, by the module or a copy of it."""
        signals = torch.from_numpy(_adapted(self._adapter, self._frames, instances))
        size = list(signals.shape)

        def refused(error: BaseException) -> UsageError:
            return UsageError(f"encoder {self._name!r}: raises on signals {size} ({reason(error)})")

        with torch.no_grad(), user_code(refused):
            features: Any = module(signals.to(self.device))
        if not isinstance(features, torch.Tensor):
            self._refuse(f"returns {type(features).__name__}; expected a tensor [B, features] or [B, tokens, features]")
        if features.layout != torch.strided or features.is_meta:
            kind = "meta" if features.is_meta else str(features.layout).removeprefix("torch.")
            self._refuse(f"returns a tensor of kind {kind}; expected a dense one with values")
        fits = features.ndim in (2, 3) and features.numel() and len(features) == len(signals)
        if not (fits and features.is_floating_point()):
            kind = str(features.dtype).removeprefix("torch.")
            self._refuse(
                f"returns {kind} {list(features.shape)} for signals {size}; expected floating point [B, features] or "
                "[B, tokens, features]"
            )
        return features.detach().to(torch.float32).cpu()

    def probed(self) -> tuple[int, ...]:
        """Return the shape of an instance's features, after trying the module on the first frames.

        Raises:
            UsageError: the module keeps state, draws random numbers, or mixes the instances of a batch.
        """
        module = self.module
        buffers = {name: value.clone() for name, value in module.named_buffers()}
        first = self.features(module, slice(0, 2))
        self._check_finite(first.numpy(), 0)
        self.features(module, slice(1, 3))  # state kept from these frames would affect the next pass
        again = self.features(module, slice(0, 2))
        changed = changed_in(buffers, dict(module.named_buffers()))
        if changed:
            self._refuse(f"changes {changed[0]!r} when it computes features; an encoder must stay as it is")
        if not same_bits(first, again):
            self._refuse(
                "gives other features when it is called again with the same signals; keep nothing from one call to the "
                "next, and draw no random numbers"
            )
        if len(self._frames) < 2:
            return tuple(first.shape[1:])
        alone = self.features(module, slice(0, 1))
        if alone.shape[1:] != first.shape[1:]:
            self._refuse(
                f"returns {list(alone.shape)} for a batch of one and {list(first.shape)} for a batch of two; expected "
                "the same features of each instance"
            )
        difference = (alone - first[:1]).abs().max()
        if difference > _APART * (first.abs().max() + 1e-6):
            self._refuse("gives an instance other features when others are in its batch; expected the same")
        return tuple(first.shape[1:])

    def _check_finite(self, features: NDArray[np.float32], begin: int) -> None:
        is_finite = np.isfinite(features.reshape(len(features), -1)).all(1)
        if not is_finite.all():
            instance = begin + int(np.argmin(is_finite))
            person = self._frames.patient_names[self._frames.patients[instance]]
            self._refuse(
                f"returns features that are not finite for instance {instance} of {self._frames.name!r} (patient "
                f"{shown(person)})"
            )

    def batches(self, shape: tuple[int, ...], threads: int) -> Iterator[NDArray[np.float32]]:
        """Yield the features of all instances in order.

        Raises:
            UsageError: features are not finite, or their shape differs from the first.
        """
        modules = _copies(self.module, threads)
        free: SimpleQueue[nn.Module] = SimpleQueue()
        for module in modules:
            free.put(module)

        def batch(begin: int) -> NDArray[np.float32]:
            module = free.get()
            try:
                features = self.features(module, slice(begin, begin + BATCH)).numpy()
            finally:
                free.put(module)
            if features.shape[1:] != shape:
                self._refuse(f"returns features {list(features.shape[1:])} after {list(shape)}; expected one shape")
            self._check_finite(features, begin)
            return np.ascontiguousarray(features)

        begins = range(0, len(self._frames), BATCH)
        with torch_state_kept(), one_thread():
            if len(modules) == 1:
                yield from map(batch, begins)
                return
            # Threads, because PyTorch releases Python's lock, and each process would need a copy of the weights.
            pool = ThreadPoolExecutor(len(modules), initializer=torch.set_num_threads, initargs=(1,))
            waiting: deque[Future[NDArray[np.float32]]] = deque()
            try:
                for begin in begins:
                    waiting.append(pool.submit(batch, begin))
                    if len(waiting) > 2 * len(modules):
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                pool.shutdown(cancel_futures=True)


def _copies(module: nn.Module, count: int) -> list[nn.Module]:
    """Return copies of a module that share its weights, so that threads do not share state of layers.

    A module that cannot be copied is computed by one thread.
    """
    try:
        copies = []
        for _ in range(count - 1):
            shared = {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())}
            copies.append(copy.deepcopy(module, memo=shared))
    except Exception:
        copies = []
    return [module, *copies]
