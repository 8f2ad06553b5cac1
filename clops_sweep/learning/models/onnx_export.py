"""Export of models to ONNX, verified with onnxruntime."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import warnings

import numpy as np
import torch
from torch import nn

from clops_sweep.errors import UsageError, reason
from clops_sweep.learning.models.trained_model import TrainedModel

_LARGEST_DIFFERENCE = 1e-5


class _NanOfMissingSamples(nn.Module):
    """A model whose probabilities are NaN if a frame has samples that are not finite.

    PyTorch passes NaN on. Max pooling and recurrent layers of onnxruntime turn it into numbers.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Return probabilities [B, outputs] of frames [B, channels, samples]."""
        missing = (frames.isnan() | frames.isinf()).flatten(1).any(dim=1, keepdim=True)
        return torch.where(missing, torch.nan, self.model(frames))


def onnx_bytes(model: TrainedModel) -> bytes:
    """Return a model as ONNX, with its facts as metadata.

    It is verified with onnxruntime on random frames, with other batch sizes than in the export. The probabilities of a
    frame with samples that are not finite are NaN.

    Raises:
        UsageError: the packages of `clops-sweep[onnx]` are missing, the network has a layer that ONNX does not
            support or code that fixes the batch size, or onnxruntime computes probabilities that differ by more than
            1e-5.
    """
    try:
        import onnx
        import onnxruntime
        import onnxscript  # noqa: F401  torch.onnx needs it
    except ImportError as error:
        raise UsageError(f"export needs {error.name}: install it with pip install 'clops-sweep[onnx]'") from None
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns about packages that networks here do not need
    facts = model.facts
    frames = torch.randn(3, *model.input_shape, generator=torch.Generator().manual_seed(0))
    try:
        # The exporter warns about its own internals, and some releases of onnxscript print to standard output.
        with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                _NanOfMissingSamples(model),
                (frames,),
                input_names=["frames"],
                output_names=["probabilities"],
                dynamic_shapes={"frames": {0: torch.export.Dim("batch")}},
                dynamo=True,
                verbose=False,
            )
            assert program is not None
            exported = program.model_proto
    except Exception as error:  # the exporter raises errors of many kinds
        first: BaseException = error
        while first.__cause__ is not None:  # the first error names the layer or operator, later ones the exporter
            first = first.__cause__
        raise UsageError(
            f"network {facts.network!r} cannot be exported to ONNX ({reason(first)}); use load_model instead"
        ) from None
    described = {key: value for key, value in facts.as_data().items() if key not in ("people", "signals", "earlier")}
    onnx.helper.set_model_props(exported, {"clops_sweep": json.dumps(described)})
    content: bytes = exported.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    if isinstance(session.get_inputs()[0].shape[0], int):
        raise UsageError(
            f"network {facts.network!r} cannot be exported to ONNX: its code fixes the number of instances of a batch; "
            "write x.shape[0] instead of len(x)"
        )
    for batch in (frames, frames[:1]):
        with torch.no_grad():
            expected = model(batch).numpy()
        (computed,) = session.run(None, {"frames": batch.numpy()})
        if not np.allclose(computed, expected, rtol=0, atol=_LARGEST_DIFFERENCE):
            difference = float(np.abs(computed - expected).max())
            raise UsageError(
                f"network {facts.network!r}: onnxruntime computes probabilities that differ by {difference:.2g} from "
                "PyTorch's; use load_model instead"
            )
    return content
