"""Options: hyperparameters that plug-ins declare, with bounds and defaults.

`Option.checked` is the one gate for values: of options, of `RunConfig`'s fields and of the arguments of a launch.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

from clops_sweep.errors import UsageError, listed, shown
from clops_sweep.experiment.plugins.values import as_python, is_number, is_whole, kind_in_words

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

_APART = 100
"""Factor above and below the default that a search covers, for an option on a logarithmic scale without bounds."""

_MOST = 2**63  # integers are stored as int64
LARGEST = 2**31 - 1
"""Largest integer of kernels. Searches without a custom distribution stay below it."""

_BOUNDS: Mapping[str, tuple[Callable[[float, float], bool], str]] = {
    "gt": (operator.gt, "more than"),
    "ge": (operator.ge, "at least"),
    "lt": (operator.lt, "less than"),
    "le": (operator.le, "at most"),
}


@dataclass(frozen=True)
class Option(ABC):
    """A hyperparameter: one definition for all plug-ins that use it.

    Attributes:
        default: default value, stored as a config stores an equal value, or a function of the config's fields except
            the seeds.
        description: its meaning, for documentation.
        kind: type of the stored value.

    Raises:
        UsageError: the default is not a value that the option can have.
    """

    default: Any
    description: str = field(default="", kw_only=True, compare=False)
    kind: ClassVar[type] = str

    def __post_init__(self) -> None:
        if not callable(self.default):
            object.__setattr__(self, "default", self.stored("default", self.default))

    def __str__(self) -> str:
        """Return the definition without omitted arguments."""
        pairs = ((argument.name, getattr(self, argument.name)) for argument in fields(self) if argument.compare)
        written = [f"{name}={value!r}" for name, value in pairs if value is not None and value is not False]
        return f"{type(self).__name__}({', '.join(written)})"

    def stored(self, name: str, value: Any) -> Any:
        """Return a value as it is stored.

        Args:
            name: what has the value, for the message.
            value: the value.

        Raises:
            UsageError: the option cannot have it.
        """
        try:
            return self.checked(value)
        except ValueError as error:
            raise UsageError(f"{name} = {shown(value)}: {error}") from None

    @abstractmethod
    def checked(self, value: Any) -> Any:
        """Return the value as it is stored.

        Raises:
            ValueError: the option cannot have it; says what is expected.
        """

    @abstractmethod
    def distribution(self) -> BaseDistribution:
        """Return the default distribution of a search.

        Raises:
            ValueError: the definition does not determine one.
        """


@dataclass(frozen=True)
class FloatOption(Option):
    """A real number, such as ``FloatOption(100.0, gt=0, log=True)``.

    By default, a search samples between its bounds; on a logarithmic scale, a bound that is missing or 0 is replaced by
    a hundredth or a hundred times the default.

    Attributes:
        default: default value; None for an optional one.
        gt, ge, lt, le: bounds, as pydantic and Optuna name them: greater than, greater or equal, less than, less or
            equal; at most one on each side.
        log: whether a search samples it on a logarithmic scale.

    Raises:
        UsageError: the default is not a number, or is out of bounds.
    """

    default: float | Callable[[Any], float] | None
    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None
    log: bool = False
    kind: ClassVar[type] = float
    _what: ClassVar[str] = "a number"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.log and isinstance(self.default, float | int) and not self.default > 0:
            raise UsageError(f"default = {shown(self.default)}: expected more than 0 on a logarithmic scale")

    def _read(self, value: Any) -> float | None:
        """Return a number as a plain Python number, identical for equal numbers; None for anything else."""
        try:
            finite = is_number(value) and math.isfinite(value)
        except OverflowError:  # an integer beyond the largest float
            return None
        return float(value if isinstance(value, float) else as_python(value)) + 0.0 if finite else None

    def checked(self, value: Any) -> Any:
        """Return the value as it is stored.

        Raises:
            ValueError: it is not a finite number, or is out of bounds; says what is expected.
        """
        if value is None and self.default is None:
            return None
        number = self._read(value)
        if number is None:
            raise ValueError(f"expected {self._what}{'' if is_number(value) else f', not {kind_in_words(value)}'}")
        bounds = [(name, bound) for name in _BOUNDS if (bound := getattr(self, name)) is not None]
        if not all(_BOUNDS[name][0](number, bound) for name, bound in bounds):
            raise ValueError(
                f"expected {self._what}, "
                + " and ".join(
                    f"{_BOUNDS[name][1]} {bound:{',' if isinstance(bound, int) else 'g'}}" for name, bound in bounds
                )
            )
        return number

    def distribution(self) -> BaseDistribution:
        """Return the default distribution of a search.

        Raises:
            ValueError: bounds are missing.
        """
        from optuna.distributions import FloatDistribution, IntDistribution

        whole = self.kind is int
        next_to = (lambda bound, other: bound + math.copysign(1, other)) if whole else math.nextafter
        low = next_to(self.gt, math.inf) if self.gt is not None else self.ge
        high = next_to(self.lt, -math.inf) if self.lt is not None else self.le
        high = None if high is not None and high >= LARGEST else high
        if self.log and isinstance(self.default, float | int):
            low = self.default / _APART if low is None or low < next_to(0, math.inf) or self.gt == 0 else low
            high = self.default * _APART if high is None else high
        if low is None or high is None:
            raise ValueError("it is declared without a bound on each side")
        return (
            IntDistribution(math.ceil(low), math.floor(high), self.log)
            if whole
            else FloatDistribution(low, high, self.log)
        )


@dataclass(frozen=True)
class IntOption(FloatOption):
    """An integer, such as ``IntOption(16, ge=1, le=256, log=True)``; see `FloatOption`.

    Raises:
        UsageError: the default is not an integer, or is out of bounds.
    """

    default: int | Callable[[Any], int] | None
    kind: ClassVar[type] = int
    _what: ClassVar[str] = "a whole number"

    def _read(self, value: Any) -> int | None:
        return int(value) if super()._read(value) is not None and is_whole(value) else None

    def checked(self, value: Any) -> Any:
        """Return the value as it is stored.

        Raises:
            ValueError: it is not an integer, or is out of bounds; says what is expected.
        """
        number = super().checked(value)
        if number is not None and abs(number) >= _MOST:
            raise ValueError("expected a whole number below 2**63")
        return number


@dataclass(frozen=True)
class BoolOption(Option):
    """True or false.

    Raises:
        UsageError: the default is neither True nor False.
    """

    default: bool | Callable[[Any], bool]
    kind: ClassVar[type] = bool

    def checked(self, value: Any) -> bool:
        """Return the value as it is stored.

        Raises:
            ValueError: it is neither True nor False.
        """
        if type(value).__name__ not in ("bool", "bool_"):  # Python's own and NumPy's
            raise ValueError(f"expected true or false, not {kind_in_words(value)}")
        return bool(value)

    def distribution(self) -> BaseDistribution:
        """Return the default distribution of a search."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution((False, True))


@dataclass(frozen=True)
class ChoiceOption(Option):
    """One of several strings, such as ``ChoiceOption("reservoir", choices=("reservoir", "class_balanced"))``.

    Raises:
        UsageError: a choice is not text, or the default is not a choice.
    """

    default: str | Callable[[Any], str]
    choices: tuple[str, ...]

    def __post_init__(self) -> None:
        given = self.choices
        if isinstance(given, str) or not isinstance(given, Iterable) or not all(isinstance(it, str) for it in given):
            raise UsageError(f"choices = {shown(given)}: expected a list of texts")
        object.__setattr__(self, "choices", tuple(str.__str__(choice) for choice in given))
        if len(set(self.choices)) < len(self.choices):
            raise UsageError(f"choices = {shown(given)}: expected texts that differ")
        super().__post_init__()

    def checked(self, value: Any) -> str:
        """Return the value as it is stored.

        Raises:
            ValueError: it is not one of the choices.
        """
        if not isinstance(value, str) or value not in self.choices:
            raise ValueError(f"expected one of {', '.join(self.choices)}")
        return str.__str__(value)  # a member of a string enumeration becomes its text

    def distribution(self) -> BaseDistribution:
        """Return the default distribution of a search."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.choices)


@dataclass(frozen=True)
class PluginOption(Option):
    """The name of a plug-in, which adds that plug-in's options: `acquisition` adds `mc_samples`.

    Attributes:
        default: name of the default plug-in.
        registry: registry of the plug-in, a key of `REGISTRIES`.
    """

    default: str
    registry: str

    def checked(self, value: Any) -> str:
        """Return the name as it is stored; `RunConfig` checks that it is registered.

        Raises:
            ValueError: it is not text.
        """
        if not isinstance(value, str):
            raise ValueError("expected the name of a plug-in")
        return str.__str__(value)

    def distribution(self) -> BaseDistribution:
        """Raise an error: the definition does not determine which plug-ins a search should try.

        Raises:
            ValueError: always.
        """
        raise ValueError("it names a plug-in")


Options = Mapping[str, Option]

OF_SCENARIOS = frozenset({"task_classes", "domain", "split_within", "people_per_task", "people_order"})
"""Config fields that a scenario may list among its options; it receives them as keyword arguments."""


class DeclaredOptions(Mapping[str, Option]):
    """The options of all plug-ins by name: one definition per name, distinct from fields and columns."""

    def __init__(self) -> None:
        self._declared: dict[str, dict[str, Option]] = {}  # name -> plug-in -> equal definitions
        self._reserved: dict[str, str] = {}

    def __getitem__(self, name: str) -> Option:
        return next(iter(self._declared[name].values()))

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
        if not isinstance(option, Option):
            raise UsageError(
                f"{owner}: option {name!r}: expected FloatOption, IntOption, BoolOption or ChoiceOption, not "
                f"{shown(option)}"
            )
        self._check_reserved(owner, name)
        for other, defined in self._declared.get(name, {}).items():
            if other != owner and defined != option:
                raise UsageError(
                    f"{owner}: option {name!r} is defined differently by {other}: {defined}; list it by name alone, or "
                    "give it another name"
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
