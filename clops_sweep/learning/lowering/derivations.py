"""Weights that a network computes from its parameters and buffers, as parametrizations do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from clops_sweep.learning.lowering.program import Program, Source, derived_name


def derived(
    program: Program, parameters: Mapping[str, torch.Tensor], buffers: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Return the results of all derivations of a program by name, with a gradient if the parameters ask for one."""
    results = dict[str, torch.Tensor]()
    tensors: dict[str, Mapping[str, torch.Tensor]] = {"parameter": parameters, "buffer": buffers, "derived": results}

    def value_of(argument: Any) -> Any:
        if isinstance(argument, Source):
            return tensors[argument.kind][argument.name]
        if isinstance(argument, tuple):
            return [value_of(value) for value in argument]
        return argument

    for number, derivation in enumerate(program.derivations):
        args = [value_of(argument) for argument in derivation.args]
        kwargs = {name: value_of(value) for name, value in derivation.kwargs}
        result = args[0] if derivation.function is None else derivation.function(*args, **kwargs)
        results[derived_name(number)] = result[0] if isinstance(result, tuple | list) else result
    return results
