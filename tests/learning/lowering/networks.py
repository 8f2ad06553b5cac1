"""Networks that are written in the usual ways, and networks that stay with PyTorch."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize

OUTPUTS = 3

Make = Callable[[], nn.Module]


class Function(nn.Module):
    """Layers, and a function of them and the frames."""

    def __init__(self, function: Callable[..., torch.Tensor], **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Map frames to logits."""
        return self.function(self, frames)


class EEGNet(nn.Module):
    """An EEGNet (8, 2) as it is usually written, for 22 channels or fewer."""

    def __init__(self, channels: int, samples: int) -> None:
        super().__init__()
        self.time = nn.Conv2d(1, 8, (1, 16), padding="same", bias=False)
        self.norm1 = nn.BatchNorm2d(8, momentum=0.01, eps=1e-3)
        self.space = nn.Conv2d(8, 16, (channels, 1), groups=8, bias=False)
        self.norm2 = nn.BatchNorm2d(16, momentum=0.01, eps=1e-3)
        self.depth = nn.Conv2d(16, 16, (1, 8), padding=(0, 4), groups=16, bias=False)
        self.point = nn.Conv2d(16, 16, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(16, momentum=0.01, eps=1e-3)
        self.dropout = nn.Dropout(0.25)
        self.head = nn.Linear(16 * ((samples // 4 + 1) // 8), OUTPUTS)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Map frames to logits."""
        hidden = self.norm1(self.time(frames.unsqueeze(1)))
        hidden = F.avg_pool2d(F.elu(self.norm2(self.space(hidden))), (1, 4))
        hidden = self.dropout(hidden)
        hidden = F.elu(self.norm3(self.point(self.depth(hidden))))
        hidden = self.dropout(F.avg_pool2d(hidden, (1, 8)))
        return self.head(hidden.flatten(1))


class SqueezeExcitation(nn.Module):
    """A residual block with squeeze and excitation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm1d(width)
        self.down, self.up = nn.Linear(width, 2), nn.Linear(2, width)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return maps of the same shape."""
        inner = self.norm(self.conv(hidden))
        share = torch.sigmoid(self.up(F.silu(self.down(inner.mean(-1)))))
        inner = inner * share.unsqueeze(-1)
        inner += hidden
        return F.relu(inner, inplace=True)


class Shallow(nn.Module):
    """ShallowFBCSPNet as it is usually written: squares, and the logarithm of their means."""

    def __init__(self, channels: int, samples: int) -> None:
        super().__init__()
        self.time, self.space = nn.Conv2d(1, 6, (9, 1)), nn.Conv2d(6, 6, (1, channels), bias=False)
        self.norm = nn.BatchNorm2d(6)
        self.pool = nn.AvgPool2d((12, 1), stride=(4, 1))
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Conv2d(6, OUTPUTS, ((samples - 8 - 12) // 4 + 1, 1))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Map frames to logits."""
        hidden = frames[:, :, :, None].permute(0, 3, 2, 1)
        hidden = self.norm(self.space(self.time(hidden))).square()
        hidden = self.dropout(torch.log(torch.clamp(self.pool(hidden), min=1e-6)))
        return self.head(hidden).squeeze(3).squeeze(2)


def _branches(self: nn.Module, frames: torch.Tensor) -> torch.Tensor:
    joined = torch.cat([self.short(frames), self.long(frames), self.pooled(frames)], dim=1)
    over_time = torch.cat([joined, joined[:, :, :]], dim=2)
    dropped = F.dropout1d(over_time, 0.3, self.training)
    return self.head(F.adaptive_max_pool1d(dropped, 2).flatten(1))


def plain() -> nn.Module:
    """A plain stack with all kinds of pools and activations."""
    return nn.Sequential(
        nn.Conv1d(3, 8, 5, stride=2, padding=2, dilation=2),
        nn.BatchNorm1d(8),
        nn.LeakyReLU(0.2),
        nn.MaxPool1d(3, 2, padding=1),
        nn.Conv1d(8, 8, 4, padding="same", groups=4),
        nn.GELU(),
        nn.AvgPool1d(3, 2, padding=1, ceil_mode=True, count_include_pad=False),
        nn.Conv1d(8, 6, 3, bias=False),
        nn.GroupNorm(3, 6),
        nn.GELU(approximate="tanh"),
        nn.Dropout(0.2, inplace=True),
        nn.AdaptiveAvgPool1d(3),
        nn.Tanh(),
        nn.Flatten(),
        nn.LayerNorm(18),
        nn.Linear(18, 7),
        nn.ELU(0.5),
        nn.Dropout(0.5),
        nn.Linear(7, OUTPUTS, bias=False),
    )


def branches() -> nn.Module:
    """Three branches that are joined."""
    return Function(
        _branches,
        short=nn.Sequential(nn.ZeroPad1d((1, 2)), nn.Conv1d(3, 4, 4)),
        long=nn.Conv1d(3, 4, 9, padding="same"),
        pooled=nn.Sequential(nn.MaxPool1d(3, 1, padding=1), nn.Conv1d(3, 2, 1)),
        head=nn.Linear(20, OUTPUTS),
    )


def residual() -> nn.Module:
    """Residual blocks with squeeze and excitation, and the mean over time."""
    stem = nn.Sequential(nn.Conv1d(3, 4, 7, stride=2), nn.ReLU())
    body = nn.Sequential(SqueezeExcitation(4), nn.MaxPool1d(2), nn.Dropout1d(0.3), SqueezeExcitation(4))
    head = nn.Linear(4, OUTPUTS)
    return Function(
        lambda self, frames: self.head(self.body(self.stem(frames)).mean(2)), stem=stem, body=body, head=head
    )


def normed() -> nn.Module:
    """Layer norm over channels and time, and over channels alone of a transposed value."""

    def forward(self: nn.Module, frames: torch.Tensor) -> torch.Tensor:
        hidden = self.over_time(self.both(self.conv(frames)))
        hidden = self.over_channels(hidden.transpose(1, 2)).transpose(1, 2)
        return self.head(hidden.max(dim=2).values)

    conv, head = nn.Conv1d(3, 5, 3), nn.Linear(5, OUTPUTS)
    norms = {"both": nn.LayerNorm((5, 38)), "over_time": nn.LayerNorm(38), "over_channels": nn.LayerNorm(5)}
    return Function(forward, conv=conv, head=head, **norms)


def doubled() -> nn.Module:
    """A value that is added to, and multiplied with, itself and others."""

    def forward(self: nn.Module, frames: torch.Tensor) -> torch.Tensor:
        hidden = self.conv(frames)
        hidden = hidden + hidden
        hidden = hidden * torch.sigmoid(hidden)
        return self.head((hidden * hidden).flatten(1))

    return Function(forward, conv=nn.Conv1d(3, 2, 3), head=nn.Linear(76, OUTPUTS))


class _AtMost(nn.Module):
    """Norm of a filter of at most 0.2, as in EEGNet."""

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """Return the weight with shorter filters."""
        return torch.renorm(weight, p=2, dim=0, maxnorm=0.2)


def causal() -> nn.Module:
    """A causal convolution, padded and cut off, and one with a stride; and values that are stacked."""

    def forward(self: nn.Module, frames: torch.Tensor) -> torch.Tensor:
        hidden = self.causal(frames)[:, :, :-8].relu()
        hidden = self.coarse(F.pad(hidden, (0, 4)))[..., 1:-1]
        return self.head(self.planes(torch.stack([hidden, hidden.tanh()], dim=1))[:, :, 1:].flatten(1))

    return Function(
        forward,
        causal=nn.Conv1d(3, 4, 5, padding=8, dilation=2),
        coarse=nn.Conv1d(4, 4, 3, stride=2, padding=2),
        planes=nn.Conv2d(2, 2, 3, padding=1),
        head=nn.Linear(2 * 3 * 21, OUTPUTS),
    )


def parametrized() -> nn.Module:
    """Weights that are functions of parameters, and frozen ones."""
    bounded = nn.Conv1d(3, 4, 5)
    parametrize.register_parametrization(bounded, "weight", _AtMost())
    frozen = nn.Linear(144, 12, bias=False).requires_grad_(requires_grad=False)
    normed = parametrizations.weight_norm(nn.Linear(12, 5))
    scaled = Function(lambda self, x: F.linear(x, self.of.weight.flip(0) * 2), of=nn.Linear(5, OUTPUTS, bias=False))
    return nn.Sequential(bounded, nn.ReLU(), nn.Flatten(), frozen, nn.ReLU(), normed, scaled)


class Product(nn.Module):
    """A matrix of inputs by units, and its transpose."""

    def __init__(self) -> None:
        super().__init__()
        self.matrix = nn.Parameter(0.1 * torch.randn(120, 7))
        self.offset = nn.Parameter(torch.zeros(120))
        self.head = nn.Linear(120, OUTPUTS)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Map frames to logits."""
        code = torch.tanh(frames.flatten(1) @ self.matrix)
        return self.head(torch.relu(F.linear(code, self.matrix, self.offset)))


class Adapted(nn.Module):
    """A frozen layer with a low-rank adapter."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(120, 8).requires_grad_(requires_grad=False)
        self.down = nn.Parameter(0.1 * torch.randn(2, 120))
        self.up = nn.Parameter(0.1 * torch.randn(8, 2))
        self.head = nn.Linear(8, OUTPUTS)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Map frames to logits."""
        weight = self.base.weight + 0.5 * (self.up @ self.down)
        return self.head(torch.relu(F.linear(frames.flatten(1), weight, self.base.bias)))


def separable() -> nn.Module:
    """Separable convolutions over planes, with kernels of even size and memory in another order."""
    first = [nn.Unflatten(1, (1, 3)), nn.Conv2d(1, 1, (3, 7), padding="same", bias=False), nn.Conv2d(1, 6, 1)]
    second = [nn.BatchNorm2d(6, eps=1e-3, momentum=0.01), nn.ELU(), nn.AvgPool2d((1, 3)), nn.Dropout2d(0.25)]
    third = [nn.Conv2d(6, 6, (2, 4), padding="same", groups=6, bias=False), nn.Conv2d(6, 8, 1, bias=False)]
    last = [nn.BatchNorm2d(8), nn.ELU(), nn.AdaptiveAvgPool2d((1, 4)), nn.Flatten(), nn.Linear(32, OUTPUTS)]
    return nn.Sequential(*first, *second, *third, *last).to(memory_format=torch.channels_last)


def in_place() -> nn.Module:
    """Values that are copied and then changed in place."""

    def forward(self: nn.Module, frames: torch.Tensor) -> torch.Tensor:
        hidden = self.conv(frames)
        copied = hidden.clone()
        copied += self.inner(hidden)
        return self.head(F.dropout(F.relu_(copied), 0.3, self.training).flatten(1))

    return Function(
        forward,
        conv=nn.Conv1d(3, 4, 3, padding=1),
        inner=nn.Conv1d(4, 4, 3, padding=1),
        head=nn.Linear(160, OUTPUTS),
    )


LOWERED: dict[str, Make] = {
    "product": Product,
    "adapted": Adapted,
    "separable": separable,
    "in place": in_place,
    "plain": plain,
    "branches": branches,
    "residual": residual,
    "normed": normed,
    "doubled": doubled,
    "parametrized": parametrized,
    "causal": causal,
    "eegnet": lambda: EEGNet(3, 40),
    "shallow": lambda: Shallow(3, 40),
    "linear": lambda: nn.Sequential(nn.Flatten(), nn.Linear(120, OUTPUTS)),
}
"""Networks for frames of 3 x 40 that become programs."""


class _Exponential(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, values: torch.Tensor) -> torch.Tensor:
        return values * 2.0

    @staticmethod
    def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


class _Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.layer, self.head = kind(3, 8, batch_first=True), nn.Linear(8, OUTPUTS)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(frames.transpose(1, 2))[0][:, -1])


class _Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.head = nn.Linear(120, OUTPUTS)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.total += 1.0
        return self.head(frames.flatten(1))


def _of(function: Callable[..., torch.Tensor]) -> Make:
    return lambda: Function(function, conv=nn.Conv1d(3, 4, 3, padding=1), head=nn.Linear(160, OUTPUTS))


def _hooked() -> nn.Module:
    module = plain()
    module[0].register_full_backward_hook(lambda layer, inputs, outputs: None)
    return module


def _shared() -> nn.Module:
    layer = nn.Linear(120, 120)
    return nn.Sequential(nn.Flatten(), layer, nn.ReLU(), layer, nn.Linear(120, OUTPUTS))


def _always_in_evaluation() -> nn.Module:
    class Frozen(nn.BatchNorm1d):
        def train(self, mode: bool = True) -> Frozen:
            return super().train(False)

    return nn.Sequential(nn.Conv1d(3, 4, 3), Frozen(4).eval(), nn.Flatten(), nn.Linear(152, OUTPUTS))


def _shared_weight() -> nn.Module:
    module = nn.Sequential(nn.Flatten(), nn.Linear(120, 120), nn.ReLU(), nn.Linear(120, 120), nn.Linear(120, OUTPUTS))
    module[3].weight = module[1].weight
    return module


class _WithAttribute(nn.Module):
    """A filter that is neither parameter nor buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.window = torch.hann_window(5)[None, None].repeat(3, 1, 1)
        self.head = nn.Linear(108, OUTPUTS)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return self.head(F.conv1d(frames, self.window, groups=3).flatten(1))


def _hook_of_a_value(self: nn.Module, frames: torch.Tensor) -> torch.Tensor:
    hidden = self.conv(frames)
    if hidden.requires_grad:
        hidden.register_hook(lambda gradient: 0.5 * gradient)
    return self.head(hidden.flatten(1))


STAYING: dict[str, tuple[Make, str, str]] = {
    "shared weight": (_shared_weight, "'3' (Linear)", "a second time"),
    "tensor attribute": (_WithAttribute, "the network (_WithAttribute)", "neither its input nor a whole parameter"),
    "hook of a value": (_of(_hook_of_a_value), "the network (Function)", "has hooks"),
    "TorchScript": (
        lambda: torch.jit.trace(nn.Sequential(nn.Flatten(), nn.Linear(120, OUTPUTS)), torch.zeros(2, 3, 40)),
        "the network (TopLevelTracedModule)",
        "TorchScript",
    ),
    "old weight norm": (
        lambda: nn.Sequential(nn.Flatten(), nn.utils.weight_norm(nn.Linear(120, OUTPUTS))),
        "'1' (Linear)",
        "has hooks",
    ),
    "circular padding": (
        lambda: nn.Sequential(nn.Conv1d(3, 4, 3, padding=1, padding_mode="circular"), nn.Flatten(), nn.Linear(160, 3)),
        "'0' (Conv1d)",
        "pads with something other than zeros",
    ),
    "float64 inside": (
        _of(lambda self, x: self.head(self.conv(x).double().tanh().float().flatten(1))),
        "the network (Function)",
        "'_to_copy'",
    ),
    "einsum": (
        _of(lambda self, x: self.head(torch.einsum("bct,oc->bot", self.conv(x), self.conv.weight[:, :, 0]).flatten(1))),
        "the network (Function)",
        "",
    ),
    "spectrum": (
        lambda: Function(lambda self, x: self.head(torch.fft.rfft(x).abs().flatten(1)), head=nn.Linear(63, OUTPUTS)),
        "the network (Function)",
        "'_fft_r2c'",
    ),
    "standard deviation": (
        lambda: Function(lambda self, x: self.head(x.std(2)), head=nn.Linear(3, OUTPUTS)),
        "the network (Function)",
        "'std'",
    ),
    "stochastic depth": (
        _of(lambda self, x: self.head((self.conv(x) * float(torch.rand(()) < 0.8)).flatten(1))),
        "the network (Function)",
        "",
    ),
    "lstm": (lambda: _Recurrent(nn.LSTM), "'layer' (LSTM)", "recurrent"),
    "gru": (lambda: _Recurrent(nn.GRU), "'layer' (GRU)", "recurrent"),
    "attention": (
        lambda: nn.Sequential(nn.TransformerEncoderLayer(40, 2, batch_first=True), nn.Flatten(), nn.Linear(120, 3)),
        "'0",
        "is attention",
    ),
    "data-dependent flow": (
        _of(lambda self, x: self.head((self.conv(x) if x.sum() > 0 else self.conv(-x)).flatten(1))),
        "the network (Function)",
        "'sum'",
    ),
    "flow by numpy": (
        _of(lambda self, x: self.head((self.conv(x) if x.numpy().sum() > 0 else self.conv(-x)).flatten(1))),
        "the network (Function)",
        "reads a tensor's value",
    ),
    "flow by a list": (
        _of(lambda self, x: self.head((self.conv(x) if x.tolist()[0][0][0] > 0 else self.conv(-x)).flatten(1))),
        "the network (Function)",
        "reads a tensor's value",
    ),
    "flow by chance": (
        _of(lambda self, x: self.head((self.conv(x) if random.random() < 0.99 else self.conv(-x)).flatten(1))),
        "the network (Function)",
        "draws random numbers",
    ),
    "noise of numpy": (
        _of(lambda self, x: self.head(self.conv(x * np.random.default_rng(0).normal()).flatten(1))),
        "the network (Function)",
        "constant",
    ),
    "noise": (
        _of(lambda self, x: self.head((self.conv(x) + torch.randn(len(x), 4, 40)).flatten(1))),
        "the network (Function)",
        "",
    ),
    "rrelu": (lambda: nn.Sequential(nn.Flatten(), nn.RReLU(), nn.Linear(120, OUTPUTS)), "'1' (RReLU)", ""),
    "alpha dropout": (lambda: nn.Sequential(nn.Flatten(), nn.AlphaDropout(), nn.Linear(120, 3)), "'1' (AlphaD", ""),
    "flow by mode": (
        _of(lambda self, x: self.head((self.conv(x).relu() if self.training else self.conv(x)).flatten(1))),
        "the network (Function)",
        "other layers",
    ),
    "flow by batch": (
        _of(lambda self, x: self.head((self.conv(x).relu() if len(x) > 2 else self.conv(x)).flatten(1))),
        "the network (Function)",
        "other layers",
    ),
    "batch as channels": (
        _of(lambda self, x: self.head(self.conv(x).transpose(0, 1).transpose(0, 1).flatten(1))),
        "the network (Function)",
        "batch axis",
    ),
    "mean over instances": (
        _of(lambda self, x: self.head((self.conv(x) - self.conv(x).mean(0)).flatten(1))),
        "the network (Function)",
        "",
    ),
    "detached": (
        _of(lambda self, x: self.head(self.conv(x).detach().flatten(1))),
        "the network (Function)",
        "detaches",
    ),
    "data": (_of(lambda self, x: self.head(self.conv(x).data.flatten(1))), "the network (Function)", "detaches"),
    "own gradient": (
        _of(lambda self, x: self.head(_Exponential.apply(self.conv(x)).flatten(1))),
        "the network (Function)",
        "without a gradient",
    ),
    "aliased": (
        _of(lambda self, x: _in_place_under_a_view(self, x)),
        "'head' (Linear)",
        "neither its input nor a whole parameter",
    ),
    "shared": (_shared, "'1' (Linear)", "second time"),
    "spectral norm": (
        lambda: nn.Sequential(nn.Flatten(), parametrizations.spectral_norm(nn.Linear(120, 5)), nn.Linear(5, 3)),
        "'1",
        "",
    ),
    "hook": (_hooked, "'0' (Conv1d)", "hooks"),
    "counting": (_Counting, "the network (_Counting)", "buffer"),
    "cumulative": (
        lambda: nn.Sequential(nn.BatchNorm1d(3, momentum=None), nn.Flatten(), nn.Linear(120, 3)),
        "'0' (BatchNorm1d)",
        "reads",
    ),
    "fixed statistics": (_always_in_evaluation, "the network (Sequential)", "batch norm"),
    "instance norm": (
        lambda: nn.Sequential(nn.InstanceNorm1d(3, affine=True), nn.Flatten(), nn.Linear(120, 3)),
        "'0' (InstanceNorm1d)",
        "",
    ),
    "replicated padding": (
        lambda: nn.Sequential(nn.Conv1d(3, 4, 3, padding=1, padding_mode="replicate"), nn.Flatten(), nn.Linear(160, 3)),
        "'0' (Conv1d)",
        "pads with something other than zeros",
    ),
    "padded pool": (
        lambda: nn.Sequential(nn.ZeroPad1d(1), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(63, 3)),
        "'1' (MaxPool1d)",
        "zeros",
    ),
    "scaled": (_of(lambda self, x: self.head((self.conv(x) * 2).flatten(1))), "the network (Function)", "constant"),
    "cropped": (
        _of(lambda self, x: self.head(F.relu(self.conv(F.pad(x, (2, 0))))[:, :, :-2].flatten(1))),
        "the network",
        "part of a value",
    ),
}
"""Networks for frames of 3 x 40 that stay with PyTorch, the layer at fault, and a part of the reason."""


def _in_place_under_a_view(self: nn.Module, frames: torch.Tensor) -> torch.Tensor:
    hidden = self.conv(frames)
    flat = hidden.flatten(1)
    hidden.relu_()
    return self.head(flat)
