"""The configs of a grid: each value is checked once, and values together only where one of them bears on others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import NUMBERS, RunConfig
from clops_sweep.experiment.identity import around_seed
from clops_sweep.experiment.plugins.declarations import IN_PLACE_OF
from clops_sweep.experiment.plugins.options import OPTIONS, FloatOption, IntOption


@dataclass(frozen=True)
class OfAnySeed:
    """A config, and with another seed those that are like it, whose identities take no time."""

    config: RunConfig

    @cached_property
    def _around_seed(self) -> tuple[str, str] | None:
        return around_seed(self.config.identity, self.config.seed, self.config.weight_seed)

    def with_seed(self, seed: int) -> RunConfig:
        """The config with a seed, which is not looked at."""
        if seed == self.config.seed:
            return self.config
        around = self._around_seed
        return self.config.with_seed(seed, around and f"{around[0]}{seed}{around[1]}")


class Grid:
    """Makes the configs that ``base.replace(**settings, seed=seed)`` makes, for many settings and seeds.

    A number is valid or not whatever else a config holds (see `NUMBERS`), so it is checked once and put into copies.
    All other fields and options are checked together, once for every combination of theirs.

    Args:
        base: what all of them have in common.
    """

    def __init__(self, base: RunConfig) -> None:
        self._base = base
        # By address, as 0.0 and -0.0 are equal; with what has the address, so that nothing else can have it.
        self._cells: dict[int, tuple[Mapping[str, Any], OfAnySeed]] = {}
        self._together: dict[tuple[tuple[str, int], ...], tuple[Mapping[str, Any], RunConfig | None]] = {}
        self._alone: dict[tuple[str, int], tuple[Any, Any]] = {}

    def config(self, settings: Mapping[str, Any], seed: Any) -> RunConfig | None:
        """The config of a cell and a seed; None where `base.replace` is to be asked, which says what is wrong.

        Args:
            settings: of the cell, the same object with each seed.
            seed: which.
        """
        if type(self._base) is not RunConfig:  # the user's own class, which may look at whatever it likes
            return None
        try:
            checked = self._checked("seed", seed)
            _, cell = self._cells.get(id(settings), (settings, None))
            if cell is None:
                found = self._first(settings, checked)
                if found is None:
                    return None
                cell = OfAnySeed(found)
                self._cells[id(settings)] = settings, cell
        except UsageError:
            return None
        return cell.with_seed(checked)

    def _first(self, settings: Mapping[str, Any], seed: int) -> RunConfig | None:
        others = {name: value for name, value in settings.items() if not _is_number(name)}
        key = tuple((name, id(value)) for name, value in others.items())
        if key not in self._together:
            self._together[key] = others, None
            self._together[key] = others, self._base.replace(**others)
        config = self._together[key][1]
        if config is None:
            return None
        checked = {name: self._checked(name, value) for name, value in settings.items() if _is_number(name)}
        return config.model_copy(update=checked | {"seed": seed})

    def _checked(self, name: str, value: Any) -> Any:
        if (name, id(value)) not in self._alone:
            self._alone[name, id(value)] = value, getattr(self._base.replace(**{name: value}), name)
        return self._alone[name, id(value)][1]


def _is_number(name: str) -> bool:
    if name in IN_PLACE_OF or name in IN_PLACE_OF.values():
        return False
    return name in NUMBERS or isinstance(OPTIONS.get(name), FloatOption | IntOption)
