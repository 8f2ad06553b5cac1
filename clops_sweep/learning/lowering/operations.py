"""What each operation of PyTorch is as layers of a program.

An operation maps the tracer, the operation's arguments and its result to what the result is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

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
    Shape,
)
from clops_sweep.learning.lowering.trace import (
    Buffer,
    Clamped,
    Known,
    Noise,
    Operation,
    Parameter,
    Traced,
    Tracer,
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


class _Arguments:
    """Arguments of an operation by position or name, with the defaults of its schema."""

    def __init__(self, names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._values = dict(zip(names, args, strict=False)) | dict(kwargs)

    def get(self, name: str, default: Any = None) -> Any:
        """Return an argument, or its default."""
        return self._values.get(name, default)

    def pair(self, name: str, default: Pair = (0, 0)) -> Pair:
        """Return an argument for height and width; a list of one holds for both, an empty one is the default."""
        value = self._values.get(name)
        if value is None or value == []:
            return default
        values = [value] if isinstance(value, int) else list(value)
        first, second = values * 2 if len(values) == 1 else values
        return first, second


def _shape(result: torch.Tensor) -> Shape:
    """Return the shape of the value that a result is."""
    return canonical(tuple(result.shape[1:]))


def _made(result: torch.Tensor, value: int) -> Traced:
    return Traced(value, tuple(result.shape[1:]))


def _planes(trace: Tracer, tensor: object, what: str) -> int:
    """Return the number of a value of three axes."""
    found = trace.operand(tensor)
    if len(found.shape) != 3:
        raise Unlowered(f"has {what} over other than two axes of a batch of maps")
    return trace.shaped(found)


@_operation("convolution")
def _convolution(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    frames, weight, bias, stride, padding, dilation, transposed, _, groups = args
    found = trace.operand(frames, padded=True)
    if transposed:
        raise Unlowered("is a transposed convolution")
    if len(found.shape) not in (2, 3):
        raise Unlowered("is a convolution over three axes")
    if not weight.is_contiguous():
        raise Unlowered("has weights in another order of memory")
    zeros = found.padding or ((0, 0),) * len(found.shape)
    if zeros[0] != (0, 0):
        raise Unlowered("pads channels with zeros")
    before_and_after = [(own + first, own + last) for own, (first, last) in zip(padding, zeros[1:], strict=True)]
    if len(before_and_after) == 1:
        before_and_after.insert(0, (0, 0))
    (top, bottom), (left, right) = before_and_after
    value = trace.emit(
        Convolution,
        [trace.shaped(replace(found, padding=()))],
        _shape(result),
        weight=trace.parameter(weight),
        bias=trace.parameter_or_none(bias),
        channels=weight.shape[0],
        kernel=_plane(weight.shape[2:]),
        stride=_plane(stride),
        padding=(top, bottom, left, right),
        dilation=_plane(dilation),
        groups=groups,
    )
    return _made(result, value)


def _plane(values: Sequence[int]) -> Pair:
    """Return something along height and width, given along both or along width."""
    along_height, along_width = (1, *values)[-2:]
    return along_height, along_width


@_operation("native_batch_norm", "_native_batch_norm_legit")
def _batch_norm(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    frames, weight, bias, mean, variance, training, momentum, eps = args
    found = trace.operand(frames)
    value = trace.emit(
        BatchNorm,
        [trace.shaped(found)],
        _shape(result),
        weight=trace.parameter_or_none(weight),
        bias=trace.parameter_or_none(bias),
        mean=trace.buffer(mean),
        variance=trace.buffer(variance),
        eps=eps,
        momentum=momentum,
    )
    trace.used_batch_statistics(value, bool(training))
    return _made(result, value)


@_operation("native_group_norm")
def _group_norm(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    frames, weight, bias, batch, _, _, groups, eps = args
    found = trace.operand(frames)
    if batch != trace.batch:
        raise Unlowered("normalises over several instances")
    value = trace.emit(
        GroupNorm,
        [trace.shaped(found)],
        _shape(result),
        weight=trace.parameter_or_none(weight),
        bias=trace.parameter_or_none(bias),
        groups=groups,
        eps=eps,
    )
    return _made(result, value)


@_operation("native_layer_norm")
def _layer_norm(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    frames, normalised, weight, bias, eps = args
    found = trace.operand(frames)
    axes, rank = len(normalised), len(found.shape)
    if axes > rank or rank > 3:
        raise Unlowered("has layer norm over other than the last axes of an instance")
    value = trace.emit(
        LayerNorm,
        [trace.shaped(found)],
        _shape(result),
        weight=trace.parameter_or_none(weight),
        bias=trace.parameter_or_none(bias),
        axes=3 if axes == rank else axes,
        eps=eps,
    )
    return _made(result, value)


def _activation(trace: Tracer, found: Traced, function: Function, parameter: float = 0.0) -> Traced:
    shape = trace.shape_of(found.value)
    value = trace.emit(Activation, [found.value], shape, function=function, parameter=parameter)
    return replace(found, value=value)


def _add_plain(name: Function) -> None:
    @_operation(name)
    def apply(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
        return _activation(trace, trace.operand(args[0]), name)


_add_plain("relu")
_add_plain("sigmoid")
_add_plain("tanh")
_add_plain("silu")


@_operation("leaky_relu")
def _leaky_relu(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    given = _Arguments(("x", "negative_slope"), args, kwargs)
    return _activation(trace, trace.operand(args[0]), "leaky_relu", float(given.get("negative_slope", 0.01)))


@_operation("elu")
def _elu(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    given = _Arguments(("x", "alpha", "scale", "input_scale"), args, kwargs)
    if given.get("scale", 1) != 1 or given.get("input_scale", 1) != 1:
        raise Unlowered("uses a scaled ELU")
    return _activation(trace, trace.operand(args[0]), "elu", float(given.get("alpha", 1)))


@_operation("gelu")
def _gelu(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    exact = kwargs.get("approximate", "none") == "none"
    return _activation(trace, trace.operand(args[0]), "gelu" if exact else "gelu_tanh")


@_operation("pow")
def _power(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    if args[1] != 2:
        raise Unlowered("uses a power other than the square")
    return _activation(trace, trace.operand(args[0]), "square")


@_operation("clamp", "clamp_min")
def _clamp(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    given = _Arguments(("x", "min", "max"), args, kwargs)
    minimum = given.get("min")
    if given.get("max") is not None or not isinstance(minimum, float | int):
        raise Unlowered("clamps a value other than for a logarithm")
    return Clamped(trace.operand(args[0]), float(minimum))


@_operation("log")
def _logarithm(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    clamped = trace.known(args[0])
    if not isinstance(clamped, Clamped) or clamped.minimum <= 0:
        raise Unlowered("takes the logarithm of something that is not clamped above zero")
    return _activation(trace, clamped.of, "safe_log", clamped.minimum)


@_operation("max_pool2d_with_indices")
def _max_pool(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    names = ("x", "kernel", "stride", "padding", "dilation", "ceil_mode")
    given = _Arguments(names, args, kwargs)
    kernel = given.pair("kernel")
    value = trace.emit(
        MaxPool,
        [_planes(trace, args[0], "pools")],
        _shape(result),
        kernel=kernel,
        stride=given.pair("stride", kernel),
        padding=given.pair("padding"),
        dilation=given.pair("dilation", (1, 1)),
        ceil_mode=bool(given.get("ceil_mode", False)),
    )
    return _made(result, value)


@_operation("avg_pool2d")
def _average_pool(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    names = ("x", "kernel", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")
    given = _Arguments(names, args, kwargs)
    if given.get("divisor_override") is not None:
        raise Unlowered("pools with a divisor of its own")
    kernel = given.pair("kernel")
    value = trace.emit(
        AveragePool,
        [_planes(trace, args[0], "pools")],
        _shape(result),
        kernel=kernel,
        stride=given.pair("stride", kernel),
        padding=given.pair("padding"),
        ceil_mode=bool(given.get("ceil_mode", False)),
        count_include_pad=bool(given.get("count_include_pad", True)),
    )
    return _made(result, value)


@_operation("_adaptive_avg_pool2d")
def _adaptive_average(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    shape = _shape(result)
    value = trace.emit(AdaptiveAveragePool, [_planes(trace, args[0], "pools")], shape, size=shape[1:])
    return _made(result, value)


@_operation("adaptive_max_pool2d")
def _adaptive_max(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    shape = _shape(result)
    value = trace.emit(AdaptiveMaxPool, [_planes(trace, args[0], "pools")], shape, size=shape[1:])
    return _made(result, value)


@_operation("mean")
def _mean(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    found = trace.operand(args[0])
    axes = args[1] if len(args) > 1 else kwargs.get("dim")
    if not axes or kwargs.get("dtype") is not None:
        raise Unlowered("takes the mean over all axes")
    value, size = _reduced(trace, found, list(axes), "the mean")
    shape = (trace.shape_of(value)[0], *size)
    return _made(result, trace.emit(AdaptiveAveragePool, [value], shape, size=size))


@_operation("max")
def _maximum(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    found = trace.operand(args[0])
    if len(args) < 2 or not isinstance(args[1], int):
        raise Unlowered("takes the maximum over all axes or of two values")
    value, size = _reduced(trace, found, [args[1]], "the maximum")
    shape = (trace.shape_of(value)[0], *size)
    return _made(result, trace.emit(AdaptiveMaxPool, [value], shape, size=size))


def _reduced(trace: Tracer, found: Traced, axes: list[int], what: str) -> tuple[int, Pair]:
    """Return a value in its canonical shape, and its height and width once axes of the tensor are reduced to one."""
    rank = len(found.shape)
    reduced = {axis % (rank + 1) - 1 for axis in axes}
    if rank not in (2, 3) or not reduced <= set(range(1, rank)):
        raise Unlowered(f"takes {what} over the batch or the channels")
    value = trace.shaped(found)
    _, height, width = trace.shape_of(value)
    if rank - 1 in reduced:
        width = 1
    if rank == 3 and 1 in reduced:
        height = 1
    return value, (height, width)


@_operation("t", "transpose", "permute")
def _permute(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known | None:
    order = list(range(args[0].dim()))
    if len(args) == 1:
        order.reverse()
    elif len(args) == 3:
        first, second = args[1], args[2]
        order[first], order[second] = order[second], order[first]
    else:
        order = [axis % len(order) for axis in args[1]]
    known = trace.known(args[0])
    if isinstance(known, Parameter):
        flips = order == [1, 0]
        return Parameter(known.name, transposed=not known.transposed) if flips else None
    if order[0] != 0:
        raise Unlowered("moves the batch axis")
    return trace.permuted(trace.operand(args[0]), [axis - 1 for axis in order[1:]])


@_operation("view", "_unsafe_view", "unsqueeze", "squeeze", "alias", "clone")
def _reshape(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known | None:
    if isinstance(trace.known(args[0]), Parameter | Buffer):
        return None
    found = trace.operand(args[0])
    if result.dim() == 0 or len(result) != trace.batch:
        raise Unlowered("joins the batch axis with another")
    return replace(found, shape=tuple(result.shape[1:]))


@_operation("select")
def _select(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    found, axis = trace.operand(args[0]), args[1] % args[0].dim()
    if axis == 0 or args[0].shape[axis] != 1:
        raise Unlowered("takes a part of a value")
    return replace(found, shape=tuple(result.shape[1:]))


@_operation("slice")
def _slice(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    found = trace.operand(args[0])
    if result.shape != args[0].shape:
        raise Unlowered("takes a part of a value")
    return found


@_operation("expand")
def _expand(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    found = trace.operand(args[0], stretched=True)
    if result.dim() != args[0].dim() or len(result) != trace.batch:
        raise Unlowered("repeats a value along an axis")
    return replace(found, stretched=found.stretched or result.shape != args[0].shape)


@_operation("constant_pad_nd")
def _pad(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    found = trace.operand(args[0], padded=True)
    given = _Arguments(("x", "pad", "value"), args, kwargs)
    amounts = list(given.get("pad"))
    if given.get("value", 0) != 0:
        raise Unlowered("pads with something other than zeros")
    if min(amounts) < 0:
        raise Unlowered("takes a part of a value")
    zeros = list(found.padding or ((0, 0),) * len(found.shape))
    if len(amounts) > 2 * len(zeros):
        raise Unlowered("pads the batch axis")
    for number in range(len(amounts) // 2):
        before, after = zeros[-1 - number]
        zeros[-1 - number] = (before + amounts[2 * number], after + amounts[2 * number + 1])
    return replace(found, padding=tuple(zeros))


@_operation("addmm")
def _linear_with_bias(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    bias, features, weight = args
    if kwargs.get("beta", 1) != 1 or kwargs.get("alpha", 1) != 1:
        raise Unlowered("scales a matrix product")
    return _linear(trace, features, weight, trace.parameter(bias), result)


@_operation("mm")
def _linear_without_bias(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    features, weight = args
    return _linear(trace, features, weight, None, result)


def _linear(trace: Tracer, features: object, weight: object, bias: str | None, result: torch.Tensor) -> Known:
    if isinstance(trace.known(weight), Traced):
        raise Unlowered("multiplies values as matrices (attention?)")
    value = trace.shaped(trace.operand(features))
    name = trace.parameter(weight, transposed=True)
    shape = _shape(result)
    return _made(result, trace.emit(Linear, [value], shape, weight=name, bias=bias, outputs=shape[0]))


@_operation("add")
def _add(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known | None:
    counted = trace.known(args[0])
    if isinstance(counted, Buffer):
        if args[0].is_floating_point() or args[0].dim() or args[1] != 1:
            raise Unlowered(f"changes buffer {counted.name!r}")
        trace.counters.append(counted.name)
        return None
    if not isinstance(args[1], torch.Tensor) or kwargs.get("alpha", 1) != 1:
        raise Unlowered("adds a constant, or a multiple of a value")
    first, second = trace.operand(args[0]), trace.operand(args[1])
    if first.shape != second.shape:
        raise Unlowered("adds values of different shapes")
    shape = canonical(first.shape)
    return _made(result, trace.emit(Add, [trace.shaped(first), trace.shaped(second)], shape))


@_operation("mul")
def _multiply(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    if not isinstance(args[1], torch.Tensor):
        raise Unlowered("multiplies by a constant")
    for hidden, mask in (args, reversed(args)):
        noise = trace.known(mask)
        if isinstance(noise, Noise):
            return _dropout(trace, trace.operand(hidden), noise)
    first = trace.operand(args[0], stretched=True)
    second = trace.operand(args[1], stretched=True)
    if first == second and not first.stretched:
        return _activation(trace, first, "square")
    if _per_channel(first, second):
        first, second = second, first
    if first.stretched or (first.shape != second.shape and not _per_channel(second, first)):
        raise Unlowered("multiplies values of different shapes")
    shape = canonical(first.shape)
    return _made(result, trace.emit(Multiply, [trace.shaped(first), trace.shaped(second)], shape))


@_operation("cat")
def _concatenate(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    given = _Arguments(("tensors", "dim"), args, kwargs)
    axis = given.get("dim", 0) % result.dim() - 1
    if axis < 0:
        raise Unlowered("joins the batch axis with another")
    parts = [trace.operand(tensor) for tensor in given.get("tensors")]
    if len(parts[0].shape) > 3:
        raise Unlowered("joins values of more than three axes")
    others = [other for other in range(len(parts[0].shape)) if other != axis]
    fronted = [trace.permuted(part, [axis, *others]) for part in parts]
    joined = tuple(result.shape[1:][other] for other in (axis, *others))
    value = trace.emit(Concatenate, [trace.shaped(part) for part in fronted], canonical(joined))
    back = [1 + others.index(other) if other != axis else 0 for other in range(len(joined))]
    return trace.permuted(Traced(value, joined), back)


def _per_channel(one: Traced, other: Traced) -> bool:
    """Return whether one value has one entry for each channel of another, which has more."""
    if len(one.shape) != len(other.shape) or one.shape == other.shape or len(one.shape) not in (2, 3):
        return False
    return one.shape == (other.shape[0], *(1 for _ in other.shape[1:]))


@_operation("empty_like", "new_empty")
def _empty(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known | None:
    if result.dim() == 0 or len(result) != trace.batch or not isinstance(trace.known(args[0]), Traced):
        return None
    return Noise(tuple(result.shape[1:]))


@_operation("bernoulli")
def _bernoulli(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    noise = trace.known(args[0])
    keep = args[1] if len(args) > 1 else kwargs.get("p", 0.5)
    if not isinstance(noise, Noise) or noise.keep is not None or not isinstance(keep, float):
        raise Unlowered("draws random numbers other than for dropout")
    return replace(noise, keep=keep)


@_operation("div")
def _divide(trace: Tracer, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Known:
    noise = trace.known(args[0])
    if not isinstance(noise, Noise):
        raise Unlowered("divides a value")
    if noise.scaled or noise.keep != args[1]:
        raise Unlowered("draws random numbers other than for dropout")
    return replace(noise, scaled=True)


_DIGITS = 12
"""Digits of a dropout probability p: PyTorch draws with 1 - p, which is rounded."""


def _dropout(trace: Tracer, found: Traced, noise: Noise) -> Traced:
    if not noise.scaled or noise.keep is None:
        raise Unlowered("draws random numbers other than for dropout")
    probability = round(1 - noise.keep, _DIGITS)
    per_channel = noise.shape == (*found.shape[:1], *(1 for _ in found.shape[1:]))
    if noise.shape == found.shape:
        value, whole = found.value, False
    elif per_channel and len(found.shape) in (2, 3):
        value, whole = trace.shaped(found), True
    else:
        raise Unlowered("drops units other than single ones or whole channels")
    shape = trace.shape_of(value)
    dropped = trace.emit(Dropout, [value], shape, probability=probability, whole_channels=whole)
    return replace(found, value=dropped)
