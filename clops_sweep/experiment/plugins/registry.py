"""Registries of what a config can name: scenarios, networks, strategies, acquisition functions, storage functions.

A registry is read when a config is validated, so it holds the built-in members as "module:attribute", imported when
they are first used: naming them needs neither torch nor Ray. `plugins` has the decorators that register others.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from clops_sweep.data.origins import remember_origin
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins import declarations, memory_methods
from clops_sweep.experiment.plugins.declarations import Declaration, Fields
from clops_sweep.experiment.plugins.options import OPTIONS, Options

Member = TypeVar("Member", bound=Callable[..., Any])


@dataclass(frozen=True)
class Plugin:
    """A registered member and what it declares."""

    member: Any
    declaration: Declaration


class Registry(Mapping[str, Any]):
    """Members by name; built-in ones are imported when they are first asked for.

    Args:
        kind: what the members are, for messages.
        built_in: name to "module:attribute" and what the member declares.
        decorator: the function that registers others.
        expected: what others are to be, for messages.
    """

    def __init__(
        self,
        kind: str,
        built_in: Mapping[str, tuple[str, Declaration]],
        decorator: str = "",
        expected: str = "a function",
    ) -> None:
        self._kind = kind
        self._decorator = decorator or kind
        self._expected = expected
        self._built_in = dict(built_in)
        self._added: dict[str, Plugin] = {}
        for name, (_, declaration) in self._built_in.items():
            OPTIONS.declare(self._owner(name), declaration.options)

    def __getitem__(self, name: str) -> Any:
        if name in self._added:
            return self._added[name].member
        module, _, attribute = self._built_in[name][0].partition(":")
        return getattr(importlib.import_module(module), attribute)

    def __iter__(self) -> Iterator[str]:
        yield from self._built_in
        yield from self._added

    def __len__(self) -> int:
        return len(self._built_in) + len(self._added)

    def __contains__(self, name: object) -> bool:
        return name in self._built_in or name in self._added

    @property
    def added(self) -> Mapping[str, Plugin]:
        """What was registered beside the built-in members."""
        return dict(self._added)

    def declaration(self, name: str) -> Declaration:
        """What a member declares; nothing of it is imported."""
        return self._added[name].declaration if name in self._added else self._built_in[name][1]

    def is_built_in(self, name: str) -> bool:
        """Whether a member comes with the package, and so declares the same at any time."""
        return name in self._built_in

    def register(self, name: str, member: Any, declaration: Declaration = declarations.UNKNOWN) -> None:
        """Adds a member, or replaces one that was added before.

        Raises:
            UsageError: the name is taken by a built-in member, or is no identifier; the member cannot be called, or has
                options that cannot be.
        """
        self._check(name, member)
        OPTIONS.check(self._owner(name), declaration.options)
        self._add(name, Plugin(member, declaration))

    def _check(self, name: str, member: Any) -> None:
        if not isinstance(name, str):
            raise UsageError(
                f"{self._kind} {described(name)}: expected the name that configs call it by, "
                f'as in @{self._decorator}("mine")'
            )
        if name in self._built_in:
            raise UsageError(f"{self._kind} {name!r} is built in; register yours under another name")
        if not name.isidentifier():
            raise UsageError(f"{self._kind} {name!r}: expected a name of letters, digits and underscores")
        if not callable(member):
            raise UsageError(f"{self._kind} {name!r}: expected {self._expected}, not {described(member)}")

    def _add(self, name: str, plugin: Plugin) -> None:
        self._added[name] = plugin
        OPTIONS.declare(self._owner(name), plugin.declaration.options)
        remember_origin(self._kind, name, plugin.member)

    def _owner(self, name: str) -> str:
        return f"{self._kind} {name!r}"

    def options_of(self, member: Any) -> Options:
        """The options of a member that is registered under whatever name; none of another."""
        known = {name: self.declaration(name).options for name in self}
        return next((options for name, options in known.items() if options and self[name] is member), {})

    @contextmanager
    def temporarily(self, name: str, member: Any, declaration: Declaration | None = None) -> Iterator[None]:
        """Registers a member under a new name inside, and forgets it afterwards.

        Args:
            name: which.
            member: what.
            declaration: by default that it looks at everything, and has the options of the plug-in that it is
                registered as, if it is.
        """
        if name in self:
            raise UsageError(f"{self._kind} {name!r} is taken")
        self._check(name, member)
        self._add(name, Plugin(member, declaration or Declaration(options=self.options_of(member))))
        try:
            yield
        finally:
            self.forget(name)

    def forget(self, name: str) -> None:
        """Takes back what was registered under a name."""
        del self._added[name]
        OPTIONS.declare(self._owner(name), {})

    def options(self, name: str) -> Options:
        """The options of a member; none where nobody has registered it."""
        return self.declaration(name).options if name in self else {}

    @property
    def kind(self) -> str:
        """What the members are, for messages."""
        return self._kind

    def decorator(
        self, name: str, declaration: Declaration, check: Callable[[str, Any], None] = lambda name, member: None
    ) -> Callable[[Member], Member]:
        """A decorator that registers what it decorates, once `check` has looked at it."""
        if not isinstance(name, str):  # the decorator was written without its brackets
            self._check(name, name)

        def decorate(member: Member) -> Member:
            self._check(name, member)
            OPTIONS.check(self._owner(name), declaration.options)
            check(name, member)
            self._add(name, Plugin(member, declaration))
            return member

        return decorate


def described(member: object) -> str:
    """What something is, for a message; its own text may be long, or raise."""
    if isinstance(member, type):
        return f"class {member.__name__}"
    name = getattr(member, "__name__", None)
    return f"{name}()" if callable(member) and isinstance(name, str) else f"something of type {type(member).__name__}"


ACQUISITION_FUNCTIONS = Registry(
    "acquisition",
    {
        name: (f"clops_sweep.learning.replay.acquisition:{name}", declaration)
        for name, declaration in {
            "bald_mcd": declarations.BY_DROPOUT,
            "bald_mcp": declarations.BY_PERTURBATION,
            "balc_kld": declarations.BY_PERTURBATION,
            "entropy": declarations.BY_DROPOUT,
            "variation_ratio": declarations.BY_DROPOUT,
            "random": declarations.NOTHING,
        }.items()
    },
    "acquisition_function",
)
STORAGE_FUNCTIONS = Registry(
    "storage_function",
    {name: (f"clops_sweep.learning.replay.storage:{name}", declarations.NOTHING) for name in ("area", "squared_area")},
)


def _seen_by_function(field: str, fields: Fields) -> dict[str, Any]:
    return REGISTRIES[field].declaration(fields[field]).seen(fields)


_CLOPS = declarations.clops(_seen_by_function)

STRATEGIES = Registry(
    "strategy",
    {
        "clops": ("clops_sweep.learning.strategies.clops:CLOPS", _CLOPS),
        "finetune": ("clops_sweep.learning.strategies.finetune:FineTuning", declarations.FINETUNE),
        "multitask": ("clops_sweep.learning.strategies.multitask:MultiTask", declarations.MULTITASK),
        "gem": ("clops_sweep.learning.strategies.gem:GradientEpisodicMemory", declarations.GEM),
        "mir": ("clops_sweep.learning.strategies.mir:MaximallyInterferedRetrieval", declarations.MIR),
        "replay": ("clops_sweep.learning.strategies.replay:ExperienceReplay", declarations.replay(_CLOPS)),
        "joint": ("clops_sweep.learning.strategies.joint:JointTraining", declarations.JOINT),
        "ewc": ("clops_sweep.learning.strategies.ewc:ElasticWeightConsolidation", declarations.EWC),
        "si": ("clops_sweep.learning.strategies.si:SynapticIntelligence", declarations.SI),
        "mas": ("clops_sweep.learning.strategies.mas:MemoryAwareSynapses", declarations.MAS),
        "lwf": ("clops_sweep.learning.strategies.lwf:LearningWithoutForgetting", declarations.LWF),
        "er": ("clops_sweep.learning.strategies.er:TinyEpisodicMemory", memory_methods.er(_seen_by_function)),
        "er_ace": ("clops_sweep.learning.strategies.er_ace:AsymmetricCrossEntropy", memory_methods.ER_ACE),
        "derpp": ("clops_sweep.learning.strategies.derpp:DarkExperienceReplay", memory_methods.DERPP),
        "agem": ("clops_sweep.learning.strategies.agem:AveragedGEM", memory_methods.AGEM),
        "gdumb": ("clops_sweep.learning.strategies.gdumb:GreedyDumb", memory_methods.GDUMB),
    },
    expected="a subclass of Strategy",
)

PAPER_NETWORK = "clops_cnn"
"""The network of the paper, which is computed by kernels of its own."""

NETWORKS = Registry(
    "network",
    {
        PAPER_NETWORK: ("clops_sweep.learning.networks.network:PaperNetwork", declarations.NOTHING),
        "inception_time": ("clops_sweep.learning.networks.inception_time:InceptionTime", declarations.NOTHING),
        "resnet1d_wang": ("clops_sweep.learning.networks.resnet1d_wang:ResNet1dWang", declarations.NOTHING),
    },
    expected="a function (channels, samples, outputs) that makes a torch.nn.Module",
)

OBSERVERS = Registry(
    "observer",
    {
        "tensorboard": ("clops_sweep.execution.observers.tensorboard:TensorBoard", declarations.NOTHING),
        "mlflow": ("clops_sweep.execution.observers.mlflow:MLflow", declarations.NOTHING),
        "wandb": ("clops_sweep.execution.observers.wandb:WeightsAndBiases", declarations.NOTHING),
    },
    expected="a function of an event",
)
"""No config names them, and no number depends on them: `--observe` does."""

SCENARIOS = Registry(
    "scenario",
    {
        name: (f"clops_sweep.data.scenarios:{name}", declaration)
        for name, declaration in {
            "class_il": declarations.CLASS_IL,
            "class_il_union": declarations.CLASS_IL,
            "time_il": declarations.NOTHING,
            "domain_il": declarations.DOMAIN_IL,
        }.items()
    },
)

REGISTRIES: Mapping[str, Registry] = {
    "scenario": SCENARIOS,
    "strategy": STRATEGIES,
    "acquisition": ACQUISITION_FUNCTIONS,
    "storage_function": STORAGE_FUNCTIONS,
    "network": NETWORKS,
}
"""Registry of each config field that names a plug-in."""


def unregistered(fields: Mapping[str, Any]) -> list[str]:
    """What a config's fields, by name, ask for and nobody has registered: a search-space file does that."""
    return [f"{name} {fields[name]!r}" for name, registry in REGISTRIES.items() if fields[name] not in registry]
