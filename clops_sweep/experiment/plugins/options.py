"""Options: hyperparameters that a plug-in declares, with bounds and default, and their names in one place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, ClassVar

from clops_sweep.errors import UsageError, shown
from clops_sweep.experiment.plugins.distributions import (
    CategoricalDistribution,
    Distribution,
    FloatDistribution,
    IntDistribution,
)
from clops_sweep.experiment.plugins.values import is_number, is_whole

_APART = 100
"""How many times its default, and what part of it, a search goes to where an option has a logarithmic scale."""

_MOST = 2**63  # whole numbers are stored as int64


@dataclass(frozen=True)
class _NumberOption:
    """A number and its bounds.

    Attributes:
        default: taken where a config says nothing.
        gt, ge, lt, le: bounds, as pydantic and Optuna name them: greater than, greater or equal, less than, less or
            equal; at most one on each side.
        log: whether a search samples it on a logarithmic scale.
    """

    default: float
    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None
    log: bool = False

    def __post_init__(self) -> None:
        for name in ("gt", "ge", "lt", "le"):
            bound = getattr(self, name)
            if bound is not None:
                if not self._of_this_kind(bound):
                    raise UsageError(f"{name} = {shown(bound)}: expected {self._what}, or None")
                object.__setattr__(self, name, self._stored(bound))
        for one, other in (("gt", "ge"), ("lt", "le")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise UsageError(f"{one} and {other} are both there; expected one of them")
        if not isinstance(self.log, bool):
            raise UsageError(f"log = {shown(self.log)}: expected True or False")
        _store_default(self)
        if self.log and not self.default > 0:
            raise UsageError(f"default = {shown(self.default)}: expected more than 0 on a logarithmic scale")

    @property
    def _what(self) -> str:
        return "a number"

    def _of_this_kind(self, value: Any) -> bool:
        try:
            return is_number(value) and math.isfinite(value)
        except OverflowError:  # a whole number beyond the largest float
            return False

    def _stored(self, value: Any) -> Any:
        """A value of this kind as a plain Python number, the same for all values that are equal."""
        return float(value) + 0.0  # -0.0 becomes 0.0

    def checked(self, value: Any) -> Any:
        """The value as it is stored.

        Raises:
            ValueError: it is no finite number, or out of bounds; says what is expected.
        """
        if not self._of_this_kind(value):
            raise ValueError(f"expected {self._what}")
        value = self._stored(value)
        kept = [
            (self.gt, value > self.gt if self.gt is not None else True, "more than"),
            (self.ge, value >= self.ge if self.ge is not None else True, "at least"),
            (self.lt, value < self.lt if self.lt is not None else True, "less than"),
            (self.le, value <= self.le if self.le is not None else True, "at most"),
        ]
        if not all(holds for _, holds, _ in kept):
            bounds = " and ".join(f"{words} {bound:g}" for bound, _, words in kept if bound is not None)
            raise ValueError(f"expected {self._what}, {bounds}")
        return value

    def _range(self) -> tuple[float, float]:
        """Bounds of the default distribution.

        Raises:
            ValueError: a bound is missing.
        """
        low, high = _first(self.ge, self._above(self.gt)), _first(self.le, self._below(self.lt))
        if self.log:
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

    Without a distribution of its own a search takes it between its bounds; on a logarithmic scale a bound that is
    missing, or 0, is a hundredth or a hundred times the default.

    Raises:
        UsageError: the default is out of bounds, or a bound is no number.
    """

    kind: ClassVar[type] = float

    def distribution(self) -> Distribution:
        """What a search samples it from.

        Raises:
            ValueError: bounds are missing.
        """
        return FloatDistribution(*self._range(), log=self.log)


@dataclass(frozen=True)
class IntOption(_NumberOption):
    """A whole number, such as ``IntOption(16, ge=1, le=256, log=True)``; see `FloatOption`.

    Raises:
        UsageError: the default is out of bounds, or a bound is no whole number.
    """

    default: int
    kind: ClassVar[type] = int

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

    def distribution(self) -> Distribution:
        """What a search samples it from.

        Raises:
            ValueError: bounds are missing.
        """
        low, high = self._range()
        return IntDistribution(math.ceil(low), math.floor(high), log=self.log)


@dataclass(frozen=True)
class BoolOption:
    """True or false.

    Raises:
        UsageError: the default is neither.
    """

    default: bool
    kind: ClassVar[type] = bool

    def __post_init__(self) -> None:
        _store_default(self)

    def checked(self, value: Any) -> bool:
        """The value as it is stored.

        Raises:
            ValueError: it is neither.
        """
        if type(value).__name__ not in ("bool", "bool_"):  # Python's own and NumPy's
            raise ValueError("expected true or false")
        return bool(value)

    def distribution(self) -> Distribution:
        """What a search samples it from."""
        return CategoricalDistribution((False, True))


@dataclass(frozen=True)
class ChoiceOption:
    """One of several words, such as ``ChoiceOption("reservoir", choices=("reservoir", "class_balanced"))``.

    Raises:
        UsageError: the choices are no texts, or the default is none of them.
    """

    default: str
    choices: tuple[str, ...]
    kind: ClassVar[type] = str

    def __post_init__(self) -> None:
        given = self.choices
        if isinstance(given, str) or not isinstance(given, Iterable) or not all(isinstance(it, str) for it in given):
            raise UsageError(f"choices = {shown(given)}: expected a list of texts")
        object.__setattr__(self, "choices", tuple(str.__str__(choice) for choice in given))
        if len(set(self.choices)) < len(self.choices):
            raise UsageError(f"choices = {shown(given)}: expected texts that differ")
        _store_default(self)

    def checked(self, value: Any) -> str:
        """The value as it is stored.

        Raises:
            ValueError: it is none of the choices.
        """
        if not isinstance(value, str) or value not in self.choices:
            raise ValueError(f"expected one of {', '.join(self.choices)}")
        return str.__str__(value)  # a member of an enumeration of texts becomes its text

    def distribution(self) -> Distribution:
        """What a search samples it from."""
        return CategoricalDistribution(self.choices)


Option = FloatOption | IntOption | BoolOption | ChoiceOption


def _store_default(option: _NumberOption | BoolOption | ChoiceOption) -> None:
    """Check an option's default and keep it as a config keeps an equal value, so that both give one run.

    Raises:
        UsageError: the option cannot have this value.
    """
    try:
        object.__setattr__(option, "default", option.checked(option.default))
    except ValueError as error:
        raise UsageError(f"default = {shown(option.default)}: {error}") from None


Options = Mapping[str, Option]


class DeclaredOptions(Mapping[str, Option]):
    """The options of all plug-ins by name. A name is not that of a field or column; of plug-ins only built-in share."""

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
        """The plug-ins that have an option, such as ``strategy 'ewc'``."""
        return self._owners[name]

    def reserve(self, names: Iterable[str], what: str) -> None:
        """Keeps names from being those of options.

        Args:
            names: which.
            what: what they are already, in words.

        Raises:
            UsageError: one is that of an option.
        """
        self._reserved |= dict.fromkeys(names, what)
        for name, owners in self._owners.items():
            self._check_reserved(min(owners), name)

    def check(self, owner: str, options: object) -> None:
        """Sees whether a plug-in may declare some options.

        Raises:
            UsageError: they are no mapping from free names to options.
        """
        if not isinstance(options, Mapping):
            raise UsageError(f"{owner}: options: expected a mapping from names to options, not {shown(options)}")
        for name, option in options.items():
            if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
                raise UsageError(f"{owner}: option {shown(name)}: expected a name of letters, digits and underscores")
            if not isinstance(option, Option):
                kinds = "FloatOption, IntOption, BoolOption or ChoiceOption"
                raise UsageError(f"{owner}: option {name!r}: expected {kinds}, not {shown(option)}")
            self._check(owner, name)

    def _check_reserved(self, owner: str, name: str) -> None:
        if name in self._reserved or name.startswith("model_"):  # pydantic keeps these for itself
            what = self._reserved.get(name, "kept for what every config has")
            raise UsageError(f"{owner}: option {name!r} has a name that is {what}; give it another one")

    def _check(self, owner: str, name: str) -> None:
        self._check_reserved(owner, name)
        others = self._owners.get(name, set()) - {owner}
        if others:
            raise UsageError(f"{owner}: option {name!r} is declared by {min(others)} already; give it another name")

    def declare(self, owner: str, options: Options) -> None:
        """Takes the options of a plug-in, in the place of those that it has declared before."""
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
