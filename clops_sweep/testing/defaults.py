"""Plug-ins with the default values of their options."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import Registry


def with_defaults(registry: Registry, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its registered options, if any, set to their defaults."""
    options = default_options(registry, function)
    return partial(function, **options) if options else function


def default_options(registry: Registry, function: Callable[..., Any]) -> dict[str, Any]:
    """Return the registered options of a function by name, with their values in the default config."""
    config = RunConfig()
    return {name: getattr(config, name) for name in registry.declaration_of(function).options}
