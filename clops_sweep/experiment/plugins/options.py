"""Options: hyperparameters that plug-ins declare, with bounds and defaults."""

from __future__ import annotations

import math
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


@dataclass(frozen=True)
class Option(ABC):
    """A hyperparameter: one definition for all plug-ins that use it.

    Attributes:
        default: default value, or a function of the config's fields except the seeds.
        description: its meaning, for documentation.
        kind: type of the stored value.
    """

    default: Any
    description: str = field(default="", kw_only=True, compare=False)
    kind: ClassVar[type] = str

    def __str__(self) -> str:
        """Return the definition without omitted arguments."""
        pairs = ((it.name, getattr(self, it.name)) for it in fields(self) if it.compare)
        written = [f"{name}={value!r}" for name, value in pairs if value is not None and value is not False]
        return f"{type(self).__name__}({', '.join(written)})"

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
class _NumberOption(Option):
    """A number and its bounds.

    Attributes:
        default: default value; None for an optional one.
        gt, ge, lt, le: bounds, as pydantic and Optuna name them: greater than, greater or equal, less than, less or
            equal; at most one on each side.
        log: whether a search samples it on a logarithmic scale.
    """

    default: float | Callable[[Any], float] | None
    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None
    log: bool = False

    def __post_init__(self) -> None:
        _store_default(self)
        if self.log and isinstance(self.default, float | int) and not self.default > 0:
            raise UsageError(f"default = {shown(self.default)}: expected more than 0 on a logarithmic scale")

    @property
    def _what(self) -> str:
        return "a number"

    def _of_this_kind(self, value: Any) -> bool:
        try:
            return is_number(value) and math.isfinite(value)
        except OverflowError:  # an integer beyond the largest float
            return False

    def _stored(self, value: Any) -> Any:
        """Return a value as a plain Python number, identical for equal values."""
        return float(value if isinstance(value, float) else as_python(value)) + 0.0  # -0.0 becomes 0.0

    def checked(self, value: Any) -> Any:
        """Return the value as it is stored.

        Raises:
            ValueError: it is not a finite number, or is out of bounds; says what is expected.
        """
        if value is None and self.default is None:
            return None
        if not self._of_this_kind(value):
            raise ValueError(f"expected {self._what}{'' if is_number(value) else f', not {kind_in_words(value)}'}")
        value = self._stored(value)
        kept = [
            (self.gt, value > self.gt if self.gt is not None else True, "more than"),
            (self.ge, value >= self.ge if self.ge is not None else True, "at least"),
            (self.lt, value < self.lt if self.lt is not None else True, "less than"),
            (self.le, value <= self.le if self.le is not None else True, "at most"),
        ]
        if not all(holds for _, holds, _ in kept):
            bounds = " and ".join(f"{words} {_written(bound)}" for bound, _, words in kept if bound is not None)
            raise ValueError(f"expected {self._what}, {bounds}")
        return value

    def _range(self) -> tuple[float, float]:
        """Return the bounds of the default distribution.

        Raises:
            ValueError: a bound is missing.
        """
        low, high = _first(self.ge, self._above(self.gt)), _first(self.le, self._below(self.lt))
        high = None if high is not None and high >= LARGEST else high
        if self.log and isinstance(self.default, float | int):
            lowest = _first(self.ge, self.gt)
            low = self.default / _APART if lowest is None or lowest <= 0 else low
            high = self.default * _APART if high is None else high
        if low is None or high is None:
            raise ValueError("it is declared without a bound on each side")
        return low, high

    def _above(self, bound: float | None) -> float | None:
        return None if bound is None else math.nextafter(bound, math.inf)

    def _below(self, bound: float | None) -> float | None:
        return None if bound is None else math.nextafter(bound, -math.inf)


@dataclass(frozen=True)
class FloatOption(_NumberOption):
    """A real number, such as ``FloatOption(100.0, gt=0, log=True)``.

    By default, a search samples between its bounds; on a logarithmic scale, a bound that is missing or 0 is replaced by
    a hundredth or a hundred times the default.

    Raises:
        UsageError: the default is out of bounds, or a bound is not a number.
    """

    kind: ClassVar[type] = float

    def distribution(self) -> BaseDistribution:
        """Return the default distribution of a search.

        Raises:
            ValueError: bounds are missing.
        """
        from optuna.distributions import FloatDistribution

        return FloatDistribution(*self._range(), log=self.log)


@dataclass(frozen=True)
class IntOption(_NumberOption):
    """An integer, such as ``IntOption(16, ge=1, le=256, log=True)``; see `FloatOption`.

    Raises:
        UsageError: the default is out of bounds, or a bound is not an integer.
    """

    default: int | Callable[[Any], int] | None
    kind: ClassVar[type] = int

    def checked(self, value: Any) -> Any:
        """Return the value as it is stored.

        Raises:
            ValueError: it is not an integer, or is out of bounds; says what is expected.
        """
        if isinstance(value, int) and abs(value) >= _MOST:
            raise ValueError("expected a whole number below 2**63")
        return super().checked(value)

    @property
    def _what(self) -> str:
        return "a whole number"

    def _of_this_kind(self, value: Any) -> bool:
        return super()._of_this_kind(value) and is_whole(value) and abs(value) < _MOST

    def _stored(self, value: Any) -> int:
        return int(value)

    def _above(self, bound: float | None) -> float | None:
        return None if bound is None else bound + 1

    def _below(self, bound: float | None) -> float | None:
        return None if bound is None else bound - 1

    def distribution(self) -> BaseDistribution:
        """Return the default distribution of a search.

        Raises:
            ValueError: bounds are missing.
        """
        from optuna.distributions import IntDistribution

        low, high = self._range()
        return IntDistribution(math.ceil(low), math.floor(high), log=self.log)


@dataclass(frozen=True)
class BoolOption(Option):
    """True or false.

    Raises:
        UsageError: the default is neither True nor False.
    """

    default: bool | Callable[[Any], bool]
    kind: ClassVar[type] = bool

    def __post_init__(self) -> None:
        _store_default(self)

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
        _store_default(self)

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


def _written(bound: float) -> str:
    """Format a bound for a sentence."""
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


def _store_default(option: Option) -> None:
    """Check an option's default and store it as a config stores an equal value, so that both share one run.

    Raises:
        UsageError: the option cannot have this value.
    """
    if callable(option.default):
        return
    try:
        object.__setattr__(option, "default", option.checked(option.default))
    except ValueError as error:
        raise UsageError(f"default = {shown(option.default)}: {error}") from None


Options = Mapping[str, Option]

OF_SCENARIOS = frozenset({"task_classes", "domain", "split_within", "people_per_task", "people_order"})
"""Config fields that a scenario may list among its options; it receives them as keyword arguments."""


class DeclaredOptions(Mapping[str, Option]):
    """The options of all plug-ins by name: one definition per name, distinct from fields and columns."""

    def __init__(self) -> None:
        self._options: dict[str, Option] = {}
        self._owners: dict[str, set[str]] = {}
        self._reserved: dict[str, str] = {}

    def __getitem__(self, name: str) -> Option:
        return self._options[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._options)

    def __len__(self) -> int:
        return len(self._options)

    def owners(self, name: str) -> Set[str]:
        """Return the plug-ins that use an option in words, such as ``strategy 'ewc'``."""
        return self._owners[name]

    def reserve(self, names: Iterable[str], what: str) -> None:
        """Reserve names, so that options cannot use them.

        Args:
            names: the names.
            what: their meaning in words, for errors.

        Raises:
            UsageError: an option has one of the names.
        """
        self._reserved |= dict.fromkeys(names, what)
        for name, owners in self._owners.items():
            self._check_reserved(min(owners), name)

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
        what = "expected a mapping from names to options, or a list of names of existing ones"
        items = [options] if isinstance(options, Mapping) else options
        if not isinstance(items, Collection) or isinstance(items, str):
            raise UsageError(f"{owner}: options: {what}, not {shown(options)}")
        found, taken = dict[str, Option](), list[str]()
        for item in items:
            if isinstance(item, Mapping):
                for name, option in item.items():
                    self._check(owner, name, option)
                    found[name] = option
            elif not isinstance(item, str):
                raise UsageError(f"{owner}: options: {what}, not {shown(item)}")
            elif item in fields:
                taken.append(item)
            elif item in self._reserved:
                raise UsageError(f"{owner}: option {item!r} has a name that is {self._reserved[item]}; leave it out")
            elif item not in self._options:
                known = listed([*sorted(fields), *self._options])
                raise UsageError(
                    f"{owner}: option {shown(item)} is not defined yet; give a definition, or one of {known}"
                )
            else:
                found[item] = self._options[item]
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
        others = self._owners.get(name, set()) - {owner}
        if others and self._options[name] != option:
            raise UsageError(
                f"{owner}: option {name!r} is defined differently by {min(others)}: {self._options[name]}; list it by "
                "name alone, or give it another name"
            )

    def _check_reserved(self, owner: str, name: str) -> None:
        if name in self._reserved or name.startswith("model_"):  # reserved by pydantic
            what = self._reserved.get(name, "kept for what every config has")
            raise UsageError(f"{owner}: option {name!r} has a name that is {what}; give it another one")

    def declare(self, owner: str, options: Options) -> None:
        """Set the options of a plug-in, replacing earlier ones."""
        for name in [name for name, owners in self._owners.items() if owner in owners]:
            self._owners[name].discard(owner)
            if not self._owners[name]:
                del self._owners[name], self._options[name]
        for name, option in options.items():
            self._options[name] = option
            self._owners.setdefault(name, set()).add(owner)


OPTIONS = DeclaredOptions()


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
