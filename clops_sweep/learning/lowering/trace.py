"""Trace: the operations of one pass of a module, as layers of a program.

The pass is a real one, on a few frames of noise. A dispatch mode sees every operation on tensors that it consists of,
whatever Python or C++ code asks for it. A tensor is recognised by its place in memory and its geometry. Nothing is
assumed about what is not recognised: such a network is not lowered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from clops_sweep.learning.lowering.program import (
    BatchNorm,
    Derivation,
    Dropout,
    Layer,
    Permute,
    Reshape,
    Shape,
    Source,
    derived_name,
)


class Unlowered(Exception):
    """A module does something that no layer of a program does.

    Args:
        reason: what it does.
        layer: the layer of the module that does it; by default the one that is running.
    """

    def __init__(self, reason: str, layer: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.layer = layer


@dataclass(frozen=True)
class Traced:
    """A tensor of a pass that is a value of the program.

    Attributes:
        value: number of the value.
        shape: shape of the tensor without the batch axis.
        padding: numbers of zeros before and after each axis that the tensor has and the value lacks.
        stretched: whether the tensor repeats the entries of axes of length 1, which `shape` has.
    """

    value: int
    shape: tuple[int, ...]
    padding: tuple[tuple[int, int], ...] = ()
    stretched: bool = False


@dataclass(frozen=True)
class Clamped:
    """A tensor of a pass: the maximum of a value's entries and `minimum`."""

    of: Traced
    minimum: float


@dataclass(frozen=True)
class Noise:
    """A tensor of a pass: a mask of dropout.

    Attributes:
        shape: shape of the tensor without the batch axis.
        keep: probability to keep a unit; None before the mask is drawn.
        scaled: whether it is divided by `keep`.
    """

    shape: tuple[int, ...]
    keep: float | None = None
    scaled: bool = False


@dataclass(frozen=True)
class Constant:
    """A tensor of a pass that depends on parameters and buffers alone.

    Attributes:
        source: the parameter or buffer that it is, or the number of the derivation that computes it.
        transposed: whether it is the transpose of that.
    """

    source: Source
    transposed: bool = False


Known = Traced | Clamped | Noise | Constant

_Key = tuple[Any, ...]


@dataclass(frozen=True)
class Call:
    """A call of an operation on values.

    Attributes:
        trace: the tracer.
        args: its arguments by position.
        kwargs: its arguments by name.
        result: its first result.
    """

    trace: Tracer
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    result: torch.Tensor

    def given(self, position: int, name: str, default: Any) -> Any:
        """Return an argument that may stand at a position, under a name, or be left out."""
        if position < len(self.args):
            return self.args[position]
        return self.kwargs.get(name, default)

    def operand(self) -> Traced:
        """Return the value that the first argument is."""
        return self.trace.operand(self.args[0])

    def pair(self, verb: str) -> tuple[Traced, Traced]:
        """Return the values that the first two arguments are; they may repeat entries."""
        first, second = self.args[:2]
        if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
            raise Unlowered(f"{verb} a constant")
        return self.trace.operand(first, stretched=True), self.trace.operand(second, stretched=True)

    @property
    def per_instance(self) -> bool:
        """Whether the first axis of the result is that of the batch."""
        return self.result.dim() > 0 and len(self.result) == self.trace.batch

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result without the batch axis."""
        return tuple(self.result.shape[1:])

    def layer(self, kind: type[Layer], *inputs: Traced, **fields: Any) -> Traced:
        """Return the result of a new layer that takes values in their canonical shapes."""
        values = [self.trace.shaped(signals) for signals in inputs]
        result = self.trace.emit(kind, values, canonical(self.shape), **fields)
        return Traced(result, self.shape)


Operation = Callable[[Call], Known | None]
"""Maps the call of an operation to what its result is."""


def canonical(shape: tuple[int, ...]) -> Shape:
    """Return the shape of the value that an instance of this shape is: [C, T] is (C, 1, T), and [F] is (F, 1, 1)."""
    match shape:
        case (channels, height, width):
            return channels, height, width
        case (channels, width):
            return channels, 1, width
        case _:
            return math.prod(shape), 1, 1


@dataclass(frozen=True)
class Traces:
    """What one pass consisted of.

    Attributes:
        layers: the layers whose results the logits depend on.
        shapes: shape of every value.
        batch_statistics: for each batch norm, whether it used the statistics of the batch.
        counters: names of the buffers that counted the pass.
        derivations: what the pass computed from parameters and buffers alone.
    """

    layers: tuple[Layer, ...]
    shapes: tuple[Shape, ...]
    batch_statistics: tuple[bool, ...]
    counters: tuple[str, ...]
    derivations: tuple[Derivation, ...]


def described(name: str, layer: nn.Module) -> str:
    """Return a layer for messages, as in "'blocks.0' (Conv1d)"."""
    kind = type(layer).__name__
    return f"{name!r} ({kind})" if name else f"the network ({kind})"


class Dispatching:
    """The hook of a dispatch mode, in a base class.

    PyTorch wraps a hook in the class body of a mode, to keep its compiler away from it, and then imports the compiler,
    which takes two seconds.
    """

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return self.computed(function, args, kwargs or {})

    def computed(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the result of an operation."""
        raise NotImplementedError


class Tracer(Dispatching, TorchDispatchMode):
    """Context that writes a pass of a module down.

    Args:
        module: the module.
        operations: what each operation of PyTorch is, by its name without the underscore of its in-place form.
        frames: the input, [B, channels, samples].
    """

    def __init__(self, module: nn.Module, operations: Mapping[str, Operation], frames: torch.Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.batch = len(frames)
        self.failure: Unlowered | None = None
        self.counters: list[str] = []
        self._module = module
        self._operations = operations
        self._layers: list[Layer] = []
        self._shapes: list[Shape] = [canonical(tuple(frames.shape[1:]))]
        self._batch_statistics: dict[int, bool] = {}
        self._derivations: list[Derivation] = []
        self._reshaped: dict[tuple[int, Shape], int] = {}
        self._running = [("", module)]
        self._alive: list[torch.Tensor] = [frames]
        """All tensors of the pass: none of them is freed, so none gets the memory of another."""
        self._known: dict[_Key, Known] = {}
        for name, parameter in module.named_parameters():
            self._record(parameter, Constant(Source("parameter", name)))
        for name, buffer in module.named_buffers():
            self._record(buffer, Constant(Source("buffer", name)))
        self._record(frames, Traced(0, tuple(frames.shape[1:])))

    def _record(self, tensor: torch.Tensor, known: Known) -> None:
        self._alive.append(tensor)
        if tensor.numel():
            self._known[_key(tensor)] = known

    def known(self, tensor: object) -> Known | None:
        """Return what a tensor is; None if it is anything else."""
        if not isinstance(tensor, torch.Tensor):
            return None
        return self._known.get(_key(tensor))

    def operand(self, tensor: object, *, padded: bool = False, stretched: bool = False) -> Traced:
        """Return the value that a tensor is.

        Args:
            tensor: the tensor.
            padded: whether it may have padding.
            stretched: whether it may repeat entries.

        Raises:
            Unlowered: it is anything else.
        """
        known = self.known(tensor)
        match known:
            case Traced():
                if known.padding and not padded:
                    raise Unlowered("pads with zeros before something other than a convolution")
                if known.stretched and not stretched:
                    raise Unlowered("repeats a value along an axis")
                return known
            case Clamped():
                raise Unlowered("clamps a value other than for a logarithm")
            case Noise(keep=None):
                raise Unlowered(_UNKNOWN)
            case Noise():
                raise Unlowered("draws random numbers other than for dropout")
            case Constant():
                raise Unlowered("combines a value with a parameter other than in a convolution, linear layer or norm")
            case _:
                raise Unlowered(_UNKNOWN)

    def parameter(self, tensor: object, *, transposed: bool = False) -> str:
        """Return the name under which a layer finds its parameter.

        Args:
            tensor: the parameter.
            transposed: whether the tensor is its transpose.

        Raises:
            Unlowered: it is neither a parameter nor derived from parameters and buffers.
        """
        known = self.known(tensor)
        if not isinstance(tensor, torch.Tensor) or not isinstance(known, Constant):
            raise Unlowered("computes the weights of a layer from a value" if known is not None else _UNKNOWN)
        source = known.source
        weight = tensor.t() if transposed else tensor
        if known.transposed != transposed:
            return self._derive(torch.ops.aten.t.default, (source,), {}, weight)
        if source.kind == "parameter" and self._module.get_parameter(source.name).requires_grad:
            return source.name
        if source.kind == "derived":
            return source.name
        return self._derive(None, (source,), {}, weight)

    def _derive(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> str:
        """Return a name for something derived from parameters and buffers, and note how."""
        name = derived_name(len(self._derivations))
        self._derivations.append(Derivation(function, args, tuple(kwargs.items()), tuple(result.shape)))
        return name

    def parameter_or_none(self, tensor: object) -> str | None:
        """As `parameter`; None for None."""
        return None if tensor is None else self.parameter(tensor)

    def buffer(self, tensor: object) -> str:
        """Return the name of the buffer that a tensor is.

        Raises:
            Unlowered: it is anything else.
        """
        known = self.known(tensor)
        if not isinstance(known, Constant) or known.source.kind != "buffer":
            raise Unlowered("has a batch norm without running statistics")
        return known.source.name

    def emit(self, kind: type[Layer], inputs: Sequence[int], output: Shape, **fields: Any) -> int:
        """Return the number of the output of a new layer, which has the shape `output`."""
        self._layers.append(kind(layer=self.running, inputs=tuple(inputs), **fields))
        self._shapes.append(output)
        return len(self._layers)

    def emit_again(self, layer: Layer, output: Shape, **changes: Any) -> int:
        """Return the number of the output of a layer that is added once more, with some changes."""
        self._layers.append(replace(layer, **changes))
        self._shapes.append(output)
        return len(self._layers)

    def producer(self, value: int) -> Layer | None:
        """Return the layer that computes a value."""
        return self._layers[value - 1] if value else None

    def used_batch_statistics(self, value: int, used: bool) -> None:
        """Note whether the batch norm that computed a value used the statistics of the batch."""
        self._batch_statistics[value] = used

    def shape_of(self, value: int) -> Shape:
        """Return the shape of a value."""
        return self._shapes[value]

    def shaped(self, traced: Traced, shape: Shape | None = None) -> int:
        """Return the number of a value with the entries of another, and a shape: by default the canonical one."""
        if shape is None:
            shape = canonical(traced.shape)
        value = traced.value
        if self._shapes[value] == shape:
            return value
        key = (value, shape)
        if key not in self._reshaped:
            self._reshaped[key] = self.emit(Reshape, [value], shape, shape=shape)
        return self._reshaped[key]

    def permuted(self, traced: Traced, order: Sequence[int]) -> Traced:
        """Return a value whose axis i is axis `order[i]` of another."""
        lengths = traced.shape
        shape = tuple(lengths[axis] for axis in order)
        moved = [axis for axis in order if lengths[axis] != 1]
        in_order = sorted(moved)
        if moved == in_order:
            return replace(traced, shape=shape)
        if len(moved) > 3:
            raise Unlowered("permutes more than three axes")
        # the same entries with three axes: those longer than 1, behind axes of length 1 where they are fewer
        missing = 3 - len(moved)
        channels, height, width = [1] * missing + [lengths[axis] for axis in in_order]
        three_axes = (channels, height, width)
        first, second, third = [*range(missing), *(missing + in_order.index(axis) for axis in moved)]
        permuted = (three_axes[first], three_axes[second], three_axes[third])
        value = self.shaped(traced, three_axes)
        result = self.emit(Permute, [value], permuted, order=(first, second, third))
        return Traced(result, shape)

    @property
    def running(self) -> str:
        """The layer that is running, as in "'blocks.0' (Conv1d)"."""
        name, layer = self._running[-1]
        return described(name, layer)

    def computed(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the result of an operation, and note what it is."""
        masks = _name(function) == "bernoulli_"  # whose units are drawn later, by keys and counters
        result = args[0].fill_(1) if masks else function(*args, **kwargs)
        try:
            self._note(function, args, kwargs, result)
        except Unlowered as failure:
            self.fail(failure)
            raise
        return result

    def fail(self, failure: Unlowered) -> None:
        """Remember the first failure, because the module may catch it."""
        if self.failure is None:
            self.failure = Unlowered(self._purpose() or failure.reason, failure.layer or self.running)

    def _purpose(self) -> str:
        """Return what the running layer is, if that says more than the operation at which it fails."""
        layer = self._running[-1][1]
        if isinstance(layer, nn.RNNBase | nn.RNNCellBase):
            return "is recurrent"
        if getattr(layer, "padding_mode", "zeros") != "zeros":
            return "pads with something other than zeros"
        if isinstance(layer, nn.MultiheadAttention | nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
            return "is attention"
        return ""

    def _note(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """Note what the result of an operation is."""
        name = _name(function)
        self._alive += _tensors(result)
        kinds = {type(self.known(tensor)) for tensor in _tensors([*args, *kwargs.values()])}
        if name == "_local_scalar_dense":
            raise Unlowered(_READS)
        if kinds <= {type(None)} or name == "detach":
            return  # autograd detaches what it saves; the module's own detach() is seen by `Watcher`
        if not torch.is_grad_enabled():
            raise Unlowered("computes something without a gradient")
        in_place = name.endswith("_") and not name.startswith("__")
        first_result = result[0] if isinstance(result, tuple | list) else result
        if kinds <= {Constant, type(None)}:
            self._note_constant(function, args, kwargs, first_result, in_place=in_place)
            return
        operation = self._operations.get(name.removesuffix("_") if in_place else name)
        if operation is None:
            raise Unlowered(_REASONS.get(name, f"uses the operation {name!r}"))
        known = operation(Call(self, args, kwargs, first_result))
        if in_place:
            self._forget_aliases(args[0])
        if known is not None:
            self._record(first_result, known)

    def _note_constant(
        self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor, *, in_place: bool
    ) -> None:
        """Note the result of an operation on parameters and buffers."""
        name = _name(function)
        known = self.known(args[0])
        if in_place:
            is_whole_number = args[0].dim() == 0 and not args[0].is_floating_point()
            counts = name == "add_" and is_whole_number and args[1] == 1
            if not counts or not isinstance(known, Constant) or known.source.kind != "buffer":
                raise Unlowered("changes a parameter or buffer")
            self.counters.append(known.source.name)
            return
        if name == "t" and isinstance(known, Constant):
            self._record(result, replace(known, transposed=not known.transposed))
            return
        if name in _ON_VALUES or not isinstance(result, torch.Tensor):
            raise Unlowered(f"applies the operation {name!r} to parameters or buffers alone")
        sources = tuple(self._source(argument) for argument in args)
        named_sources = {name: self._source(argument) for name, argument in kwargs.items()}
        derived = self._derive(function, sources, named_sources, result)
        self._record(result, Constant(Source("derived", derived)))

    def _source(self, argument: Any) -> Any:
        """Return an argument of a derivation, with sources in place of tensors."""
        if isinstance(argument, list | tuple):
            return tuple(self._source(value) for value in argument)
        if not isinstance(argument, torch.Tensor):
            return argument
        known = self.known(argument)
        if not isinstance(known, Constant):
            raise Unlowered(_UNKNOWN)
        if known.transposed:
            derived = self._derive(torch.ops.aten.t.default, (known.source,), {}, argument)
            return Source("derived", derived)
        return known.source

    def _forget_aliases(self, changed: torch.Tensor) -> None:
        """Forget all tensors in memory that an operation has changed."""
        storage = changed.untyped_storage().data_ptr()
        for tensor in self._alive:
            if tensor.untyped_storage().data_ptr() == storage:
                self._known.pop(_key(tensor), None)

    @contextmanager
    def names(self) -> Iterator[None]:
        """Return a context in which the tracer knows which layer is running."""
        handles = []

        def entering(name: str, layer: nn.Module) -> Callable[..., None]:
            return lambda *_: self._running.append((name, layer))

        def leaving(*_: Any) -> None:
            self._running.pop()

        for name, layer in self._module.named_modules():
            if name:
                handles.append(layer.register_forward_pre_hook(entering(name, layer)))
                handles.append(layer.register_forward_hook(leaving, always_call=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def finished(self, logits: object) -> Traces:
        """Return what the pass consisted of, without the layers that the logits do not depend on.

        Raises:
            Unlowered: the logits are no value of shape [B, outputs], or a parameter or buffer is used twice.
        """
        if self.failure is not None:
            raise self.failure
        result = self.operand(logits)
        if len(result.shape) != 1:
            raise Unlowered("returns logits of more than two axes")
        return self._pruned(self.shaped(result))

    def _pruned(self, logits: int) -> Traces:
        """Return the layers that a value depends on, with their values numbered anew."""
        used = {logits}
        for value in range(logits, 0, -1):
            if value in used:
                used.update(self._layers[value - 1].inputs)
        numbers = {0: 0}
        layers: list[Layer] = []
        shapes = [self._shapes[0]]
        statistics = []
        for value, layer in enumerate(self._layers, start=1):
            if value not in used:
                if isinstance(layer, BatchNorm | Dropout):
                    raise Unlowered("computes something that the logits do not depend on", layer.layer)
                continue
            inputs = tuple(numbers[input_value] for input_value in layer.inputs)
            layers.append(replace(layer, inputs=inputs))
            shapes.append(self._shapes[value])
            numbers[value] = len(layers)
            if isinstance(layer, BatchNorm):
                statistics.append(self._batch_statistics[value])
        _check_uses(layers)
        return Traces(tuple(layers), tuple(shapes), tuple(statistics), tuple(self.counters), tuple(self._derivations))


def _check_uses(layers: Sequence[Layer]) -> None:
    used = set[str]()
    for layer in layers:
        for name in (*layer.parameters, *layer.buffers):
            if name in used:
                raise Unlowered(f"uses {name!r} a second time in a pass", layer.layer)
            used.add(name)


_ON_VALUES = ("native_batch_norm", "_native_batch_norm_legit")
"""Operations that change their arguments, though their names do not say so."""

_UNKNOWN = "computes with a tensor that is neither its input nor a whole parameter"

_REASONS = {
    "bmm": "multiplies values as matrices (attention?)",
    "_softmax": "uses softmax (attention?)",
    "_scaled_dot_product_flash_attention_for_cpu": "is attention",
}
"""What an operation is for, where that says more than its name."""


class Watcher(TorchFunctionMode):
    """Context in which a tracer fails when a module takes values out of the tensors of a pass.

    Args:
        tracer: the tracer.
    """

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self._tracer = tracer

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if function in _TAKEN_OUT:
            failure = Unlowered(_TAKEN_OUT[function])
            self._tracer.fail(failure)
            raise failure
        return function(*args, **(kwargs or {}))


_READS = "reads a tensor's value (data-dependent flow?)"
_STOPS = "detaches a tensor from its gradient"
_TAKEN_OUT: dict[Any, str] = {
    torch.Tensor.numpy: _READS,
    torch.Tensor.tolist: _READS,
    torch.Tensor.item: _READS,
    torch.Tensor.__array__: _READS,
    torch.Tensor.__dlpack__: _READS,
    torch.Tensor.detach: _STOPS,
    torch.Tensor.detach_: _STOPS,
    torch.Tensor.data.__get__: _STOPS,  # type: ignore[attr-defined]
    torch.detach: _STOPS,
    torch.Tensor.register_hook: "has hooks",
}


def traced(module: nn.Module, operations: Mapping[str, Operation], frames: torch.Tensor) -> Traces:
    """Return what a pass of a module consists of, in the mode that its layers are in.

    Raises:
        Unlowered: something of it is no layer of a program.
    """
    tracer = Tracer(module, operations, frames)
    with ExitStack() as contexts:
        contexts.enter_context(tracer.names())
        contexts.enter_context(torch.enable_grad())
        contexts.enter_context(tracer)
        contexts.enter_context(Watcher(tracer))
        try:
            logits: object = module(frames)
        except Exception as error:
            logits = None
            tracer.fail(Unlowered(f"raises {type(error).__name__} when its operations are recorded"))
    return tracer.finished(logits)


def _tensors(values: object) -> Iterator[torch.Tensor]:
    """Yield the tensors among arguments or results."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, tuple | list):
        for value in values:
            yield from _tensors(value)


def _name(function: Any) -> str:
    """Return the name of an operation in ATen, such as "relu_"."""
    return str(function).rpartition(".")[0].removeprefix("aten.")


def _key(tensor: torch.Tensor) -> _Key:
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype
