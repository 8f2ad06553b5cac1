"""Plug-ins as they are called where a config says nothing of their options."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import Registry


def with_defaults(registry: Registry, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gets its options, if it is registered with some, as they are by default."""
    options = default_options(registry, function)
    return partial(function, **options) if options else function


def default_options(registry: Registry, function: Callable[..., Any]) -> dict[str, Any]:
    """The options of a function by name, if it is registered with some, as the config of generated data has them."""
    config = RunConfig()
    return {name: getattr(config, name) for name in registry.declaration_of(function).options}
