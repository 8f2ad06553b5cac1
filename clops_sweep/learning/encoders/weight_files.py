"""The files that the weights of an encoder consist of, besides the declared one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.data.prepared.freshness import State, state_of
from clops_sweep.errors import UsageError

_ONNX = ".onnx"
_INDEX = ".index.json"
"""End of the index of a checkpoint in several .safetensors or .bin files, as Hugging Face writes it."""

_names: dict[Path, tuple[State, list[str]]] = {}
"""Names of the further files by the declared file and its state, cached in this process."""


def files_beside(weights: Path) -> dict[str, Path]:
    """Return the further files of weights, by the name by which the declared file refers to them.

    An ONNX file may keep tensors in other files (PyTorch writes `NAME.onnx.data`). Relative names start at its folder,
    as in onnxruntime. The index of a checkpoint names its shards. All other weights are one file.

    Raises:
        UsageError: a file is invalid or missing, or the package onnx is not installed.
        OSError: the declared file cannot be read.
    """
    state = state_of(weights)
    if weights not in _names or _names[weights][0] != state:
        _names[weights] = state, sorted(_names_in(weights))
    files = {name: weights.parent / name for name in _names[weights][1]}
    for name, file in files.items():
        if not file.is_file():
            raise UsageError(
                f"weights {weights}: its tensors are in {name}, which is missing in {weights.parent}; keep both in one "
                "folder"
            )
    return files


def states_of_weights(weights: Path) -> tuple[tuple[int, ...], ...]:
    """Return size, times and inode of the declared file and of those beside it; they change with the weights."""
    return tuple(tuple(state_of(file)) for file in (weights, *files_beside(weights).values()))


def _names_in(weights: Path) -> set[str]:
    if weights.suffix.lower() == _ONNX:
        return _external_data(weights)
    if weights.name.endswith(_INDEX):
        return _shards(weights)
    return set()


def _external_data(weights: Path) -> set[str]:
    """Return the names of the files in which an ONNX model keeps tensors."""
    try:
        import onnx
    except ImportError:
        raise UsageError(
            f"weights {weights}: .onnx files need the package onnx: pip install 'clops-sweep[onnx]'"
        ) from None
    model = onnx.ModelProto()
    with open_regular(weights) as file:
        content = file.read()
    try:
        model.ParseFromString(content)
    except Exception:  # the class of the error depends on the version of protobuf
        raise UsageError(f"weights {weights}: expected an ONNX model; export it again") from None
    names = set[str]()
    for tensor in _messages(model, onnx.TensorProto):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            names.update(entry.value for entry in tensor.external_data if entry.key == "location")
    return names


def _messages(message: Any, kind: type) -> Iterator[Any]:
    """Yield the messages of one type at any depth: tensors of subgraphs, functions and attributes, too."""
    if isinstance(message, kind):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        messages = [value] if hasattr(value, "ListFields") else value
        for inner_message in messages:
            yield from _messages(inner_message, kind)


def _shards(index: Path) -> set[str]:
    """Return the names of the files in the `weight_map` of an index."""
    try:
        with open_regular(index) as file:
            names = json.load(file)["weight_map"].values()
        return {str(name) for name in names}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(f"weights {index}: expected a JSON index with a weight_map of files by tensor") from None
