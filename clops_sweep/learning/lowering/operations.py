"""What each operation of PyTorch is as layers of a program.

Each function here maps the call of an operation to what its result is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from clops_sweep.learning.lowering.program import (
    Activation,
    AdaptiveAveragePool,
    AdaptiveMaxPool,
    Add,
    AveragePool,
    BatchNorm,
    Concatenate,
    Convolution,
    Dropout,
    Function,
    GroupNorm,
    LayerNorm,
    Linear,
    MaxPool,
    Multiply,
    Pair,
)
from clops_sweep.learning.lowering.trace import (
    Call,
    Clamped,
    Known,
    Noise,
    Operation,
    Traced,
    Unlowered,
    canonical,
)

OPERATIONS: dict[str, Operation] = {}
"""By the name of the operation in ATen, without the underscore of its in-place form."""


def _operation(*names: str) -> Callable[[Operation], Operation]:
    def register(operation: Operation) -> Operation:
        for name in names:
            OPERATIONS[name] = operation
        return operation

    return register


@_operation("convolution")
def _convolution(call: Call) -> Known:
    frames, weight, bias, stride, padding, dilation, transposed, _, groups = call.args
    signals = call.trace.operand(frames, padded=True)
    axes = len(signals.shape) - 1
    if transposed:
        raise Unlowered("is a transposed convolution")
    if axes not in (1, 2):
        raise Unlowered("is a convolution over three axes")
    zeros = signals.padding or ((0, 0),) * (axes + 1)
    if zeros[0] != (0, 0):
        raise Unlowered("pads channels with zeros")
    vertical, horizontal = _along(padding, axes, missing=0)
    (above, below), (before, after) = ((0, 0), *zeros[1:])[-2:]
    return call.layer(
        Convolution,
        replace(signals, padding=()),
        weight=call.trace.parameter(weight),
        bias=call.trace.parameter_or_none(bias),
        outputs=weight.shape[0],
        kernel=_along(weight.shape[2:], axes),
        stride=_along(stride, axes),
        padding=(vertical + above, vertical + below, horizontal + before, horizontal + after),
        dilation=_along(dilation, axes),
        groups=groups,
    )


def _along(values: Sequence[int], axes: int, missing: int = 1) -> Pair:
    """Return values along height and width: one value holds for all axes, and `missing` for a missing height."""
    by_axis = [*values] * axes if len(values) == 1 else [*values]
    height, width = (missing, *by_axis)[-2:]
    return height, width


@_operation("native_batch_norm", "_native_batch_norm_legit")
def _batch_norm(call: Call) -> Known:
    maps, weight, bias, mean, variance, training, momentum, eps = call.args
    normed = call.layer(
        BatchNorm,
        call.trace.operand(maps),
        weight=call.trace.parameter_or_none(weight),
        bias=call.trace.parameter_or_none(bias),
        mean=call.trace.buffer(mean),
        variance=call.trace.buffer(variance),
        eps=eps,
        momentum=momentum,
    )
    call.trace.used_batch_statistics(normed.value, bool(training))
    return normed


@_operation("native_group_norm")
def _group_norm(call: Call) -> Known:
    maps, weight, bias, batch, _, _, groups, eps = call.args
    if batch != call.trace.batch:
        raise Unlowered("normalises over several instances")
    return call.layer(
        GroupNorm,
        call.trace.operand(maps),
        weight=call.trace.parameter_or_none(weight),
        bias=call.trace.parameter_or_none(bias),
        groups=groups,
        eps=eps,
    )


@_operation("native_layer_norm")
def _layer_norm(call: Call) -> Known:
    maps, normalised, weight, bias, eps = call.args
    signals = call.trace.operand(maps)
    axes = len(normalised)
    rank = len(signals.shape)
    if axes > rank or rank > 3:
        raise Unlowered("has layer norm over other than the last axes of an instance")
    return call.layer(
        LayerNorm,
        signals,
        weight=call.trace.parameter_or_none(weight),
        bias=call.trace.parameter_or_none(bias),
        axes=3 if axes == rank else axes,
        eps=eps,
    )


def _activated(call: Call, signals: Traced, name: Function, slope: float = 0.0) -> Traced:
    shape = call.trace.shape_of(signals.value)
    value = call.trace.emit(Activation, [signals.value], shape, name=name, slope=slope)
    return replace(signals, value=value)


@_operation("relu")
def _relu(call: Call) -> Known:
    return _activated(call, call.operand(), "relu")


@_operation("sigmoid")
def _sigmoid(call: Call) -> Known:
    return _activated(call, call.operand(), "sigmoid")


@_operation("tanh")
def _tanh(call: Call) -> Known:
    return _activated(call, call.operand(), "tanh")


@_operation("silu")
def _silu(call: Call) -> Known:
    return _activated(call, call.operand(), "silu")


@_operation("leaky_relu")
def _leaky_relu(call: Call) -> Known:
    slope = call.given(1, "negative_slope", 0.01)
    return _activated(call, call.operand(), "leaky_relu", float(slope))


@_operation("elu")
def _elu(call: Call) -> Known:
    if call.given(2, "scale", 1) != 1 or call.given(3, "input_scale", 1) != 1:
        raise Unlowered("uses a scaled ELU")
    alpha = call.given(1, "alpha", 1)
    return _activated(call, call.operand(), "elu", float(alpha))


@_operation("gelu")
def _gelu(call: Call) -> Known:
    exact = call.kwargs.get("approximate", "none") == "none"
    return _activated(call, call.operand(), "gelu" if exact else "gelu_tanh")


@_operation("pow")
def _power(call: Call) -> Known:
    if call.args[1] != 2:
        raise Unlowered("uses a power other than the square")
    return _activated(call, call.operand(), "square")


@_operation("clamp", "clamp_min")
def _clamp(call: Call) -> Known:
    minimum = call.given(1, "min", None)
    if call.given(2, "max", None) is not None or not isinstance(minimum, float | int):
        raise Unlowered("clamps a value other than for a logarithm")
    return Clamped(call.operand(), float(minimum))


@_operation("log")
def _logarithm(call: Call) -> Known:
    clamped = call.trace.known(call.args[0])
    if not isinstance(clamped, Clamped) or clamped.minimum <= 0:
        raise Unlowered("takes the logarithm of something that is not clamped above zero")
    return _activated(call, clamped.of, "safe_log", clamped.minimum)


def _planes(call: Call) -> Traced:
    """Return the first argument, which must have three axes besides the batch."""
    signals = call.operand()
    if len(signals.shape) != 3:
        raise Unlowered("pools over other than two axes of a batch of maps")
    return signals


def _window(call: Call, position: int, name: str, default: Pair) -> Pair:
    """Return an argument for height and width; an empty list stands for the default."""
    value = call.given(position, name, ())
    values = [value] if isinstance(value, int) else [*value]
    return _along(values, 2) if values else default


@_operation("max_pool2d_with_indices")
def _max_pool(call: Call) -> Known:
    kernel = _window(call, 1, "kernel_size", (1, 1))
    return call.layer(
        MaxPool,
        _planes(call),
        kernel=kernel,
        stride=_window(call, 2, "stride", kernel),
        padding=_window(call, 3, "padding", (0, 0)),
        dilation=_window(call, 4, "dilation", (1, 1)),
        ceil_mode=bool(call.given(5, "ceil_mode", False)),
    )


@_operation("avg_pool2d")
def _average_pool(call: Call) -> Known:
    if call.given(6, "divisor_override", None) is not None:
        raise Unlowered("pools with a divisor of its own")
    kernel = _window(call, 1, "kernel_size", (1, 1))
    return call.layer(
        AveragePool,
        _planes(call),
        kernel=kernel,
        stride=_window(call, 2, "stride", kernel),
        padding=_window(call, 3, "padding", (0, 0)),
        ceil_mode=bool(call.given(4, "ceil_mode", False)),
        count_include_pad=bool(call.given(5, "count_include_pad", True)),
    )


@_operation("_adaptive_avg_pool2d")
def _adaptive_average(call: Call) -> Known:
    return call.layer(AdaptiveAveragePool, _planes(call), size=canonical(call.shape)[1:])


@_operation("adaptive_max_pool2d")
def _adaptive_max(call: Call) -> Known:
    return call.layer(AdaptiveMaxPool, _planes(call), size=canonical(call.shape)[1:])


@_operation("mean")
def _mean(call: Call) -> Known:
    axes = call.given(1, "dim", None)
    if not axes or call.kwargs.get("dtype") is not None:
        raise Unlowered("takes the mean over all axes")
    return _reduced(call, AdaptiveAveragePool, axes, "the mean")


@_operation("max")
def _maximum(call: Call) -> Known:
    axis = call.given(1, "dim", None)
    if not isinstance(axis, int):
        raise Unlowered("takes the maximum over all axes or of two values")
    return _reduced(call, AdaptiveMaxPool, [axis], "the maximum")


def _reduced(
    call: Call, kind: type[AdaptiveAveragePool | AdaptiveMaxPool], axes: Sequence[int], statistic: str
) -> Known:
    """Return the result of reducing axes of the first argument to one entry, such as "the mean"."""
    signals = call.operand()
    rank = len(signals.shape)
    reduced = {axis % (rank + 1) - 1 for axis in axes}
    if rank not in (2, 3) or not reduced <= set(range(1, rank)):
        raise Unlowered(f"takes {statistic} over the batch or the channels")
    channels, height, width = canonical(signals.shape)
    if rank - 1 in reduced:
        width = 1
    if rank == 3 and 1 in reduced:
        height = 1
    maps = call.trace.shaped(signals)
    value = call.trace.emit(kind, [maps], (channels, height, width), size=(height, width))
    return Traced(value, call.shape)


@_operation("t", "transpose", "permute")
def _permute(call: Call) -> Known:
    order = list(range(call.args[0].dim()))
    match call.args[1:]:
        case []:
            order.reverse()
        case [first, second]:
            order[first], order[second] = order[second], order[first]
        case [axes]:
            order = [axis % len(order) for axis in axes]
    if order[0] != 0:
        raise Unlowered("moves the batch axis")
    return call.trace.permuted(call.operand(), [axis - 1 for axis in order[1:]])


@_operation("view", "_unsafe_view", "unsqueeze", "squeeze", "alias", "clone")
def _reshape(call: Call) -> Known:
    if not call.per_instance:
        raise Unlowered("joins the batch axis with another")
    return replace(call.operand(), shape=call.shape)


@_operation("select")
def _select(call: Call) -> Known:
    values, axis = call.args[:2]
    if axis % values.dim() == 0 or values.shape[axis] != 1:
        raise Unlowered("takes a part of a value")
    return replace(call.operand(), shape=call.shape)


@_operation("slice")
def _slice(call: Call) -> Known:
    signals = call.operand()
    values = call.args[0]
    if call.result.shape == values.shape:
        return signals
    axis = call.args[1] % values.dim() - 1  # without the batch axis
    start = call.given(2, "start", None) or 0
    step = call.given(4, "step", 1)
    if axis < 1 or step != 1 or len(signals.shape) not in (2, 3):
        raise Unlowered("takes a part of a value")
    length = signals.shape[axis]
    before = start + length if start < 0 else start
    after = length - before - call.shape[axis]
    return _cropped(call, signals, axis, before, after)


def _cropped(call: Call, signals: Traced, axis: int, before: int, after: int) -> Traced:
    """Return the output of a convolution without some entries of an axis: less padding gives the same.

    Causal convolutions, padded at both ends and cut off at one, are written so.
    """
    layer = call.trace.producer(signals.value)
    if not isinstance(layer, Convolution) or call.trace.shape_of(signals.value) != canonical(signals.shape):
        raise Unlowered("takes a part of a value")
    vertical_stride, horizontal_stride = layer.stride
    top, bottom, left, right = layer.padding
    if axis == len(signals.shape) - 1:
        left -= before * horizontal_stride
        right -= after * horizontal_stride
    else:
        top -= before * vertical_stride
        bottom -= after * vertical_stride
    padding = (top, bottom, left, right)
    if min(padding) < 0:
        raise Unlowered("takes a part of a value")
    value = call.trace.emit_again(layer, canonical(call.shape), padding=padding)
    return Traced(value, call.shape)


@_operation("expand")
def _expand(call: Call) -> Known:
    values = call.args[0]
    signals = call.trace.operand(values, stretched=True)
    if call.result.dim() != values.dim() or not call.per_instance:
        raise Unlowered("repeats a value along an axis")
    is_longer = call.result.shape != values.shape
    return replace(signals, stretched=signals.stretched or is_longer)


@_operation("constant_pad_nd")
def _pad(call: Call) -> Known:
    signals = call.trace.operand(call.args[0], padded=True)
    amounts = list(call.given(1, "pad", ()))
    if call.given(2, "value", 0) != 0:
        raise Unlowered("pads with something other than zeros")
    if min(amounts) < 0:
        raise Unlowered("takes a part of a value")
    zeros = list(signals.padding or ((0, 0),) * len(signals.shape))
    axes = min(len(amounts) // 2, len(zeros))
    if any(amounts[2 * axes :]):
        raise Unlowered("pads the batch axis")
    for number in range(axes):
        axis = -1 - number  # amounts begin with the last axis
        before, after = zeros[axis]
        more_before, more_after = amounts[2 * number : 2 * number + 2]
        zeros[axis] = (before + more_before, after + more_after)
    return replace(signals, padding=tuple(zeros))


@_operation("addmm")
def _linear_with_bias(call: Call) -> Known:
    if call.kwargs.get("beta", 1) != 1 or call.kwargs.get("alpha", 1) != 1:
        raise Unlowered("scales a matrix product")
    bias, features, weight = call.args
    return _linear(call, features, weight, call.trace.parameter(bias))


@_operation("mm")
def _linear_without_bias(call: Call) -> Known:
    features, weight = call.args
    return _linear(call, features, weight, None)


def _linear(call: Call, features: object, weight: object, bias: str | None) -> Known:
    if isinstance(call.trace.known(weight), Traced):
        raise Unlowered("multiplies values as matrices (attention?)")
    name = call.trace.parameter(weight, transposed=True)
    return call.layer(Linear, call.trace.operand(features), weight=name, bias=bias, outputs=call.shape[0])


@_operation("add")
def _add(call: Call) -> Known:
    if call.kwargs.get("alpha", 1) != 1:
        raise Unlowered("adds a multiple of a value")
    first, second = call.pair("adds")
    if first.stretched or first.shape != second.shape:
        raise Unlowered("adds values of different shapes")
    return call.layer(Add, first, second)


@_operation("mul")
def _multiply(call: Call) -> Known:
    for hidden, mask in (call.args, reversed(call.args)):
        noise = call.trace.known(mask)
        if isinstance(noise, Noise):
            return _dropped(call, call.trace.operand(hidden), noise)
    first, second = call.pair("multiplies by")
    if first == second and not first.stretched:
        return _activated(call, first, "square")
    if _per_channel(first, second):
        first, second = second, first
    if first.stretched or (first.shape != second.shape and not _per_channel(second, first)):
        raise Unlowered("multiplies values of different shapes")
    return call.layer(Multiply, first, second)


def _per_channel(value: Traced, maps: Traced) -> bool:
    """Return whether a value has one entry for each channel of maps, which have more."""
    if len(value.shape) != len(maps.shape) or value.shape == maps.shape or len(value.shape) not in (2, 3):
        return False
    return value.shape == _channels(maps.shape)


def _channels(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape with one entry per channel."""
    return (*shape[:1], *(1 for _ in shape[1:]))


@_operation("cat")
def _concatenate(call: Call) -> Known:
    axis = _joined_axis(call)
    values = [call.trace.operand(tensor) for tensor in call.args[0]]
    return _joined(call, values, axis)


@_operation("stack")
def _stack(call: Call) -> Known:
    axis = _joined_axis(call)
    values = []
    for tensor in call.args[0]:
        value = call.trace.operand(tensor)
        with_axis = (*value.shape[:axis], 1, *value.shape[axis:])
        values.append(replace(value, shape=with_axis))
    return _joined(call, values, axis)


def _joined_axis(call: Call) -> int:
    """Return the axis of the instance along which a call joins values."""
    axis: int = call.given(1, "dim", 0) % call.result.dim() - 1
    if axis < 0:
        raise Unlowered("joins the batch axis with another")
    return axis


def _joined(call: Call, values: Sequence[Traced], axis: int) -> Traced:
    """Return values joined along an axis of the instance."""
    axes = range(len(call.shape))
    if len(axes) > 3:
        raise Unlowered("joins values of more than three axes")
    trace = call.trace
    to_front = [axis]
    to_front += [position for position in axes if position != axis]
    to_back = [to_front.index(position) for position in axes]
    shape = tuple(call.shape[position] for position in to_front)
    inputs = [trace.shaped(trace.permuted(value, to_front)) for value in values]
    joined = Traced(trace.emit(Concatenate, inputs, canonical(shape)), shape)
    return trace.permuted(joined, to_back)


@_operation("empty_like", "new_empty")
def _empty(call: Call) -> Known | None:
    return Noise(call.shape) if call.per_instance else None


@_operation("bernoulli")
def _bernoulli(call: Call) -> Known:
    noise = call.trace.known(call.args[0])
    keep = call.given(1, "p", 0.5)
    if not isinstance(noise, Noise) or noise.keep is not None or not isinstance(keep, float):
        raise Unlowered("draws random numbers other than for dropout")
    return replace(noise, keep=keep)


@_operation("div")
def _divide(call: Call) -> Known:
    noise = call.trace.known(call.args[0])
    if not isinstance(noise, Noise):
        raise Unlowered("divides a value")
    if noise.scaled or noise.keep != call.args[1]:
        raise Unlowered("draws random numbers other than for dropout")
    return replace(noise, scaled=True)


_DIGITS = 12
"""Digits of a dropout probability p: PyTorch draws with 1 - p, which is rounded."""


def _dropped(call: Call, signals: Traced, noise: Noise) -> Traced:
    if not noise.scaled or noise.keep is None:
        raise Unlowered("draws random numbers other than for dropout")
    trace = call.trace
    whole_channels = noise.shape != signals.shape
    value = signals.value
    if whole_channels:
        if noise.shape != _channels(signals.shape) or len(signals.shape) not in (2, 3):
            raise Unlowered("drops units other than single ones or whole channels")
        value = trace.shaped(signals)
    probability = round(1 - noise.keep, _DIGITS)
    shape = trace.shape_of(value)
    dropped = trace.emit(Dropout, [value], shape, probability=probability, whole_channels=whole_channels)
    return replace(signals, value=dropped)
