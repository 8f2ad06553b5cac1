"""The decorators by which a search-space file registers plug-ins of its own.

For example::

    from clops_sweep import FloatOption, RunConfig, SearchSpace, acquisition_function

    @acquisition_function("least_confident", options={"power": FloatOption(1.0, gt=0, log=True)})
    def least_confident(context, rows, *, power):
        return -((context.learner.probabilities(rows) - 0.5).abs() ** power).mean(-1)

The sweep hands them to its workers. A run is identified by the name of what it uses and by the options of that, not by
the code behind the name: give a changed function a new name.

`options` lists the hyperparameters that a plug-in uses: existing ones by name, new ones with a definition, as in
``options=("storage_fraction", {"my_strength": FloatOption(1.0, gt=0)})``. Plug-ins that list one name share one option.
An option is a config field like any other wherever a plug-in that uses it is in use: given to `RunConfig`, an axis, a
parameter of a search, `--set`, `--where`, a column of `runs`, part of the run's identity. Functions get theirs as
keyword arguments, a strategy finds them in ``self.options``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, get_args

from clops_sweep.data.catalog import Normalization
from clops_sweep.data.source_code import source_file
from clops_sweep.errors import UsageError, listed, shown
from clops_sweep.experiment.metrics import PAPER, headline_of
from clops_sweep.experiment.plugins.declarations import (
    AdaptRule,
    Declaration,
    DeclaredEncoder,
    EncoderInput,
    checked_lockstep,
)
from clops_sweep.experiment.plugins.options import LARGEST, OPTIONS, FloatOption, IntOption, Option
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
"""The methods that a run calls; they are looked for by name, for the base class of strategies needs torch."""


def strategy(
    name: str,
    *,
    options: Listed = (),
    lockstep: Collection[str] = (),
    per_class_outputs: bool = False,
) -> Callable[[Member], Member]:
    """Registers a subclass of `clops_sweep.Strategy`, which is a loss, or of `clops_sweep.LockstepStrategy`.

    Args:
        name: what configs call it.
        options: the hyperparameters that it uses, which it finds in ``self.options``, or in lockstep in
            ``training.config``. Two runs of it that differ in other options alone are one run.
        lockstep: options besides `seed` in which runs that are trained in lockstep may differ; it then finds one value
            a run in ``training.configs``. They may change what is replayed, and how it weighs, but not how much.
        per_class_outputs: whether it can do nothing where an output stands for several classes, or an instance has
            more than one: such scenarios are refused for it before anything starts.

    Raises:
        UsageError: the name is taken or is no identifier, a field is not known, an option cannot be, or it is no
            strategy: a class that has the methods of one, or something that makes one and has `joint`.
    """
    return STRATEGIES.decorator(name, options, _check_strategy, lockstep=lockstep, per_class_outputs=per_class_outputs)


def _check_strategy(name: str, member: Any, declaration: Declaration) -> None:
    """Sees whether it has what a run asks of a strategy.

    Raises:
        UsageError: it has not.
    """
    checked_lockstep(declaration.lockstep, declaration.options, OPTIONS)
    expected = f"strategy {name!r}: expected a subclass of clops_sweep.Strategy"
    lacking = [method for method in _OF_A_STRATEGY if not callable(getattr(member, method, None))]
    if isinstance(member, type) and lacking:
        raise UsageError(f"{expected}; {described(member)} has no method {lacking[0]!r}")
    loss = getattr(member, "loss", None)
    if getattr(loss, "__isabstractmethod__", False):
        raise UsageError(f"{expected} with a method loss(batch); {described(member)} has none")
    if callable(loss) and declaration.lockstep:
        raise UsageError(f"strategy {name!r}: is written as a loss, and computes one run at a time; leave out lockstep")
    if not isinstance(getattr(member, "joint", None), bool):
        raise UsageError(f"{expected}; {described(member)} has no `joint` that is True or False")


def acquisition_function(name: str, *, options: Listed = ()) -> Callable[[Member], Member]:
    """Registers a function (AcquisitionContext, rows int64 [S, m]) -> scores [S, m]; the highest are replayed.

    Args:
        name: what configs call it.
        options: the hyperparameters that it uses, such as `mc_samples`, which it gets as keyword arguments.

    Raises:
        UsageError: the name is taken or is no identifier, an option cannot be, or it cannot be called with the options.
    """
    return ACQUISITION_FUNCTIONS.decorator(name, options, _called_with("acquisition", ["context", "rows"]))


def storage_function(name: str, *, options: Listed = ()) -> Callable[[Member], Member]:
    """Registers a function from beta's trajectories [S, tau, n] to s, float64 [S, n].

    Args:
        name: what configs call it.
        options: its own hyperparameters, which it gets as keyword arguments.

    Raises:
        UsageError: the name is taken or is no identifier, an option cannot be, or it cannot be called with the options.
    """
    return STORAGE_FUNCTIONS.decorator(name, options, _called_with("storage_function", ["trajectories"]))


def _called_with(kind: str, arguments: Sequence[str]) -> Callable[[str, Any, Declaration], None]:
    """A check that a function takes these arguments, and its options and fields as keyword arguments."""

    def check(name: str, member: Any, declaration: Declaration) -> None:
        keywords = [*declaration.fields, *declaration.options]
        written = ", ".join([*arguments, *(["*", *keywords] if keywords else [])])
        _must_take(f"{kind} {name!r}: expected a function ({written})", member, *arguments, **dict.fromkeys(keywords))

    return check


def _must_take(expected: str, member: Any, *arguments: Any, **options: Any) -> None:
    """See whether a member can be called with some arguments.

    Raises:
        UsageError: it cannot; the sentence begins with what is expected.
    """
    try:
        inspect.signature(member).bind(*arguments, **options)
    except TypeError as error:
        raise UsageError(f"{expected}; {described(member)} cannot be called so ({error})") from None
    except ValueError:  # what is written in C need not have a signature
        return


def augmentation(name: str, *, options: Listed = ()) -> Callable[[Member], Member]:
    """Registers a function that changes training frames at random: `RunConfig(augment=name)`.

    It takes frames, float32 [n, channels, samples], which it must not change in place, and a `numpy.random.Generator`
    of the run, from which all that is random comes, to frames of the same shape. It is called before each pass whose
    loss is differentiated in training mode, for the current task's instances and for replayed ones.

    Example::

        @augmentation("shift", options={"most_shift": IntOption(50, ge=1)})
        def shift(frames, rng, *, most_shift):
            return frames.roll(int(rng.integers(-most_shift, most_shift + 1)), dims=2)

    Args:
        name: what configs call it.
        options: its own hyperparameters, which it gets as keyword arguments.

    Raises:
        UsageError: the name is taken or is no identifier, an option cannot be, or it cannot be called with the options.
    """
    return AUGMENTATIONS.decorator(name, options, _called_with("augment", ["frames", "rng"]))


def network(name: str, *, options: Listed = ()) -> Callable[[Member], Member]:
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
    return NETWORKS.decorator(name, options, _check_network)


def _check_network(name: str, member: Any, declaration: Declaration) -> None:
    """Sees whether it can be called for a module; it is called, and the module looked at, before a worker starts.

    Raises:
        UsageError: it cannot.
    """
    options = declaration.options
    arguments = ", ".join(["channels", "samples", "outputs", *(["*", *options] if options else [])])
    expected = f"network {name!r}: expected a function ({arguments}) that makes a torch.nn.Module"
    if not isinstance(member, type) and callable(getattr(member, "forward", None)):
        raise UsageError(f"{expected}, a new one for each run; this is a module itself")
    _must_take(expected, member, 1, 1, 1, **options)


def encoder(
    name: str,
    *,
    channels: int | Sequence[str],
    weights: str | PathLike[str] | None = None,
    sampling_rate: float | None = None,
    samples: int | None = None,
    adapt: Sequence[AdaptRule] = (),
    normalize: str | None = None,
    trained_on: Sequence[str] = (),
) -> Callable[[Member], Member]:
    """Registers a function that makes a frozen, pretrained `torch.nn.Module`: `RunConfig(encoder=name)`.

    The module takes float32 [B, channels, samples] to features, [B, F] or [B, tokens, F]. Before a run starts, each
    frame of its data set is computed once, in evaluation mode and without gradients. The features are cached beside the
    prepared frames, and the network of a run sees them as frames of 1 x F or tokens x F. The global generators of
    PyTorch, NumPy and Python are seeded with 0 while the module is made, so an encoder may be drawn at random.

    Example::

        @encoder("ecg_founder", weights="ecgfounder.pth", channels=12, sampling_rate=500, samples=5000, adapt=["pad"])
        def ecg_founder(weights):
            module = Net1D()
            module.load_state_dict(torch.load(weights, weights_only=True))
            return module

    Args:
        name: what configs call it.
        channels: how many it takes, or their names in order.
        weights: the file that the function gets as a path: absolute, or relative to the data root or to the file with
            the function. The function gets None where there is no such file. Its SHA-256 is part of a run's identity.
        sampling_rate: in Hz, of the signals that it takes; None for any.
        samples: of a channel; None for any number.
        adapt: how frames that differ may be changed. "resample": to its sampling rate (Fourier method). "pad": zeros at
            the end. "crop": the end goes. "repeat": the one channel of a frame takes the place of all. "select": the
            channels that it names are picked by name.
        normalize: the value of that config field that it needs; None for any.
        trained_on: data sets whose people it has seen. A run on one of them is refused.

    Raises:
        UsageError: the name is taken or is no identifier, an argument is not as described, or it cannot be called with
            the path of weights.
    """
    what = f"encoder {shown(name)}"
    takes = EncoderInput(
        _channels(what, channels),
        None if sampling_rate is None else _number(what, "sampling_rate", sampling_rate, FloatOption(1, gt=0)),
        None if samples is None else _number(what, "samples", samples, IntOption(1, ge=1, le=LARGEST)),
        frozenset(_names(what, "adapt", adapt, get_args(AdaptRule))),
        None if normalize is None else _names(what, "normalize", [normalize], get_args(Normalization))[0],
    )
    if not isinstance(weights, str | PathLike | None) or weights == "":
        raise UsageError(f"{what}: weights = {shown(weights)}: expected a path")
    seen = tuple(_names(what, "trained_on", trained_on))
    path = None if weights is None else fspath(weights)

    def decorate(member: Member) -> Member:
        file = source_file(member) if isinstance(member, type) or inspect.isfunction(member) else None
        declared = DeclaredEncoder(takes, path, str(file.parent if file else Path.cwd()), seen)
        return ENCODERS.decorator(name, (), _check_encoder, encoder=declared)(member)

    return decorate


def _check_encoder(name: str, member: Any, _: Declaration) -> None:
    _must_take(f"encoder {name!r}: expected a function (weights) that makes a torch.nn.Module", member, None)


def _channels(what: str, value: Any) -> int | tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        count: int = _number(what, "channels", value, IntOption(1, ge=1, le=LARGEST))
        return count
    names = tuple(_names(what, "channels", value))
    if not names or len(set(names)) < len(names):
        raise UsageError(f"{what}: channels = {shown(value)}: expected a number, or names that differ")
    return names


def _number(what: str, argument: str, value: Any, option: Option) -> Any:
    try:
        return option.checked(value)
    except ValueError as error:
        raise UsageError(f"{what}: {argument} = {shown(value)}: {error}") from None


def _names(what: str, argument: str, value: Any, known: Sequence[str] | None = None) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(it, str) for it in value):
        raise UsageError(f"{what}: {argument} = {shown(value)}: expected a list of names")
    for it in value:
        if known is not None and it not in known:
            raise UsageError(f"{what}: {argument}: {shown(it)}: expected some of {listed(known)}")
    return list(value)


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
    return OBSERVERS.decorator(name, (), _check_observer)


def _check_observer(name: str, member: Any, _: Declaration) -> None:
    """Sees whether it can be called with an event, or be made with target and folder.

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


def scenario(name: str, *, options: Listed = (), headline: Sequence[str] = PAPER) -> Callable[[Member], Member]:
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
        options: the hyperparameters that it uses, and of the config fields `task_classes`, `domain`, `split_within`,
            `people_per_task` and `people_order` those that it takes, by name; it gets all of them as keyword arguments.
        headline: the metrics by which its runs are judged, by default those of AUC. The first ranks runs and is what
            searches optimise; the first two stand in the terminal. ("accuracy", "forgetting") means forgetting of
            accuracy. AUC is computed within each task, so it cannot show forgetting between tasks whose classes have
            outputs of their own.

    Raises:
        UsageError: the name is taken or is no identifier, an option or a headline metric cannot be, or it cannot be
            called with the options.
    """
    try:
        columns = headline_of(headline)
    except ValueError as error:
        raise UsageError(f"scenario {shown(name)}: headline: {error}") from None
    return SCENARIOS.decorator(name, options, _called_with("scenario", ["frames"]), headline=columns)
