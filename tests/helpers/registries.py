"""Registries as in a new process: without members and data sets that other tests registered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from clops_sweep.data.catalog import DATASETS
from clops_sweep.experiment.plugins.registry import Registry


@contextmanager
def only_built_in(*registries: Registry) -> Iterator[None]:
    """Hide custom members in the block; those that the block registers are forgotten."""
    before = [(registry, dict(registry.added)) for registry in registries]
    _forget_added(registries)
    yield
    _forget_added(registries)
    for registry, members in before:
        for name, plugin in members.items():
            registry.register(name, plugin.member, plugin.declaration)


def _forget_added(registries: tuple[Registry, ...]) -> None:
    for registry in registries:
        for name in list(registry.added):
            registry.forget(name)


@contextmanager
def only_built_in_data_sets() -> Iterator[None]:
    """Hide data sets of files in the block; those that the block declares are forgotten."""
    before = [(info, DATASETS.declared(name)) for name, info in DATASETS.added.items()]
    _forget_added_data_sets()
    yield
    _forget_added_data_sets()
    for info, declared in before:
        DATASETS.register(info, declared)


def _forget_added_data_sets() -> None:
    for name in list(DATASETS.added):
        DATASETS.forget(name)
