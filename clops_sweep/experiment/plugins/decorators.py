"""Decorators that register custom plug-ins in a search-space file.

For example::

    from clops_sweep import FloatOption, RunConfig, SearchSpace, acquisition_function

    @acquisition_function("least_confident", options={"power": FloatOption(1.0, gt=0, log=True)})
    def least_confident(context, rows, *, power):
        return -((context.learner.probabilities(rows) - 0.5).abs() ** power).mean(-1)

The sweep sends them to its workers. A run is identified by the names of its plug-ins and their options, not by their
code: give a changed function a new name.

`options` lists the hyperparameters of a plug-in: existing ones by name, new ones with a definition, as in
``options=("storage_fraction", {"my_strength": FloatOption(1.0, gt=0)})``. Plug-ins that list the same name share the
option. An option works like any config field: in `RunConfig`, axes, searches, `--set`, `--where`, the columns of `runs`
and the run's identity. Functions receive their options as keyword arguments; a strategy finds them in ``self.options``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, get_args

from clops_sweep.arguments import WrongArguments, named_arguments
from clops_sweep.data.catalog import Normalization
from clops_sweep.data.files.filters import Filters
from clops_sweep.data.source_code import source_file
from clops_sweep.errors import UsageError, listed, nearest_or_all, prefixed, shown
from clops_sweep.experiment.metrics import PAPER, headline_of
from clops_sweep.experiment.plugins.declarations import (
    AdaptRule,
    Declaration,
    DeclaredEncoder,
    EncoderInput,
)
from clops_sweep.experiment.plugins.options import FloatOption, IntOption, Option, checked
from clops_sweep.experiment.plugins.registry import (
    ACQUISITION_FUNCTIONS,
    AUGMENTATIONS,
    ENCODERS,
    NETWORKS,
    OBSERVERS,
    SCENARIOS,
    STORAGE_FUNCTIONS,
    STRATEGIES,
    Member,
    described,
)
from clops_sweep.experiment.plugins.returns import never_returns_a_value

Listed = Mapping[str, Option] | Sequence[str | Mapping[str, Option]]
"""Options that a plug-in uses: existing ones by name, new ones as a mapping from their names to definitions."""

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
    "come_to",
)
"""The methods that a run calls; they are looked up by name, because the base class of strategies needs torch."""


@named_arguments
def strategy(
    name: str,
    *,
    options: Listed = (),
    per_class_outputs: bool = False,
    **former: object,
) -> Callable[[Member], Member]:
    """Register a subclass of `clops_sweep.Strategy`, which defines a loss or overrides hooks.

    Args:
        name: name of the strategy in configs.
        options: its hyperparameters, available in ``self.options``. Runs that differ only in other options share one
            run.
        per_class_outputs: whether it needs one class per output and one class per instance; other scenarios are refused
            before anything starts.
        former: arguments of earlier versions, which are refused.

    Raises:
        UsageError: the name is in use or not an identifier, a field is unknown, an option is invalid, or the object is
            not a strategy: a class with its methods, or a factory with `joint`.
    """
    for argument in former:
        if argument != "lockstep":
            known = ("name", "options", "per_class_outputs")
            raise WrongArguments(f"strategy: no argument {argument!r}{nearest_or_all(argument, known)}")
        raise UsageError(
            f"strategy {name!r}: lockstep = ...: a method trains one run since 0.4; leave it out, as in "
            "docs/own_method.md"
        )
    return STRATEGIES.decorator(name, options, _check_strategy, per_class_outputs=per_class_outputs)


def _overrides(member: type) -> bool:
    """Return whether a class has a loss or a hook that decides what is trained on, or is that of a built-in method."""
    for cls in member.__mro__:
        if cls.__module__.startswith("clops_sweep.learning.strategies."):
            return True
        own = not cls.__module__.startswith("clops_sweep.learning.")
        if own and not {"loss", "train_epoch", "replay"}.isdisjoint(vars(cls)):
            return True
    return False


def _writes_its_state(member: type) -> bool:
    """Return whether a user's class has the state of methods up to version 0.3."""
    own = [cls for cls in member.__mro__ if not cls.__module__.startswith("clops_sweep.")]
    return any(not {"state", "restore"}.isdisjoint(vars(cls)) for cls in own)


def _check_strategy(name: str, member: Any, declaration: Declaration) -> None:
    """Check that an object has the interface of a strategy.

    Raises:
        UsageError: a method is missing.
    """
    del declaration
    expected = f"strategy {name!r}: expected a subclass of clops_sweep.Strategy"
    lacking = [method for method in _OF_A_STRATEGY if not callable(getattr(member, method, None))]
    if isinstance(member, type) and lacking:
        raise UsageError(f"{expected}; {described(member)} has no method {lacking[0]!r}")
    if isinstance(member, type) and _writes_its_state(member):
        raise UsageError(
            f"strategy {name!r}: state(), restore(): the attributes of a method are its state since 0.4; leave them "
            "out, as in docs/own_method.md"
        )
    if isinstance(member, type) and not _overrides(member):
        raise UsageError(f"{expected} with a method loss(batch), train_epoch or replay; {described(member)} has none")
    if isinstance(member, type) and never_returns_a_value(getattr(member, "loss", None)):
        raise UsageError(
            f"strategy {name!r}: loss() returns nothing; expected a scalar, such as a mean: end it with return loss"
        )
    if not isinstance(getattr(member, "joint", None), bool):
        raise UsageError(f"{expected}; {described(member)} has no `joint` that is True or False")


@named_arguments
def acquisition_function(name: str, *, options: Listed = ()) -> Callable[[Member], Member]:
    """Register a function (AcquisitionContext, rows int64 [m]) -> scores [m]; the highest scores are replayed.

    Args:
        name: name of the function in configs.
        options: its hyperparameters, such as `mc_samples`, received as keyword arguments.

    Raises:
        UsageError: the name is in use or not an identifier, an option is invalid, or the function does not accept the
            options.
    """
    return ACQUISITION_FUNCTIONS.decorator(name, options, _called_with("acquisition", ["context", "rows"]))


@named_arguments
def storage_function(name: str, *, options: Listed = ()) -> Callable[[Member], Member]:
    """Register a function from beta's trajectories [tau, n] to s, float64 [n].

    Args:
        name: name of the function in configs.
        options: its hyperparameters, received as keyword arguments.

    Raises:
        UsageError: the name is in use or not an identifier, an option is invalid, or the function does not accept the
            options.
    """
    return STORAGE_FUNCTIONS.decorator(name, options, _called_with("storage_function", ["trajectories"]))


def _called_with(kind: str, arguments: Sequence[str], makes: str = "") -> Callable[[str, Any, Declaration], None]:
    """Return a check that a function takes these arguments, and its options and fields as keyword arguments.

    Args:
        kind: kind of the plug-in.
        arguments: names of the positional arguments.
        makes: ends the description of a function that makes a module. Before a worker starts, it is called.
    """

    def check(name: str, member: Any, declaration: Declaration) -> None:
        keywords = [*declaration.fields, *declaration.options]
        written = ", ".join([*arguments, *(["*", *keywords] if keywords else [])])
        expected = f"{kind} {name!r}: expected a function ({written}){makes}"
        if makes and not isinstance(member, type) and callable(getattr(member, "forward", None)):
            raise UsageError(f"{expected}, a new one for each run; this is a module itself")
        _must_take(expected, member, *arguments, **dict.fromkeys(keywords))

    return check


def _must_take(expected: str, member: Any, *arguments: Any, **options: Any) -> None:
    """Check that a member can be called with some arguments.

    Raises:
        UsageError: it cannot; the sentence begins with what is expected.
    """
    try:
        inspect.signature(member).bind(*arguments, **options)
    except TypeError as error:
        raise UsageError(f"{expected}; {described(member)} cannot be called so ({error})") from None
    except ValueError:  # functions written in C may lack a signature
        return


@named_arguments
def augmentation(name: str, *, options: Listed = ()) -> Callable[[Member], Member]:
    """Register a random augmentation of training frames: `RunConfig(augment=name)`.

    The function takes frames, float32 [n, channels, samples], which it must not modify in place, and a
    `numpy.random.Generator` of the run, its only source of randomness. It returns frames of the same shape. It is
    applied in each training pass, to instances of the current task and to replayed ones.

    Example::

        @augmentation("shift", options={"most_shift": IntOption(50, ge=1)})
        def shift(frames, rng, *, most_shift):
            return frames.roll(int(rng.integers(-most_shift, most_shift + 1)), dims=2)

    Args:
        name: name of the augmentation in configs.
        options: its hyperparameters, received as keyword arguments.

    Raises:
        UsageError: the name is in use or not an identifier, an option is invalid, or the function does not accept the
            options.
    """
    return AUGMENTATIONS.decorator(name, options, _called_with("augment", ["frames", "rng"]))


@named_arguments
def network(name: str, *, options: Listed = ()) -> Callable[[Member], Member]:
    """Register a function (channels, samples, outputs) that returns a `torch.nn.Module`, or a class of modules.

    The module maps float32 [B, channels, samples] to logits, float32 [B, outputs]. The global generators of PyTorch,
    NumPy and Python are seeded by the run while the function draws initial weights, and in training while layers such
    as dropout draw from them.

    Example::

        @network("mean_pooled", options={"filters": IntOption(16, ge=1)})
        def mean_pooled(channels, samples, outputs, *, filters):
            from torch import nn

            layers = [nn.Conv1d(channels, filters, 7), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten()]
            return nn.Sequential(*layers, nn.Dropout(0.1), nn.Linear(filters, outputs))

    Args:
        name: name of the network in configs.
        options: its hyperparameters, received as keyword arguments.

    Raises:
        UsageError: the name is in use or not an identifier, an option is invalid, or the function does not accept
            channels, samples, outputs and the options.
    """
    takes = ["channels", "samples", "outputs"]
    return NETWORKS.decorator(name, options, _called_with("network", takes, " that makes a torch.nn.Module"))


@named_arguments
def encoder(
    name: str,
    *,
    channels: int | Sequence[str] | None,
    weights: str | PathLike[str] | None = None,
    sampling_rate: float | None = None,
    samples: int | None = None,
    adapt: Sequence[AdaptRule] = (),
    normalize: str | None = None,
    trained_on: Sequence[str] = (),
    bandpass: tuple[float | None, float | None] | None = None,
    notch: float | None = None,
    scale: str | None = None,
    clip: float | tuple[float, float] | None = None,
    fit: bool = False,
) -> Callable[[Member], Member]:
    """Register a function that returns a frozen, pretrained `torch.nn.Module`: `RunConfig(encoder=name)`.

    The module maps float32 [B, channels, samples] to features, [B, F] or [B, tokens, F]. Before a run starts, the
    features of each frame of its data set are computed once, in evaluation mode and without gradients. They are cached
    with the prepared frames, and the network of a run takes them as frames of 1 x F or tokens x F. The global
    generators of PyTorch, NumPy and Python are seeded with 0 while the module is created, so an encoder may have random
    weights.

    Example::

        @encoder("ecg_founder", weights="ecgfounder.pth", channels=12, sampling_rate=500, samples=5000, adapt=["pad"])
        def ecg_founder(weights):
            module = Net1D()
            module.load_state_dict(torch.load(weights, weights_only=True))
            return module

    Args:
        name: name of the encoder in configs.
        channels: number of channels, or their names in order; None for any number.
        weights: path of the file of weights, absolute or relative to the data root or to the file with the function,
            which receives the path; None without weights. Its SHA-256 is part of a run's identity.
        sampling_rate: sampling rate of its signals in Hz; None for any.
        samples: samples per channel; None for any number.
        adapt: allowed adaptations of other frames. "resample": to its sampling rate (Fourier method). "pad": zeros at
            the end. "crop": at the end. "repeat": a single channel is repeated for all. "select": channels are selected
            by name.
        normalize: minmax or zscore of each adapted frame and channel; the config's `normalize` is then "none".
        trained_on: data sets whose people it has seen, such as "ptbxl", people of one, such as "mitbih:100,101", or a
            challenge, such as "cinc2021". Runs that evaluate these people are refused.
        bandpass: filter of each frame, as in `@dataset`.
        notch: see there, as `scale` and `clip`.
        scale: unit that frames are converted to.
        clip: least and largest sample.
        fit: whether it is fitted to each split. Its function then also gets `signals`, a float32 tensor [n, channels,
            samples] of at most 1,000 random training frames of all tasks, adapted and without labels.

    Raises:
        UsageError: the name is in use or not an identifier, an argument is invalid, or the function does not accept the
            path of weights.
    """
    with prefixed(f"encoder {shown(name)}"):
        takes = EncoderInput(
            _channels(channels),
            checked(FloatOption(None, gt=0, le=1e9), sampling_rate, "sampling_rate = "),
            checked(IntOption(None, ge=1, le=2**26), samples, "samples = "),
            frozenset(_names("adapt", adapt, get_args(AdaptRule))),
            filters=Filters.given(bandpass, notch, scale, clip),
            normalizes=None if normalize is None else _names("normalize", [normalize], get_args(Normalization)[1:])[0],
        )
        if not isinstance(weights, str | PathLike | None) or weights == "":
            raise UsageError(f"weights = {shown(weights)}: expected a path")
        seen = tuple(_names("trained_on", trained_on))
    path = None if weights is None else fspath(weights)

    def decorate(member: Member) -> Member:
        file = source_file(member) if isinstance(member, type) or inspect.isfunction(member) else None
        declared = DeclaredEncoder(takes, path, str(file.parent if file else Path.cwd()), seen, fit)
        return ENCODERS.decorator(name, (), _check_encoder, encoder=declared)(member)

    return decorate


def _check_encoder(name: str, member: Any, declaration: Declaration) -> None:
    fitted = {"signals": None} if declaration.encoder is not None and declaration.encoder.fit else {}
    expected = f"encoder {name!r}: expected a function ({', '.join(['weights', *fitted])}) that makes a torch.nn.Module"
    _must_take(expected, member, None, **fitted)


def _channels(value: Any) -> int | tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence):
        count: int = checked(IntOption(1, ge=1, le=100_000), value, "channels = ")
        return count
    names = tuple(_names("channels", value))
    if not names or len(set(names)) < len(names):
        raise UsageError(f"channels = {shown(value)}: expected a number, or names that differ")
    return names


def _names(argument: str, value: Any, known: Sequence[str] | None = None) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(name, str) for name in value):
        raise UsageError(f"{argument} = {shown(value)}: expected a list of names")
    for name in value:
        if known is not None and name not in known:
            raise UsageError(f"{argument}: {shown(name)}: expected some of {listed(known)}")
    return list(value)


@named_arguments
def observer(name: str) -> Callable[[Member], Member]:
    """Register a function of an event (`EpochEnd`, `TaskEnd` or `RunEnd`), for `--observe NAME`.

    One thread of the driver calls all observers: an observer that raises or hangs does not affect runs. A class is
    instantiated once per launch, with the text after the colon of `--observe NAME:TARGET` (else None) and the path of
    its own folder beside the store's logs. The object is then called with the events.

    Example::

        @observer("progress_file")
        def progress_file(event):
            with open("/tmp/progress.txt", "a") as file:
                print(event.run_id, dict(event.metrics), file=file)

    Args:
        name: name of the observer in `--observe`.

    Raises:
        UsageError: the name is in use or not an identifier, or the function does not accept an event.
    """
    return OBSERVERS.decorator(name, (), _check_observer)


def _check_observer(name: str, member: Any, _: Declaration) -> None:
    """Check that an object can be called with an event, or instantiated with target and folder.

    Raises:
        UsageError: it cannot.
    """
    made = isinstance(member, type)
    if made and not any("__call__" in vars(base) for base in member.__mro__):
        raise UsageError(
            f"observer {name!r}: {described(member)} has no method __call__; expected one that takes an event"
        )
    expected = "a class made with target and folder" if made else "a function of an event"
    _must_take(f"observer {name!r}: expected {expected}", member, *((None, "") if made else (None,)))


@named_arguments
def scenario(name: str, *, options: Listed = (), headline: Sequence[str] = PAPER) -> Callable[[Member], Member]:
    """Register a function from a FrameSet to `ScenarioTasks`, the tasks of a custom scenario.

    Example::

        @scenario("by_device")
        def by_device(frames):
            codes, names = frames.domains["device"]
            targets = class_targets(frames)
            return ScenarioTasks("softmax", [TaskInstances(name, codes == i, targets) for i, name in enumerate(names)])

    It can be used with every data set, and raises an error itself if the data lack what it needs. Equal frames must
    give equal tasks. The frame set's split divides instances into training, validation and test.

    Args:
        name: name of the scenario in configs.
        options: its hyperparameters, and the names of those config fields that it takes among `task_classes`,
            `domain`, `split_within`, `people_per_task` and `people_order`; received as keyword arguments.
        headline: headline metrics, by default those of AUC. The first ranks runs and is the objective of searches; the
            terminal shows the first two. ("accuracy", "forgetting") means forgetting of accuracy. AUC is computed
            within each task, so it cannot show forgetting between tasks whose classes have separate outputs.

    Raises:
        UsageError: the name is in use or not an identifier, an option or headline metric is invalid, or the function
            does not accept the options.
    """
    try:
        columns = headline_of(headline)
    except ValueError as error:
        raise UsageError(f"scenario {shown(name)}: headline: {error}") from None
    return SCENARIOS.decorator(name, options, _called_with("scenario", ["frames"]), headline=columns)
