"""Declarations of plug-ins, and the built-in ones in one entry each: where they are, their options, what they support.

Configs that must give equal numbers share one run. For example, fine-tuning does not use `storage_fraction`, and
`acquisition` has no effect if CLOPS replays everything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from clops_sweep.data.catalog import DATASETS, PERTURBATION_STD
from clops_sweep.data.files.filters import Filters
from clops_sweep.experiment.metrics import CLASS_INCREMENTAL, OF_PEOPLE, PAPER
from clops_sweep.experiment.plugins.former import identity_of_former
from clops_sweep.experiment.plugins.options import (
    LARGEST,
    BoolOption,
    ChoiceOption,
    FloatOption,
    IntOption,
    Option,
    Options,
    PluginOption,
    registry_of,
)

HEADS = ("linear", "cosine", "per_class")

OptionValues = dict[str, Any]
Canonical = Callable[[OptionValues], OptionValues]
"""Maps the values of a strategy's options to those with an effect; `strategy` names the equivalent strategy."""


AdaptRule = Literal["resample", "pad", "crop", "repeat", "select"]


@dataclass(frozen=True)
class EncoderInput:
    """The signals that an encoder takes, and how others may be adapted; None means any.

    Attributes:
        channels: number of channels, or names of the leads in order; None for any number.
        sampling_rate: sampling rate in Hz.
        samples: samples per channel.
        adapt: allowed adaptation rules (see `encoder`).
        normalize: required normalisation of frames.
        unit: unit of signals that are not normalised.
        filters: filters of the frames, before anything else.
        normalizes: normalisation of each adapted frame and channel, before zeros are appended.
    """

    channels: int | tuple[str, ...] | None
    sampling_rate: float | None = None
    samples: int | None = None
    adapt: frozenset[str] = frozenset()
    normalize: str | None = None
    unit: str | None = None
    filters: Filters | None = None
    normalizes: str | None = None


@dataclass(frozen=True)
class DeclaredEncoder:
    """The declaration of an encoder.

    Attributes:
        takes: the signals that it takes.
        weights: path of its weights, if any.
        folder: folder of the declaring file, where relative paths are also searched.
        trained_on: data sets, or people of them, that it has seen.
        fit: whether it is fitted to training frames of each split.
    """

    takes: EncoderInput
    weights: str | None
    folder: str
    trained_on: tuple[str, ...] = ()
    fit: bool = False


@dataclass(frozen=True)
class Declaration:
    """The declaration of a plug-in.

    Attributes:
        options: the options that it uses, by name.
        fields: scenarios: the fields of `OF_SCENARIOS` that it receives as keyword arguments.
        headline: scenarios: the headline metrics, of which the first ranks runs.
        own_classes: scenarios: whether each task has its own outputs; None if it depends on the tasks.
        changes: built-in scenarios: what changes from task to task; empty if unknown.
        by_position: built-in scenarios: whether an output means another class in each task.
        per_class_outputs: strategies: whether it needs one class per output and one class per instance.
        heads: strategies: the values of `head` that it supports.
        online: strategies: whether it works without knowing where tasks begin and end.
        own_head: strategies: whether it computes the weights of the network's last linear layer without gradients.
        unused: strategies: config fields that have no effect on it.
        fixed_features: strategies: whether it computes its head from features that no longer change.
        projection: strategies: how the projection of `projection_size` is made: "uniform" draws its weights uniformly
            instead of normally; "scales" projects the inputs of inner convolutions, too.
        canonical: built-in strategies: maps options to those with an effect. Raises ValueError for values that are
            invalid together.
        encoder: encoders: the signals that it takes and its weights.
        takes_signal: networks: whether it receives the sampling rate and the channels' names as `signal`.
        revision: built-in strategies: how often the strategy alone has changed its numbers; added to
            `SEMANTICS_VERSION`.
    """

    options: Options = field(default_factory=dict)
    fields: Collection[str] = ()
    headline: tuple[str, ...] = PAPER
    own_classes: bool | None = None
    changes: Literal["", "classes", "dates", "domains", "people"] = ""
    by_position: bool = False
    per_class_outputs: bool = False
    heads: tuple[str, ...] = HEADS
    online: bool = False
    own_head: bool = False
    unused: Collection[str] = ()
    fixed_features: bool = False
    projection: tuple[Literal["uniform", "scales"], ...] = ("uniform",)
    canonical: Canonical = dict
    encoder: DeclaredEncoder | None = None
    takes_signal: bool = False
    revision: int = 0

    @cached_property
    def naming(self) -> tuple[tuple[str, str], ...]:
        """Its options that name a plug-in, each with the registry of that plug-in."""
        named = ((name, registry_of(option)) for name, option in self.options.items())
        return tuple((name, registry) for name, registry in named if registry)


NOTHING = Declaration()


@dataclass(frozen=True)
class Plugin:
    """A registered member and its declaration; a built-in member is "module:attribute", imported on first use."""

    member: Any
    declaration: Declaration = NOTHING


def _perturbation_std(config: Any) -> float:
    """Return the default of `perturbation_std`: raw units do not apply to scaled frames."""
    as_stored = config.normalize == "none"
    return DATASETS[config.dataset].perturbation_std if as_stored else PERTURBATION_STD


SHARED: Mapping[str, Option] = {
    "storage_fraction": FloatOption(
        0.25, gt=0, le=1, equal_training=True, description="b: share of each task's training instances that is stored"
    ),
    "acquisition_fraction": FloatOption(
        0.5,
        gt=0,
        le=1,
        equal_training=True,
        description="a: share of each task's stored instances that is replayed (`mir`: drawn as candidates)",
    ),
    "mc_samples": IntOption(
        20,
        ge=1,
        le=LARGEST,
        equal_training=True,
        description="T: stochastic forward passes behind an acquisition score",
    ),
    "acquisition": PluginOption(
        "bald_mcd",
        "acquisition",
        equal_training=True,
        description="acquisition function: scores stored instances, the highest are replayed",
    ),
    "acquire_every": IntOption(1, ge=1, le=LARGEST, equal_training=True, description="epochs between two acquisitions"),
    "storage_function": PluginOption(
        "area",
        "storage_function",
        equal_training=True,
        description="computes s of an instance from the trajectory of its beta",
    ),
    "storage_order": ChoiceOption(
        "top",
        choices=("top", "bottom", "random"),
        equal_training=True,
        description="stores the instances with the highest or lowest s, or random ones",
    ),
    "weight_replay": BoolOption(
        False,
        equal_training=True,
        equal_cost=True,
        description="multiplies a replayed loss by the instance's final beta",
    ),
    "replay_ratio": FloatOption(
        1.0,
        gt=0,
        equal_training=True,
        description="instances replayed for each instance of the current batch, from the second task on",
    ),
    "beta_learning_rate": FloatOption(
        1e-4, gt=0, equal_training=True, equal_cost=True, description="eta: learning rate of beta"
    ),
    "beta_penalty": FloatOption(
        10.0, ge=0, equal_training=True, equal_cost=True, description="lambda: weight of (beta - 1)² in the loss"
    ),
    "perturbation_std": FloatOption(
        _perturbation_std,
        gt=0,
        equal_training=True,
        equal_cost=True,
        description="standard deviation of the noise on perturbed inputs, in the unit of the frames",
    ),
    "memory_fraction": FloatOption(
        0.25,
        gt=0,
        le=1,
        equal_training=True,
        description="size of the memory: max(1, floor(share * N)) instances of the N training instances of all tasks "
        "together, later ones included",
    ),
    "memory_size": IntOption(
        None,
        ge=1,
        le=LARGEST,
        equal_training=True,
        description="size of the memory in instances, at most N, instead of `memory_fraction`",
    ),
    "projection_size": IntOption(
        1000, ge=1, le=100_000, equal_training=True, description="M: random features that the head sees"
    ),
    "acil_ridge": FloatOption(
        0.1, gt=0, log=True, equal_training=True, equal_cost=True, description="gamma: ridge penalty"
    ),
    "memory_division": ChoiceOption(
        "reservoir",
        choices=("reservoir", "task_balanced", "class_balanced"),
        equal_training=True,
        equal_cost=True,
        description="a uniform sample of all instances so far, or equal shares of tasks or classes",
    ),
}
"""Options shared by several built-in plug-ins. Defaults are those of the paper (CLOPS)."""


def _using(*names: str) -> dict[str, Option]:
    return {name: SHARED[name] for name in names}


def _without(options: OptionValues, *names: str) -> OptionValues:
    return {name: value for name, value in options.items() if name not in names}


def _clops(options: OptionValues) -> OptionValues:
    if options["storage_order"] == "random":  # it uses neither beta nor its options
        if options["weight_replay"]:
            raise ValueError("weight_replay needs beta, which storage_order 'random' does without")
        options = _without(options, "storage_function", "beta_learning_rate", "beta_penalty", "weight_replay")
    elif options["storage_fraction"] == 1:
        options = options | {"storage_order": "top"}  # everything is stored: the order has no effect
    if options["acquisition_fraction"] == 1:  # everything is replayed: nothing is scored
        options = _without(options, "acquisition", "acquire_every")
    return options


def _replay(options: OptionValues) -> OptionValues:
    """Plain replay is CLOPS with random storage and random acquisition."""
    random = {"storage_order": "random", "acquisition": "random", "weight_replay": False}
    return _clops(options | random) | {"strategy": "clops"}


def _er(options: OptionValues) -> OptionValues:
    """Plain ER has the identity, and therefore the stored runs, of `er` without its former options."""
    return options | identity_of_former("er")


def _ewc(options: OptionValues) -> OptionValues:
    if not options["ewc_strength"]:
        return _without(options, "ewc_online", "ewc_decay")
    return options if options["ewc_online"] else _without(options, "ewc_decay")


def _without_if_zero(strength: str, name: str) -> Canonical:
    """Leave an option out where the strength is 0."""
    return lambda options: options if options[strength] else _without(options, name)


def _of_module(module: str, declared: Mapping[str, Declaration]) -> Mapping[str, Plugin]:
    """Return the functions of a module, which have the names that configs call them by."""
    return {name: Plugin(f"clops_sweep.{module}:{name}", declaration) for name, declaration in declared.items()}


def _method(member: str, options: Options = NOTHING.options, **declared: Any) -> Plugin:
    return Plugin(f"clops_sweep.learning.{member}", Declaration(options, **declared))


def _with_own_head(member: str, options: Options, **declared: Any) -> Plugin:
    """Declare a strategy that computes the weights of the network's last linear layer."""
    given = {"per_class_outputs": True, "heads": ("linear",), "own_head": True, "fixed_features": True} | declared
    return _method(member, options, **given)


STRATEGIES: Mapping[str, Plugin] = {
    "clops": _method(
        "strategies.clops:CLOPS",
        _using("storage_fraction", "acquisition_fraction", "acquisition", "acquire_every", "storage_order")
        | _using("storage_function", "beta_learning_rate", "beta_penalty", "weight_replay"),
        online=True,
        canonical=_clops,
    ),
    "finetune": _method("strategies.finetune:FineTuning", online=True),
    "multitask": _method("strategies.multitask:MultiTask"),
    "gem": _method("strategies.gem:GradientEpisodicMemory", _using("storage_fraction")),
    "mir": _method(
        "strategies.mir:MaximallyInterferedRetrieval",
        _using("storage_fraction", "acquisition_fraction", "replay_ratio"),
    ),
    "replay": _method(
        "strategies.replay:ExperienceReplay",
        _using("storage_fraction", "acquisition_fraction", "acquire_every"),
        online=True,
        canonical=_replay,
    ),
    "joint": _method("strategies.joint:JointTraining"),
    "ewc": _method(
        "strategies.ewc:ElasticWeightConsolidation",
        {
            "ewc_strength": FloatOption(
                400.0,
                ge=0,
                log=True,
                equal_training=True,
                equal_cost=True,
                description="lambda: weight of half the squared distance to past parameters, by Fisher information of "
                "single instances; Avalanche's `ewc_lambda` has no half, and its Fisher information is of mini-batches "
                "of B instances: `ewc_strength` is about 2 `ewc_lambda` / B, and exactly 2 `ewc_lambda` for B = 1",
            ),
            "ewc_online": BoolOption(
                False,
                equal_training=True,
                description="one penalty around the latest task's parameters, instead of one for each task",
            ),
            "ewc_decay": FloatOption(
                0.95,
                ge=0,
                le=1,
                equal_training=True,
                equal_cost=True,
                description="with `ewc_online`: factor on past Fisher information after each task",
            ),
        },
        canonical=_ewc,
    ),
    "si": _method(
        "strategies.si:SynapticIntelligence",
        {
            "si_strength": FloatOption(
                1.0, ge=0, log=True, equal_training=True, equal_cost=True, description="c: weight of the penalty"
            ),
            "si_damping": FloatOption(
                1e-3, gt=0, log=True, equal_training=True, equal_cost=True, description="xi: damping of the importance"
            ),
        },
        canonical=_without_if_zero("si_strength", "si_damping"),
    ),
    "mas": _method(
        "strategies.mas:MemoryAwareSynapses",
        {
            "mas_strength": FloatOption(
                1.0, ge=0, log=True, equal_training=True, equal_cost=True, description="lambda: weight of the penalty"
            )
        },
    ),
    "lwf": _method(
        "strategies.lwf:LearningWithoutForgetting",
        {
            "lwf_strength": FloatOption(
                1.0, ge=0, log=True, equal_training=True, equal_cost=True, description="weight of the distillation loss"
            ),
            "lwf_temperature": FloatOption(
                2.0,
                gt=0,
                log=True,
                equal_training=True,
                equal_cost=True,
                description="divides both logits in the distillation loss",
            ),
        },
        canonical=_without_if_zero("lwf_strength", "lwf_temperature"),
    ),
    "er": _method(
        "strategies.er:TinyEpisodicMemory",
        _using("memory_fraction", "memory_size", "memory_division", "replay_ratio"),
        online=True,
        canonical=_er,
    ),
    "er_ace": _method(
        "strategies.er_ace:AsymmetricCrossEntropy",
        _using("memory_fraction", "memory_size", "memory_division", "replay_ratio"),
        per_class_outputs=True,
        heads=("linear", "cosine"),  # its loss is a softmax
        revision=1,  # the memory is filled during the task
    ),
    "aser": _method(
        "strategies.aser:AdversarialShapley",
        _using("memory_fraction", "memory_size", "replay_ratio")
        | {
            "aser_neighbours": IntOption(
                3,
                ge=1,
                le=LARGEST,
                equal_training=True,
                description="K: neighbours of the classifier that the Shapley values are about",
            ),
            "aser_candidates": IntOption(
                100,
                ge=1,
                le=LARGEST,
                equal_training=True,
                description="stored instances that are valued in each step; at most so many are replayed",
            ),
            "aser_per_class": IntOption(
                2,
                ge=1,
                le=LARGEST,
                equal_training=True,
                description="instances per class for which candidates are valued",
            ),
        },
        per_class_outputs=True,
    ),
    "derpp": _method(
        "strategies.derpp:DarkExperienceReplay",
        _using("memory_fraction", "memory_size", "replay_ratio")
        | {
            "derpp_alpha": FloatOption(
                0.1,
                ge=0,
                equal_training=True,
                equal_cost=True,
                description="weight of the distance to the stored logits",
            ),
            "derpp_beta": FloatOption(
                0.5, ge=0, equal_training=True, equal_cost=True, description="weight of the loss on stored targets"
            ),
        },
        online=True,
    ),
    "agem": _method(
        "strategies.agem:AveragedGEM",
        _using("memory_fraction", "memory_size")
        | {
            "agem_batch_size": IntOption(
                256, ge=1, equal_training=True, description="stored instances behind the reference gradient of a step"
            )
        },
        online=True,
    ),
    "gdumb": _method("strategies.gdumb:GreedyDumb", _using("memory_fraction", "memory_size")),
    "icarl": _with_own_head(
        "strategies.icarl:IncrementalClassifier",
        _using("memory_fraction", "memory_size"),
        fixed_features=False,
        unused=("class_weights",),
    ),
    "ncm": _with_own_head("strategies.ncm:NearestClassMean", {}),
    "slda": _with_own_head(
        "strategies.slda:StreamingLDA",
        {
            "slda_shrinkage": FloatOption(
                1e-4,
                gt=0,
                le=1,
                log=True,
                equal_training=True,
                equal_cost=True,
                description="epsilon: weight of the identity in the shrunk covariance",
            )
        },
        online=True,
    ),
    "ranpac": _with_own_head(
        "strategies.ranpac:RandomProjections",
        _using("projection_size")
        | {
            "ranpac_ridge": FloatOption(
                0.01,
                gt=0,
                log=True,
                equal_training=True,
                equal_cost=True,
                description="lambda, as a share of the mean square of a random feature, summed over instances",
            )
        },
        online=True,
        projection=(),
    ),
    "acil": _with_own_head("strategies.acil:AnalyticLearning", _using("projection_size", "acil_ridge"), revision=1),
    "ts_acl": _with_own_head(
        "strategies.ts_acl:TimeSeriesAnalyticLearning",
        _using("projection_size", "acil_ridge"),
        projection=("uniform", "scales"),
        revision=1,
    ),
    "flip_penalty": _method(
        "strategies.flip_penalty:FlipPenalty",
        {
            "flip_strength": FloatOption(
                1.0,
                ge=0,
                log=True,
                equal_training=True,
                equal_cost=True,
                description="weight of the distance to the logits before the task, where they were right",
            )
        },
    ),
}
"""Defaults are those of the authors: for Atari games (Kirkpatrick et al.) and split MNIST (Zenke et al.).

The decay of online EWC is a common choice.
"""

_SAMPLED = Declaration(_using("mc_samples"))
_PERTURBED = Declaration(_using("mc_samples", "perturbation_std"))

ACQUISITION_FUNCTIONS = _of_module(
    "learning.replay.acquisition",
    {
        "bald_mcd": _SAMPLED,
        "bald_mcp": _PERTURBED,
        "balc_kld": _PERTURBED,
        "entropy": _SAMPLED,
        "variation_ratio": _SAMPLED,
        "random": NOTHING,
    },
)
STORAGE_FUNCTIONS = _of_module("learning.replay.storage", dict.fromkeys(("area", "squared_area"), NOTHING))

SCENARIOS = _of_module(
    "data.scenarios",
    {
        "class_il": Declaration(fields=("task_classes",), own_classes=False, changes="classes", by_position=True),
        "class_il_union": Declaration(
            fields=("task_classes",), headline=CLASS_INCREMENTAL, own_classes=True, changes="classes"
        ),
        "time_il": Declaration(own_classes=False, changes="dates"),
        "domain_il": Declaration(fields=("domain",), own_classes=False, changes="domains"),
        "subject_il": Declaration(
            fields=("split_within", "people_per_task", "people_order"),
            headline=OF_PEOPLE,
            own_classes=False,
            changes="people",
        ),
    },
)

PAPER_NETWORK = "clops_cnn"
"""The network of the paper, which native kernels compute."""

NETWORKS: Mapping[str, Plugin] = {
    PAPER_NETWORK: Plugin("clops_sweep.learning.networks.network:PaperNetwork"),
    **_of_module(
        "learning.networks.shallow",
        {
            "linear": NOTHING,
            "mlp": Declaration(
                {"mlp_width": IntOption(256, ge=1, le=100_000, description="units of the hidden layer")}
            ),
        },
    ),
    "inception_time": Plugin("clops_sweep.learning.networks.inception_time:InceptionTime"),
    "small_cnn": Plugin("clops_sweep.learning.networks.small_cnn:SmallCNN"),
    "resnet1d_wang": Plugin("clops_sweep.learning.networks.resnet1d_wang:ResNet1dWang"),
}

AUGMENTATIONS = _of_module(
    "learning.augmentation.built_in",
    {
        "jitter": Declaration(
            {
                "jitter_std": FloatOption(
                    0.05, gt=0, equal_cost=True, description="sigma, in standard deviations of the channel"
                )
            }
        ),
        "scaling": Declaration(
            {"scaling_std": FloatOption(0.1, gt=0, equal_cost=True, description="sigma of a channel's factor")}
        ),
        "time_warp": Declaration(
            {
                "time_warp_std": FloatOption(0.2, gt=0, equal_cost=True, description="sigma of the speed of time"),
                "time_warp_knots": IntOption(4, ge=1, le=1000, description="knots of the spline through the speeds"),
            }
        ),
        "lead_dropout": Declaration(
            {
                "lead_dropout_probability": FloatOption(
                    0.2, gt=0, lt=1, equal_cost=True, description="probability that a channel is 0"
                )
            }
        ),
    },
)

OBSERVERS: Mapping[str, Plugin] = {
    "tensorboard": Plugin("clops_sweep.execution.observers.tensorboard:TensorBoard"),
    "mlflow": Plugin("clops_sweep.execution.observers.mlflow:MLflow"),
    "wandb": Plugin("clops_sweep.execution.observers.wandb:WeightsAndBiases"),
}

ENCODERS: Mapping[str, Plugin] = {
    "minirocket": Plugin(
        "clops_sweep.learning.encoders.minirocket:minirocket",
        Declaration(encoder=DeclaredEncoder(EncoderInput(None), None, "", fit=True)),
    ),
}
