"""RunModule: the module of one run, created from its seed. Every pass is in one of three explicit modes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Literal

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from clops_sweep.errors import UsageError, prefixed, reason, user_code
from clops_sweep.experiment.config import REPLACED
from clops_sweep.learning import streams
from clops_sweep.learning.global_streams import GlobalStreams
from clops_sweep.learning.networks.head import MultiScale, add_cosine_head, add_projection
from clops_sweep.learning.networks.lora import lora
from clops_sweep.learning.networks.network import PaperNetwork
from clops_sweep.learning.networks.on_features import OnFeatures, TunedEncoder, shape_of_features
from clops_sweep.learning.process_state import torch_state_kept

Mode = Literal["training", "training without dropout", "sampling", "evaluation"]
""""training": batch statistics, dropout on or off. "sampling": running statistics, dropout on. "evaluation": dropout
off."""

MakeModule = Callable[..., nn.Module]
"""Maps channels, samples, outputs and the options by name to a new module."""


def made(
    name: str,
    make: MakeModule,
    seed: int,
    shape: tuple[int, int],
    outputs: int,
    options: Mapping[str, Any],
    task: int = 0,
) -> nn.Module:
    """Return a new module on the CPU; the global generators for its initial weights are seeded by the run's seed.

    Lazy layers get their sizes and weights in a pass over zeros.

    Args:
        name: name of the network, for messages.
        make: its registered function.
        seed: seed of the run.
        shape: channels and samples of a frame.
        outputs: C.
        options: options of the network, and those of `REPLACED`. With an encoder, the module is the encoder, whose
            adapters are trained, followed by a network on its features.
        task: the task before which the module is created again, with other initial weights.

    Raises:
        UsageError: the function raises, or does not return a module.
    """
    device = torch.device("cpu")
    generators = GlobalStreams(device)
    with torch_state_kept(), generators.kept(), torch.enable_grad():
        generators.seed(int(streams.sequence(seed, "initial parameters", task).generate_state(1, "uint64")[0]))
        tuned: TunedEncoder | None = options.get("encoder")
        encoder = None if tuned is None else tuned.make()
        if encoder is not None:
            shape = shape_of_features(encoder, shape)
        arguments = {"channels": shape[0], "samples": shape[1], "outputs": outputs, **options}
        for argument in ("encoder", "signal"):
            arguments.pop(argument, None)
        made_for = ", ".join(f"{argument} = {value}" for argument, value in arguments.items())

        def refused(error: BaseException) -> UsageError:
            return UsageError(f"network {name!r}: raises when made for {made_for} ({reason(error)})")

        with user_code(refused):
            own_options = {option: value for option, value in options.items() if option not in REPLACED}
            module: Any = make(*shape, outputs, **own_options)
            if isinstance(module, nn.Module) and any(map(is_lazy, [*module.parameters(), *module.buffers()])):
                with torch.no_grad():
                    module.eval()(torch.zeros(2, *shape))
            if isinstance(module, nn.Module):
                module = _with_other_head(name, module, shape, outputs, options)
        if encoder is not None and tuned is not None:
            with prefixed(f"encoder {tuned.name!r}"):
                encoder = lora(encoder, tuned.rank)
    if not isinstance(module, nn.Module):
        raise UsageError(f"network {name!r}: returned {type(module).__name__}; expected a torch.nn.Module")
    if "norm" in options:
        replace_norm(name, module, options["norm"])
    for layer in module.modules():
        if isinstance(layer, PaperNetwork):
            layer.draw(seed, task)
    return module if encoder is None else OnFeatures(encoder, module)


def _with_other_head(
    name: str, module: nn.Module, shape: tuple[int, int], outputs: int, options: Mapping[str, Any]
) -> nn.Module:
    uniform = "uniform" in options
    if "scales" in options:
        return MultiScale.of(name, module, shape, outputs, options["projection"], uniform=uniform)
    if "projection" in options:
        add_projection(name, module, outputs, options["projection"], uniform=uniform)
    if "head" in options:
        add_cosine_head(name, module, outputs)
    return module


def replace_norm(name: str, module: nn.Module, norm: str) -> None:
    """Replace the batch norm layers of a module in place.

    "layer" is layer norm over the channels and samples of an instance, with a gain and bias per channel; "group" is
    group norm (Wu and He, 2018) over at most 8 groups of at least two channels; "none" removes the layers.

    Raises:
        UsageError: the module has no batch norm layer, or is such a layer itself.
    """
    batch_norms = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
    was_found = False
    for parent in list(module.modules()):
        for child, layer in list(parent.named_children()):
            if isinstance(layer, batch_norms):
                setattr(parent, child, _other_norm(norm, layer.num_features))
                was_found = True
    if not was_found:
        raise UsageError(
            f"norm = {norm!r}: network {name!r} has no batch norm layer to replace; expected norm = 'batch'"
        )


def _other_norm(norm: str, channels: int) -> nn.Module:
    if norm == "none":
        return nn.Identity()
    most = 1 if norm == "layer" else max(1, min(8, channels // 2))
    return nn.GroupNorm(max(groups for groups in range(1, most + 1) if channels % groups == 0), channels)


class RunModule:
    """A module whose parameters and gradients are views into vectors of the learner.

    Args:
        module: the module, already on its device.
        outputs: C.
        statistics: names of the layers that keep running statistics.

    Attributes:
        bfloat16: whether passes with a gradient run under `torch.autocast` in bfloat16.
    """

    bfloat16 = False

    def __init__(self, module: nn.Module, outputs: int, statistics: Collection[str]) -> None:
        self.module = module
        self._outputs = outputs
        self._keep_statistics = [layer for name, layer in module.named_modules() if name in statistics]
        self._mode: Mode | None = None

    def live_in(self, parameters: dict[str, torch.Tensor], gradients: dict[str, torch.Tensor]) -> None:
        """Move parameters, with their values, and gradients into other memory, given by parameter name.

        On a GPU, cuDNN copies the weights of recurrent layers together in every pass, since they lie in one vector with
        all others; its warning is ignored.
        """
        warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous chunk", UserWarning)
        for name, parameter in trained(self.module).items():
            parameters[name].copy_(parameter.data)
            parameter.data = parameters[name]
            parameter.grad = gradients[name]

    def logits(self, frames: torch.Tensor, mode: Mode, passes: int | None = None) -> torch.Tensor:
        """Return logits [B, C] of frames, float32 [B, channels, samples]; [passes, C] if dropout repeats instances.

        Raises:
            ValueError: the module returned anything else.
        """
        self.set(mode)
        logits = self.computed(self.module, frames, passes or len(frames))
        if torch.is_grad_enabled() and not logits.requires_grad:
            raise ValueError("the network returned logits that depend on none of its parameters; expected a gradient")
        return logits

    def computed(self, function: Callable[..., Any], frames: torch.Tensor, instances: int) -> torch.Tensor:
        """Return the logits of a pass: dense, [B, C], of the dtype of the frames, as in the probe.

        If `bfloat16` is set and the pass has a gradient, it runs under autocast. Its logits become float32, in which
        losses are computed.

        Args:
            function: maps the frames to logits; the module, or the same module with other parameters.
            frames: the frames.
            instances: B.

        Raises:
            ValueError: the function returned anything else.
        """
        reduced = self.bfloat16 and torch.is_grad_enabled()
        with torch.autocast(frames.device.type, torch.bfloat16) if reduced else nullcontext():
            logits: torch.Tensor = function(frames)
        if self.bfloat16 and getattr(logits, "dtype", None) == torch.bfloat16:
            logits = logits.float()
        wrong = self.wrong(logits, instances, frames.dtype)
        if wrong:
            raise ValueError(f"the network {wrong}")
        return logits

    def wrong(self, logits: object, instances: int, dtype: torch.dtype = torch.float32) -> str | None:
        """Return what is wrong with logits, such as "returned tuple ..."; None if they are valid."""
        shape = [instances, self._outputs]
        returned = type(logits).__name__
        if isinstance(logits, torch.Tensor):
            if list(logits.shape) == shape and logits.layout == torch.strided and logits.dtype == dtype:
                return None
            returned = f"logits {list(logits.shape)} of {logits.layout} {logits.dtype}"
        expected = f"a dense {str(dtype).removeprefix('torch.')} tensor {shape}"
        return f"returned {returned} for {instances} instances; expected {expected}"

    @property
    def buffers(self) -> dict[str, torch.Tensor]:
        """Return running statistics and other buffers, looked up each time because layers may replace them."""
        return dict(self.module.named_buffers())

    @torch.no_grad()
    def take_buffers(self, values: dict[str, torch.Tensor]) -> None:
        """Copy the `buffers` of another module of the same structure."""
        for name, buffer in self.module.named_buffers():
            buffer.copy_(values[name])

    @contextmanager
    def buffers_kept(self) -> Iterator[None]:
        """Return a context that restores the buffers at its end."""
        before = {name: buffer.clone() for name, buffer in self.module.named_buffers()}
        try:
            yield
        finally:
            self.take_buffers(before)

    def set(self, mode: Mode) -> None:
        """Set the mode of all layers."""
        if mode == self._mode:
            return  # visiting all layers takes as long as computing some of them
        dropout = mode in ("training", "sampling")
        self.module.train(dropout)
        if mode in ("sampling", "training without dropout"):
            for layer in self._keep_statistics:
                layer.training = not dropout
        self._mode = mode


def trained(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return the trained parameters by name; those without `requires_grad` never change."""
    return {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}


def weights_of(network: str, module: nn.Module) -> dict[str, torch.Tensor]:
    """Return copies of a module's state dict and other buffers on the CPU, without the frozen weights of an encoder.

    Raises:
        UsageError: the state dict contains something other than tensors.
    """
    state = module.state_dict() | _buffers_beside(module)
    frozen = _frozen(module)
    weights = {name: value for name, value in state.items() if name not in frozen}
    if wrong := [name for name, value in weights.items() if not isinstance(value, torch.Tensor)]:
        raise UsageError(
            f"network {network!r}: its state dict has {wrong[0]!r}, which is not a tensor; its models cannot be stored"
        )
    return {name: value.detach().to("cpu", copy=True).contiguous() for name, value in weights.items()}


@torch.no_grad()
def load_weights(module: nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    """Load what `weights_of` returned into a module of the same network.

    Raises:
        RuntimeError: names or shapes differ.
    """
    values = {**_frozen(module), **weights}
    beside = _buffers_beside(module)
    for name, buffer in beside.items():
        if name not in values or values[name].shape != buffer.shape:
            raise RuntimeError(f"buffer {name!r} is missing or has another shape")
        buffer.copy_(values.pop(name))
    module.load_state_dict(values)


def _buffers_beside(module: nn.Module) -> dict[str, torch.Tensor]:
    """Return the buffers that the state dict leaves out (``persistent=False``)."""
    in_state_dict = module.state_dict().keys()
    buffers = module.named_buffers(remove_duplicate=False)
    return {name: buffer for name, buffer in buffers if name not in in_state_dict}


def _frozen(module: nn.Module) -> dict[str, torch.Tensor]:
    return module.frozen() if isinstance(module, OnFeatures) else {}
