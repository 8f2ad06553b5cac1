"""The search spaces of launches, which a store remembers in `.work/spaces`, without searches."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

from clops_sweep.errors import UsageError, one_line
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.spaces.search_space import Axis, SearchSpace
from clops_sweep.experiment.spaces.selection import Selection, check_names, file_name
from clops_sweep.store.run_store import RunStore


def remember(selection: Selection, store: RunStore) -> None:
    """Store the search spaces of a launch, with the runs that its `where` and `limit` leave out.

    A space replaces an earlier one of the same name and settings. Searches, and spaces whose values are no JSON, are
    not stored.
    """
    settings = [f"{name}={value}" for name, value in sorted(selection.settings.items())]
    for space in selection.spaces:
        if space.search is not None or space.resolve is not None:
            continue
        name = re.sub(r"[/\\\0]", "-", ", ".join([space.name, *settings])).encode()[:100].decode("utf-8", "ignore")
        varied = _varied(space.axes)
        with suppress(TypeError, ValueError, OSError):
            kept = None if space.where is None else [_place(varied, it.written) for it in space.requests()]
            place = {"axes": space.axes, "seeds": space.seeds, "kept": kept}
            content = json.dumps({"name": name, "base": space.base.explicit, **place})
            store.files.make_folder(_folder(store))
            store.files.write(f"{_folder(store)}/space-{file_name(name)}.json", content.encode())


def launched_spaces(store: RunStore, know: Callable[[str], object]) -> tuple[SearchSpace, ...]:
    """Return the search spaces that a store remembers, as far as their plug-ins are registered.

    Args:
        store: the store.
        know: registers a data set by name, if it is prepared here.
    """
    found, _ = _launched(store, know)
    return tuple(found)


def unknown_spaces(store: RunStore, know: Callable[[str], object]) -> dict[str, str]:
    """Return the search spaces that a store remembers and `launched_spaces` leaves out: name to reason."""
    _, unknown = _launched(store, know)
    return unknown


def _launched(store: RunStore, know: Callable[[str], object]) -> tuple[list[SearchSpace], dict[str, str]]:
    found: list[SearchSpace] = []
    unknown: dict[str, str] = {}
    with suppress(OSError, UsageError):
        for name in store.files.names(_folder(store)):
            with suppress(OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
                content = store.files.read(f"{_folder(store)}/{name}").to_pybytes()
                remembered = json.loads(content)
                try:
                    know(str(remembered["base"].get("dataset")))
                    space = _space(content)
                    check_names([*found, space])
                except UsageError as error:
                    unknown[str(remembered["name"])] = one_line(error)
                    continue
                found.append(space)
    return found, unknown


@lru_cache(maxsize=32)
def _space(content: bytes) -> SearchSpace:
    it = json.loads(content)
    if it["kept"] is None:
        return SearchSpace(it["name"], RunConfig.of(it["base"]), it["axes"], it["seeds"])
    varied, kept = _varied(it["axes"]), frozenset(it["kept"])
    return SearchSpace(
        *(it["name"], RunConfig.of(it["base"]), it["axes"], it["seeds"]),
        where=lambda config: _place(varied, config) in kept,
    )


def _varied(axes: Mapping[str, Axis]) -> list[str]:
    """Return the fields that axes set."""
    variants = (values.values() if isinstance(values, Mapping) else [{axis}] for axis, values in axes.items())
    return sorted({name for of_axis in variants for settings in of_axis for name in settings})


def _place(varied: Sequence[str], config: RunConfig) -> str:
    """Return what tells a config from the others of its space."""
    return json.dumps([config.seed, *map(config.get, varied)])


def _folder(store: RunStore) -> str:
    return f"{store.work_folder}/spaces"
