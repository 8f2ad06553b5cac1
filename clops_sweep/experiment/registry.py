"""Registries of what a config can name: strategies, acquisition functions, storage functions.

A registry is read when a config is validated, so it holds the built-in members as "module:attribute", imported when
they are first used: naming them needs neither torch nor Ray. A search-space file may register its own::

    from clops_sweep import RunConfig, SearchSpace, acquisition_function

    @acquisition_function("least_confident")
    def least_confident(context, rows):
        return -context.learner.probabilities(rows).amax(-1)

The sweep hands such functions to its workers. A run is identified by the name of what it uses, not by the code behind
the name: give a changed function a new name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from clops_sweep.errors import BadInput

Member = TypeVar("Member", bound=Callable[..., Any])


class Registry(Mapping[str, Any]):
    """Members by name; built-in ones are imported when they are first asked for.

    Args:
        kind: what the members are, for messages.
        built_in: name to "module:attribute".
    """

    def __init__(self, kind: str, built_in: Mapping[str, str]) -> None:
        self._kind = kind
        self._built_in = dict(built_in)
        self._added: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name in self._added:
            return self._added[name]
        module, _, attribute = self._built_in[name].partition(":")
        return getattr(importlib.import_module(module), attribute)

    def __iter__(self) -> Iterator[str]:
        yield from self._built_in
        yield from self._added

    def __len__(self) -> int:
        return len(self._built_in) + len(self._added)

    def __contains__(self, name: object) -> bool:
        return name in self._built_in or name in self._added

    @property
    def added(self) -> Mapping[str, Any]:
        """What was registered beside the built-in members."""
        return dict(self._added)

    def register(self, name: str, member: Any) -> None:
        """Adds a member, or replaces one that was added before.

        Raises:
            BadInput: the name is taken by a built-in member, or is no identifier.
        """
        if name in self._built_in:
            raise BadInput(f"{self._kind} {name!r} is built in; register yours under another name")
        if not name.isidentifier():
            raise BadInput(f"{self._kind} {name!r}: expected a name of letters, digits and underscores")
        self._added[name] = member

    @contextmanager
    def temporarily(self, name: str, member: Any) -> Iterator[None]:
        """Registers a member under a new name inside, and forgets it afterwards."""
        if name in self:
            raise BadInput(f"{self._kind} {name!r} is taken")
        self.register(name, member)
        try:
            yield
        finally:
            del self._added[name]

    def decorator(self, name: str) -> Callable[[Member], Member]:
        """A decorator that registers what it decorates."""

        def decorate(member: Member) -> Member:
            self.register(name, member)
            return member

        return decorate


STRATEGIES = Registry(
    "strategy",
    {
        "clops": "clops_sweep.learning.strategies.clops:CLOPS",
        "finetune": "clops_sweep.learning.strategies.finetune:FineTuning",
        "multitask": "clops_sweep.learning.strategies.multitask:MultiTask",
        "gem": "clops_sweep.learning.strategies.gem:GradientEpisodicMemory",
        "mir": "clops_sweep.learning.strategies.mir:MaximallyInterferedRetrieval",
        "replay": "clops_sweep.learning.strategies.replay:ExperienceReplay",
    },
)
ACQUISITION_FUNCTIONS = Registry(
    "acquisition",
    {
        name: f"clops_sweep.learning.replay.acquisition:{name}"
        for name in ("bald_mcd", "bald_mcp", "balc_kld", "entropy", "variation_ratio", "random")
    },
)
STORAGE_FUNCTIONS = Registry(
    "storage_function",
    {name: f"clops_sweep.learning.replay.storage:{name}" for name in ("area", "squared_area")},
)

REGISTRIES: Mapping[str, Registry] = {
    "strategy": STRATEGIES,
    "acquisition": ACQUISITION_FUNCTIONS,
    "storage_function": STORAGE_FUNCTIONS,
}
"""Registry of each config field that names a plug-in."""


def unregistered(fields: Mapping[str, Any]) -> list[str]:
    """What a config's fields, by name, ask for and nobody has registered: a search-space file does that."""
    return [f"{name} {fields[name]!r}" for name, registry in REGISTRIES.items() if fields[name] not in registry]


def strategy(name: str) -> Callable[[Member], Member]:
    """Registers a subclass of `clops_sweep.learning.strategies.base.Strategy`."""
    return STRATEGIES.decorator(name)


def acquisition_function(name: str) -> Callable[[Member], Member]:
    """Registers a function (AcquisitionContext, rows int64 [S, m]) -> scores [S, m]; the highest are replayed."""
    return ACQUISITION_FUNCTIONS.decorator(name)


def storage_function(name: str) -> Callable[[Member], Member]:
    """Registers a function from beta's trajectories [S, tau, n] to s, float64 [S, n]."""
    return STORAGE_FUNCTIONS.decorator(name)
