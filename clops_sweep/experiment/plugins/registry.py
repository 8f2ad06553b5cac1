"""Registries of scenarios, networks, strategies, acquisition functions, storage functions and other plug-ins.

Configs are validated without torch or Ray, so registries hold built-in members as "module:attribute" and import them on
first use. `decorators` registers custom ones.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from clops_sweep.data.origins import remember_origin
from clops_sweep.errors import UsageError
from clops_sweep.experiment.metrics import PAPER, metric_named
from clops_sweep.experiment.plugins import braindecode, declarations
from clops_sweep.experiment.plugins.declarations import NOTHING, Declaration, Plugin
from clops_sweep.experiment.plugins.options import OPTIONS, Option, Options, registry_of

Member = TypeVar("Member", bound=Callable[..., Any])


OF_SCENARIOS = frozenset(name for plugin in declarations.SCENARIOS.values() for name in plugin.declaration.fields)
"""Config fields that a scenario may list among its options; it receives them as keyword arguments."""


class Registry(Mapping[str, Any]):
    """Members by name; built-in ones are imported on first use.

    Args:
        kind: kind of the members, for messages.
        built_in: the built-in members by name.
        decorator: the function that registers custom members.
        expected: description of valid members, for messages.
        of_library: returns the member of a library by its name, such as "braindecode:EEGNet", or None. Such members
            are neither built in nor custom: they have no code to send, and are not listed.
    """

    def __init__(
        self,
        kind: str,
        built_in: Mapping[str, Plugin],
        decorator: str = "",
        expected: str = "a function",
        of_library: Callable[[str], Plugin | None] = lambda name: None,
    ) -> None:
        self.kind = kind
        self._of_library = of_library
        self._from_libraries: dict[str, Plugin] = {}
        self._decorator = decorator or kind
        self._expected = expected
        self.built_in = dict(built_in)
        self._plugins = dict(built_in)
        for name, plugin in built_in.items():
            OPTIONS.declare(self._owner(name), plugin.declaration.options)

    def __getitem__(self, name: str) -> Any:
        plugin = self._find(name)
        if plugin is None:
            raise KeyError(name)
        if self.is_custom(name):
            return plugin.member
        module, _, attribute = plugin.member.partition(":")
        return getattr(importlib.import_module(module), attribute)

    def __iter__(self) -> Iterator[str]:
        return iter(self._plugins)

    def __len__(self) -> int:
        return len(self._plugins)

    def __contains__(self, name: object) -> bool:
        return self._find(name) is not None  # without importing it

    def _find(self, name: object) -> Plugin | None:
        """Return a member without importing it; the options of a library's member are declared at its first use."""
        if not isinstance(name, str):
            return None
        plugin = self._plugins.get(name) or self._from_libraries.get(name)
        if plugin is None and ":" in name:
            plugin = self._of_library(name)
            if plugin is not None:
                self._from_libraries[name] = plugin
                OPTIONS.declare(self._owner(name), plugin.declaration.options)
        return plugin

    @property
    def added(self) -> Mapping[str, Plugin]:
        """Custom members."""
        return {name: plugin for name, plugin in self._plugins.items() if name not in self.built_in}

    def is_custom(self, name: str) -> bool:
        """Return whether a member is registered that is not built in."""
        return name in self._plugins and name not in self.built_in

    @property
    def in_use(self) -> list[str]:
        """All members that are registered, and those of libraries that were looked up."""
        return [*self._plugins, *self._from_libraries]

    def is_foreign(self, name: str) -> bool:
        """Return whether a member is registered that is custom or of a library."""
        return name not in self.built_in and name in self

    def declaration(self, name: str) -> Declaration:
        """Return the declaration of a member without importing it."""
        plugin = self._find(name)
        if plugin is None:
            raise KeyError(name)
        return plugin.declaration

    def register(self, name: str, member: Any, declaration: Declaration = NOTHING) -> None:
        """Add a custom member, or replace one.

        Raises:
            UsageError: the name belongs to a built-in member or is not an identifier, or the member is not callable.
        """
        self._check(name, member)
        self._plugins[name] = Plugin(member, declaration)
        OPTIONS.declare(self._owner(name), declaration.options)
        remember_origin(self.kind, name, member)

    def _check(self, name: str, member: Any) -> None:
        if not isinstance(name, str):
            raise UsageError(
                f"{self.kind} {described(name)}: expected the name that configs call it by, "
                f'as in @{self._decorator}("mine")'
            )
        if name in self.built_in:
            raise UsageError(f"{self.kind} {name!r} is built in; register yours under another name")
        if not name.isidentifier():
            raise UsageError(f"{self.kind} {name!r}: expected a name of letters, digits and underscores")
        if not callable(member):
            raise UsageError(f"{self.kind} {name!r}: expected {self._expected}, not {described(member)}")

    def _owner(self, name: str) -> str:
        return f"{self.kind} {name!r}"

    def declaration_of(self, member: Any) -> Declaration:
        """Return the declaration of a registered member object; an empty one if it is not registered."""
        for name in self:
            declaration = self.declaration(name)
            if declaration != NOTHING and self[name] is member:
                return declaration
        return NOTHING

    @contextmanager
    def temporarily(self, name: str, member: Any, declaration: Declaration | None = None) -> Iterator[None]:
        """Register a member under a new name in the block.

        Args:
            name: the name.
            member: the member.
            declaration: its declaration; by default that of its existing registration, if any.
        """
        if name in self:
            raise UsageError(f"{self.kind} {name!r} is taken")
        self.register(name, member, declaration or self.declaration_of(member))
        try:
            yield
        finally:
            self.forget(name)

    def forget(self, name: str) -> None:
        """Remove a custom member, or a member of a library until its next use."""
        plugins = self._from_libraries if name in self._from_libraries else self._plugins
        del plugins[name]
        OPTIONS.declare(self._owner(name), {})

    def options(self, name: str) -> Options:
        """Return the options of a member; empty if it is not registered."""
        return self.declared(name).options

    def declared(self, name: object) -> Declaration:
        """Return the declaration of a member; an empty one if it is not registered."""
        plugin = self._find(name)
        return NOTHING if plugin is None else plugin.declaration

    def decorator(
        self,
        name: str,
        options: object,
        check: Callable[[str, Any, Declaration], None],
        **declared: Any,
    ) -> Callable[[Member], Member]:
        """Return a decorator that checks and registers an object.

        Args:
            name: name in configs.
            options: its options, by name or with a definition.
            check: raises UsageError if the object is invalid.
            declared: further attributes of its declaration.
        """
        if not isinstance(name, str):  # the decorator was used without parentheses
            self._check(name, name)

        def decorate(member: Member) -> Member:
            self._check(name, member)
            fields = OF_SCENARIOS if self.kind == "scenario" else frozenset[str]()
            used, taken = OPTIONS.resolved(self._owner(name), options, fields)
            declaration = Declaration(used, tuple(taken), **declared)
            check(name, member, declaration)
            self.register(name, member, declaration)
            return member

        return decorate


def described(member: object) -> str:
    """Describe an object for a message; its repr may be long, or raise."""
    if isinstance(member, type):
        return f"class {member.__name__}"
    name = getattr(member, "__name__", None)
    return f"{name}()" if callable(member) and isinstance(name, str) else f"something of type {type(member).__name__}"


SCENARIOS = Registry("scenario", declarations.SCENARIOS)
STRATEGIES = Registry("strategy", declarations.STRATEGIES, expected="a subclass of Strategy")
ACQUISITION_FUNCTIONS = Registry("acquisition", declarations.ACQUISITION_FUNCTIONS, "acquisition_function")
STORAGE_FUNCTIONS = Registry("storage_function", declarations.STORAGE_FUNCTIONS)
PAPER_NETWORK = declarations.PAPER_NETWORK
NETWORKS = Registry(
    "network",
    declarations.NETWORKS,
    expected="a function (channels, samples, outputs) that makes a torch.nn.Module",
    of_library=braindecode.plugin,
)


def _declare_option(name: str) -> None:
    """Declare the options of the network of a library that a name of an option begins with."""
    network = braindecode.network_with_option(name)
    if network is not None:
        NETWORKS.declaration(network)


OPTIONS.look_up = _declare_option
AUGMENTATIONS = Registry("augment", declarations.AUGMENTATIONS, "augmentation", expected="a function (frames, rng)")
ENCODERS = Registry("encoder", declarations.ENCODERS, expected="a function (weights) that makes a torch.nn.Module")
"""Frozen networks that compute features of a data set before a run starts."""

OBSERVERS = Registry("observer", declarations.OBSERVERS, expected="a function of an event")
"""Named by `--observe`, not by configs; numbers do not depend on them."""

REGISTRIES: Mapping[str, Registry] = {
    "scenario": SCENARIOS,
    "strategy": STRATEGIES,
    "acquisition": ACQUISITION_FUNCTIONS,
    "storage_function": STORAGE_FUNCTIONS,
    "network": NETWORKS,
    "augment": AUGMENTATIONS,
    "encoder": ENCODERS,
}
"""Registry of each config field that names a plug-in."""


STORED_RUN = re.compile(r"run:([0-9a-f]{24})")
"""Values of `encoder` and `start_from` for the network of a stored run."""


def is_stored_run(encoder: str) -> bool:
    """Return whether an encoder is the network of a stored run.

    Raises:
        ValueError: the prefix is not followed by a run id.
    """
    if encoder.startswith("run:") and not STORED_RUN.fullmatch(encoder):
        raise ValueError("expected run:RUN_ID with the 24 digits of a run id, or the name of an encoder")
    return encoder.startswith("run:")


USERS = ("scenario", "strategy", "network", "augment")
"""Config fields that name a plug-in. The other registries belong to options that name one."""

BUILT_IN = tuple(OPTIONS)
"""Options of built-in plug-ins, which are columns of every table of runs."""


def used_options(value: Callable[[str], Any]) -> dict[str, Option]:
    """Return the options of the plug-ins that a config names, and of the plug-ins that these options name.

    Args:
        value: the value of a field, or of an option that names a plug-in.
    """
    used: dict[str, Option] = {}
    for kind in USERS:
        declared = REGISTRIES[kind].declared(value(kind))
        used |= declared.options
        for name, registry in declared.naming:
            used |= REGISTRIES[registry].declared(value(name)).options
    return used


def options_of_any(plugins: Mapping[str, Any], changes: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the options that some of several choices of plug-ins use.

    Args:
        plugins: name of the plug-in of each kind.
        changes: settings of each choice, which may name others.
    """
    choices: set[tuple[Any, ...]] = set()
    for settings in changes:
        choices.add(tuple(settings.get(kind, name) for kind, name in plugins.items()))
    used: set[str] = set()
    for names in choices:
        of_kind = dict(zip(plugins, names, strict=True))
        used |= used_options(of_kind.__getitem__).keys()
    return used


def headline(scenario: str) -> tuple[str, ...]:
    """Return the headline metrics of a scenario; those of the paper if it is not registered."""
    return SCENARIOS.declaration(scenario).headline if scenario in SCENARIOS else PAPER


def has_metric(scenario: str, column: str) -> bool:
    """Return whether runs of a scenario may have a metric; AUC over seen classes needs tasks with separate classes."""
    own_classes = SCENARIOS.declaration(scenario).own_classes if scenario in SCENARIOS else None
    return own_classes is not False or metric_named(column).measure != "auc_seen"


def may_use(name: str, stated: Mapping[str, Any]) -> bool:
    """Return whether a config may use an option, with any plug-ins in fields that it does not set."""

    def choices(field: str, registry: Registry) -> list[Options]:
        return [registry.options(name) for name in ([stated[field]] if field in stated else registry.in_use)]

    for kind in USERS:
        for options in choices(kind, REGISTRIES[kind]):
            plugins = [(own, registry) for own, option in options.items() if (registry := registry_of(option))]
            if name in options or any(
                name in others for own, registry in plugins for others in choices(own, REGISTRIES[registry])
            ):
                return True
    return False


def unregistered(fields: Mapping[str, Any]) -> list[str]:
    """Return the unregistered plug-ins among a config's values; a search-space file registers custom ones."""
    named = {kind: name for kind in REGISTRIES if isinstance(name := fields.get(kind), str)}
    return [
        f"{kind} {name!r}"
        for kind, name in named.items()
        if name not in REGISTRIES[kind] and not (kind == "encoder" and STORED_RUN.fullmatch(name))
    ]
