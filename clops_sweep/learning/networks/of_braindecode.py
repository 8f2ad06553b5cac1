"""Networks of braindecode: ``of_braindecode.EEGNet`` makes the module of ``network="braindecode:EEGNet"``.

Importing braindecode takes seconds; it is imported when the first module is made.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch import nn

from clops_sweep.errors import UsageError, one_line, reason, user_code
from clops_sweep.experiment.plugins import braindecode
from clops_sweep.learning.networks.signal import Signal

_EXPECTED_WARNINGS: tuple[tuple[str, type[Warning]], ...] = (
    ("Montage name 'standard_1020' is deprecated", FutureWarning),
    ("The inplace keyword in DataFrame.set_index is deprecated", Warning),  # of wfdb, with pandas 3
    ("Parameter 'final_layer_with_constraint=False' is deprecated", DeprecationWarning),
    ("Creating the filter banks equally divided", UserWarning),
    ("dim_feedforward is set to 4", UserWarning),
    ("enable_nested_tensor is True", UserWarning),
)
"""Warnings of braindecode about its own defaults, by the beginning of the message and the category."""

_OTHER_NETWORK = r"n_times \(\d+\) is smaller than the minimum required"
"""Beginning of the warning that a model has smaller kernels than its arguments say."""

_DOWNLOADS = ("REVE", "STEEGFormer")
"""Models that fetch a table from a web server when they are made, and may differ where they cannot."""


@dataclass(frozen=True)
class Maker:
    """Makes the module of a model of braindecode.

    Attributes:
        model: name of the model.
    """

    model: str

    def __call__(self, channels: int, samples: int, outputs: int, *, signal: Signal, **options: Any) -> nn.Module:
        """Return a new module; its last convolution becomes a linear layer if it sees all that is left of a frame.

        Args:
            channels: channels of a frame.
            samples: samples per channel.
            outputs: C.
            signal: the sampling rate and the names of the channels.
            options: the options of the network.

        Raises:
            UsageError: braindecode cannot be imported, is of another version, or refuses the arguments.
        """
        name = f"network {braindecode.PREFIX + self.model!r}"
        _check_version(name, options)
        if self.model in _DOWNLOADS:
            raise UsageError(
                f"{name}: fetches positions of electrodes from a web server each time it is made, so its runs could "
                "not be repeated; expected another model, or a network of your own that has the positions"
            )
        models = _imported(name)
        arguments = braindecode.arguments_of(self.model, options)
        for argument, layer in braindecode.layers_of(self.model, options).items():
            arguments[argument] = getattr(nn, layer)

        def refused(error: BaseException) -> UsageError:
            merges = f"{self.model}_split_first_layer" in options
            advice = f"; {self.model} takes two channels or more" if channels == 1 and merges else ""
            frames = f"{channels} x {samples:,} samples"
            return UsageError(f"{name}: cannot be made for frames of {frames} ({reason(error)}){advice}")

        warnings.filterwarnings("ignore", "Using padding='same' with even kernel lengths", UserWarning)  # in each pass
        with _expected_warnings(), user_code(refused):
            module: nn.Module = getattr(models, self.model)(
                n_chans=channels,
                n_times=samples,
                n_outputs=outputs,
                sfreq=signal.sampling_rate,
                chs_info=_channels(signal.channels),
                **arguments,
            )
        _with_linear_head(module, channels, samples, outputs)
        return module


@cache
def __getattr__(name: str) -> Maker:
    """Return the maker of a model, always the same object."""
    if braindecode.PREFIX + name not in braindecode.names():
        raise AttributeError(name)
    return Maker(name)


def _check_version(name: str, options: dict[str, Any]) -> None:
    """Raise a UsageError where another version is installed than the config names, as on another machine."""
    if problem := braindecode.why_unavailable():
        raise UsageError(f"{name}: {problem}")
    try:
        braindecode.check_version(options.pop(braindecode.VERSION))
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None


def _imported(name: str) -> ModuleType:
    """Return the module with the models of braindecode.

    Raises:
        UsageError: a package that it needs is missing, or does not load.
    """
    try:
        with _expected_warnings():
            return importlib.import_module("braindecode.models")
    except (ImportError, OSError) as error:
        why = f"braindecode cannot be imported ({one_line(error)[:120]}); {braindecode.INSTALL}"
        raise UsageError(f"{name}: {torchaudio_problem() or why}") from None


def torchaudio_problem() -> str | None:
    """Return why torchaudio, which braindecode imports, cannot be imported, with what to install; None if it can."""
    try:
        importlib.import_module("torchaudio")
    except (ImportError, OSError) as error:
        needs = "braindecode needs torchaudio"
        version = torch.__version__
        if isinstance(error, ModuleNotFoundError) and error.name == "torchaudio":
            return (
                f"{needs}, which is not installed; install it from the package index that torch {version} came from, "
                "as in pip install torchaudio"
            )
        return (
            f"{needs}, which does not load beside torch {version} ({one_line(error)[:120]}); install both from the "
            "same package index, as in pip install --force-reinstall torch torchaudio"
        )
    return None


@contextmanager
def _expected_warnings() -> Iterator[None]:
    """Ignore the warnings of braindecode about itself in the block, and raise the one that means another network."""
    with warnings.catch_warnings():
        for message, category in _EXPECTED_WARNINGS:
            warnings.filterwarnings("ignore", message, category)
        warnings.filterwarnings("error", _OTHER_NETWORK)
        yield


@cache
def _positions() -> dict[str, Any]:
    """Return the position of each electrode of the 10-05 system, by its name in lower case."""
    from mne.channels import get_builtin_montages, make_standard_montage

    available = get_builtin_montages()
    montage = next(name for name in ("colin27_1005", "standard_1005") if name in available)
    positions = make_standard_montage(montage).get_positions()["ch_pos"]
    return {electrode.lower(): position for electrode, position in positions.items()}


def _channels(names: tuple[str, ...]) -> list[dict[str, Any]] | None:
    """Return channels as braindecode takes them, with positions if all names are electrodes; None without names."""
    if not names or len(set(names)) < len(names):
        return None
    import numpy as np

    channels: list[dict[str, Any]] = [{"ch_name": name, "kind": "eeg"} for name in names]
    positions = _positions()
    if all(name.lower() in positions for name in names):
        for channel in channels:
            position = positions[channel["ch_name"].lower()]
            channel["loc"] = np.concatenate([position, np.zeros(9)])
    return channels


@torch.no_grad()
def _with_linear_head(module: nn.Module, channels: int, samples: int, outputs: int) -> None:
    """Replace a last convolution over the whole map by an equal linear layer, in place.

    The logits are equal, and heads, encoders and methods that work with the last linear layer find one.
    """
    head = getattr(module, "final_layer", None)
    if not isinstance(head, nn.Module):
        return
    layers = [layer for layer in head.modules() if list(layer.parameters(recurse=False))]
    convolution = layers[0] if len(layers) == 1 else None
    if not isinstance(convolution, nn.Conv1d | nn.Conv2d) or convolution.out_channels != outputs:
        return
    calls: list[tuple[torch.Tensor, torch.Tensor]] = []
    handle = convolution.register_forward_hook(lambda _, inputs, result: calls.append((inputs[0], result)))
    training = module.training
    try:
        module.eval()(torch.zeros(2, channels, samples))
    except Exception:  # the launch tries the network, and says what is wrong
        return
    finally:
        handle.remove()
        module.train(training)
    if len(calls) != 1:
        return
    inputs, result = calls[0]
    weight = convolution.weight
    sees_whole_map = result.numel() == 2 * outputs and weight[0].shape == inputs.shape[1:]
    if not sees_whole_map or any(convolution.padding) or not _only_reshapes(head, convolution):
        return
    linear = nn.Linear(weight[0].numel(), outputs, bias=convolution.bias is not None)
    linear.weight.copy_(weight.flatten(1))
    if convolution.bias is not None:
        linear.bias.copy_(convolution.bias)
    module.final_layer = nn.Sequential(nn.Flatten(), linear)


def _only_reshapes(head: nn.Module, convolution: nn.Module) -> bool:
    """Return whether the other layers of a head change only the shape of its logits."""
    names = {type(layer).__name__ for layer in head.modules() if layer is not convolution}
    return names <= {"Sequential", "Rearrange", "SqueezeFinalOutput", "Flatten", "Identity", "Expression"}
