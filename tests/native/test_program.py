"""Programs of layers in the native kernels, compared with PyTorch in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from clops_sweep import native
from clops_sweep.learning.networks.dropout import mixed

Values = list[torch.Tensor]
Shape = tuple[int, int, int]

RUNNABLE = native.available()
pytestmark = pytest.mark.skipif(
    not RUNNABLE, reason="the native extension is not built: pip install needs a C++ compiler"
)

variants = st.sampled_from(RUNNABLE or ("baseline",))
seeds = st.integers(0, 2**16)
batch_sizes = st.sampled_from([1, 2, 3, 5, 8, 13, 16, 17, 33])
property_test = settings(max_examples=40, deadline=None, derandomize=True)


@dataclass
class Network:
    """A program, and the same network in PyTorch.

    Attributes:
        shape: channels, height and width of the input.
        layers: the layers, as the kernels read them.
        compute: maps the list of values so far, parameters by name, and buffers, to the value of a layer.
    """

    shape: Shape
    layers: list[dict[str, Any]] = field(default_factory=list)
    compute: list[Callable[..., torch.Tensor]] = field(default_factory=list)
    parameters: dict[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    buffers: list[np.ndarray] = field(default_factory=list)
    size: int = 0
    seed: int = 0

    def parameter(self, *shape: int) -> tuple[str, int]:
        """Add a parameter; the vector has room between parameters."""
        name, offset = f"p{len(self.parameters)}", self.size
        self.parameters[name] = (offset, shape)
        self.size += int(np.prod(shape)) + 3
        return name, offset

    def add(
        self, kind: str, compute: Callable[..., torch.Tensor], inputs: Sequence[int] | None = None, **fields: Any
    ) -> int:
        """Add a layer and return the number of its value."""
        output = len(self.layers) + 1
        self.layers.append({"kind": kind, "inputs": list(inputs or [output - 1]), "output": output, **fields})
        self.compute.append(compute)
        return output

    def vector(self) -> np.ndarray:
        """Return random parameters."""
        generator = np.random.default_rng(self.seed)
        return (0.4 * generator.standard_normal(self.size) + 0.1).astype(np.float32)

    def views(self, vector: torch.Tensor) -> dict[str, torch.Tensor]:
        return {
            name: vector[at : at + int(np.prod(shape))].view(shape) for name, (at, shape) in self.parameters.items()
        }

    def program(self, variant: str, parameters: np.ndarray) -> Any:
        return native.program(
            variant=variant, layers=self.layers, shape=self.shape, parameters=parameters, buffers=self.buffers
        )

    def frames(self, count: int) -> np.ndarray:
        channels, height, width = self.shape
        generator = np.random.default_rng([self.seed, count])
        return generator.standard_normal((count, channels * height, width)).astype(np.float32)

    def reference(self, frames: np.ndarray, parameters: Mapping[str, torch.Tensor], state: State) -> torch.Tensor:
        """Return the logits in float64."""
        values = [torch.from_numpy(frames).double().view(len(frames), *self.shape)]
        for layer, compute in zip(self.layers, self.compute, strict=True):
            values.append(compute([values[i] for i in layer["inputs"]], parameters, state))
        return values[-1].flatten(1)


@dataclass
class State:
    """Mode of a pass and what it reads and changes beside parameters."""

    training: bool
    buffers: list[torch.Tensor]
    masks: list[torch.Tensor] = field(default_factory=list)


Parameters = Mapping[str, torch.Tensor]


def convolution(
    network: Network,
    channels: int,
    inputs: Sequence[int] | None = None,
    before: int | None = None,
    *,
    bias: bool = True,
    **options: Any,
) -> int:
    before = before or network.shape[0]
    chosen = {"kernel": (1, 3), "stride": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1), "groups": 1} | options
    weight, at = network.parameter(channels, before // chosen["groups"], *chosen["kernel"])
    shift, shift_at = network.parameter(channels) if bias else ("", -1)
    top, bottom, left, right = chosen["padding"]

    def compute(values: Values, parameters: Parameters, state: State) -> torch.Tensor:
        padded = F.pad(values[0], (left, right, top, bottom))
        settings = chosen["stride"], 0, chosen["dilation"], chosen["groups"]
        return F.conv2d(padded, parameters[weight], parameters.get(shift), *settings)

    return network.add("convolution", compute, inputs, weight=at, bias=shift_at, outputs=channels, **chosen)


def batch_norm(network: Network, channels: int, *, affine: bool = True, momentum: float = 0.1) -> int:
    weight, at = network.parameter(channels) if affine else ("", -1)
    bias, bias_at = network.parameter(channels) if affine else ("", -1)
    generator, number = np.random.default_rng(channels), len(network.buffers)
    network.buffers.append(generator.normal(size=channels).astype(np.float32))
    network.buffers.append(generator.uniform(0.5, 2, channels).astype(np.float32))

    def compute(values: Values, parameters: Parameters, state: State) -> torch.Tensor:
        mean, variance = state.buffers[number : number + 2]
        affine = parameters.get(weight), parameters.get(bias)
        return F.batch_norm(values[0], mean, variance, *affine, state.training, momentum, 1e-5)

    fields = {"weight": at, "bias": bias_at, "mean": number, "variance": number + 1, "eps": 1e-5, "momentum": momentum}
    return network.add("batch_norm", compute, **fields)


FUNCTIONS: dict[str, tuple[float, Callable[[torch.Tensor], torch.Tensor]]] = {
    "relu": (0.0, torch.relu),
    "leaky_relu": (0.1, lambda x: F.leaky_relu(x, 0.1)),
    "elu": (0.7, lambda x: F.elu(x, 0.7)),
    "gelu": (0.0, F.gelu),
    "gelu_tanh": (0.0, lambda x: F.gelu(x, approximate="tanh")),
    "silu": (0.0, F.silu),
    "sigmoid": (0.0, torch.sigmoid),
    "tanh": (0.0, torch.tanh),
    "square": (0.0, torch.square),
    "safe_log": (1e-3, lambda x: torch.log(torch.clamp(x, min=1e-3))),
}


def activation(network: Network, name: str) -> int:
    slope, function = FUNCTIONS[name]
    return network.add("activation", lambda values, *_: function(values[0]), name=name, slope=slope)


def linear(network: Network, features: int, outputs: int, *, bias: bool = True) -> int:
    weight, at = network.parameter(outputs, features)
    shift, shift_at = network.parameter(outputs) if bias else ("", -1)

    def compute(values: Values, parameters: Parameters, state: State) -> torch.Tensor:
        return F.linear(values[0].flatten(1), parameters[weight], parameters.get(shift))[..., None, None]

    return network.add("linear", compute, weight=at, bias=shift_at, outputs=outputs)


def reshape(network: Network, shape: Shape) -> int:
    return network.add("reshape", lambda values, *_: values[0].reshape(-1, *shape), shape=shape)


def dropout(network: Network, probability: float, *, whole_channels: bool = False) -> int:
    def compute(values: Values, parameters: Parameters, state: State) -> torch.Tensor:
        if not state.masks:
            return values[0]
        mask = state.masks.pop(0)
        if len(values[0]) < len(mask):  # the first layer repeats the instances of several samples
            values[0] = values[0].repeat_interleave(len(mask) // len(values[0]), 0)
        shape = values[0].shape
        return values[0] * (mask[:, :, None, None] if whole_channels else mask.view(shape))

    return network.add("dropout", compute, probability=probability, whole_channels=int(whole_channels))


def masks(keys: np.ndarray, draws: np.ndarray, layers: Sequence[tuple[int, float]]) -> list[torch.Tensor]:
    """Return the masks of layers of (units, probability), from the words that the documentation defines."""
    words = (sum(units for units, _ in layers) + 1) // 2
    base = (torch.from_numpy(draws) * words).to(torch.int32)
    first, second = torch.from_numpy(keys)
    word = mixed(base[:, None] + torch.arange(words, dtype=torch.int32), first, second)
    halves = torch.stack([word << 16 >> 16, word >> 16], dim=-1).flatten(-2)
    found, start = [], 0
    for units, probability in layers:
        kept = halves[:, start : start + units] >= -32768 + round(probability * 65536)
        found.append(kept.double() / (1 - probability))
        start += units
    return found


def gathered(network: Network, outputs: int, size: int) -> None:
    """End a network with a linear layer, so that every entry of the last value has its own gradient."""
    reshape(network, (size, 1, 1))
    linear(network, size, outputs)


def close(found: np.ndarray, expected: torch.Tensor, tolerance: float = 2e-4, scale: float = 0.0) -> None:
    """Compare numbers, of which the largest, or of which others that belong to them, are as large as `scale`."""
    expected = expected.detach()
    scale = max(1e-3, scale, float(expected.abs().max()))
    np.testing.assert_allclose(found, expected.numpy(), rtol=tolerance, atol=tolerance * scale)


def check(
    network: Network, variant: str, count: int, *, training: bool = True, drops: Sequence[tuple[int, float]] = ()
) -> None:
    """Compare logits, gradients, running statistics and evaluation with PyTorch in float64."""
    parameters, frames = network.vector(), network.frames(count)
    double = torch.from_numpy(parameters).double().requires_grad_()
    buffers = [torch.from_numpy(buffer).double() for buffer in network.buffers]
    generator = np.random.default_rng(network.seed)
    keys = generator.integers(-(2**31), 2**31, 2).astype(np.int32)
    draws = generator.integers(0, 2**40, count)

    # training, or a pass with running statistics
    state = State(training, buffers, masks(keys, draws, drops) if drops else [])
    expected = network.reference(frames, network.views(double), state)
    by_logits = generator.standard_normal(expected.shape).astype(np.float32)
    expected.backward(torch.from_numpy(by_logits).double())
    program = network.program(variant, parameters)
    logits = np.full(expected.shape, np.nan, np.float32)
    words = (keys, draws) if drops else (None, None)
    program.forward(frames, *words, training, training, logits)
    close(logits, expected)
    gradient = np.full(network.size, np.nan, np.float32)
    program.backward(by_logits, gradient)
    assert double.grad is not None
    for name, view in network.views(torch.from_numpy(gradient)).items():
        close(view.numpy(), network.views(double.grad)[name], scale=0.1 * float(double.grad.abs().max()))
    for found, buffer in zip(network.buffers, buffers, strict=True):
        close(found, buffer, 1e-5)
    once = gradient.copy()
    program.forward(frames, *words, training, False, logits)
    program.backward(by_logits, gradient, add=True)
    close(gradient, torch.from_numpy(2 * once), 1e-5)

    # evaluation
    evaluated = np.full((count, 1, expected.shape[1]), np.nan, np.float32)
    program.predict(frames, None, 1, None, evaluated)
    state = State(False, [torch.from_numpy(buffer).double() for buffer in network.buffers])
    close(evaluated[:, 0], network.reference(frames, network.views(double), state))


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[Network, int]:
    """A convolution of any setting, and the number of its outputs."""
    groups = draw(st.sampled_from([1, 1, 1, 2, 3, 8]))
    before, after = (groups * draw(st.integers(1, 5)) for _ in range(2))
    height, width = draw(st.sampled_from([(1, 1), (1, 7), (1, 50), (5, 6), (22, 9), (40, 1), (1, 131)]))
    kernel, stride, padding, dilation = [], [], [], []
    for length in (height, width):
        around = (draw(st.integers(0, 4)), draw(st.integers(0, 4)))
        by = draw(st.sampled_from([1, 1, 2, 3]))
        most = (length + sum(around) - 1) // by + 1
        kernel.append(draw(st.integers(1, min(most, 9))))
        stride.append(draw(st.sampled_from([1, 1, 2, 3, 5])))
        padding += around
        dilation.append(by)
    network = Network((before, height, width), seed=draw(seeds))
    options = {
        "kernel": tuple(kernel),
        "stride": tuple(stride),
        "padding": tuple(padding),
        "dilation": tuple(dilation),
        "groups": groups,
    }
    convolution(network, after, bias=draw(st.booleans()), **options)
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    out = [(n + sum(padding[2 * i : 2 * i + 2]) - reach[i]) // stride[i] + 1 for i, n in enumerate((height, width))]
    return network, after * out[0] * out[1]


@property_test
@given(convolutions(), batch_sizes, variants)
def test_convolutions_have_the_values_and_gradients_of_pytorch(
    drawn: tuple[Network, int], count: int, variant: str
) -> None:
    network, _ = drawn
    check(network, variant, count)


@property_test
@given(convolutions(), batch_sizes, variants)
def test_the_gradient_with_respect_to_inputs_reaches_the_layer_before(
    drawn: tuple[Network, int], count: int, variant: str
) -> None:
    """A first convolution of kernel 1 has a gradient only through the second."""
    second, _ = drawn
    network = Network(second.shape, seed=second.seed)
    convolution(network, second.shape[0], kernel=(1, 1))
    options = {name: second.layers[0][name] for name in ("kernel", "stride", "padding", "dilation", "groups")}
    convolution(network, second.layers[0]["outputs"], before=second.shape[0], **options)
    check(network, variant, count)


@property_test
@given(st.integers(1, 40), st.integers(1, 70), st.booleans(), st.booleans(), batch_sizes, variants, seeds)
def test_batch_norm(
    channels: int, width: int, affine: bool, training: bool, count: int, variant: str, seed: int
) -> None:
    network = Network((3, 1, width), seed=seed)
    convolution(network, channels, kernel=(1, 1))
    batch_norm(network, channels, affine=affine, momentum=0.3)
    if seed % 2:
        activation(network, "relu")
    gathered(network, 3, channels * width)
    check(network, variant, max(count, 3), training=training)


def test_batch_norm_of_a_single_value_is_refused_in_training() -> None:
    network = Network((3, 1, 1))
    batch_norm(network, 3)
    program = network.program(RUNNABLE[0], network.vector())
    with pytest.raises(ValueError, match="more than one value per channel"):
        program.forward(network.frames(1), None, None, True, True, np.zeros((1, 3), np.float32))


@property_test
@given(
    st.sampled_from([(1, 1), (1, 6), (2, 6), (3, 6), (6, 6)]),
    st.sampled_from([(1, 8), (3, 4), (1, 300)]),
    st.booleans(),
    batch_sizes,
    variants,
    seeds,
)
def test_group_norm(
    groups: tuple[int, int], plane: tuple[int, int], affine: bool, count: int, variant: str, seed: int
) -> None:
    number, channels = groups
    network = Network((2, *plane), seed=seed)
    convolution(network, channels, kernel=(1, 1))
    weight, at = network.parameter(channels) if affine else ("", -1)
    bias, bias_at = network.parameter(channels) if affine else ("", -1)

    def compute(values: Values, parameters: Parameters, state: State) -> torch.Tensor:
        return F.group_norm(values[0], number, parameters.get(weight), parameters.get(bias), 1e-5)

    network.add("group_norm", compute, weight=at, bias=bias_at, groups=number, eps=1e-5)
    gathered(network, 3, channels * plane[0] * plane[1])
    check(network, variant, count)


@property_test
@given(st.integers(1, 3), st.sampled_from([(4, 3, 5), (7, 1, 30), (2, 6, 4)]), batch_sizes, variants, seeds)
def test_layer_norm(axes: int, shape: Shape, count: int, variant: str, seed: int) -> None:
    network = Network(shape, seed=seed)
    convolution(network, shape[0], kernel=(1, 1))
    over = shape[3 - axes :]
    (weight, at), (bias, bias_at) = network.parameter(*over), network.parameter(*over)

    def compute(values: Values, parameters: Parameters, state: State) -> torch.Tensor:
        return F.layer_norm(values[0], over, parameters[weight], parameters[bias], 1e-5)

    network.add("layer_norm", compute, weight=at, bias=bias_at, axes=axes, eps=1e-5)
    gathered(network, 3, int(np.prod(shape)))
    check(network, variant, count)


@pytest.mark.parametrize("variant", RUNNABLE)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_activations(name: str, variant: str) -> None:
    network = Network((3, 2, 9))
    convolution(network, 4, kernel=(1, 1))
    activation(network, name)
    gathered(network, 3, 4 * 2 * 9)
    check(network, variant, 19)


@pytest.mark.parametrize("variant", RUNNABLE)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_activations_far_from_zero_and_close_to_it(name: str, variant: str) -> None:
    network = Network((1, 1, 4000))
    activation(network, name)
    values = np.concatenate([np.linspace(-100, 100, 2000), np.geomspace(1e-30, 1, 1000), -np.geomspace(1e-30, 1, 1000)])
    frames = values.astype(np.float32).reshape(1, 1, -1)
    program = network.program(variant, np.zeros(1, np.float32))
    logits = np.full((1, 4000), np.nan, np.float32)
    program.forward(frames, None, None, False, False, logits)
    expected = FUNCTIONS[name][1](torch.from_numpy(frames).double()).numpy().reshape(1, -1)
    np.testing.assert_allclose(
        logits, expected, rtol=2e-6, atol=3e-6 if "gelu" in name else 1e-30 if name != "silu" else 1e-29
    )


@st.composite
def pools(draw: st.DrawFn) -> dict[str, Any]:
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 6)))
    return {
        "kernel": kernel,
        "stride": (draw(st.integers(1, 3)), draw(st.integers(1, 7))),
        "padding": tuple(draw(st.integers(0, k // 2)) for k in kernel),
        "ceil_mode": draw(st.booleans()),
    }


@property_test
@given(pools(), st.booleans(), st.sampled_from([(3, 17), (6, 30), (4, 6)]), batch_sizes, variants, seeds)
def test_pools(
    options: dict[str, Any], average: bool, plane: tuple[int, int], count: int, variant: str, seed: int
) -> None:
    network = Network((2, *plane), seed=seed)
    convolution(network, 5, kernel=(1, 1))
    fields = options | {"ceil_mode": int(options["ceil_mode"])}
    options["kernel_size"] = options.pop("kernel")
    if average:
        include = bool(seed % 2)
        pooled = lambda x: F.avg_pool2d(x, **options, count_include_pad=include)  # noqa: E731
        network.add("average_pool", lambda values, *_: pooled(values[0]), **fields, count_include_pad=int(include))
    else:
        dilation = (1, 1 + seed % 2 if fields["kernel"][1] < 4 else 1)
        pooled = lambda x: F.max_pool2d(x, **options, dilation=dilation)  # noqa: E731
        network.add("max_pool", lambda values, *_: pooled(values[0]), **fields, dilation=dilation)
    gathered(network, 3, pooled(torch.zeros(1, 5, *plane)).numel())
    check(network, variant, count)


@property_test
@given(st.booleans(), st.integers(1, 4), st.integers(1, 13), batch_sizes, variants, seeds)
def test_adaptive_pools(average: bool, height: int, width: int, count: int, variant: str, seed: int) -> None:
    network = Network((2, 4, 11), seed=seed)
    convolution(network, 5, kernel=(1, 1))
    kind, function = ("average", F.adaptive_avg_pool2d) if average else ("max", F.adaptive_max_pool2d)
    network.add(f"adaptive_{kind}_pool", lambda values, *_: function(values[0], (height, width)), size=(height, width))
    gathered(network, 3, 5 * height * width)
    check(network, variant, count)


def test_equal_maxima_give_the_gradient_to_the_first() -> None:
    network = Network((1, 1, 6))
    convolution(network, 1, kernel=(1, 1))
    activation(network, "relu")
    fields = {"kernel": (1, 3), "stride": (1, 3), "padding": (0, 0), "dilation": (1, 1), "ceil_mode": 0}
    network.add("max_pool", lambda values, *_: F.max_pool2d(values[0], (1, 3)), **fields)
    gathered(network, 2, 2)
    network.frames = lambda count: np.full((count, 1, 6), 0.5, np.float32)  # type: ignore[method-assign]
    check(network, RUNNABLE[0], 3)


def test_a_maximum_passes_nan_on() -> None:
    network = Network((1, 1, 4))
    fields = {"kernel": (1, 2), "stride": (1, 2), "padding": (0, 0), "dilation": (1, 1), "ceil_mode": 0}
    network.add("max_pool", lambda values, *_: values[0], **fields)
    activation(network, "relu")
    logits = np.zeros((2, 2), np.float32)
    frames = np.array([[[np.nan, 1, 1, 2]], [[1, np.nan, 3, 4]]], np.float32)
    network.program(RUNNABLE[0], np.zeros(1, np.float32)).forward(frames, None, None, False, False, logits)
    np.testing.assert_array_equal(np.isnan(logits), [[True, False], [True, False]])


@property_test
@given(st.integers(1, 70), st.integers(1, 40), st.booleans(), batch_sizes, variants, seeds)
def test_linear(features: int, outputs: int, bias: bool, count: int, variant: str, seed: int) -> None:
    network = Network((features, 1, 1), seed=seed)
    linear(network, features, features)
    linear(network, features, outputs, bias=bias)
    check(network, variant, count)


@pytest.mark.parametrize("variant", RUNNABLE)
@pytest.mark.parametrize(
    "kind", ["add", "multiply", "gate", "gate first", "square by multiply", "concatenate", "permute"]
)
def test_layers_of_several_inputs(kind: str, variant: str) -> None:
    """Values that several layers read add their gradients."""
    network = Network((3, 2, 10))
    shared = convolution(network, 4, kernel=(1, 1))
    left = convolution(network, 4, [shared], 4, kernel=(1, 3), padding=(0, 0, 1, 1))
    size = 4 * 2 * 10
    if kind in ("add", "multiply"):
        joined = {"add": torch.add, "multiply": torch.mul}[kind]
        network.add(kind, lambda values, *_: joined(*values), [shared, left])
    elif kind.startswith("gate"):
        gate = network.add(
            "adaptive_average_pool", lambda values, *_: values[0].mean((2, 3), keepdim=True), [left], size=(1, 1)
        )
        inputs = [gate, shared] if kind == "gate first" else [shared, gate]
        network.add("multiply", lambda values, *_: values[0] * values[1], inputs)
    elif kind == "square by multiply":
        network.add("multiply", lambda values, *_: values[0] * values[1], [left, left])
    elif kind == "concatenate":
        network.add("concatenate", lambda values, *_: torch.cat(values, 1), [shared, left, 0])
        size += (4 + 3) * 2 * 10
    else:
        network.add("permute", lambda values, *_: values[0].permute(0, 3, 1, 2), [left], order=(2, 0, 1))
    gathered(network, 3, size)
    check(network, variant, 18)


def small_network(*, norm: bool = True) -> tuple[Network, list[tuple[int, float]]]:
    """Convolutions, batch norm, pools and two layers of dropout, of which the first has an odd number of units."""
    network = Network((3, 1, 50))
    convolution(network, 7, kernel=(1, 5), padding=(0, 0, 2, 2))
    if norm:
        batch_norm(network, 7)
    activation(network, "relu")
    fields = {"kernel": (1, 4), "stride": (1, 4), "padding": (0, 0), "dilation": (1, 1), "ceil_mode": 1}
    network.add("max_pool", lambda values, *_: F.max_pool2d(values[0], (1, 4), ceil_mode=True), **fields)
    dropout(network, 0.3)
    convolution(network, 9, before=7, kernel=(1, 3))
    if norm:
        batch_norm(network, 9)
    activation(network, "elu")
    dropout(network, 0.5, whole_channels=True)
    gathered(network, 4, 9 * 11)
    return network, [(7 * 13, 0.3), (9, 0.5)]


@pytest.mark.parametrize("variant", RUNNABLE)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("count", [1, 16, 21])
def test_a_network_with_dropout(count: int, training: bool, variant: str) -> None:
    network, drops = small_network()
    check(network, variant, count, training=training, drops=drops)


@pytest.mark.parametrize("variant", RUNNABLE)
@pytest.mark.parametrize("count", [1, 3, 16, 37])
def test_passes_with_dropout_take_the_documented_masks(count: int, variant: str) -> None:
    network, drops = small_network()
    parameters, frames = network.vector(), network.frames(count)
    keys, samples, first = np.array([-5, 2**31 - 1], np.int32), 5, 2**33 + 7
    program = network.program(variant, parameters)
    logits = np.full((count, samples, 4), np.nan, np.float32)
    program.predict(frames, parameters, samples, keys, logits, first=first)
    draws = np.arange(first, first + count * samples)
    state = State(False, [torch.from_numpy(buffer).double() for buffer in network.buffers], masks(keys, draws, drops))
    expected = network.reference(frames, network.views(torch.from_numpy(parameters).double()), state)
    close(logits.reshape(-1, 4), expected)
    alone = np.empty((1, samples, 4), np.float32)
    program.predict(frames[-1:], None, samples, keys, alone, first=first + (count - 1) * samples)
    np.testing.assert_array_equal(alone[0], logits[-1])


@pytest.mark.parametrize("variant", RUNNABLE)
def test_dropout_of_everything_and_of_nothing(variant: str) -> None:
    for probability in (0.0, 1.0):
        network = Network((1, 1, 9))
        dropout(network, probability)
        frames, logits = network.frames(3), np.empty((3, 9), np.float32)
        words = np.array([1, 2], np.int32), np.arange(3)
        network.program(variant, np.zeros(1, np.float32)).forward(frames, *words, False, False, logits)
        np.testing.assert_array_equal(logits, frames[:, 0] * (1 - probability))


@pytest.mark.parametrize("variant", RUNNABLE)
@pytest.mark.parametrize("absolute", [True, False])
def test_sums_of_the_gradients_of_instances(absolute: bool, variant: str) -> None:
    network, _ = small_network()
    count, parameters = 19, network.vector()
    frames = network.frames(count)
    by_logits = np.random.default_rng(1).standard_normal((count, 4)).astype(np.float32)
    expected = torch.zeros(network.size, dtype=torch.float64)
    for i in range(count):
        double = torch.from_numpy(parameters).double().requires_grad_()
        state = State(False, [torch.from_numpy(buffer).double() for buffer in network.buffers])
        network.reference(frames[i : i + 1], network.views(double), state).backward(
            torch.from_numpy(by_logits[i : i + 1]).double()
        )
        assert double.grad is not None
        expected += double.grad.abs() if absolute else double.grad.square()
    sums = np.ones(network.size, np.float32)
    network.program(variant, parameters).sum_of_instance_gradients(frames, by_logits, absolute, sums)
    for name, view in network.views(torch.from_numpy(sums)).items():
        close(view.numpy(), network.views(expected + 1)[name])


@pytest.mark.parametrize("variant", RUNNABLE)
def test_results_of_an_instance_do_not_depend_on_the_others(variant: str) -> None:
    network, _ = small_network()
    program, frames = network.program(variant, network.vector()), network.frames(21)
    together, alone = np.empty((21, 1, 4), np.float32), np.empty((1, 1, 4), np.float32)
    program.predict(frames, None, 1, None, together)
    for i in range(21):
        program.predict(frames[i : i + 1], None, 1, None, alone)
        np.testing.assert_array_equal(alone[0], together[i])


WRONG = {
    "an unknown layer": ({"kind": "attention"}, "attention is no layer that the kernels know"),
    "an unknown field": ({"kind": "add", "inputs": [0, 0], "axis": 1}, "add has no field axis"),
    "a missing field": ({"kind": "linear", "weight": 0, "bias": -1}, "field outputs is missing"),
    "a value that is written later": ({"kind": "add", "inputs": [0, 5]}, "add reads value 5 before it is written"),
    "parameters outside the vector": ({"kind": "linear", "weight": 99, "bias": -1, "outputs": 2}, "not in the vector"),
    "a function": ({"kind": "activation", "name": "swoosh", "slope": 0.0}, "swoosh is no function"),
    "other shapes": ({"kind": "reshape", "shape": (1, 1, 5)}, "has 5 entries, not 4"),
    "a probability": ({"kind": "dropout", "probability": 1.5, "whole_channels": 0}, "between 0 and 1"),
    "no running statistics": (
        {"kind": "batch_norm", "weight": -1, "bias": -1, "mean": -1, "variance": -1, "eps": 1e-5, "momentum": 0.1},
        "left to PyTorch",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_programs_are_refused(case: str) -> None:
    layer, sentence = WRONG[case]
    network = Network((4, 1, 1))
    network.layers.append({"inputs": [0], "output": 1} | layer)
    with pytest.raises(ValueError, match=sentence):
        network.program(RUNNABLE[0], np.zeros(100, np.float32))


def test_a_backward_pass_follows_a_forward_pass() -> None:
    network, _ = small_network()
    program, by_logits = network.program(RUNNABLE[0], network.vector()), np.zeros((2, 4), np.float32)
    gradient = np.empty(network.size, np.float32)
    program.forward(network.frames(2), None, None, True, True, by_logits)
    program.backward(by_logits, gradient)
    with pytest.raises(ValueError, match="needs a forward pass before it"):
        program.backward(by_logits, gradient)
