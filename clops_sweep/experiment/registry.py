"""Registries of what a config can name: scenarios, networks, strategies, acquisition functions, storage functions.

A registry is read when a config is validated, so it holds the built-in members as "module:attribute", imported when
they are first used: naming them needs neither torch nor Ray. A search-space file may register its own::

    from clops_sweep import RunConfig, SearchSpace, acquisition_function

    @acquisition_function("least_confident", looks_at=())
    def least_confident(context, rows):
        return -context.learner.probabilities(rows).amax(-1)

The sweep hands such functions to its workers. A run is identified by the name of what it uses and by the config fields
that this says it looks at, not by the code behind the name: give a changed function a new name.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from clops_sweep.data.origins import remember_origin
from clops_sweep.errors import BadInput
from clops_sweep.experiment import declarations
from clops_sweep.experiment.declarations import OF_SCENARIOS, Declaration, Fields, LooksAt, Work

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

    def register(self, name: str, member: Any, declaration: Declaration = declarations.UNKNOWN) -> None:
        """Adds a member, or replaces one that was added before.

        Raises:
            BadInput: the name is taken by a built-in member, or is no identifier; the member cannot be called.
        """
        if not isinstance(name, str):
            raise BadInput(
                f"{self._kind} {_shown(name)}: expected the name that configs call it by, "
                f'as in @{self._decorator}("mine")'
            )
        if name in self._built_in:
            raise BadInput(f"{self._kind} {name!r} is built in; register yours under another name")
        if not name.isidentifier():
            raise BadInput(f"{self._kind} {name!r}: expected a name of letters, digits and underscores")
        if not callable(member):
            raise BadInput(f"{self._kind} {name!r}: expected {self._expected}, not {_shown(member)}")
        self._added[name] = Plugin(member, declaration)
        remember_origin(self._kind, name, member)

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

    @property
    def kind(self) -> str:
        """What the members are, for messages."""
        return self._kind

    def decorator(
        self, name: str, declaration: Declaration, check: Callable[[str, Any], None] = lambda name, member: None
    ) -> Callable[[Member], Member]:
        """A decorator that registers what it decorates, once `check` has looked at it."""
        if not isinstance(name, str):  # the decorator was written without its brackets
            self.register(name, name)

        def decorate(member: Member) -> Member:
            check(name, member)
            self.register(name, member, declaration)
            return member

        return decorate


def _shown(member: object) -> str:
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
    },
    expected="a subclass of Strategy",
)

PAPER_NETWORK = "clops_cnn"
"""The network of the paper, which is computed by kernels of its own."""

NETWORKS = Registry(
    "network",
    {
        PAPER_NETWORK: ("clops_sweep.learning.paper_learner:PaperLearner", declarations.NOTHING),
        "inception_time": ("clops_sweep.learning.networks.inception_time:InceptionTime", declarations.NOTHING),
        "resnet1d_wang": ("clops_sweep.learning.networks.resnet1d_wang:ResNet1dWang", declarations.NOTHING),
    },
    expected="a function (channels, samples, outputs) that makes a torch.nn.Module",
)

OBSERVERS = Registry(
    "observer",
    {
        "tensorboard": ("clops_sweep.sweep.observers.tensorboard:TensorBoard", declarations.NOTHING),
        "mlflow": ("clops_sweep.sweep.observers.mlflow:MLflow", declarations.NOTHING),
        "wandb": ("clops_sweep.sweep.observers.wandb:WeightsAndBiases", declarations.NOTHING),
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

_OF_A_STRATEGY = (
    "begin_task",
    "replay",
    "train_epoch",
    "end_epoch",
    "end_task",
    "record",
    "counts",
    "state",
    "restore",
)
"""The methods that a run calls; they are looked for by name, for the base class of strategies needs torch."""

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


def strategy(
    name: str,
    *,
    looks_at: LooksAt | None = None,
    work: Callable[[Fields, int, int], Work] | None = None,
) -> Callable[[Member], Member]:
    """Registers a subclass of `clops_sweep.learning.strategies.base.Strategy`.

    Args:
        name: what configs call it.
        looks_at: the fields of CLOPS that it looks at too, such as `storage_fraction`; two runs that differ in others
            alone are one run. By default all of them, so that nothing is ever taken for the same that is not.
        work: an epoch's work, for the estimate of costs; by default that of replay.

    Raises:
        BadInput: the name is taken or is no identifier, a field is not known, or it is no strategy: a class that has
            the methods of one, or something that makes one and has `joint`.
    """
    if work is not None and not callable(work):
        raise BadInput(f"strategy {name!r}: work: expected a function, not {_shown(work)}")
    return STRATEGIES.decorator(name, Declaration(looks_at, work), _check_strategy)


def _check_strategy(name: str, member: Any) -> None:
    """Sees whether it has what a run asks of a strategy.

    Raises:
        BadInput: it has not.
    """
    if not callable(member):
        return  # the registry says so
    expected = f"strategy {name!r}: expected a subclass of clops_sweep.learning.strategies.base.Strategy"
    lacking = [method for method in _OF_A_STRATEGY if not callable(getattr(member, method, None))]
    if isinstance(member, type) and lacking:
        raise BadInput(f"{expected}; {_shown(member)} has no method {lacking[0]!r}")
    if not isinstance(getattr(member, "joint", None), bool):
        raise BadInput(f"{expected}; {_shown(member)} has no `joint` that is True or False")


def acquisition_function(name: str, *, looks_at: LooksAt | None = None) -> Callable[[Member], Member]:
    """Registers a function (AcquisitionContext, rows int64 [S, m]) -> scores [S, m]; the highest are replayed.

    Args:
        name: what configs call it.
        looks_at: the fields that it looks at, such as `mc_samples`; see `strategy`.

    Raises:
        BadInput: the name is taken or is no identifier, a field is not known, or it cannot be called.
    """
    return ACQUISITION_FUNCTIONS.decorator(name, Declaration(looks_at))


def storage_function(name: str) -> Callable[[Member], Member]:
    """Registers a function from beta's trajectories [S, tau, n] to s, float64 [S, n].

    Raises:
        BadInput: the name is taken or is no identifier, or it cannot be called.
    """
    return STORAGE_FUNCTIONS.decorator(name, declarations.NOTHING)


def network(name: str) -> Callable[[Member], Member]:
    """Registers a function (channels, samples, outputs) that makes a `torch.nn.Module`, or a class of such modules.

    The module takes float32 [B, channels, samples] to logits, float32 [B, outputs]. Its initial weights are whatever
    the function draws from the global generators of PyTorch, NumPy or Python, which follow the run's seed meanwhile;
    so do dropout and all else that its layers draw from them in training.

    Example::

        @network("mean_pooled")
        def mean_pooled(channels, samples, outputs):
            from torch import nn

            layers = [nn.Conv1d(channels, 16, 7), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten()]
            return nn.Sequential(*layers, nn.Dropout(0.1), nn.Linear(16, outputs))

    Args:
        name: what configs call it.

    Raises:
        BadInput: the name is taken or is no identifier, or it cannot be called with channels, samples and outputs.
    """
    return NETWORKS.decorator(name, declarations.NOTHING, _check_network)


def _check_network(name: str, member: Any) -> None:
    """Sees whether it can be called for a module; it is called, and the module looked at, before a worker starts.

    Raises:
        BadInput: it cannot.
    """
    if not callable(member):
        return  # the registry says so
    expected = f"network {name!r}: expected a function (channels, samples, outputs) that makes a torch.nn.Module"
    if not isinstance(member, type) and callable(getattr(member, "forward", None)):
        raise BadInput(f"{expected}, a new one for each run; this is a module itself")
    try:
        inspect.signature(member).bind(1, 1, 1)
    except TypeError as error:
        raise BadInput(f"{expected}; {_shown(member)} cannot be called with these three ({error})") from None
    except ValueError:  # what is written in C need not have a signature
        return


def observer(name: str) -> Callable[[Member], Member]:
    """Registers a function of an event (`EpochEnd`, `TaskEnd` or `RunEnd`), for `--observe NAME`.

    It is called in a process of its own beside the worker that trains: what it raises, or hangs in, harms no run. A
    class is made once a worker, with the text behind the colon of `--observe NAME:TARGET` (else None) and the path of a
    folder of its own beside the store's logs, and its objects are called with the events.

    Example::

        @observer("progress_file")
        def progress_file(event):
            with open("/tmp/progress.txt", "a") as file:
                print(event.run_id, dict(event.metrics), file=file)

    Args:
        name: what `--observe` calls it.

    Raises:
        BadInput: the name is taken or is no identifier, or it cannot be called with an event.
    """
    return OBSERVERS.decorator(name, declarations.NOTHING, _check_observer)


def _check_observer(name: str, member: Any) -> None:
    """Sees whether it can be called with an event, or be made with target and folder.

    Raises:
        BadInput: it cannot.
    """
    if not callable(member):
        return  # the registry says so
    made = isinstance(member, type)
    if made and not any("__call__" in vars(base) for base in member.__mro__):
        raise BadInput(f"observer {name!r}: {_shown(member)} has no method __call__; expected one that takes an event")
    try:
        inspect.signature(member).bind(*((None, "") if made else (None,)))
    except TypeError as error:
        expected = "a class made with target and folder" if made else "a function of an event"
        raise BadInput(f"observer {name!r}: expected {expected}; {_shown(member)} is none ({error})") from None
    except ValueError:  # what is written in C need not have a signature
        return


def scenario(name: str, *, looks_at: Collection[str] = ()) -> Callable[[Member], Member]:
    """Registers a function from a FrameSet to `ScenarioTasks`, the tasks of a scenario of one's own.

    Example::

        @scenario("by_device")
        def by_device(frames):
            codes, names = frames.domains["device"]
            targets = class_targets(frames)
            return ScenarioTasks("softmax", [TaskInstances(name, codes == i, targets) for i, name in enumerate(names)])

    It goes with every data set, and raises itself where the data lack what it needs. The same frames must give the same
    tasks. Which instances are for training, validation and test follows from the frame set's split.

    Args:
        name: what configs call it.
        looks_at: of `task_classes` and `domain` those that it takes as keyword arguments; they are part of a run's
            identity then.

    Raises:
        BadInput: the name is taken or is no identifier, a field is not known, or it cannot be called.
    """
    if isinstance(looks_at, str) or not isinstance(looks_at, Collection) or not OF_SCENARIOS.issuperset(looks_at):
        raise BadInput(f"scenario {name!r}: looks_at: expected a list with some of {', '.join(sorted(OF_SCENARIOS))}")
    return SCENARIOS.decorator(name, Declaration(looks_at))
