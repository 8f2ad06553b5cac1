"""RunConfig: the complete definition of a continual-learning run, and its identity."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from inspect import Parameter, Signature
from types import SimpleNamespace
from typing import Annotated, Any, Literal, Self, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from clops_sweep.arguments import arguments_of_class
from clops_sweep.data.catalog import (
    DATASETS,
    EPOCHS_PER_TASK,
    LEAD,
    USUAL_EPOCHS_PER_TASK,
    DataKey,
    Leads,
    Normalization,
    ScenarioName,
)
from clops_sweep.data.splits.fold_names import fold_of
from clops_sweep.errors import UsageError, calling, closest, listed, nearest, nearest_or_all, shown
from clops_sweep.experiment.facts import FieldFacts, facts_in, stating
from clops_sweep.experiment.html_table import html_table
from clops_sweep.experiment.identity import (
    effective_options,
    identity_of,
    in_effect,
    network_revision_of,
    without_effect,
)
from clops_sweep.experiment.plugins import braindecode
from clops_sweep.experiment.plugins.former import FORMER_OPTIONS, instead_of
from clops_sweep.experiment.plugins.options import (
    LARGEST,
    NUMBER,
    OPTIONS,
    Option,
    checked,
    expected,
    registry_of,
    scalar,
)
from clops_sweep.experiment.plugins.registry import (
    PAPER_NETWORK,
    REGISTRIES,
    SCENARIOS,
    STORED_RUN,
    STRATEGIES,
    USERS,
    is_stored_run,
    may_use,
    used_options,
)
from clops_sweep.experiment.plugins.values import as_list, groups_of_classes, is_whole, length

SEMANTICS_VERSION = 2
"""Increased whenever the numbers of every strategy change; see `RunConfig.semantics_version`."""

RUN_ID_LENGTH = 24
"""Hexadecimal digits of a run id."""

PositiveInt = Annotated[int, Field(ge=1, le=LARGEST), NUMBER]
PositiveFloat = Annotated[FiniteFloat, Field(gt=0), NUMBER]
Rank = Annotated[int, Field(ge=0, le=10_000), NUMBER]
NonNegativeFloat = Annotated[FiniteFloat, Field(ge=0), NUMBER]
Share = Annotated[FiniteFloat, Field(gt=0, lt=1), NUMBER]
ShareOrNone = Annotated[FiniteFloat, Field(ge=0, lt=1), NUMBER]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1), NUMBER]


def _leads(dataset: str, scenario: str, domain: str) -> Leads:
    """The default of `leads`."""
    by_lead = scenario == "domain_il" and domain == LEAD
    return "single" if by_lead or dataset not in DATASETS else DATASETS[dataset].leads


def _epochs_per_task(dataset: str, scenario: str) -> int:
    """The default of `epochs_per_task`."""
    return DATASETS[dataset].epochs_per_task or EPOCHS_PER_TASK.get(scenario, USUAL_EPOCHS_PER_TASK)


_NAMED_TASK_ORDERS: Mapping[str, int | tuple[int, ...]] = {
    "paper_shuffled": 1,
    "paper_curriculum": (5, 4, 2, 1, 0, 3),
    "paper_anti_curriculum": (3, 0, 1, 2, 4, 5),
}
"""The orders of the paper's six Class-IL tasks: a shuffle, 10-11 8-9 4-5 2-3 0-1 6-7, and its reverse."""

BY_DIFFICULTY = ("curriculum", "anti_curriculum")
"""Task orders that depend on the difficulty of the tasks in a run, which comes first."""

_NAMES_OF_ORDERS = ("sequential", *BY_DIFFICULTY, *_NAMED_TASK_ORDERS)


_MOST_TASKS = 10_000


def _known_dataset(value: str) -> str:
    if value not in DATASETS:
        raise ValueError(f"no data set of that name{nearest_or_all(value, DATASETS)}")
    return value


def _order(value: Any) -> Any:
    """Return a task order by name, seed or positions, before its type is checked."""
    if isinstance(value, str):
        if value not in _NAMES_OF_ORDERS:
            raise ValueError("no name of an order")
        return _NAMED_TASK_ORDERS.get(value, value)
    if not is_whole(value):
        if not 0 < (length(value) or 0) <= _MOST_TASKS:
            raise ValueError("no positions")
        value = as_list(value)
        if all(isinstance(name, str) and name.strip() for name in value):
            return _names_of_tasks(value)
        if not all(map(is_whole, value)):
            raise ValueError("no positions")
    return value


def _names_of_tasks(names: list[str]) -> tuple[str, ...]:
    """Return the names of tasks in an order, each of which is there once."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError("a name twice")
    return tuple(names)


REPLACED = frozenset({"norm", "head", "projection", "uniform", "scales", "encoder"})
"""Entries of `network_options` besides the network's options: replaced layers, and the encoder that is trained too."""


_OTHER_TASKS = "results on different tasks cannot be compared"


@arguments_of_class
class RunConfig(BaseModel):
    """One continual-learning run, fully determined: same config, same data, same numbers.

    Types are strict: neither the text "20" nor True is a number; 20.0 is an integer, 20.5 is not.

    Fields have the names of the paper's hyperparameters (Kiyasseh, Zhu and Clifton, CLOPS). A field that is not given
    has the paper's value for the scenario and data set, which is part of the run's identity like any other value.

    Example:
        >>> config = RunConfig(dataset="synthetic", strategy="er", memory_fraction=0.1)
        >>> config.memory_fraction, config.replay_ratio
        (0.1, 1.0)
        >>> config.replace(seed=1)
        RunConfig(strategy='er', seed=1, memory_fraction=0.1)

    Options of the plug-ins that it names are fields, too (see `plugins`): ``RunConfig(network="mine", width=32).width``
    is 32. A config that names no strategy may hold options of any strategy, as the base of a search space does.

    Raises:
        UsageError: an unknown key (the most similar known key is named), a value out of bounds, or an option that the
            given plug-ins do not use.
    """

    model_config = ConfigDict(frozen=True, extra="allow", strict=False)

    scenario: ScenarioName = Field(
        "class_il",
        description="rule that divides the data into tasks",
        json_schema_extra=stating(
            FieldFacts("tasks", not_searched="results of different scenarios cannot be compared")
        ),
    )
    dataset: Annotated[str, AfterValidator(_known_dataset)] = Field(
        "synthetic",
        description="built-in or declared data set",
        json_schema_extra=stating(
            FieldFacts("data", prepared=True, not_searched="results on different data cannot be compared")
        ),
    )
    strategy: str = Field(
        "clops",
        description="method",
        json_schema_extra=stating(FieldFacts("method")),
    )

    task_classes: Annotated[tuple[tuple[int | str, ...], ...], BeforeValidator(groups_of_classes)] | None = Field(
        None,
        description="class_il, class_il_union: the classes of each task, by number or name; by default pairs; each way "
        "of writing the same groups is a run of its own",
        json_schema_extra=stating(FieldFacts("tasks", before=None, not_searched=_OTHER_TASKS)),
    )
    domain: str = Field(
        LEAD,
        description="domain_il: lead, or the column of the data set that defines the tasks",
        json_schema_extra=stating(FieldFacts("tasks", before=LEAD, not_searched=_OTHER_TASKS)),
    )
    split_within: Literal["people", "time"] = Field(
        "people",
        description="subject_il: hold out other people, or the end of each person's recording",
        json_schema_extra=stating(FieldFacts("data", prepared=True, before="people", not_searched=_OTHER_TASKS)),
    )
    people_per_task: PositiveInt | None = Field(
        None,
        description="subject_il: by default a tenth of all people",
        json_schema_extra=stating(FieldFacts("tasks", before=None, not_searched=_OTHER_TASKS)),
    )
    people_order: Seed | None = Field(
        None,
        description="subject_il: seed of a shuffle; by default in order of enrolment",
        json_schema_extra=stating(FieldFacts("tasks", is_seed=True, before=None, not_searched=_OTHER_TASKS)),
    )

    task_order: Annotated[
        Literal["sequential", "curriculum", "anti_curriculum"] | Seed | tuple[int, ...] | tuple[str, ...],
        BeforeValidator(_order),
    ] = Field(
        "sequential",
        description="default order, seed of a shuffle, names or positions (from 0) of all tasks, or by difficulty",
        json_schema_extra=stating(FieldFacts("tasks", equal_cost=True, is_seed=True)),
    )
    blurry: ShareOrNone = Field(
        0.0,
        description="share of each task's training instances that are moved to the tasks before and after it",
        json_schema_extra=stating(FieldFacts("tasks", before=0.0, left_out=True)),
    )
    stream: Literal["epochs", "online"] = Field(
        "epochs",
        description="online: one pass without task boundaries; each batch is predicted, then trained on",
        json_schema_extra=stating(FieldFacts("training", before="epochs", left_out=True)),
    )
    steps_per_batch: PositiveInt = Field(
        1,
        description="online: gradient steps on each batch",
        json_schema_extra=stating(FieldFacts("training", of_steps=True, before=1, left_out=True)),
    )
    prequential_window: PositiveInt = Field(
        500,
        description="online: number of latest instances behind each point of the curves",
        json_schema_extra=stating(FieldFacts("evaluation", equal_cost=True, before=500, left_out=True)),
    )

    first_tasks: PositiveInt | None = Field(
        None,
        description="number of tasks to train on, the first ones in the order; by default all",
        json_schema_extra=stating(FieldFacts("tasks", before=None, not_searched=_OTHER_TASKS)),
    )

    epochs_per_task: PositiveInt = Field(
        default_factory=lambda data: (
            _epochs_per_task(data["dataset"], data["scenario"]) if data.keys() >= {"dataset", "scenario"} else 1
        ),
        description="tau: epochs on each task",
        json_schema_extra=stating(FieldFacts("training")),
    )
    batch_size: PositiveInt = Field(
        default_factory=lambda data: DATASETS[data["dataset"]].batch_size if "dataset" in data else 1,
        description="instances of a batch",
        json_schema_extra=stating(FieldFacts("training", of_steps=True)),
    )
    learning_rate: PositiveFloat = Field(
        default_factory=lambda data: DATASETS[data["dataset"]].learning_rate if "dataset" in data else 1.0,
        description="learning rate of the network",
        json_schema_extra=stating(FieldFacts("training", equal_cost=True, of_steps=True)),
    )
    optimizer: Literal["adam", "adamw", "sgd"] = Field(
        "adam",
        description="sgd has no momentum; the state of adam and adamw is kept across tasks",
        json_schema_extra=stating(FieldFacts("training", of_steps=True, before="adam", left_out=True)),
    )
    weight_decay: NonNegativeFloat = Field(
        0.0,
        description="adds weight_decay * x to the gradient by x; adamw subtracts learning_rate * weight_decay * x",
        json_schema_extra=stating(FieldFacts("training", equal_cost=True, of_steps=True, before=0.0, left_out=True)),
    )
    schedule: Literal["constant", "cosine", "step"] = Field(
        "constant",
        description="factor of the learning rate in epoch e of tau: cosine (1 + cos(pi e / tau)) / 2; step 0.1 from "
        "tau / 2 on, 0.01 from 3 tau / 4 on",
        json_schema_extra=stating(
            FieldFacts("training", equal_cost=True, of_steps=True, before="constant", left_out=True)
        ),
    )
    precision: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="precision of training; bfloat16 computes matrix products and convolutions in 16 bits",
        json_schema_extra=stating(FieldFacts("training", of_steps=True, before="float32", left_out=True)),
    )
    early_stopping: PositiveInt | None = Field(
        None,
        description="patience: epochs without a lower validation loss, after which a task ends with its best epoch",
        json_schema_extra=stating(FieldFacts("training", before=None)),
    )
    normalize: Normalization = Field(
        default_factory=lambda data: DATASETS[data["dataset"]].normalize if "dataset" in data else "none",
        description="scaling of each frame",
        json_schema_extra=stating(FieldFacts("data", equal_cost=True, prepared=True)),
    )
    leads: Leads = Field(
        default_factory=lambda data: _leads(
            data.get("dataset", ""), data.get("scenario", ""), data.get("domain", LEAD)
        ),
        description="whether an instance is one lead of a recording or all of them at once",
        json_schema_extra=stating(FieldFacts("data", prepared=True, before="single")),
    )
    encoder: str | RunConfig | None = Field(
        None,
        description="frozen encoder, run:RUN_ID, or a RunConfig that is run first; its features replace the signals",
        json_schema_extra=stating(FieldFacts("data", prepared=True, before=None)),
    )
    lora_rank: Rank = Field(
        0,
        description="rank of trainable adapters on the encoder, which then runs in every step; 0 for none",
        json_schema_extra=stating(FieldFacts("training", prepared=True, before=0, left_out=True)),
    )
    network: str = Field(
        PAPER_NETWORK,
        description="network that is trained",
        json_schema_extra=stating(FieldFacts("training", before=PAPER_NETWORK)),
    )
    norm: Literal["batch", "layer", "group", "none"] = Field(
        "batch",
        description="replacement of the network's batch norm layers: layer norm over channels and samples, group norm "
        "over at most 8 groups, or nothing; batch keeps them",
        json_schema_extra=stating(FieldFacts("training", before="batch", left_out=True)),
    )
    head: Literal["linear", "cosine", "per_class"] = Field(
        "linear",
        description="cosine: cosines to class vectors with a learned scale; per_class: one sigmoid for each class",
        json_schema_extra=stating(FieldFacts("training", before="linear", left_out=True)),
    )
    split_seed: Seed = Field(
        0,
        description="seed of the split into training, validation and test people",
        json_schema_extra=stating(
            FieldFacts(
                "draw",
                equal_cost=True,
                replicate=True,
                prepared=True,
                is_seed=True,
                not_searched="a search over it would find the luckiest split of the patients",
            )
        ),
    )
    seed: Seed = Field(
        0,
        description="seed of everything else: weights, batch order, dropout, storage, replay",
        json_schema_extra=stating(
            FieldFacts(
                "draw",
                equal_cost=True,
                replicate=True,
                is_seed=True,
                not_searched="give seeds as seeds=...; a trial is their mean",
            )
        ),
    )
    class_weights: Literal["balanced"] | None = Field(
        None,
        description="balanced: a loss is weighted by n / (C n_c), n_c training instances of its class in its task",
        json_schema_extra=stating(FieldFacts("training", equal_cost=True, of_steps=True, before=None)),
    )
    augment: str | None = Field(
        None,
        description="random augmentation of training frames in each pass",
        json_schema_extra=stating(FieldFacts("training", of_steps=True, before=None)),
    )
    weight_seed: Seed | None = Field(
        None,
        description="seed of the initial weights only; by default the run's seed",
        json_schema_extra=stating(
            FieldFacts(
                "draw",
                equal_cost=True,
                is_seed=True,
                of_steps=True,
                before=None,
                not_searched="a search over it would find the luckiest initial weights",
            )
        ),
    )
    split: str | None = Field(
        None,
        description="fold:i/k: part i of the people is the test set, part i + 1 validation, the rest training",
        json_schema_extra=stating(
            FieldFacts(
                "draw",
                equal_cost=True,
                replicate=True,
                prepared=True,
                before=None,
                not_searched="a search over it would find the luckiest fold of the patients",
            )
        ),
    )
    stratify: str | None = Field(
        None,
        min_length=1,
        description="column of domains, such as site: its people are in each part of the split in proportion, by class",
        json_schema_extra=stating(
            FieldFacts(
                "data",
                prepared=True,
                before=None,
                not_searched="a search over it would find the luckiest split of the patients",
            )
        ),
    )
    validation: Share | None = Field(
        None,
        description="share of the training people used for validation, if the publisher provides no validation set",
        json_schema_extra=stating(
            FieldFacts(
                "data",
                prepared=True,
                before=None,
                not_searched="a search over it would find the luckiest validation set",
            )
        ),
    )
    curves: Literal["test"] | None = Field(
        None,
        description="test: learning curves on the test set, for a data set without a validation set",
        json_schema_extra=stating(FieldFacts("evaluation", before=None)),
    )
    start_from: str | None = Field(
        None,
        description="run:RUN_ID: the initial weights are those of the run's stored last model, head included",
        json_schema_extra=stating(FieldFacts("training", equal_cost=True, prepared=True, before=None)),
    )

    _aside: dict[str, Any] = PrivateAttr(default_factory=dict)
    """Given options that no plug-in of this config uses."""

    def __init__(self, **values: Any) -> None:
        self._fill(values)
        for name, value in self._aside.items():
            if not may_use(name, values):
                named = [f"{kind} {values[kind]!r}" for kind in _kinds_that_use(name) if kind in values]
                raise UsageError(f"{name} = {shown(value)}: not used by {' and '.join(named)}, but by {owners(name)}")

    def _fill(self, values: Mapping[str, Any]) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise UsageError(_first_sentence(error)) from None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return a config with some values; options that its plug-ins do not use are kept aside.

        Raises:
            UsageError: an unknown key or a value out of bounds.
        """
        config = cls.__new__(cls)
        config._fill(values)
        return config

    def __getattr__(self, name: str) -> Any:
        """Return the value of an option: the given one, or its default if no plug-in of this config uses it."""
        try:
            return super().__getattr__(name)  # type: ignore[misc]
        except AttributeError:
            if name not in OPTIONS:
                raise
        return self._aside[name] if name in self._aside else self._default(name)

    def __repr__(self) -> str:
        """The call that makes an equal config."""
        return f"RunConfig({', '.join(f'{name}={value!r}' for name, value in self.changed.items())})"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return html_table("RunConfig: what differs from the defaults", self.changed.items())

    @property
    def changed(self) -> dict[str, Any]:
        """The given fields and options that differ from their defaults."""
        given = [name for name in (*type(self).model_fields, *OPTIONS) if name in self.model_fields_set]
        return {name: value for name in given if (value := getattr(self, name)) != self.default_of(name)}

    def default_of(self, name: str) -> Any:
        """Return the default of a field or option, which may depend on the other fields."""
        field = type(self).model_fields.get(name)
        if field is None:
            return self._default(name)
        return field.get_default(call_default_factory=True, validated_data=self.__dict__)

    def __hash__(self) -> int:
        """Equal for equal configs."""
        fields = type(self).model_fields
        return hash((*(self.__dict__[name] for name in fields), *(self.__pydantic_extra__ or {}).items()))

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, values: Any) -> Any:
        fields = cls.model_fields
        for name in values:
            if name not in fields and name not in OPTIONS:
                known_key(name)
        return values

    @field_validator(*USERS)
    @classmethod
    def _known_plugin(cls, value: str | None, info: ValidationInfo) -> str | None:
        return None if value is None else _registered(str(info.field_name), value)

    @field_validator("encoder", mode="plain")
    @classmethod
    def _known_encoder(cls, value: Any) -> str | RunConfig | None:
        if not isinstance(value, str | RunConfig | None):
            raise ValueError("expected the name of an encoder, run:RUN_ID or a RunConfig")
        return _registered("encoder", value) if isinstance(value, str) and not is_stored_run(value) else value

    @field_validator("start_from")
    @classmethod
    def _known_start(cls, value: str | None) -> str | None:
        if value is not None and not STORED_RUN.fullmatch(value):
            raise ValueError("expected run:RUN_ID with the 24 digits of a run id")
        return value

    @model_validator(mode="after")
    def _is_valid(self) -> Self:
        if self.split is not None:
            fold_of(self.split)
        given = {name: _checked(name, value) for name, value in (self.__pydantic_extra__ or {}).items()}
        if given.get("memory_size") is not None and "memory_fraction" in given:
            raise ValueError("memory_size and memory_fraction are both given; expected one of them")
        self._set_options(given)
        self._check_combination()
        return self

    def _check_combination(self) -> None:
        self._check_scenario()
        self._check_validation_set()
        self._check_encoder()
        self._check_start()
        if self.stream == "online":
            self._check_stream()
        self._check_options()

    def _check_scenario(self) -> None:
        info = DATASETS[self.dataset]
        if not (info.has(self.scenario) or SCENARIOS.is_custom(self.scenario)):
            raise ValueError(
                f"scenario {self.scenario!r} does not go with dataset {self.dataset!r}, "
                f"which has {', '.join(info.scenarios)}"
            )
        if self.scenario == "domain_il" and self.domain == LEAD and self.leads == "all":
            raise ValueError(
                "domain_il by lead takes instances of one lead; expected leads='single', or as domain a column of the "
                "data"
            )
        sizes = {len(group) for group in self.task_classes or ()}
        if self.scenario == "class_il" and len(sizes) > 1:
            raise ValueError(
                f"class_il has one output per position in a task, but task_classes has groups of {min(sizes)} and of "
                f"{max(sizes)} classes; use groups of one size, or scenario = 'class_il_union'"
            )
        order = self.task_order
        if isinstance(order, tuple) and not self.orders_by_name and sorted(order) != list(range(len(order))):
            raise ValueError(f"task_order {shown(list(order))} is not a permutation of 0..N-1")

    def _check_validation_set(self) -> None:
        if self.split is not None and self.validation is not None:
            raise ValueError(
                f"split = {self.split!r} has a validation set of its own; expected no validation = {self.validation:g}"
            )
        if self.stratify is not None and self.validation is not None:
            raise ValueError(
                f"stratify = {self.stratify!r} makes a validation set; expected no validation = {self.validation:g}"
            )
        if self.curves is not None and (self.split or self.stratify or self.validation) is not None:
            raise ValueError(
                "curves = 'test' is for data without a validation set, which split, stratify and validation make; "
                "leave it out"
            )

    def _check_encoder(self) -> None:
        if self.lora_rank:
            if self.encoder is None:
                raise ValueError(f"lora_rank = {self.lora_rank}: adapts an encoder; name one, or leave lora_rank out")
            if STRATEGIES.declaration(self.strategy).fixed_features:
                raise ValueError(
                    f"lora_rank = {self.lora_rank}: strategy {self.strategy!r} needs features that stay as they are, "
                    "and adapters change them in every step; expected another strategy, or lora_rank = 0"
                )
        elif self.encoder is not None and self.augment is not None:
            raise ValueError(
                f"augment = {self.augment!r} changes signals, and features are computed once; leave out augment or "
                "encoder, or set lora_rank"
            )

    def _check_start(self) -> None:
        if self.start_from is None:
            return
        if STRATEGIES.declaration(self.strategy).fixed_features:
            raise ValueError(
                f"start_from = {self.start_from!r}: strategy {self.strategy!r} computes its head in closed form and "
                f"trains no network; expected another strategy, or encoder = {self.start_from!r}"
            )

    def _check_stream(self) -> None:
        if not STRATEGIES.declaration(self.strategy).online:
            able = [name for name in STRATEGIES if STRATEGIES.declaration(name).online]
            raise ValueError(
                f"strategy = {self.strategy!r}: not available with stream = 'online', which does not tell where tasks "
                f"begin and end; expected {', '.join(able[:-1])} or {able[-1]}"
            )
        for name, free in (("early_stopping", None), ("schedule", "constant"), ("class_weights", None)):
            if (value := getattr(self, name)) != free:
                raise ValueError(
                    f"{name} = {value!r} needs whole tasks, and stream = 'online' has one pass over batches; leave it "
                    "out"
                )

    def _check_options(self) -> None:
        if self.encoder is not None and not self.lora_rank and "perturbation_std" in self.options:
            raise ValueError(
                f"acquisition = {self.options['acquisition']!r} perturbs signals, and features are computed once; "
                "expected another acquisition function, such as 'bald_mcd', no encoder, or lora_rank"
            )
        _ = self._effective  # refuses options that are invalid together
        for name, value in self.options.items() if self.stream == "online" else ():
            if (name, value) == ("memory_division", "task_balanced"):
                raise ValueError(f"{name} = {shown(value)} needs whole tasks, which stream = 'online' does not tell")

    def _set_options(self, given: Mapping[str, Any]) -> None:
        """Set the options that the plug-ins use, given or default, and keep the rest aside."""
        fields = self.__dict__
        used = used_options(lambda name: fields[name] if name in fields else given.get(name, OPTIONS[name].default))
        if given.get("memory_size") is not None:
            used.pop("memory_fraction", None)
        options = self.__pydantic_extra__
        assert options is not None  # extra="allow"
        options.clear()
        for name, option in used.items():
            options[name] = given[name] if name in given else self._default_of_option(name, option)
        self._aside = {name: value for name, value in given.items() if name not in used}

    def _default(self, name: str) -> Any:
        """Return the default of an option."""
        return self._default_of_option(name, OPTIONS[name])

    def _default_of_option(self, name: str, option: Option) -> Any:
        """Return the default of an option, which may depend on all fields except the seeds."""
        if option.default_factory is None:
            return option.default
        fields = {key: self.__dict__[key] for key in type(self).model_fields if key not in ("seed", "weight_seed")}
        with calling(f"option {name!r}: default"):
            default: Any = option.default_factory  # a function of the config, not of pydantic's dictionary
            value = default(SimpleNamespace(**fields))
        return checked(option, value, f"option {name!r}: default returns ")

    @property
    def options(self) -> Mapping[str, Any]:
        """Options of its plug-ins, by name."""
        return dict(self.__pydantic_extra__ or {})

    def options_of(self, kind: str) -> dict[str, Any]:
        """Return the options of the plug-in in a field such as `network`, by name; empty if the field is None."""
        options = self.options
        return {name: options[name] for name in REGISTRIES[kind].options(getattr(self, kind)) if name in options}

    def get(self, name: str) -> Any:
        """Return the value of a field or option; None for an option that it does not have."""
        return getattr(self, name) if name in type(self).model_fields else (self.__pydantic_extra__ or {}).get(name)

    def replace(self, **changes: Any) -> Self:
        """Return a config with other values; defaults follow the new values.

        An option that no plug-in of the new config uses is kept aside, so that one base serves several strategies.
        """
        return self.of(self.explicit | changes)

    @property
    def explicit(self) -> dict[str, Any]:
        """The fields and options that were given, including options that no plug-in of it uses."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    @property
    def network_options(self) -> dict[str, Any]:
        """Arguments of the network: its options, and the layers to replace (see `REPLACED`)."""
        options = self.options_of("network") | ({} if self.norm == "batch" else {"norm": self.norm})
        if self.head == "cosine":
            options["head"] = self.head
        size = self.options.get("projection_size")
        if size is not None:
            options["projection"] = size
            for name in STRATEGIES.declaration(self.strategy).projection:
                options[name] = True
        return options

    @property
    def initial_seed(self) -> int:
        """The seed of the initial weights; everything else is drawn with `seed`."""
        return self.seed if self.weight_seed is None else self.weight_seed

    @cached_property
    def data_key(self) -> DataKey:
        """Key of the frames that this config runs on."""
        view = (self.split_seed, self.normalize, self.leads, self.split, self.validation)
        by_time = "split_within" in SCENARIOS.declaration(self.scenario).fields and self.split_within == "time"
        within = "time" if by_time else "people"
        encoder = "" if isinstance(self.encoder, RunConfig) else self.encoder
        key = DataKey(self.dataset, *view, encoder, within, is_adapted=self.lora_rank > 0, stratify=self.stratify)
        return key._replace(start_from=self.start_from)

    @property
    def orders_by_name(self) -> bool:
        """Whether the tasks are in an order of their names, whose positions are known once the data are prepared."""
        return isinstance(self.task_order, tuple) and isinstance(self.task_order[0], str)

    @property
    def draws_with_split_seed(self) -> bool:
        """Whether the split seed draws a fold, a validation set or blurry tasks, also where the split is given."""
        return self.split is not None or self.stratify is not None or self.validation is not None or self.blurry > 0

    @cached_property
    def tasks_key(self) -> tuple[Any, ...]:
        """The settings, besides data and `task_order`, that determine the tasks."""
        fields = SCENARIOS.declaration(self.scenario).fields
        of_scenario = (getattr(self, name) for name in sorted(fields))
        others = *self.options_of("scenario").items(), self.blurry, self.first_tasks
        return self.scenario, *of_scenario, *others

    @property
    def tasks_settings(self) -> dict[str, Any]:
        """The values of `tasks_key` by name, without the scenario."""
        fields = sorted(SCENARIOS.declaration(self.scenario).fields)
        values = {name: getattr(self, name) for name in (*fields, "blurry", "first_tasks")}
        return values | self.options_of("scenario")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy without a cached identity; unlike `replace`, it does not validate the update."""
        copied = super().model_copy(update=update, deep=deep)
        for cached in _CACHED:
            copied.__dict__.pop(cached, None)
        copied._set_options({name: getattr(copied, name) for name in copied.model_fields_set if name in OPTIONS})
        return copied

    @property
    def without_unused(self) -> Self:
        """Return the config without unused options, so that a method cannot read them."""
        if not self._aside:
            return self
        return self.of({name: value for name, value in self.explicit.items() if name not in self._aside})

    @cached_property
    def _effective(self) -> dict[str, Any]:
        """Its options with an effect."""
        return effective_options(self.strategy, self.options, [getattr(self, kind) for kind in USERS])

    @cached_property
    def identity(self) -> str:
        """Everything that the run's numbers depend on, as canonical JSON (see `identity`)."""
        idle = self.model_fields_set & without_effect(self.__dict__, FACTS)
        if idle:  # as if they had not been given
            return self.of({name: value for name, value in self.explicit.items() if name not in idle}).identity
        if instead := in_effect(self.__dict__, self.options):
            return self.replace(**instead).identity
        text = {"encoder": self.encoder.identity} if isinstance(self.encoder, RunConfig) else {}
        fields = self.model_dump(mode="json", exclude={*self.options, *text}) | text
        return identity_of(fields, self._effective, FACTS)

    def with_seed(self, seed: int) -> Self:
        """Return the config with another seed, without validation.

        Configs are immutable, so both share all other values: a plan may have 100,000 of them.
        """
        _ = self.data_key, self.tasks_key, self.semantics_version  # which the copies share
        copied = type(self).__new__(type(self))
        values = {**self.__dict__, "seed": seed}
        values.pop("identity", None)
        if self.weight_seed is None:  # which is left out of the identity where it equals the seed
            # Within a text, the quotes are escaped.
            values["identity"] = self.identity.replace(f',"seed":{self.seed},', f',"seed":{seed},')
        given = self.__pydantic_fields_set__
        object.__setattr__(copied, "__dict__", values)
        object.__setattr__(copied, "__pydantic_fields_set__", given if "seed" in given else given | {"seed"})
        object.__setattr__(copied, "__pydantic_extra__", self.__pydantic_extra__)
        object.__setattr__(copied, "__pydantic_private__", self.__pydantic_private__)
        return copied

    @property
    def revision(self) -> int:
        """How often the strategy alone has changed its numbers."""
        return STRATEGIES.declaration(self.strategy).revision

    @property
    def precision_in_effect(self) -> str:
        """The precision of training; float32 for a method that takes no steps."""
        return "float32" if "precision" in without_effect(self.__dict__, FACTS) else self.precision

    @property
    def network_revision(self) -> int:
        """How often the numbers of the network alone have changed; see `network_revision_of`."""
        return network_revision_of(self.__dict__, FACTS)

    @cached_property
    def revisions(self) -> int:
        """How often the numbers of the strategy or the network alone have changed."""
        return self.revision + self.network_revision

    @cached_property
    def semantics_version(self) -> int:
        """Increased whenever the same configuration gives different numbers than before; part of every run id."""
        return SEMANTICS_VERSION + self.revisions

    def run_id(self, data_hash: str, semantics_version: int | None = None) -> str:
        """Return the run's id: the first 24 hex digits of the SHA-256 of identity, data hash and semantics version."""
        version = self.semantics_version if semantics_version is None else semantics_version
        whole = f'{{"config":{self.identity},"data_hash":"{data_hash}","semantics_version":{version}}}'
        return hashlib.sha256(whole.encode()).hexdigest()[:RUN_ID_LENGTH]


_CACHED = ("data_key", "tasks_key", "revisions", "semantics_version", "identity", "_effective")
"""What a config computes once from its values."""


class _AnyCombination(RunConfig):
    """A config whose fields are valid by themselves, but perhaps not together."""

    def _check_combination(self) -> None:
        """Accept all."""


def _registered(kind: str, value: str) -> str:
    registry = REGISTRIES[kind]
    if value not in registry:
        if kind == "network" and value.startswith(braindecode.PREFIX):
            raise ValueError(braindecode.why_unknown(value))
        if kind == "network" and not nearest(value, registry):
            raise ValueError(f"not known{braindecode.similar(value) or nearest_or_all(value, registry)}")
        raise ValueError(f"not known{nearest_or_all(value, registry)}")
    return value


def _checked(name: str, value: Any) -> Any:
    """Return the value of an option as it is stored.

    Raises:
        ValueError: the value is invalid.
    """
    option = OPTIONS[name]
    value = checked(option, value, f"{name} = ")
    try:
        return _registered(registry, value) if (registry := registry_of(option)) else value
    except ValueError as error:
        raise ValueError(f"{name} = {shown(value)}: {error}") from None


def _kinds_that_use(name: str) -> list[str]:
    """Return the fields whose plug-ins may use an option."""
    own = {owner.partition(" ")[0] for owner in OPTIONS.owners(name)}
    return [kind for kind in REGISTRIES if kind in own or (kind == "strategy" and not own.issubset(USERS))]


def any_combination(base: RunConfig, changes: Mapping[str, Any]) -> RunConfig | None:
    """Return a config to evaluate a condition on, even if its fields are invalid together; None if one is invalid."""
    try:
        return _AnyCombination.of(base.explicit | dict(changes))
    except UsageError:
        return None


def known_key(name: str) -> str:
    """Return `name` if it is a config field or an option, or raise a UsageError that names similar ones."""
    if not isinstance(name, str):
        raise UsageError(f"unknown key {shown(name)}: expected text")
    if name in RunConfig.model_fields or name in OPTIONS:
        return name
    if name in FORMER_OPTIONS:
        raise UsageError(f"unknown key {shown(name)}: {instead_of(name)}")
    known = [*RunConfig.model_fields, *OPTIONS]
    close = _USUAL_ELSEWHERE.get(name.lower()) or closest(name, known)
    if close:
        of = f" of {owners(close)}" if close in OPTIONS and close not in RunConfig().options else ""
        raise UsageError(f"unknown key {shown(name)} (did you mean {close!r}{of}?)")
    words = {word for word in name.lower().split("_") if len(word) >= _SHORTEST_WORD}
    related = [key for key in known if words.intersection(key.split("_"))]
    alike = difflib.get_close_matches(name, related, n=2, cutoff=0)
    described = [f"{key} ({owners(key)})" if key in OPTIONS else key for key in alike]
    raise UsageError(f"unknown key {shown(name)}{'; related keys: ' * bool(alike)}{', '.join(described)}")


_SHORTEST_WORD = 3

_USUAL_ELSEWHERE = {
    "algorithm": "strategy",
    "architecture": "network",
    "backbone": "network",
    "bs": "batch_size",
    "buffer": "memory_size",
    "buffer_size": "memory_size",
    "ewc_lambda": "ewc_strength",
    "l2": "weight_decay",
    "lr": "learning_rate",
    "max_epochs": "epochs_per_task",
    "method": "strategy",
    "model": "network",
    "n_epochs": "epochs_per_task",
    "normalization": "normalize",
    "num_epochs": "epochs_per_task",
    "optim": "optimizer",
    "patience": "early_stopping",
    "random_seed": "seed",
    "random_state": "seed",
    "scaler": "normalize",
    "val_size": "validation",
    "wd": "weight_decay",
}
"""Names of fields and options in papers and in other packages, and the name here."""


def owners(key: str) -> str:
    """Return the plug-ins with an option in words, such as "strategy 'er', 'er_ace'"."""
    owners = sorted(OPTIONS.owners(key))
    kind = owners[0].partition(" ")[0]
    names = [owner.removeprefix(f"{kind} ") for owner in owners]
    return f"{kind} {listed(names)}"


def kind_of(name: str) -> Any:
    """Return the declared type of a field or option, such as int, float, bool or str."""
    return (
        RunConfig.model_fields[name].annotation if name in RunConfig.model_fields else scalar(OPTIONS[name].annotation)
    )


def names_of(configs: Iterable[RunConfig]) -> list[str]:
    """Return the fields of every config, and the options of some configs."""
    return list(dict.fromkeys([*RunConfig.model_fields, *(name for config in configs for name in config.options)]))


def _first_sentence(error: ValidationError) -> str:
    """Convert Pydantic's report to one sentence: the key, its value, and what is expected."""
    first = error.errors(include_url=False)[0]
    message = expected(error)
    if not first["loc"]:
        return message
    if first["loc"][0] == "task_order":
        names = ", ".join(_NAMES_OF_ORDERS)
        message = (
            f"expected one of {names}, a seed (an integer from 0), a permutation of the task positions, or one of "
            "their names"
        )
    return f"{first['loc'][0]} = {shown(first['input'])}: {message}"


class _ByContext:
    """The default of a field that depends on the data set and scenario."""

    def __repr__(self) -> str:
        return "<by data set>"


def _signature() -> Signature:
    """Return the fields of a config with plain types and defaults, and that options are taken, too."""
    kinds = get_type_hints(RunConfig)
    fields = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=field.default if field.default_factory is None else _ByContext(),
            annotation=kinds[name],
        )
        for name, field in RunConfig.model_fields.items()
    ]
    return Signature([*fields, Parameter("options", Parameter.VAR_KEYWORD)])


RunConfig.__signature__ = _signature()

SEED = RunConfig.model_fields["seed"]

FACTS = facts_in(RunConfig.model_fields)
"""The facts of each config field by name."""

OPTIONS.reserve(dir(RunConfig), "kept for what every config has")
OPTIONS.reserve(RunConfig.model_fields, "that of a config field")
