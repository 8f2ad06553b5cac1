"""Grid: a run for each combination of the values of some axes, and each seed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from clops_sweep.errors import UsageError, calling, several, shown
from clops_sweep.experiment.config import RunConfig, any_combination
from clops_sweep.experiment.plugins.registry import REGISTRIES, options_of_any
from clops_sweep.experiment.spaces.axes import Axes, Cell, cells_of, in_words

_LONGEST_CELL = 200

MOST_RUNS = 250_000
"""Most runs of one search space: every config is validated before anything starts."""


@dataclass(frozen=True)
class RunRequest:
    """A requested run, with its label on each axis of its search space.

    `asked` is the config as in the search space; its task order may be a curriculum that `config` resolves.
    """

    config: RunConfig
    space: str
    labels: Mapping[str, Any] = field(hash=False)
    asked: RunConfig


def subject_of(space: str) -> str:
    """Return a search space, given by its name, as the subject of a sentence."""
    return f"search space {space!r}"


@dataclass(frozen=True)
class Grid:
    """A base config with each combination of the values of some axes, and each seed.

    Attributes:
        name: name of its search space.
        base: values common to all configs.
        axes: the axes that vary it.
        seeds: the seeds of every cell.
        where: keeps only the configs for which it returns True.
        resolve: maps a config to one with a resolved task order.
        subject: its search space as the subject of a sentence.
    """

    name: str
    base: RunConfig
    axes: Axes
    seeds: Sequence[int]
    where: Callable[[RunConfig], bool] | None
    resolve: Callable[[RunConfig], RunConfig] | None
    subject: str

    @property
    def size(self) -> str:
        """Number of its runs in words; equal configurations are one run."""
        return several(len({run.config.identity for run in self.requests()}), "run")

    def used_options(self, base: Mapping[str, Any]) -> set[str]:
        """Return the options that some run uses, for values given to the base config."""
        return options_of_any(with_plugins(base), [cell.settings for cell in self.cells])

    @cached_property
    def cells(self) -> list[Cell]:
        """The combinations of values; the last axis varies fastest."""
        return cells_of(self.subject, self.axes)

    def replicates(self) -> list[dict[str, Any]]:
        """Return the settings of each cell with each seed; seeds vary slowest."""
        return [{**cell.settings, "seed": seed} for seed in self.seeds for cell in self.cells]

    def checked(self) -> list[RunRequest]:
        """Return the runs after a check of all; see `requests`."""
        return list(self.requests())

    def requests(self) -> Iterator[RunRequest]:
        """Yield the runs; seeds vary slowest.

        Raises:
            UsageError: a config is invalid and `where` keeps it, or `where` or `resolve` returns something else than
                expected.
        """
        checked: dict[int, RunConfig] = {}  # by cell: no check of several fields depends on the seed
        for seed, (position, cell) in itertools.product(self.seeds, enumerate(self.cells)):
            if position in checked:
                config: RunConfig | None = checked[position].with_seed(seed)
            elif (config := self._config(cell, seed)) is not None:
                checked[position] = config
            if config is not None and self._keeps(config):
                yield RunRequest(self._resolved(config), self.name, cell.labels, config)

    def _config(self, cell: Cell, seed: int) -> RunConfig | None:
        """Return the config of a cell and seed; None if it is invalid and `where` excludes it."""
        settings = {**cell.settings, "seed": seed}
        try:
            return self.base.replace(**settings)
        except UsageError as error:
            unchecked = any_combination(self.base, settings)
            if unchecked is not None and not self._keeps(unchecked):
                return None
            hint = "; where= may leave it out" if unchecked is not None else ""
            which = f", cell {in_words(cell.labels)[:_LONGEST_CELL]}" if cell.labels else ""
            raise UsageError(f"{self.subject}{which}: {error}{hint}", place=self.subject) from None

    def _keeps(self, config: RunConfig) -> bool:
        if self.where is None:
            return True
        with calling(f"{self.subject}: where"):
            kept = self.where(config)
        if type(kept).__name__ not in ("bool", "bool_"):  # Python's own and NumPy's
            raise UsageError(f"{self.subject}: where returns {shown(kept)}: expected True or False")
        return bool(kept)

    def _resolved(self, config: RunConfig) -> RunConfig:
        if self.resolve is None:
            return config
        with calling(f"{self.subject}: resolve"):
            resolved = self.resolve(config)
        if not isinstance(resolved, RunConfig):
            raise UsageError(f"{self.subject}: resolve returns {shown(resolved)}: expected a RunConfig")
        if resolved.seed != config.seed:
            raise UsageError(
                f"{self.subject}: resolve returns a config with seed {resolved.seed}; expected that of the config it "
                f"was given, {config.seed}"
            )
        return resolved


def check_count(subject: str, what: str, runs: int, hint: str = "") -> None:
    """Check that a search space has at most `MOST_RUNS` runs.

    Raises:
        UsageError: it has more.
    """
    if runs > MOST_RUNS:
        raise UsageError(f"{subject}: {what} {runs:,} runs; expected {MOST_RUNS:,} at most{hint}")


def with_plugins(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plug-in of each kind for values given to a config, by default the usual one."""
    usual = RunConfig()
    return {kind: given.get(kind, getattr(usual, kind)) for kind in REGISTRIES}
