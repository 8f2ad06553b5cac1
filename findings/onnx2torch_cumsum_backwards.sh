#!/usr/bin/env bash
# onnx2torch 1.5.15: cumulative sums run from the end, and a transposed convolution answers for other samples.
#
# Guess: convert() gives a module that computes what onnxruntime computes, or raises NotImplementedError, as for
#        auto_pad.
# Seen:  "reverse" of CumSum is taken for 1 where the model leaves it out (0 in the specification), so a torch.cumsum
#        that torch.onnx exported (dynamo=False) comes back as a sum from the end. output_shape of ConvTranspose, which
#        the exporter of Keras (tf2onnx) writes, is dropped: 500 samples become 1,001 instead of 1,000, all of them
#        moved by one. There is no warning.
# Means: a network with causal means over time sees the future, and a decoder that marks waves marks other samples; a
#        mean over time hides both. Compare with onnxruntime after each conversion.
#
# Output seen (transposed convolution: kernel of 3, stride of 2, 500 samples):
#   sums of 1, 2, 3, 4: onnxruntime [1, 3, 6, 10], onnx2torch [10, 9, 7, 4]
#   with reverse=0 written: onnxruntime [1, 3, 6, 10], onnx2torch [1, 3, 6, 10]
#   torch.cumsum exported by torch.onnx: torch [1, 3, 6, 10], onnx2torch [10, 9, 7, 4]
#   output_shape=[1000]: onnxruntime 1000 samples, onnx2torch 1001, moved by 1: True
#   auto_pad="SAME_UPPER": NotImplementedError: "SAME_UPPER" auto_pad is not implemented
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q torch==2.12.1 torchvision==0.27.1 numpy==2.4.6
env/bin/pip install -q onnx2torch==1.5.15 onnx==1.23.2 onnxruntime==1.32.0
env/bin/python - <<'PYTHON'
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx2torch import convert

warnings.simplefilter("error")
generator = np.random.default_rng(0)


def model(operator, shape, constant, **attributes):
    node = helper.make_node(operator, ["x", "c"], ["y"], **attributes)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(shape))]
    graph = helper.make_graph([node], "graph", inputs, outputs, [numpy_helper.from_array(constant, "c")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(made)
    return made


def both(made, values):
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": values})[0], convert(made).eval()(torch.from_numpy(values.copy())).numpy()


numbers = np.array([1, 2, 3, 4], dtype=np.float32)
for text, attributes in (("sums of 1, 2, 3, 4", {}), ("with reverse=0 written", {"reverse": 0})):
    right, found = both(model("CumSum", [4], np.array(0), **attributes), numbers)
    print(f"{text}: onnxruntime {right.astype(int).tolist()}, onnx2torch {found.astype(int).tolist()}")
    assert right.tolist() == [1, 3, 6, 10]
    assert found.tolist() == ([1, 3, 6, 10] if attributes else [10, 9, 7, 4]), "this has changed"


class Sums(torch.nn.Module):
    def forward(self, values):
        return torch.cumsum(values, dim=0)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.onnx.export(Sums(), (torch.from_numpy(numbers),), "sums.onnx", dynamo=False, opset_version=17)
right, found = Sums()(torch.from_numpy(numbers)), convert("sums.onnx")(torch.from_numpy(numbers))
print(f"torch.cumsum exported by torch.onnx: torch {right.int().tolist()}, onnx2torch {found.int().tolist()}")
assert found.tolist() == [10, 9, 7, 4], "this has changed"

values = generator.standard_normal((1, 3, 500)).astype(np.float32)
kernel = generator.standard_normal((3, 4, 3)).astype(np.float32)
with torch.no_grad():
    right, found = both(model("ConvTranspose", [1, 3, 500], kernel, strides=[2], output_shape=[1000]), values)
full = torch.nn.functional.conv_transpose1d(torch.from_numpy(values), torch.from_numpy(kernel), stride=2).numpy()
assert np.allclose(right, full[..., 1:], atol=1e-4)  # the first of 1,001 is cut, as specified
moved = np.allclose(found[..., 1:], right, atol=1e-4)
print(f"output_shape=[1000]: onnxruntime {right.shape[2]} samples, onnx2torch {found.shape[2]}, moved by 1: {moved}")
assert found.shape == (1, 4, 1001) and moved, "this has changed"
try:
    convert(model("ConvTranspose", [1, 3, 500], kernel, strides=[2], auto_pad="SAME_UPPER"))
except NotImplementedError as error:
    print(f'auto_pad="SAME_UPPER": NotImplementedError: {error}')
PYTHON
