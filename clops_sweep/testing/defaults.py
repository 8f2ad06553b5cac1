"""Plug-ins as they are called where a config says nothing of their options."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from clops_sweep.experiment.plugins.registry import Registry


def with_defaults(registry: Registry, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gets its options, if it is registered with some, as they are by default."""
    options = registry.options_of(function)
    return partial(function, **{name: option.default for name, option in options.items()}) if options else function
