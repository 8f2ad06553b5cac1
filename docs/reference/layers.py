"""Write the table of layers in layers.md beside this file: which ones the native kernels compute, and why others not.

``python docs/reference/layers.py``
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations

from clops_sweep.learning.lowering.lower import NotLowered, lowered
from clops_sweep.learning.networks.run_module import RunModule

PAGE = Path(__file__).with_name("layers.md")
BEGIN, END = "<!-- layers -->\n", "<!-- end of layers -->\n"
CHANNELS, SAMPLES, OUTPUTS = 3, 16, 2

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)

Maps = Callable[..., torch.Tensor]


class Network(nn.Module):
    """A function of layers and maps [B, 3, 16], followed by a linear layer."""

    def __init__(self, function: Maps, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.function = function
        self.layers = nn.ModuleList(layers)
        self.head = nn.Identity()
        with torch.no_grad():
            features = self.function(torch.zeros(2, CHANNELS, SAMPLES), *self.layers).flatten(1).shape[1]
        self.head = nn.Linear(features, OUTPUTS)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Map frames to logits."""
        logits: torch.Tensor = self.head(self.function(frames, *self.layers).flatten(1))
        return logits


def of(function: Maps, *layers: nn.Module) -> nn.Module:
    """Return a network of a function."""
    return Network(function, layers)


def stack(*layers: nn.Module) -> nn.Module:
    """Return a network of layers in a row."""
    return Network(lambda frames, *parts: nn.Sequential(*parts)(frames), layers)


def planes(*layers: nn.Module) -> nn.Module:
    """Return a network of layers in a row, of one plane [B, 1, 3, 16]."""
    return stack(nn.Unflatten(1, (1, CHANNELS)), *layers)


class LastOf(nn.Module):
    """The last output of a recurrent layer."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Map [B, 3, 16] to [B, 4]."""
        last: torch.Tensor = self.layer(frames.transpose(1, 2))[0][:, -1]
        return last


class Scaled(nn.Module):
    """A learned factor."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(CHANNELS, 1))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Map [B, 3, 16] to the same shape."""
        return self.scale * frames


def conv() -> nn.Conv1d:
    """Return a convolution that keeps the shape."""
    return nn.Conv1d(CHANNELS, CHANNELS, 3, padding=1)


def squeezed(frames: torch.Tensor, layer: nn.Module) -> torch.Tensor:
    """Multiply each channel by a function of its mean."""
    return frames * torch.sigmoid(layer(frames.mean(2)))[:, :, None]


def with_hook() -> nn.Module:
    """Return a network with a hook."""
    module = stack(conv())
    module.register_forward_hook(lambda layer, inputs, outputs: None)
    return module


def activations() -> list[nn.Module]:
    """Return known activations."""
    return [nn.ReLU(), nn.LeakyReLU(), nn.ELU(), nn.GELU(), nn.SiLU(), nn.Sigmoid(), nn.Tanh()]


def pools() -> list[nn.Module]:
    """Return networks with known pools."""
    of_layers = [nn.MaxPool1d(2), nn.AvgPool1d(3, ceil_mode=True), nn.AdaptiveAvgPool1d(3), nn.AdaptiveMaxPool1d(3)]
    of_planes = [nn.MaxPool2d(2), nn.AvgPool2d((1, 4)), nn.AdaptiveAvgPool2d((2, 3))]
    of_time = [of(lambda x: x.mean(2)), of(lambda x: x.max(2).values)]
    return [*(stack(layer) for layer in of_layers), *(planes(layer) for layer in of_planes), *of_time]


def by_kernels() -> dict[str, list[nn.Module]]:
    """Return what the kernels compute, with networks of it."""
    return {
        "`Conv1d`, `Conv2d`: any kernel, stride, dilation, groups and zero padding, causal ones too": [
            stack(nn.Conv1d(3, 6, 4, stride=2, padding=3, dilation=2, groups=3)),
            stack(nn.Conv1d(3, 4, 4, padding="same")),
            planes(nn.Conv2d(1, 4, (3, 5), padding=(1, 2))),
            of(lambda x, layer: layer(F.pad(x, (4, 0))), nn.Conv1d(3, 4, 5)),
        ],
        "`Linear` on features, `features @ weight`": [
            stack(nn.Flatten(), nn.Linear(48, 5)),
        ],
        "`BatchNorm1d`, `BatchNorm2d`, `GroupNorm`, `LayerNorm` over the last axes": [
            stack(nn.BatchNorm1d(3)),
            planes(nn.BatchNorm2d(1)),
            stack(nn.GroupNorm(3, 3)),
            stack(nn.LayerNorm((3, 16))),
        ],
        "ReLU, LeakyReLU, ELU, GELU, SiLU, sigmoid, tanh, `x * x`, `x.clamp(min=1e-6).log()`": [
            *(stack(layer) for layer in activations()),
            of(lambda x: x * x),
            of(lambda x: x.clamp(min=1e-6).log()),
        ],
        "maximum, average and adaptive pools; mean and maximum over time": pools(),
        "`Dropout`, `Dropout1d`, `Dropout2d`": [
            stack(nn.Dropout(0.1)),
            stack(nn.Dropout1d(0.1)),
            planes(nn.Conv2d(1, 4, 3), nn.Dropout2d(0.1)),
        ],
        "`x + y`, `x * y`, squeeze and excitation, `cat`, `stack`, permuted and reshaped maps": [
            of(lambda x, one: one(x) + x, conv()),
            of(lambda x, one: one(x) * x, conv()),
            of(squeezed, nn.Linear(3, 3)),
            of(lambda x, one: torch.cat([one(x), x], dim=1), conv()),
            of(lambda x, one: torch.stack([one(x), x], dim=2), conv()),
            of(lambda x: x.transpose(1, 2).flatten(1)),
        ],
        "frozen weights, adapters, parametrizations such as weight norm or bounded norms": [
            stack(conv().requires_grad_(requires_grad=False)),
            stack(parametrizations.weight_norm(conv())),
        ],
    }


def by_pytorch() -> dict[str, nn.Module]:
    """Return what PyTorch computes, with a network of it."""
    shared = conv()
    return {
        "`LSTM`, `GRU`, `RNN`": stack(LastOf(nn.LSTM(CHANNELS, 4, batch_first=True))),
        "`MultiheadAttention`, transformers": stack(
            nn.TransformerEncoderLayer(SAMPLES, 2, dim_feedforward=8, batch_first=True)
        ),
        "`Linear` at each time or channel": stack(nn.Linear(SAMPLES, 4)),
        "`ConvTranspose1d`": stack(nn.ConvTranspose1d(CHANNELS, 4, 3)),
        '`padding_mode="circular"`': stack(nn.Conv1d(3, 4, 3, padding=1, padding_mode="circular")),
        "`PReLU`": stack(nn.PReLU()),
        "`Softplus`": stack(nn.Softplus()),
        "`InstanceNorm1d`": stack(nn.InstanceNorm1d(CHANNELS)),
        "`AlphaDropout`": stack(nn.AlphaDropout(0.1)),
        "noise": of(lambda x: x + torch.randn_like(x)),
        "`2 * x`, `x + 1`": of(lambda x, one: 2 * one(x), conv()),
        "`x - y`": of(lambda x, one: one(x) - x, conv()),
        "`self.scale * x`, learned positions": stack(conv(), Scaled()),
        "`x[:, :2]`, `chunk`, `split`": of(lambda x, one: torch.tanh(one(x))[:, :2], conv()),
        "`x.std(2)`": of(lambda x, one: one(x).std(2), conv()),
        "`torch.fft`": of(lambda x: torch.fft.rfft(x).abs()),
        "a layer or weight that is used twice": of(lambda x, one: one(torch.relu(one(x))), shared),
        "`item()`, `tolist()`, `numpy()`": of(lambda x, one: one(x) if any(x.tolist()) else x, conv()),
        "`detach()`": of(lambda x, one: x + one(x).detach(), conv()),
        "hooks": with_hook(),
    }


def reason_of(module: nn.Module) -> str | None:
    """Return why PyTorch computes a network; None if the kernels do."""
    statistics = [name for name, layer in module.named_modules() if isinstance(layer, NORMS)]
    found = lowered(RunModule(module, OUTPUTS, statistics), CHANNELS, SAMPLES)
    return found.reason if isinstance(found, NotLowered) else None


def table() -> str:
    """Return the table.

    Raises:
        RuntimeError: the kernels do not compute what they should, or the reverse.
    """
    rows = ["| `forward` uses | computed by |", "| --- | --- |"]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Using padding='same' with even kernel")
        warnings.filterwarnings("ignore", "enable_nested_tensor is True")
        for what, modules in by_kernels().items():
            for module in modules:
                reason = reason_of(module)
                if reason is not None:
                    raise RuntimeError(f"{what}: {reason}")
            rows.append(f"| {what} | the kernels |")
        for what, module in by_pytorch().items():
            reason = reason_of(module)
            if reason is None:
                raise RuntimeError(f"{what}: the kernels compute it")
            rows.append(f"| {what} | PyTorch: it {reason} |")
    return "\n".join(rows) + "\n"


def page() -> str:
    """Return the page with a fresh table."""
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
