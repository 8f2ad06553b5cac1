"""A slow, plain interpreter of programs: each layer by one function of PyTorch, in the precision of its input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from clops_sweep.learning.lowering import program as layers
from clops_sweep.learning.lowering.program import Layer, Program

Tensors = Mapping[str, torch.Tensor]


class Interpreter:
    """A program with the parameters and buffers of a module.

    Args:
        program: the program.
        parameters: its parameters by name.
        buffers: its buffers by name; running statistics among them change where a pass tracks them.
        batch_statistics: whether batch norm uses the statistics of the batch, and tracks them.
        masks: masks of the dropout layers in order, already scaled; None for a pass without dropout.
    """

    def __init__(
        self,
        program: Program,
        parameters: Tensors,
        buffers: Tensors,
        *,
        batch_statistics: bool,
        masks: Sequence[torch.Tensor] | None = None,
    ) -> None:
        self._program = program
        self._parameters = parameters
        self._buffers = buffers
        self._batch_statistics = batch_statistics
        self._masks = None if masks is None else list(masks)

    def __call__(self, frames: torch.Tensor) -> torch.Tensor:
        """Map frames [B, channels, samples] to logits [B, outputs]."""
        batch = len(frames)
        values = [frames.reshape(batch, *self._program.shapes[0])]
        for layer, shape in zip(self._program.layers, self._program.shapes[1:], strict=True):
            inputs = [values[number] for number in layer.inputs]
            result = self._computed(layer, inputs)
            assert result.shape == (batch, *shape), (layer, result.shape, shape)
            values.append(result)
        return values[-1].flatten(1)

    def _weights(self, layer: Any) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        weight = None if layer.weight is None else self._parameters[layer.weight]
        return weight, None if layer.bias is None else self._parameters[layer.bias]

    def _computed(self, layer: Layer, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
        x = inputs[0]
        match layer:
            case layers.Convolution():
                return self._convolved(layer, x)
            case layers.BatchNorm():
                statistics = self._buffers[layer.mean], self._buffers[layer.variance]
                training, weights = self._batch_statistics, self._weights(layer)
                return F.batch_norm(x, *statistics, *weights, training, layer.momentum, layer.eps)
            case layers.GroupNorm():
                return F.group_norm(x, layer.groups, *self._weights(layer), layer.eps)
            case layers.LayerNorm():
                return self._layer_normed(layer, x)
            case layers.Activation():
                return _activated(layer, x)
            case layers.MaxPool():
                window = layer.kernel, layer.stride, layer.padding, layer.dilation
                return F.max_pool2d(x, *window, ceil_mode=layer.ceil_mode)
            case layers.AveragePool():
                window = layer.kernel, layer.stride, layer.padding
                return F.avg_pool2d(x, *window, layer.ceil_mode, layer.count_include_pad)
            case layers.AdaptiveAveragePool(size=size):
                return F.adaptive_avg_pool2d(x, size)
            case layers.AdaptiveMaxPool(size=size):
                return F.adaptive_max_pool2d(x, size)
            case layers.Dropout():
                return self._dropped(layer, x)
            case layers.Linear():
                weight, bias = self._weights(layer)
                assert x.shape[2:] == (1, 1)
                return F.linear(x.flatten(1), weight, bias)[:, :, None, None]
            case layers.Add():
                assert inputs[1].shape == x.shape
                return x + inputs[1]
            case layers.Multiply():
                assert inputs[1].shape in (x.shape, (*x.shape[:2], 1, 1))
                return x * inputs[1]
            case layers.Concatenate():
                return torch.cat(list(inputs), dim=1)
            case layers.Permute(order=order):
                return x.permute(0, *(axis + 1 for axis in order))
            case layers.Reshape(shape=shape):
                return x.reshape(len(x), *shape)
        raise AssertionError(layer)

    def _convolved(self, layer: layers.Convolution, x: torch.Tensor) -> torch.Tensor:
        weight, bias = self._weights(layer)
        assert weight is not None
        top, bottom, left, right = layer.padding
        padded = F.pad(x, (left, right, top, bottom))
        kernels = weight.reshape(layer.outputs, -1, *layer.kernel)
        return F.conv2d(padded, kernels, bias, layer.stride, 0, layer.dilation, layer.groups)

    def _layer_normed(self, layer: layers.LayerNorm, x: torch.Tensor) -> torch.Tensor:
        shape = x.shape[-layer.axes :]
        weight, bias = (None if given is None else given.reshape(shape) for given in self._weights(layer))
        return F.layer_norm(x, shape, weight, bias, layer.eps)

    def _dropped(self, layer: layers.Dropout, x: torch.Tensor) -> torch.Tensor:
        if self._masks is None:
            return x
        mask = self._masks.pop(0)
        return x * mask.reshape(*x.shape[:2], 1, 1) if layer.whole_channels else x * mask.reshape(x.shape)


def _activated(layer: layers.Activation, x: torch.Tensor) -> torch.Tensor:
    match layer.name:
        case "relu":
            return F.relu(x)
        case "leaky_relu":
            return F.leaky_relu(x, layer.slope)
        case "elu":
            return F.elu(x, layer.slope)
        case "gelu":
            return F.gelu(x)
        case "gelu_tanh":
            return F.gelu(x, approximate="tanh")
        case "silu":
            return F.silu(x)
        case "sigmoid":
            return torch.sigmoid(x)
        case "tanh":
            return torch.tanh(x)
        case "square":
            return x * x
        case "safe_log":
            return torch.log(torch.clamp(x, min=layer.slope))
    raise AssertionError(layer.name)
