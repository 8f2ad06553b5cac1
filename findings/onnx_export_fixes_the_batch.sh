#!/usr/bin/env bash
# torch 2.13.0: torch.onnx.export(dynamo=True) ignores dynamic_shapes that it cannot satisfy, in silence.
#
# Guess: with dynamic_shapes=({0: Dim("batch")},), a module that calls int(x.shape[0]) is exported with a free batch, or
#        the export raises, as torch.export.export does.
# Seen:  torch.export.export raises "Constraints violated". torch.onnx.export succeeds, and the model takes batches of 4
#        alone, the size of the example. No warning mentions the batch. The deprecated dynamic_axes gives a free batch
#        for the same module.
# Means: the model fails at the first request of another size, after it was deployed.
#
# Output seen:
#   torch.export.export: UserError
#   dynamic_shapes: input [4, 3, 8]
#   dynamic_axes: input ['batch', 3, 8]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q torch==2.13.0 onnx==1.23.2 onnxruntime==1.32.0 onnxscript==0.7.2 numpy==2.4.6
cat > export.py <<'PYTHON'
import onnxruntime
import torch


class Pooled(torch.nn.Module):
    def forward(self, x):
        return x.reshape(int(x.shape[0]), -1).sum(1)


def exported(name, **given):
    torch.onnx.export(Pooled(), (torch.randn(4, 3, 8),), name, dynamo=True, input_names=["x"], **given)
    return onnxruntime.InferenceSession(name, providers=["CPUExecutionProvider"]).get_inputs()[0].shape


batch = torch.export.Dim("batch", min=1, max=64)
try:
    torch.export.export(Pooled(), (torch.randn(4, 3, 8),), dynamic_shapes=({0: batch},))
    raised = "no error"
except Exception as error:
    raised = type(error).__name__
shapes = exported("shapes.onnx", dynamic_shapes=({0: batch},))
axes = exported("axes.onnx", dynamic_axes={"x": {0: "batch"}})
with open("seen.txt", "w") as file:
    print("torch.export.export:", raised, file=file)
    print("dynamic_shapes: input", shapes, file=file)
    print("dynamic_axes: input", axes, file=file)
assert raised == "UserError"
assert shapes == [4, 3, 8]
assert axes == ["batch", 3, 8]
PYTHON
env/bin/python export.py > log.txt 2>&1 || { cat seen.txt; tail -n 5 log.txt; exit 1; }
cat seen.txt
