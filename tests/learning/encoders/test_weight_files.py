"""Weights in several files: all of them belong to the identity of an encoder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from clops_sweep.data.files.hashes import file_sha256, hash_of
from clops_sweep.data.origins import ORIGINS
from clops_sweep.errors import UsageError
from clops_sweep.learning.encoders.encoders import Encoders
from clops_sweep.learning.encoders.onnx import OnnxEncoder
from tests.learning.encoders.place import FILE, Place, config

onnx = pytest.importorskip("onnx", reason="needs clops-sweep[onnx]")


def tensor_in(file: Path, name: str) -> Any:
    """Return a tensor of 128 numbers that an ONNX model reads from a file."""
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(np.ones(128, np.float32).tobytes())
    tensor = onnx.TensorProto(name=name, data_type=onnx.TensorProto.FLOAT, dims=[128])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=file.name if file.parent.name != "sub" else f"sub/{file.name}")
    return tensor


def write_model(folder: Path) -> list[Path]:
    """Write e.onnx, which adds four tensors in four files to the mean of the channels, and return the files.

    They are an initializer, one in a subfolder, an attribute, and one of a subgraph.
    """
    make, files = onnx.helper, [folder / name for name in ("any name", "sub/second.bin", "third.data", "fourth")]
    first, second, third, fourth = (
        tensor_in(file, name) for file, name in zip(files, ("first", "second", "third", "fourth"), strict=True)
    )
    of_branch = make.make_tensor_value_info("branch", onnx.TensorProto.FLOAT, [128])
    then = make.make_graph([make.make_node("Identity", ["fourth"], ["branch"])], "then", [], [of_branch], [fourth])
    nodes = [
        make.make_node("Constant", [], ["third"], value=third),
        make.make_node("Constant", [], ["yes"], value=make.make_tensor("yes", onnx.TensorProto.BOOL, [], [True])),
        make.make_node("If", ["yes"], ["chosen"], then_branch=then, else_branch=then),
        make.make_node("ReduceMean", ["signals"], ["mean"], axes=[1], keepdims=0),
        make.make_node("Sum", ["mean", "first", "second", "third", "chosen"], ["features"]),
    ]
    takes = make.make_tensor_value_info("signals", onnx.TensorProto.FLOAT, ["batch", 2, 128])
    gives = make.make_tensor_value_info("features", onnx.TensorProto.FLOAT, ["batch", 128])
    graph = make.make_graph(nodes, "graph", [takes], [gives], [first, second])
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8)
    (folder / "e.onnx").write_bytes(model.SerializeToString())
    return files


def declare(place: Place, weights: str) -> None:
    text = FILE.replace('"plain.pth"', f'"{weights}"')
    text = text.replace("    module = Net(2)\n", "    return OnnxEncoder(weights)\n", 1)
    place.declare(text.replace("import Recordings,", "import OnnxEncoder, Recordings,"))


def identity(place: Place) -> str:
    return Encoders(place.store.models.read).identity("plain")


@pytest.mark.parametrize("number", range(4))
def test_new_bytes_in_any_file_of_an_onnx_model_are_another_encoder(place: Place, number: int) -> None:
    pytest.importorskip("onnxruntime", reason="needs clops-sweep[onnx]")
    file = write_model(place.folder)[number]
    declare(place, "e.onnx")
    frames = place.frames(config(None))
    before, features = identity(place), Encoders(place.store.models.read).features("plain", frames, np.arange(3))
    file.write_bytes(np.full(128, 2, np.float32).tobytes())
    assert identity(place) != before
    again = Encoders(place.store.models.read).features("plain", frames, np.arange(3))
    np.testing.assert_allclose(again, features + 1, rtol=1e-5)


def test_an_onnx_model_in_one_file_keeps_its_hash(place: Place) -> None:
    files = write_model(place.folder)
    model = onnx.load(place.folder / "e.onnx")
    (place.folder / "e.onnx").write_bytes(model.SerializeToString())
    for file in files:
        file.unlink()
    declare(place, "e.onnx")
    origin = ORIGINS["encoder", "plain"]
    alone = hash_of(
        code=origin.code or origin.sha256,
        weights=file_sha256(place.folder / "e.onnx"),
        channels=2,
        sampling_rate=32.0,
        samples=128,
        adapt=[],
    )
    assert identity(place) == alone


def test_shards_of_an_index_are_weights(place: Place) -> None:
    shards = ("model-1-of-2.safetensors", "model-2-of-2.safetensors")
    for name in shards:
        save_file({"weight": torch.zeros(2)}, place.folder / name)
    index = place.folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict(zip("ab", shards, strict=True))}))
    declare(place, index.name)
    before = identity(place)
    save_file({"weight": torch.ones(2)}, place.folder / shards[1])
    assert identity(place) != before


def lose_a_file(folder: Path) -> None:
    write_model(folder)[1].unlink()


def write_text(folder: Path) -> None:
    (folder / "e.onnx").write_text("weights")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lose_a_file, "encoder 'plain': weights .*e.onnx: its tensors are in sub/second.bin, which is missing"),
        (write_text, "encoder 'plain': weights .*e.onnx: expected an ONNX model"),
    ],
)
def test_missing_and_invalid_files_are_refused(place: Place, change: Callable[[Path], None], said: str) -> None:
    change(place.folder)
    declare(place, "e.onnx")
    with pytest.raises(UsageError, match=said):
        identity(place)


def test_other_names_of_onnx_files_are_refused(tmp_path: Path) -> None:
    write_model(tmp_path)
    shutil.copy(tmp_path / "e.onnx", tmp_path / "e.bin")
    with pytest.raises(ValueError, match=r"e.bin: expected a name that ends in .onnx or .ort"):
        OnnxEncoder(tmp_path / "e.bin")
