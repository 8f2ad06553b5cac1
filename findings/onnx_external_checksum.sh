#!/usr/bin/env bash
# onnx 1.23.2, onnxruntime 1.32.0: the checksum of a tensor in another file is never compared with the file.
#
# Guess: a tensor in another file may state the SHA-1 of that file (`checksum` of `external_data`, in the ONNX
#        specification), and onnx.load, onnx.checker or onnxruntime refuse the model if the file has other bytes.
# Seen:  none of the three compares it. All accept a file with other weights, and onnxruntime computes with them.
# Means: who relies on the checksum, or hashes the .onnx file alone, does not notice other weights.
#
# Output seen:
#   onnx 1.23.2 onnxruntime 1.32.0
#   checker: no error; onnx.load: [7.0, 7.0, 7.0, 7.0] onnxruntime: [7.0, 7.0, 7.0, 7.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
cat > show.py <<'PYTHON'
import hashlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
first = np.ones(4, np.float32).tobytes()
weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
for key, value in {"location": "w.bin", "checksum": hashlib.sha1(first).hexdigest()}.items():
    weights.external_data.add(key=key, value=value)
takes, gives = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "graph", [takes], [gives], [weights])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
with open("model.onnx", "wb") as file:
    file.write(model.SerializeToString())
with open("w.bin", "wb") as file:
    file.write(np.full(4, 7, np.float32).tobytes())  # other weights than those of the checksum

onnx.checker.check_model("model.onnx", full_check=True)
loaded = onnx.numpy_helper.to_array(onnx.load("model.onnx").graph.initializer[0])
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
(computed,) = session.run(None, {"x": np.zeros(4, np.float32)})
print("checker: no error; onnx.load:", loaded.tolist(), "onnxruntime:", computed.tolist())
assert loaded.tolist() == computed.tolist() == [7.0] * 4
PYTHON
venv/bin/python show.py
