"""What a network keeps from one pass to the next, in its layers and in the code of their classes."""

from __future__ import annotations

import itertools
import pickle
from collections import deque
from collections.abc import Collection
from types import FunctionType
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from clops_sweep.learning.code_state import functions_of_class, used_by

_OF_A_MODULE: Final = vars(nn.Module()).keys()
"""Attributes of every layer."""
_PLAIN: Final = (np.ndarray, np.generic, complex, float, int, str, list, tuple, dict, set, deque, itertools.count)
"""Types whose text changes with their value."""


def attributes_of(module: nn.Module) -> dict[str, Any]:
    """Return the plain attributes of all layers by name."""
    attributes = dict[str, Any]()
    for name, layer in module.named_modules():
        for key, value in vars(layer).items():
            if key not in _OF_A_MODULE:
                attributes[f"{name}.{key}".lstrip(".")] = value
    return attributes


def kept_by(module: nn.Module) -> dict[str, torch.Tensor]:
    """Return copies of what layers and their classes keep, by name; all but tensors as bytes.

    Plain attributes come first, then parameters and buffers, then what the code of their classes can change.
    """
    kept = dict[str, torch.Tensor]()
    for name, value in {**attributes_of(module), **module.state_dict(), **_in_code(module)}.items():
        if isinstance(value, torch.Tensor) and value.layout == torch.strided:
            kept[name] = value.detach().clone()
        elif content := _content(value):
            kept[name] = torch.frombuffer(bytearray(content), dtype=torch.uint8)
    return kept


def _in_code(module: nn.Module) -> dict[str, Any]:
    """Return the data that the code of a network's layers can change, by name: in their classes and what these use.

    Layers of PyTorch keep nothing there. Of a list that functions use, defaults aside, only the first element counts: a
    log, which decides nothing, grows at its end.
    """
    data = dict[str, Any]()
    functions = [value for value in attributes_of(module).values() if isinstance(value, FunctionType)]
    classes = dict.fromkeys(class_ for layer in module.modules() for class_ in type(layer).__mro__)
    own = {class_.__module__ for class_ in classes if class_ is not object and _is_foreign(class_.__module__)}
    for class_ in classes:
        if class_.__module__ not in own:
            continue
        functions += functions_of_class(class_)
        for name, value in vars(class_).items():
            if not name.startswith("__"):
                data[f"{class_.__name__}.{name}"] = value
    in_functions = used_by([function for function in functions if _is_foreign(function.__module__)])
    for name, value in in_functions.items():
        may_be_log = isinstance(value, list) and not name.startswith("default ")
        data[name] = value[:1] if may_be_log else value
    return {name: value for name, value in data.items() if _is_data(value, own)}


def _is_foreign(name: str | None) -> bool:
    """Return whether a module is not part of PyTorch."""
    return (name or "").partition(".")[0] != "torch"


def _is_data(value: object, own: Collection[str]) -> bool:
    """Return whether a value may be what code keeps: data, or an object of a class in its own modules."""
    if isinstance(value, (*_PLAIN, torch.Tensor)):
        return True
    return type(value).__module__ in own and not isinstance(value, nn.Module | type)


def _content(value: object, above: tuple[object, ...] = ()) -> bytes:
    """Return bytes that change if a value changes; none for what has neither a text, attributes nor a pickled form.

    Args:
        value: the value.
        above: the objects that lead to it, so that a circle ends.
    """
    if isinstance(value, _PLAIN):
        return repr(value).encode()
    if isinstance(value, nn.Module | type) or any(value is other for other in above):
        return b""  # the layers of a network are compared on their own
    try:
        attributes = vars(value)
    except TypeError:
        return _pickled(value)
    parts = [f"{name}=".encode() + _content(attribute, (*above, value)) for name, attribute in attributes.items()]
    return b",".join(parts)


def _pickled(value: object) -> bytes:
    """Return the pickle of an object without attributes; empty, so never different, if it cannot be pickled."""
    try:
        return pickle.dumps(value)
    except Exception:
        return b""
