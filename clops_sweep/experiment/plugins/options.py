"""Options: hyperparameters that plug-ins declare, as pydantic fields with bounds and defaults.

`checked` is the one gate for values: of options and of the arguments of a launch. `RunConfig`'s fields hold the same
kinds of values, and `expected` says in both cases what would be right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from pydantic import BeforeValidator, Field, FiniteFloat, Strict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaError

from clops_sweep.arguments import named_arguments
from clops_sweep.errors import UsageError, listed, shown
from clops_sweep.experiment.facts import FieldFacts, stated_by, stating
from clops_sweep.experiment.plugins.values import as_bool, as_number

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Option = FieldInfo
"""A hyperparameter, one definition for all plug-ins that use it: a field of pydantic with type, bounds and default."""

_APART = 100
"""Factor above and below the default that a search covers, for an option on a logarithmic scale without bounds."""

_MOST = 2**63  # integers are stored as int64
LARGEST = 2**31 - 1
"""Largest integer of kernels. Searches without a custom distribution stay below it."""

NUMBER = BeforeValidator(as_number)
"""Makes the type of a field strict: neither True nor the text "20" is a number."""

_EXPECTED: Mapping[str, str] = {
    "greater_than": "more than {gt:,.15g}",
    "greater_than_equal": "at least {ge:,.15g}",
    "less_than": "less than {lt:,.15g}",
    "less_than_equal": "at most {le:,.15g}",
    "float_type": "a number",
    "finite_number": "a finite number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number below 2**63",
    "bool_type": "true or false",
    "literal_error": "{expected}",
    "string_type": "text",
}
"""What would be right, by the type of pydantic's error."""


def expected(error: ValidationError) -> str:
    """Say in words what would be right instead of the first value that pydantic refuses."""
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] in _EXPECTED:
        return f"expected {_EXPECTED[first['type']].format(**first.get('ctx', {}))}"
    said = str(first["msg"]).removeprefix("Value error, ")
    if said.partition(" ")[0] in OPTIONS:
        return said
    return f"{said[0].lower()}{said[1:]}"


@cache
def _adapter(kind: Any, *metadata: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(Annotated[kind, Field(), *metadata])
    except SchemaError:
        raise UsageError(f"bounds {shown(bounds_of(metadata))}: expected numbers of the option's type") from None


def checked(option: Option, value: Any, what: str = "") -> Any:
    """Return a value of an option as it is stored.

    Args:
        option: the option.
        value: the value.
        what: begins the message, such as "seed = ".

    Raises:
        UsageError: the option cannot have it.
    """
    kind: Any = option.annotation
    try:
        return _adapter(kind, *option.metadata).validate_python(value)
    except ValidationError as error:
        raise UsageError(f"{what}{shown(value)}: {expected(error)}") from None


def _option(kind: Any, default: Any, description: str, extra: dict[str, Any], **bounds: Any) -> Option:
    given = {"default_factory" if callable(default) else "default": default}
    made: Any = Field(**given, **bounds, description=description, json_schema_extra=extra)
    option = Option.from_annotated_attribute(kind, made)
    if not callable(default):
        option.default = checked(option, default, "default = ")
    return option


@named_arguments
def FloatOption(  # noqa: N802  # the name of a kind of option, as pydantic's Field
    default: float | Callable[[Any], float] | None,
    *,
    gt: float | None = None,
    ge: float | None = None,
    lt: float | None = None,
    le: float | None = None,
    log: bool = False,
    equal_training: bool = False,
    equal_cost: bool = False,
    description: str = "",
) -> Option:
    """Return a real number as an option, such as ``FloatOption(100.0, gt=0, log=True)``: a pydantic field.

    By default, a search samples between its bounds; on a logarithmic scale, a bound that is missing or 0 is replaced by
    a hundredth or a hundred times the default.

    Args:
        default: default value, stored as a config stores an equal value; None for an optional one, or a function of the
            config's fields except the seeds.
        gt: greater than; bounds have the names of pydantic and Optuna, at most one on each side.
        ge: greater or equal.
        lt: less than.
        le: less or equal.
        log: whether a search samples it on a logarithmic scale.
        equal_training: whether it belongs to the method that reports compare, as the strength of a penalty does: runs
            that differ in it count as equally trained. By default they are not compared.
        equal_cost: whether runs that differ in it take about the same time: one is estimated from the other.
        description: its meaning, for documentation.

    Raises:
        UsageError: the default is not a number, or is out of bounds.
    """
    extra = {"log": log, **_stating(equal_training, equal_cost)}
    return _number(FiniteFloat, default, description, extra, gt=gt, ge=ge, lt=lt, le=le)


@named_arguments
def IntOption(  # noqa: N802
    default: int | Callable[[Any], int] | None,
    *,
    gt: int | None = None,
    ge: int | None = None,
    lt: int | None = None,
    le: int | None = None,
    log: bool = False,
    equal_training: bool = False,
    equal_cost: bool = False,
    description: str = "",
) -> Option:
    """Return an integer as an option, such as ``IntOption(16, ge=1, le=256, log=True)``; see `FloatOption`.

    Raises:
        UsageError: the default is not an integer, or is out of bounds.
    """
    gt = -_MOST if gt is None and ge is None else gt
    lt = _MOST if lt is None and (le is None or le >= _MOST) else lt
    extra = {"log": log, **_stating(equal_training, equal_cost)}
    return _number(int, default, description, extra, gt=gt, ge=ge, lt=lt, le=le)


def _stating(equal_training: bool, equal_cost: bool) -> dict[str, Any]:
    """Return the facts of an option, as `stating` does those of a field."""
    return stating(FieldFacts("method" if equal_training else "training", equal_cost=equal_cost))


def _number(kind: Any, default: Any, description: str, extra: dict[str, Any], **bounds: float | None) -> Option:
    optional = kind | None if default is None else kind
    option = _option(Annotated[optional, NUMBER], default, description, extra, **bounds)
    if extra["log"] and isinstance(default, float | int) and not default > 0:
        raise UsageError(f"default = {shown(default)}: expected more than 0 on a logarithmic scale")
    return option


@named_arguments
def BoolOption(  # noqa: N802
    default: bool | Callable[[Any], bool],
    *,
    equal_training: bool = False,
    equal_cost: bool = False,
    description: str = "",
) -> Option:
    """Return an option that is true or false; for the arguments see `FloatOption`.

    Raises:
        UsageError: the default is neither True nor False.
    """
    kind = Annotated[bool, Strict(), BeforeValidator(as_bool)]
    return _option(kind, default, description, _stating(equal_training, equal_cost))


@named_arguments
def ChoiceOption(  # noqa: N802
    default: str | Callable[[Any], str],
    *,
    choices: Iterable[str],
    equal_training: bool = False,
    equal_cost: bool = False,
    description: str = "",
) -> Option:
    """Return one of several strings, such as ``ChoiceOption("reservoir", choices=("reservoir", "class_balanced"))``.

    For `equal_training` and `equal_cost` see `FloatOption`.

    Raises:
        UsageError: a choice is not text, or the default is not a choice.
    """
    given = () if isinstance(choices, str) or not isinstance(choices, Iterable) else tuple(choices)
    if not given or not all(isinstance(it, str) for it in given):
        raise UsageError(f"choices = {shown(choices)}: expected a list of texts")
    texts = tuple(str.__str__(choice) for choice in given)
    if len(set(texts)) < len(texts):
        raise UsageError(f"choices = {shown(choices)}: expected texts that differ")
    return _option(Literal[texts], default, description, _stating(equal_training, equal_cost))


def option_of_kind(kind: Any, default: Any, description: str, *, equal_cost: bool = False) -> Option:
    """Return an option of any type that pydantic validates; for the arguments see `FloatOption`."""
    return _option(kind, default, description, _stating(equal_training=False, equal_cost=equal_cost))


def PluginOption(  # noqa: N802
    default: str, registry: str, *, equal_training: bool = False, equal_cost: bool = False, description: str = ""
) -> Option:
    """Return the name of a plug-in, which adds that plug-in's options: `acquisition` adds `mc_samples`.

    `RunConfig` checks that it is registered.

    Args:
        default: name of the default plug-in.
        registry: registry of the plug-in, a key of `REGISTRIES`.
        equal_training: as in `FloatOption`.
        equal_cost: as in `FloatOption`.
        description: its meaning, for documentation.
    """
    extra = {"registry": registry, **_stating(equal_training, equal_cost)}
    return _option(Annotated[str, Strict()], default, description, extra)


def registry_of(option: Option) -> str | None:
    """Return the registry of the plug-in that an option names, a key of `REGISTRIES`; None for other options."""
    extra: Any = option.json_schema_extra
    return extra.get("registry")  # type: ignore[no-any-return]


def bounds_of(metadata: Iterable[Any]) -> dict[str, float]:
    """Return the bounds among the metadata of a number by name, as in `FloatOption`."""
    names = ("gt", "ge", "lt", "le")
    return {name: getattr(it, name) for it in metadata for name in names if hasattr(it, name)}


def scalar(annotation: Any) -> type:
    """Return the type of a field or option apart from None: text unless it is a number or bool."""
    if len(given := [it for it in get_args(annotation) if it is not NoneType]) == 1:
        (annotation,) = given
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation if annotation in (int, float, bool) else str


def distribution_of(option: Option) -> BaseDistribution:
    """Return the default distribution of a search.

    Raises:
        ValueError: the definition does not determine one: bounds are missing, or it names a plug-in.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    kind = scalar(option.annotation)
    if registry_of(option):
        raise ValueError("it names a plug-in")
    if kind not in (int, float):
        return CategoricalDistribution((False, True) if kind is bool else get_args(option.annotation))
    extra: Any = option.json_schema_extra
    log, bounds = extra["log"], bounds_of(option.metadata)
    next_to = (lambda bound, other: bound + math.copysign(1, other)) if kind is int else math.nextafter
    low = next_to(bounds["gt"], math.inf) if "gt" in bounds else bounds.get("ge", -math.inf)
    high = next_to(bounds["lt"], -math.inf) if "lt" in bounds else bounds.get("le", math.inf)
    low, high = -math.inf if low <= -_MOST else low, math.inf if high >= LARGEST else high
    if log and isinstance(option.default, float | int):
        low = option.default / _APART if low < next_to(0, math.inf) or bounds.get("gt") == 0 else low
        high = option.default * _APART if high == math.inf else high
    if not math.isfinite(low - high):
        raise ValueError("it is declared without a bound on each side")
    return IntDistribution(math.ceil(low), math.floor(high), log) if kind is int else FloatDistribution(low, high, log)


def _same(one: Option, other: Option) -> bool:
    """Return whether two definitions are equal, apart from their descriptions."""
    names = ("annotation", "metadata", "default", "default_factory", "json_schema_extra")
    return all(getattr(one, name) == getattr(other, name) for name in names)


Options = Mapping[str, Option]


class DeclaredOptions(Mapping[str, Option]):
    """The options of all plug-ins by name: one definition per name, distinct from fields and columns."""

    def __init__(self) -> None:
        self._declared: dict[str, dict[str, Option]] = {}  # name -> plug-in -> equal definitions
        self._reserved: dict[str, str] = {}
        self.look_up: Callable[[str], object] = lambda name: None
        """Declares the options of the plug-in of a library whose option a name may be; called for unknown names."""

    def __getitem__(self, name: str) -> Option:
        declared = self._declared.get(name)
        if declared is None:
            self.look_up(name)
            declared = self._declared[name]
        return next(iter(declared.values()))

    def __contains__(self, name: object) -> bool:
        return name in self._declared or super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)

    def owners(self, name: str) -> Set[str]:
        """Return the plug-ins that use an option in words, such as ``strategy 'ewc'``."""
        return self._declared[name].keys()

    def reserve(self, names: Iterable[str], what: str) -> None:
        """Reserve names, so that options cannot use them.

        Args:
            names: the names.
            what: their meaning in words, for errors.

        Raises:
            UsageError: an option has one of the names.
        """
        self._reserved |= dict.fromkeys(names, what)
        for name, declared in self._declared.items():
            self._check_reserved(min(declared), name)

    def resolved(
        self, owner: str, options: object, fields: Set[str] = frozenset()
    ) -> tuple[dict[str, Option], list[str]]:
        """Return the options that a plug-in uses, by name, and the config fields among what it lists.

        Args:
            owner: the plug-in, for messages.
            options: names of existing options and mappings from new names to definitions, or one mapping.
            fields: config fields that it may list too.

        Raises:
            UsageError: invalid options, an unknown name, or another definition of an option by another plug-in.
        """
        items = [options] if isinstance(options, Mapping) else options
        listed_well = isinstance(items, Collection) and not isinstance(items, str)
        if not listed_well or not all(isinstance(item, str | Mapping) for item in items):  # type: ignore[attr-defined]
            what = "expected a mapping from names to options, or a list of names of existing ones"
            raise UsageError(f"{owner}: options: {what}, not {shown(options)}")
        found, taken = dict[str, Option](), list[str]()
        for item in items:  # type: ignore[attr-defined]
            if isinstance(item, Mapping):
                for name, option in item.items():
                    self._check(owner, name, option)
                found |= item
            elif item in fields:
                taken.append(item)
            elif item in self._declared:
                found[item] = self[item]
            else:
                self._check_reserved(owner, item, "leave it out")
                known = listed([*sorted(fields), *self])
                raise UsageError(
                    f"{owner}: option {shown(item)} is not defined yet; give a definition, or one of {known}"
                )
        return found, taken

    def _check(self, owner: str, name: object, option: object) -> None:
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
            raise UsageError(f"{owner}: option {shown(name)}: expected a name of letters, digits and underscores")
        if not isinstance(option, Option) or option.annotation is None:
            raise UsageError(
                f"{owner}: option {name!r}: expected FloatOption, IntOption, BoolOption or ChoiceOption, not "
                f"{shown(option)}"
            )
        self._check_reserved(owner, name)
        for other, defined in self._declared.get(name, {}).items():
            if other != owner and not _same(defined, option):
                facts = stated_by(defined)
                what = (
                    f"default {defined.default!r}, {bounds_of(defined.metadata) or 'no bounds'}, "
                    f"equal_training={facts.equal_training} and equal_cost={facts.equal_cost}"
                )
                raise UsageError(
                    f"{owner}: option {name!r} is defined differently by {other}, with {what}; list it by name alone, "
                    "or give it another name"
                )

    def _check_reserved(self, owner: str, name: str, advice: str = "give it another one") -> None:
        if name in self._reserved or name.startswith("model_"):  # reserved by pydantic
            what = self._reserved.get(name, "kept for what every config has")
            raise UsageError(f"{owner}: option {name!r} has a name that is {what}; {advice}")

    def declare(self, owner: str, options: Options) -> None:
        """Set the options of a plug-in, replacing earlier ones."""
        for name in [name for name, declared in self._declared.items() if owner in declared]:
            del self._declared[name][owner]
            if not self._declared[name]:
                del self._declared[name]
        for name, option in options.items():
            self._declared.setdefault(name, {})[owner] = option


OPTIONS = DeclaredOptions()
