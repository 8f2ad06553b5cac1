"""Program: a network as a list of layers, for the native kernels.

The value of number 0 is the input, and layer i computes value i + 1. Every value has a shape per instance, (channels,
height, width): frames [C, T] are (C, 1, T), and features [F] are (F, 1, 1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

Shape = tuple[int, int, int]
"""Channels, height and width of a value."""

Pair = tuple[int, int]
"""Something along height and width."""

Function = Literal["relu", "leaky_relu", "elu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "square", "safe_log"]


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One operation of a program.

    Attributes:
        layer: the layer of the module that asks for it, for messages.
        inputs: numbers of the values that it reads.
    """

    kind: ClassVar[str]
    weights: ClassVar[tuple[str, ...]] = ()
    """Attributes that hold the name of a parameter, or None."""

    statistics: ClassVar[tuple[str, ...]] = ()
    """Attributes that hold the name of a buffer."""

    layer: str
    inputs: tuple[int, ...]

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters that it uses."""
        names = (getattr(self, attribute) for attribute in self.weights)
        return [name for name in names if name is not None]

    @property
    def buffers(self) -> list[str]:
        """Names of the buffers that it uses."""
        return [getattr(self, attribute) for attribute in self.statistics]

    def as_dict(self, offsets: Mapping[str, int], buffers: Sequence[str]) -> dict[str, Any]:
        """Return the layer as the native kernels take it, without the number of its output.

        Args:
            offsets: the first entry of each parameter in the flat vector; -1 stands for no parameter.
            buffers: names of all buffers, in the order in which the kernels get them.
        """
        values: dict[str, Any] = {"kind": self.kind}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "layer":
                continue
            if field.name in self.weights:
                value = -1 if value is None else offsets[value]
            elif field.name in self.statistics:
                value = buffers.index(value)
            values[field.name] = value
        return values


@dataclass(frozen=True, kw_only=True)
class Convolution(Layer):
    """Cross-correlation with zero padding (top, bottom, left, right), as `torch.nn.Conv2d`."""

    kind = "convolution"
    weights = ("weight", "bias")

    weight: str
    bias: str | None
    outputs: int
    kernel: Pair
    stride: Pair
    padding: tuple[int, int, int, int]
    dilation: Pair
    groups: int


@dataclass(frozen=True, kw_only=True)
class BatchNorm(Layer):
    """Batch norm with running statistics, as `torch.nn.BatchNorm2d`."""

    kind = "batch_norm"
    weights = ("weight", "bias")
    statistics = ("mean", "variance")

    weight: str | None
    bias: str | None
    mean: str
    variance: str
    eps: float
    momentum: float


@dataclass(frozen=True, kw_only=True)
class GroupNorm(Layer):
    """Group norm, as `torch.nn.GroupNorm`."""

    kind = "group_norm"
    weights = ("weight", "bias")

    weight: str | None
    bias: str | None
    groups: int
    eps: float


@dataclass(frozen=True, kw_only=True)
class LayerNorm(Layer):
    """Layer norm over the last axes of an instance: 1 is width, 2 height and width, 3 all."""

    kind = "layer_norm"
    weights = ("weight", "bias")

    weight: str | None
    bias: str | None
    axes: int
    eps: float


@dataclass(frozen=True, kw_only=True)
class Activation(Layer):
    """A function of each entry.

    `slope` is that of leaky_relu, the alpha of elu, or the minimum of safe_log, log(max(x, minimum)).
    """

    kind = "activation"

    name: Function
    slope: float = 0.0


@dataclass(frozen=True, kw_only=True)
class MaxPool(Layer):
    """Maximum over windows, as `torch.nn.MaxPool2d`; the first of equal maxima gets the gradient."""

    kind = "max_pool"

    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    ceil_mode: bool


@dataclass(frozen=True, kw_only=True)
class AveragePool(Layer):
    """Mean over windows, as `torch.nn.AvgPool2d`."""

    kind = "average_pool"

    kernel: Pair
    stride: Pair
    padding: Pair
    ceil_mode: bool
    count_include_pad: bool


@dataclass(frozen=True, kw_only=True)
class AdaptiveAveragePool(Layer):
    """Means over as many windows as `size` says, as `torch.nn.AdaptiveAvgPool2d`."""

    kind = "adaptive_average_pool"

    size: Pair


@dataclass(frozen=True, kw_only=True)
class AdaptiveMaxPool(Layer):
    """Maxima over as many windows as `size` says, as `torch.nn.AdaptiveMaxPool2d`."""

    kind = "adaptive_max_pool"

    size: Pair


@dataclass(frozen=True, kw_only=True)
class Dropout(Layer):
    """Dropout of entries, or of whole channels, with masks that are functions of keys and draws (see `dropout`)."""

    kind = "dropout"

    probability: float
    whole_channels: bool


@dataclass(frozen=True, kw_only=True)
class Linear(Layer):
    """Matrix product on features, as `torch.nn.Linear`."""

    kind = "linear"
    weights = ("weight", "bias")

    weight: str
    bias: str | None
    outputs: int


@dataclass(frozen=True, kw_only=True)
class Add(Layer):
    """Sum of two values of one shape."""

    kind = "add"


@dataclass(frozen=True, kw_only=True)
class Multiply(Layer):
    """Product of two values; the second may have one entry per channel."""

    kind = "multiply"


@dataclass(frozen=True, kw_only=True)
class Concatenate(Layer):
    """Values joined along their channels."""

    kind = "concatenate"


@dataclass(frozen=True, kw_only=True)
class Permute(Layer):
    """Axis i of the output is axis `order[i]` of the input."""

    kind = "permute"

    order: tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class Reshape(Layer):
    """The same entries in the same order under another shape."""

    kind = "reshape"

    shape: Shape


@dataclass(frozen=True)
class Source:
    """A parameter or buffer of the module, or something derived from them, by name."""

    kind: Literal["parameter", "buffer", "derived"]
    name: str


@dataclass(frozen=True)
class Derivation:
    """Weights that are computed from parameters and buffers before a pass, as parametrizations do.

    Attributes:
        function: the operation of PyTorch; None for a copy of the only argument.
        args: its arguments, with a `Source` in place of each tensor.
        kwargs: its arguments by name, likewise.
        shape: shape of the result.
    """

    function: Any
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    shape: tuple[int, ...]


def derived_name(number: int) -> str:
    """Return the name of the result of a program's derivation, which no parameter has."""
    return f"derived {number}"


@dataclass(frozen=True)
class Program:
    """A network as a list of layers; the last layer's output is the logits, of shape (outputs, 1, 1).

    Attributes:
        layers: the layers; layer i computes value i + 1.
        shapes: shape of every value, the input first.
        counters: names of the buffers that count the batches whose statistics were tracked.
        derivations: weights that are computed before a pass.
    """

    layers: tuple[Layer, ...]
    shapes: tuple[Shape, ...]
    counters: tuple[str, ...] = ()
    derivations: tuple[Derivation, ...] = ()

    @property
    def buffers(self) -> list[str]:
        """Names of the buffers that layers use, in the order in which the kernels get them."""
        return [name for layer in self.layers for name in layer.buffers]

    @property
    def derived(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of each result of a derivation that a layer uses."""
        used = {name for layer in self.layers for name in layer.parameters}
        shapes = {}
        for number, derivation in enumerate(self.derivations):
            name = derived_name(number)
            if name in used:
                shapes[name] = derivation.shape
        return shapes

    @property
    def outputs(self) -> int:
        """C."""
        return self.shapes[-1][0]

    def as_dicts(self, offsets: Mapping[str, int]) -> list[dict[str, Any]]:
        """Return the layers as the native kernels take them; `offsets` as in `Layer.as_dict`."""
        layers = []
        for output, layer in enumerate(self.layers, start=1):
            layers.append(layer.as_dict(offsets, self.buffers) | {"output": output})
        return layers

    def units(self) -> list[int]:
        """Return the number of units of one instance in each dropout layer."""
        units = []
        for layer in self.layers:
            if isinstance(layer, Dropout):
                shape = self.shapes[layer.inputs[0]]
                units.append(shape[0] if layer.whole_channels else math.prod(shape))
        return units


def without(layers: Sequence[Layer], kind: type[Layer]) -> tuple[Layer, ...]:
    """Return layers without those of a kind, which have one input of the shape of their output."""
    numbers = [0]
    others: list[Layer] = []
    for layer in layers:
        inputs = tuple(numbers[value] for value in layer.inputs)
        if isinstance(layer, kind):
            numbers.append(inputs[0])
            continue
        others.append(replace(layer, inputs=inputs))
        numbers.append(len(others))
    return tuple(others)
