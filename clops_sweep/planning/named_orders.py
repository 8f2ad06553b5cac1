"""Task orders by the names of tasks: positions in their place, so that equal orders are one run."""

from __future__ import annotations

from dataclasses import replace

from clops_sweep.data.scenarios.scarce import UncoveredTask
from clops_sweep.errors import UsageError, shown
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.spaces.axes import in_positions, settings_with
from clops_sweep.experiment.tasks import built_tasks, with_distinct_tasks
from clops_sweep.planning.request import Request

_KNOWN: dict[tuple[object, ...], tuple[int, ...]] = {}
"""Positions of the orders that this process has looked up, by data hash, tasks and names."""


def with_positions(request: Request) -> Request:
    """Return a request with positions in place of task orders by name, as far as its data are prepared.

    A run is then the same as with these positions.

    Raises:
        UsageError: an order does not name each task once, is one of a run that becomes an encoder, or means other
            positions in other runs of the request.
    """
    selection = request.selection
    for config in selection.encoders:
        if config.orders_by_name:
            order = shown(list(_names(config)))
            raise UsageError(
                f"encoder: task_order = {order}: expected positions of the tasks in a run that comes first"
            )
    named = [config for config in selection.configs if config.orders_by_name]
    positions: dict[tuple[str, ...], tuple[int, ...]] = {}
    for config in with_distinct_tasks(named, "task_order"):
        of_config = _positions(request, config)
        if of_config is None:
            continue
        if positions.setdefault(_names(config), of_config) != of_config:
            order = shown(list(_names(config)))
            raise UsageError(
                f"task_order = {order}: means other positions in other runs of the request; give positions"
            )
    if not positions:
        return request
    given = tuple(space.with_task_orders(positions) for space in selection.given)
    settings = settings_with(selection.settings, lambda order: in_positions(order, positions), "task_order")
    return replace(request, selection=replace(selection, given=given, settings=settings, reported=()))


def _names(config: RunConfig) -> tuple[str, ...]:
    order = config.task_order
    return tuple(map(str, order)) if isinstance(order, tuple) else ()


def _positions(request: Request, config: RunConfig) -> tuple[int, ...] | None:
    """Return the position of each task that an order names; None if the data are not prepared, or lack a class."""
    data_hash = request.data_hash(config)
    if data_hash is None:
        return None
    key = data_hash, config.tasks_key, config.task_order
    if key not in _KNOWN:
        frames = request.data.frames(config.data_key)
        whole = config.replace(first_tasks=None)
        try:
            ordered = built_tasks(whole, frames).tasks
            natural = built_tasks(whole.replace(task_order="sequential"), frames).tasks
        except UncoveredTask:  # the check of all requested splits says which seeds work
            return None
        names = [task.name for task in natural]
        _KNOWN[key] = tuple(names.index(task.name) for task in ordered)
    return _KNOWN[key]
