"""The decorators by which a search-space file registers plug-ins of its own.

For example::

    from clops_sweep import FloatOption, RunConfig, SearchSpace, acquisition_function

    @acquisition_function("least_confident", looks_at=(), options={"power": FloatOption(1.0, gt=0, log=True)})
    def least_confident(context, rows, *, power):
        return -((context.learner.probabilities(rows) - 0.5).abs() ** power).mean(-1)

The sweep hands them to its workers. A run is identified by the name of what it uses, by the config fields that this
says it looks at and by its options, not by the code behind the name: give a changed function a new name.

An option is a config field like any other wherever its plug-in is in use: given to `RunConfig`, an axis, a parameter of
a search, `--set`, `--where`, a column of `runs`, part of the run's identity. Functions get theirs as keyword arguments,
a strategy finds them in ``training.config``. Two plug-ins cannot have options of one name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any

from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.declarations import NOTHING, OF_SCENARIOS, Declaration, LooksAt
from clops_sweep.experiment.plugins.options import Options
from clops_sweep.experiment.plugins.registry import (
    ACQUISITION_FUNCTIONS,
    NETWORKS,
    OBSERVERS,
    SCENARIOS,
    STORAGE_FUNCTIONS,
    STRATEGIES,
    Member,
    described,
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


def strategy(
    name: str,
    *,
    looks_at: LooksAt | None = None,
    lockstep: Collection[str] = (),
    options: Options | None = None,
    per_class_outputs: bool = False,
) -> Callable[[Member], Member]:
    """Registers a subclass of `clops_sweep.learning.strategies.base.Strategy`.

    Args:
        name: what configs call it.
        looks_at: the fields of CLOPS that it looks at too, such as `storage_fraction`; two runs that differ in others
            alone are one run. By default all of them, so that nothing is ever taken for the same that is not.
        lockstep: config fields besides `seed`, and options, in which runs that are trained together may differ; it then
            finds one value a run in ``training.configs``. They may change what is replayed, and how it weighs, but not
            how much.
        options: its own hyperparameters, which it finds in ``training.config``.
        per_class_outputs: whether it can do nothing where an output stands for several classes, or an instance has
            more than one: such scenarios are refused for it before anything starts.

    Raises:
        UsageError: the name is taken or is no identifier, a field is not known, an option cannot be, or it is no
            strategy: a class that has the methods of one, or something that makes one and has `joint`.
    """
    declaration = Declaration(looks_at, lockstep, options or {}, per_class_outputs)
    return STRATEGIES.decorator(name, declaration, _check_strategy)


def _check_strategy(name: str, member: Any) -> None:
    """Sees whether it has what a run asks of a strategy.

    Raises:
        UsageError: it has not.
    """
    expected = f"strategy {name!r}: expected a subclass of clops_sweep.learning.strategies.base.Strategy"
    lacking = [method for method in _OF_A_STRATEGY if not callable(getattr(member, method, None))]
    if isinstance(member, type) and lacking:
        raise UsageError(f"{expected}; {described(member)} has no method {lacking[0]!r}")
    if not isinstance(getattr(member, "joint", None), bool):
        raise UsageError(f"{expected}; {described(member)} has no `joint` that is True or False")


def acquisition_function(
    name: str, *, looks_at: LooksAt | None = None, options: Options | None = None
) -> Callable[[Member], Member]:
    """Registers a function (AcquisitionContext, rows int64 [S, m]) -> scores [S, m]; the highest are replayed.

    Args:
        name: what configs call it.
        looks_at: the fields that it looks at, such as `mc_samples`; see `strategy`.
        options: its own hyperparameters, which it gets as keyword arguments.

    Raises:
        UsageError: the name is taken or is no identifier, a field is not known, an option cannot be, or it cannot be
            called with the options.
    """
    return ACQUISITION_FUNCTIONS.decorator(
        name,
        Declaration(looks_at, options=options or {}),
        _called_with("acquisition", ["context", "rows"], [*(options or {})]),
    )


def storage_function(name: str, *, options: Options | None = None) -> Callable[[Member], Member]:
    """Registers a function from beta's trajectories [S, tau, n] to s, float64 [S, n].

    Args:
        name: what configs call it.
        options: its own hyperparameters, which it gets as keyword arguments.

    Raises:
        UsageError: the name is taken or is no identifier, an option cannot be, or it cannot be called with the options.
    """
    return STORAGE_FUNCTIONS.decorator(
        name,
        Declaration((), options=options or {}),
        _called_with("storage_function", ["trajectories"], [*(options or {})]),
    )


def _called_with(kind: str, arguments: Sequence[str], keywords: Sequence[str]) -> Callable[[str, Any], None]:
    """A check that a function takes these arguments, and its options and fields as keyword arguments."""

    def check(name: str, member: Any) -> None:
        try:
            inspect.signature(member).bind(*arguments, **dict.fromkeys(keywords))
        except TypeError as error:
            written = ", ".join([*arguments, *(["*", *keywords] if keywords else [])])
            raise UsageError(
                f"{kind} {name!r}: expected a function ({written}); {described(member)} cannot be called so ({error})"
            ) from None
        except ValueError:  # what is written in C need not have a signature
            return

    return check


def network(name: str, *, options: Options | None = None) -> Callable[[Member], Member]:
    """Registers a function (channels, samples, outputs) that makes a `torch.nn.Module`, or a class of such modules.

    The module takes float32 [B, channels, samples] to logits, float32 [B, outputs]. Its initial weights are whatever
    the function draws from the global generators of PyTorch, NumPy or Python, which follow the run's seed meanwhile;
    so do dropout and all else that its layers draw from them in training.

    Example::

        @network("mean_pooled", options={"filters": IntOption(16, ge=1)})
        def mean_pooled(channels, samples, outputs, *, filters):
            from torch import nn

            layers = [nn.Conv1d(channels, filters, 7), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten()]
            return nn.Sequential(*layers, nn.Dropout(0.1), nn.Linear(filters, outputs))

    Args:
        name: what configs call it.
        options: its own hyperparameters, which it gets as keyword arguments.

    Raises:
        UsageError: the name is taken or is no identifier, an option cannot be, or it cannot be called with channels,
            samples and outputs and with the options.
    """
    return NETWORKS.decorator(
        name, Declaration((), options=options or {}), lambda name, member: _check_network(name, member, options or {})
    )


def _check_network(name: str, member: Any, options: Options) -> None:
    """Sees whether it can be called for a module; it is called, and the module looked at, before a worker starts.

    Raises:
        UsageError: it cannot.
    """
    arguments = ", ".join(["channels", "samples", "outputs", *(["*", *options] if options else [])])
    expected = f"network {name!r}: expected a function ({arguments}) that makes a torch.nn.Module"
    if not isinstance(member, type) and callable(getattr(member, "forward", None)):
        raise UsageError(f"{expected}, a new one for each run; this is a module itself")
    try:
        inspect.signature(member).bind(1, 1, 1, **options)
    except TypeError as error:
        raise UsageError(f"{expected}; {described(member)} cannot be called with these ({error})") from None
    except ValueError:  # what is written in C need not have a signature
        return


def observer(name: str) -> Callable[[Member], Member]:
    """Register a function of an event (`EpochEnd`, `TaskEnd` or `RunEnd`), for `--observe NAME`.

    One thread of the driver calls all observers: an observer that raises or hangs harms no run. A class is instantiated
    once a launch, with the text behind the colon of `--observe NAME:TARGET` (else None) and the path of its own folder
    beside the store's logs. The object is then called with the events.

    Example::

        @observer("progress_file")
        def progress_file(event):
            with open("/tmp/progress.txt", "a") as file:
                print(event.run_id, dict(event.metrics), file=file)

    Args:
        name: what `--observe` calls it.

    Raises:
        UsageError: the name is taken or is no identifier, or it cannot be called with an event.
    """
    return OBSERVERS.decorator(name, NOTHING, _check_observer)


def _check_observer(name: str, member: Any) -> None:
    """Sees whether it can be called with an event, or be made with target and folder.

    Raises:
        UsageError: it cannot.
    """
    made = isinstance(member, type)
    if made and not any("__call__" in vars(base) for base in member.__mro__):
        raise UsageError(
            f"observer {name!r}: {described(member)} has no method __call__; expected one that takes an event"
        )
    try:
        inspect.signature(member).bind(*((None, "") if made else (None,)))
    except TypeError as error:
        expected = "a class made with target and folder" if made else "a function of an event"
        raise UsageError(f"observer {name!r}: expected {expected}; {described(member)} is none ({error})") from None
    except ValueError:  # what is written in C need not have a signature
        return


def scenario(
    name: str, *, looks_at: Collection[str] = (), options: Options | None = None
) -> Callable[[Member], Member]:
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
        options: its own hyperparameters, which it gets as keyword arguments.

    Raises:
        UsageError: the name is taken or is no identifier, a field is not known, an option cannot be, or it cannot be
            called with the options.
    """
    if isinstance(looks_at, str) or not isinstance(looks_at, Collection) or not OF_SCENARIOS.issuperset(looks_at):
        raise UsageError(f"scenario {name!r}: looks_at: expected a list with some of {', '.join(sorted(OF_SCENARIOS))}")
    return SCENARIOS.decorator(
        name,
        Declaration(looks_at, options=options or {}),
        _called_with("scenario", ["frames"], [*looks_at, *(options or {})]),
    )
