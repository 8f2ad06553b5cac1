"""An encoder in an ONNX file, computed by onnxruntime."""

from __future__ import annotations

from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import nn

from clops_sweep.arguments import arguments_of_class
from clops_sweep.learning.encoders.weight_files import states_of_weights

_SUFFIXES = (".onnx", ".ort")
"""Names of models: an .ort file has all its tensors, and those of an .onnx file are found by its name."""


@arguments_of_class
class OnnxEncoder(nn.Module):
    """The first output of an ONNX model with one input; it needs the extra `[onnx]`.

    onnxruntime computes on one thread of the CPU, and trains nothing, so that `lora_rank` is refused.

    Args:
        weights: the file, whose name ends in .onnx or .ort. An .onnx file may keep tensors in files beside it, which
            the hash of the encoder covers.

    Raises:
        ValueError: the file has another name, or the model has several inputs.
        ImportError: onnxruntime is not installed.
    """

    def __init__(self, weights: str | PathLike[str]) -> None:
        super().__init__()
        self._file = Path(weights)
        if self._file.suffix.lower() not in _SUFFIXES:
            raise ValueError(f"{self._file.name}: expected a name that ends in {' or '.join(_SUFFIXES)}")
        self._states = states_of_weights(self._file)
        if (count := len(self._session().get_inputs())) != 1:
            raise ValueError(f"the model has {count} inputs; expected one, the signals")

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        """Return features of signals [B, channels, samples]."""
        session = self._session()
        features = session.run(None, {session.get_inputs()[0].name: signals.cpu().numpy()})[0]
        return torch.from_numpy(features).to(signals.device)

    def _session(self) -> Any:
        return _session(self._file, self._states)


@lru_cache(maxsize=2)
def _session(file: Path, states: tuple[tuple[int, ...], ...]) -> Any:
    """Return a session of a file in these states: new weights in the same file are read again."""
    from onnxruntime import InferenceSession, SessionOptions

    if states_of_weights(file) != states:
        raise ValueError(f"{file.name}: changed after the encoder was made; make it again")
    options = SessionOptions()
    options.intra_op_num_threads = 1
    return InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
