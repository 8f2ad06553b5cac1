"""An encoder in an ONNX file, computed by onnxruntime."""

from __future__ import annotations

from functools import lru_cache
from os import PathLike, fspath
from typing import Any

import torch
from torch import nn


class OnnxEncoder(nn.Module):
    """The first output of an ONNX model with one input; it needs the extra `[onnx]`.

    onnxruntime computes on one thread of the CPU, and trains nothing, so that `lora_rank` is refused.

    Args:
        weights: the file.

    Raises:
        ValueError: the model has several inputs.
        ImportError: onnxruntime is not installed.
    """

    def __init__(self, weights: str | PathLike[str]) -> None:
        super().__init__()
        self._file = fspath(weights)
        if (count := len(_session(self._file).get_inputs())) != 1:
            raise ValueError(f"the model has {count} inputs; expected one, the signals")

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        """Return features of signals [B, channels, samples]."""
        session = _session(self._file)
        features = session.run(None, {session.get_inputs()[0].name: signals.cpu().numpy()})[0]
        return torch.from_numpy(features).to(signals.device)


@lru_cache(maxsize=2)
def _session(file: str) -> Any:
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = 1
    return InferenceSession(file, options, providers=["CPUExecutionProvider"])
