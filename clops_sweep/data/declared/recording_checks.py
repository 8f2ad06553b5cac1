"""Validation of the arguments of recordings: normalised, or refused by a sentence that names the argument."""

from __future__ import annotations

import math
import numbers
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared.portions import Columns
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.files.units import BETWEEN
from clops_sweep.data.frames import TEST, TRAINING, UNKNOWN_PERSON, VALIDATION
from clops_sweep.data.left_out import LeftOut, sentences
from clops_sweep.data.windowing import Missing, Rule, Windowing
from clops_sweep.errors import UsageError, listed, several, shown

SPLITS: Final[Mapping[str, int]] = {"train": TRAINING, "validation": VALIDATION, "test": TEST}

OF_WINDOWS: Final = (
    "window_seconds", "stride_seconds", "resample_to", "missing", "gaps", "trim", "interval_rule",
)  # fmt: skip
"""Arguments of `Recordings` and `@dataset` that say how recordings are cut."""
_MOST_GROUPS: Final = 50
"""Values of a column for subgroups."""
UNKNOWN: Final = "unknown"
"""The group of recordings whose entry is missing."""

_NOTHING: Final = ("", "nan", "NaN", "NaT", "<NA>")
"""Text of missing values."""
_MISSING: Final = (*_NOTHING, "None")
NULLS: Final = ("#N/A", "#NA", "N/A", "NA", "NULL", "n/a", "null")
"""Further words for missing values, as pyarrow reads them; a domain, such as North America, may be one."""
_NO_GROUP: Final = (*_MISSING, *(word for word in NULLS if word != "NA"))
"""Text of a missing group; NA may be North America."""
_NO_PEOPLE: Final = {
    *("unknown", "unk", "not known", "not available", "not recorded", "missing", "anonymous", "anon"),
    *("unknown patient", "unknown person", "unbekannt", "inconnu", "desconocido"),
}
"""Names, in lower case, that tables give to people who are not known."""
_NEGATIVE: Final = re.compile(r"-\d+")
"""A number that tables write for a missing one, such as -1."""
_WHOLE: Final = re.compile(r"-?(0|[1-9][0-9]*)\.0+")
"""A whole number that a table of floats became when it was written."""
_DAY: Final = re.compile(r"^(\d{4})(\d\d)(\d\d)$")
"""A date that numpy would take for a year."""
_YEARS: Final = (np.datetime64("1000", "s"), np.datetime64("10000", "s"))
"""Begin and end of the years that dates may have: a number of days or seconds is no year."""
_MOST_NAMED: Final = 5
"""Unknown labels that a message names."""
_RESERVED: Final = ("lead", "channel")
_ROWS_OF_REPORTS: Final = ("all", "class", "task")
"""Names of other rows of update reports, which groups cannot have."""
_LEAST, _MOST = 1e-9, 1e9
"""Bounds of rates and durations, so that their products and quotients are finite."""
_FLOAT32: Final = np.finfo(np.float32)


def refused(argument: str, expected: str, value: Any) -> UsageError:
    """Return an error about an invalid argument."""
    plain = value.item() if isinstance(value, np.number) else value
    return UsageError(f"{argument}: expected {expected}, not {shown(plain)}")


def unmasked(argument: str, value: Any) -> Any:
    """Refuse a masked array, whose masked entries would count as data; return other values."""
    if np.ma.is_masked(value):
        raise UsageError(
            f"{argument}: has masked entries; expected a plain array: fill them, or leave such recordings out"
        )
    return value


def names(argument: str, value: Any, least: int = 1) -> tuple[str, ...]:
    """Validate distinct names."""
    if isinstance(value, str | Mapping | Set) or not isinstance(value, Iterable):
        raise refused(argument, "a list of names", value)
    checked = [text(argument, name) if isinstance(name, numbers.Real | str) else name for name in value]
    for name in checked:
        if not (isinstance(name, str) and name.strip() and name.isprintable()):
            raise refused(argument, "names that can be printed", name)
    if len(checked) < least:
        raise UsageError(f"{argument}: expected at least {least}, not {len(checked)}")
    seen: set[str] = set()
    for name in checked:
        if name in seen:
            raise UsageError(f"{argument}: {shown(name)} is there twice; expected each name once")
        seen.add(name)
    return tuple(checked)


def channels(value: Any) -> tuple[str | int, ...] | None:
    """Validate `channels`: names, or positions from 0; None for all."""
    named = None if value is None else names("channels", value)
    if named is None or not all(
        isinstance(channel, int | np.integer) and not isinstance(channel, bool) for channel in value
    ):
        return named
    if min(value) < 0:
        raise refused("channels", "names, or positions from 0", min(value))
    return tuple(int(position) for position in named)


def transposed(signal: Any, channels: int) -> str:
    """Return a remedy where a signal [channels, samples] has another number of channels than expected."""
    samples = np.size(signal[0])
    return "; transpose it to [channels, samples]" if samples == channels or len(signal) > samples else ""


def positive(argument: str, value: Any) -> float:
    """Validate a number above 0, such as a rate or a duration."""
    number: Any = value
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < number < math.inf:
        raise refused(argument, "a number above 0", value)
    if not _LEAST <= number <= _MOST:
        raise refused(argument, f"a number from {_LEAST:g} to {_MOST:g}", value)
    return float(number)


def optional_positive(argument: str, value: Any) -> float | None:
    """Validate a number above 0, or None."""
    return None if value is None else positive(argument, value)


def windowing(
    window_seconds: Any = None,
    stride_seconds: Any = None,
    resample_to: Any = None,
    missing: Any = "refuse",
    gaps: Any = None,
    trim: Any = None,
    interval_rule: Any = "within",
    window_around: Any = None,
) -> Windowing:
    """Validate the arguments of `Recordings` that say how recordings are cut into frames."""
    if stride_seconds is not None and window_seconds is None:
        raise UsageError("stride_seconds: it is from window to window, so it goes with window_seconds")
    if one_of("trim", trim, (None, "flat")) and window_seconds is None:
        raise UsageError("window_seconds: expected the duration of the frames, because trim makes recordings unequal")
    if one_of("window_around", window_around, (None, "beat")) and window_seconds is None:
        raise UsageError("window_seconds: expected the duration of the frames around each beat")
    rule: Rule = one_of("interval_rule", interval_rule, get_args(Rule)[:-1])
    return Windowing(
        window=optional_positive("window_seconds", window_seconds),
        stride=optional_positive("stride_seconds", stride_seconds),
        rate=optional_positive("resample_to", resample_to),
        missing=one_of("missing", missing, get_args(Missing)),
        gaps=one_of("gaps", gaps, (None, "split")),
        trim=trim,
        rule="beat" if window_around else rule,
    )


def one_of(argument: str, value: Any, offered: Iterable[Any]) -> Any:
    """Validate a choice."""
    if value not in offered:
        raise refused(argument, f"one of {', '.join(map(str, offered))}", value)
    return value


def units(value: Any) -> str:
    """Validate the unit of the signals."""
    if not isinstance(value, str) or not value.isprintable():
        raise refused("units", 'text such as "mV"', value)
    return value


def units_of_channels(value: Any, channels: int) -> str:
    """Validate the unit of the signals, or one for each channel, which are returned joined; see `of_each`."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return units(value)
    are_texts = all(isinstance(unit, str) and unit.isprintable() and "," not in unit for unit in value)
    if not are_texts or len(value) != channels:
        raise refused("units", f'text such as "mV", or one for each of {several(channels, "channel")}', value)
    return value[0] if len(set(value)) == 1 else BETWEEN.join(value)


def gains(value: Any, channels: int) -> NDArray[np.float64]:
    """Validate the gains [channels], which convert stored samples to units."""
    try:
        plain = np.asarray(1.0 if value is None else unmasked("gain", value), np.float64)
        gains = np.broadcast_to(plain, (channels,))
    except UsageError:
        raise
    except (TypeError, ValueError):
        raise UsageError(
            f"gain: expected a number, or one for each of {channels} channels, not {shown(value)}"
        ) from None
    if not (np.isfinite(gains) & (gains != 0)).all():
        raise refused("gain", "numbers other than 0", value)
    if not ((abs(gains) >= _FLOAT32.tiny) & (abs(gains) <= _FLOAT32.max)).all():
        raise refused("gain", f"magnitudes from {_FLOAT32.tiny:.2g} to {_FLOAT32.max:.2g}, which float32 holds", value)
    return gains


def signal(argument: str, value: Any) -> NDArray[Any]:
    """Validate the samples of one recording: [channels, samples], integers or floats."""
    unmasked(argument, value)
    try:
        array = np.asarray(value)
    except ValueError:
        raise UsageError(f"{argument}: its channels have different lengths; expected [channels, samples]") from None
    if array.dtype.kind == "c":
        raise UsageError(f"{argument}: holds complex numbers ({array.dtype}); expected real ones: take its real part")
    if array.dtype.kind not in "iuf":
        raise UsageError(f"{argument}: expected an array of numbers, not of {array.dtype}")
    if array.dtype.itemsize > 8:
        raise UsageError(f"{argument}: expected numbers of 64 bits or less, not {array.dtype}")
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2 or not array.shape[0]:
        raise UsageError(f"{argument}: expected [channels, samples], not the shape {list(array.shape)}")
    if array.shape[1] < 2:
        swapped = "; transpose it to [channels, samples]" if len(array) > 1 == array.shape[1] else ""
        raise UsageError(f"{argument}: has {array.shape[1]} samples; expected two at least{swapped}")
    return array


def labels(value: Any, count: int, classes: Sequence[str]) -> NDArray[Any]:
    """Convert labels to indices of classes, [n] int64, or to 0 and 1 per class, [n, C] uint8."""
    unmasked("labels", value)
    try:
        array = np.asarray(value)
    except ValueError:
        raise UsageError("labels: its rows have different lengths; expected [n], or 0/1 [n, classes]") from None
    if array.ndim not in (1, 2) or len(array) != count:
        raise UsageError(
            f"labels: have the shape {list(array.shape)}; expected one for each of {count} recordings, [{count}] or "
            f"[{count}, {len(classes)}]"
        )
    code_of = {name: code for code, name in enumerate(classes)}
    if array.ndim == 1 and array.dtype.kind in "SUO":
        listed = array.tolist()
        if all(isinstance(label, str | bytes) for label in listed):
            named = [identifier("labels", label) for label in listed]
            unknown = [label for label in dict.fromkeys(named) if label not in code_of]
            if unknown:
                raise UsageError(f"labels: {_no_classes(unknown, classes)}")
            return np.array([code_of[label] for label in named], np.int64)
        if all(isinstance(label, numbers.Real) and not isinstance(label, bool) for label in listed):
            array = np.array(listed)
    if array.dtype.kind == "f" and (wrong := array != np.floor(array)).any():  # also NaN
        first_wrong = np.argwhere(wrong)[0]
        where = f" of recording {first_wrong[0]} (from 0)" if count > 1 else ""
        raise UsageError(
            f"labels: {array[tuple(first_wrong)]:g}{where} is no whole number; leave out recordings without a label"
        )
    if array.dtype.kind not in "iubf" or (array.dtype.kind == "b" and array.ndim == 1):
        raise UsageError(f"labels: expected whole numbers or names of classes, not {array.dtype}")
    if array.ndim == 2:
        if array.shape[1] != len(classes):
            raise UsageError(f"labels: have {array.shape[1]} columns; expected {len(classes)}, as there are classes")
        if not np.isin(array, (0, 1)).all():
            raise UsageError("labels: with a column for each class, expected only 0 and 1")
        return array.astype(np.uint8)
    if count and not (array.min() >= 0 and array.max() < len(classes)):
        named = [identifier("labels", label) for label in array.tolist()]
        positions = map(str, range(len(classes)))
        # codes that are names: of one label alone this is sure only if no class has the name of a position
        if all(label in code_of for label in named) and (count > 1 or code_of.keys().isdisjoint(positions)):
            return np.array([code_of[label] for label in named], np.int64)
        if (array.min(), array.max()) == (1, len(classes)):
            raise UsageError(
                f"labels: {len(classes)} is no position in classes; labels count from 0; yours go from 1 to "
                f"{len(classes)}: subtract 1"
            )
        worst = array.min() if array.min() < 0 else array.max()
        raise UsageError(f"labels: {worst.item()} is no position in classes; expected 0 to {len(classes) - 1}")
    return array.astype(np.int64)


def require_clear_numbers(argument: str, value: Any, classes: Sequence[str]) -> None:
    """Refuse numbers as labels if classes are named 0, 1, ... in another order: they may be names, or positions.

    Args:
        argument: name of the argument, for errors.
        value: the label of a recording, or those of all.
        classes: the names of the classes.

    Raises:
        UsageError: a number is the name of one class, and the position of another.
    """
    positions = [str(position) for position in range(len(classes))]
    if list(classes) == positions or sorted(classes) != sorted(positions):
        return
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths, which are refused later
        return
    if array.ndim > 1 or array.dtype.kind not in "iuf":
        return
    for number in np.unique(array).tolist():
        position = positions.index(f"{number:g}") if f"{number:g}" in positions else None
        if position is not None and classes[position] != positions[position]:
            raise UsageError(
                f"{argument}: {position} may be the class {shown(str(position))}, or class {shown(classes[position])} "
                f"at position {position}; give names as text"
            )


def require_columns_in_order(labels: Any, classes: Sequence[str]) -> None:
    """Refuse a table with a column of 0 and 1 for each class whose names are the classes in another order.

    Raises:
        UsageError: they are; the message has both orders.
    """
    columns = [str(column) for column in getattr(labels, "columns", ())]
    if sorted(columns) == sorted(classes) and columns != list(classes):
        raise UsageError(
            f"labels: has the columns {', '.join(columns)} where classes are {', '.join(classes)}; give "
            "labels[list(classes)], or classes in the order of the columns"
        )


def require_one_order(columns: Mapping[str, Any]) -> None:
    """Refuse columns of pandas that have the same index in different orders: they are read by position.

    Args:
        columns: columns by the argument that gives them; others than those of pandas have no index.

    Raises:
        UsageError: two have; the message names them and how to align them.
    """
    first = ""
    for argument, column in columns.items():
        index = getattr(column, "index", None)
        if index is None or callable(index):
            continue
        if not first:
            first = argument
            continue
        known = columns[first].index
        if not index.equals(known) and Counter(index.tolist()) == Counter(known.tolist()):
            raise UsageError(
                f"{argument}: has the index of {first} in another order, and columns are read by position; give "
                f"{argument}.reindex({first}.index)"
            )


def _no_classes(unknown: Sequence[str], classes: Sequence[str]) -> str:
    """Return which labels are no classes, with the class that differs only in case or spaces, if there is one."""
    alike = {_plain(name): name for name in classes}
    texts = []
    for label in unknown[:_MOST_NAMED]:
        known = alike.get(_plain(label))
        texts.append(shown(label) if known is None else f"{shown(label)} (did you mean {known!r}?)")
    if len(unknown) > _MOST_NAMED:
        texts.append(f"{len(unknown) - _MOST_NAMED} more")
    if len(texts) == 1:
        return f"{texts[0]} is not one of the classes {', '.join(classes)}"
    return f"{', '.join(texts[:-1])} and {texts[-1]} are not among the classes {', '.join(classes)}"


def _plain(label: str) -> str:
    """Return a label without spaces and in lower case."""
    return "".join(label.casefold().split())


def texts(argument: str, value: Any, count: int, whole: bool = False) -> list[str]:
    """Convert names or numbers, one per recording, to text; see `text`."""
    if isinstance(value, str | Mapping | Set) or not isinstance(value, Iterable):
        raise refused(argument, "a list with one for each recording", value)
    unmasked(argument, value)
    if isinstance(value, np.ndarray) and value.ndim != 1:
        raise UsageError(f"{argument}: have the shape {list(value.shape)}; expected one for each of {count} recordings")
    keeps_type = whole and isinstance(value, np.ndarray) and value.dtype.kind == "f"
    given = value.tolist() if isinstance(value, np.ndarray) and not keeps_type else list(value)
    if len(given) != count:
        raise UsageError(f"{argument}: there are {len(given)}; expected one for each of {count} recordings")
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        return [str(item) for item in given]
    try:
        return [text(argument, item, whole) for item in given]
    except UsageError:
        _require_values(argument, given)
        raise


def _require_values(argument: str, given: Sequence[Any]) -> None:
    """Refuse missing names or numbers, one per recording, with their number and the first position."""
    missing = [position for position, value in enumerate(given) if identifier(argument, value) == ""]
    if missing:
        have = (
            f"{several(len(missing), 'recording')} of {len(given):,} {'has' if len(missing) == 1 else 'have'} no value"
        )
        joined = " (one of several joined tables may lack the column)" if len(missing) > 1 else ""
        raise UsageError(
            f"{argument}: {have}{joined}, the first at position {missing[0]:,}, counted from 0; give each recording one"
        )


def text(argument: str, value: Any, whole: bool = False) -> str:
    """Convert a name or a number to printable text; integers keep all digits.

    Args:
        argument: name of the argument, for errors.
        value: the name or number.
        whole: whether numbers must be integers, since 12 digits of a float could be ambiguous.
    """
    if type(value) is int and value.bit_length() < 128:
        return str(value)  # the usual case, a million times
    if isinstance(value, bytes):
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError:
            raise refused(argument, "text, or bytes in UTF-8", value) from None
    if not isinstance(value, str | numbers.Real) or isinstance(value, bool):
        raise refused(argument, "names or numbers", value)
    if isinstance(value, float | np.floating) and (not math.isfinite(value) or (whole and value != math.floor(value))):
        raise refused(argument, "names or whole numbers" if whole else "names or numbers", value)
    try:
        written = identifier(argument, value)
    except UsageError:
        raise
    except Exception:  # an integer with thousands of digits, or a user-defined class
        raise refused(argument, "names that can be printed", value) from None
    if not written or not written.isprintable() or (whole and written in (*_MISSING, *NULLS, "none")):
        raise refused(argument, "names that can be printed, none of them missing", written or value)
    if "\ufffd" in written:
        raise refused(argument, "text that was decoded without loss (read it in its own encoding)", written)
    return written


def identifier(argument: str, value: Any) -> str:
    """Return a name or number as text, so that equal identifiers are equal whatever type they arrive in.

    A missing value is "", a whole number has no decimals (also in text: "1.0" is "1"), and spaces around text go.

    Raises:
        UsageError: a float is so large that it stands for several whole numbers.
    """
    written = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    written = unicodedata.normalize("NFC", written.strip())
    if value is None or written in _NOTHING:
        return ""
    if isinstance(value, float | np.floating) and math.isfinite(value):
        if value != math.floor(value):
            return f"{float(written):.12g}"
        if abs(value) >= (exact := 2 ** (np.finfo(type(value)).nmant + 1)):
            raise refused(argument, f"whole numbers below {exact:,}, from which on floats are rounded, or text", value)
        return str(math.floor(value))
    return written.partition(".")[0] if _WHOLE.fullmatch(written) else written


def moments(argument: str, value: Any, count: int) -> NDArray[np.datetime64]:
    """Validate dates [n]."""
    unmasked(argument, value)
    listed = list[Any]()
    try:
        plain = np.asarray(value)
        if plain.dtype.kind in "iuf":  # numpy would take a year for a second of 1970
            raise TypeError
        if plain.dtype.kind != "M" and plain.ndim == 1:
            listed = [_DAY.sub(r"\1-\2-\3", date) if isinstance(date, str) else date for date in plain.tolist()]
        known = [utc(date) for date in listed]
        dates = np.asarray(known if listed else value, "datetime64[s]")
        if ((dates < _YEARS[0]) | (dates >= _YEARS[1])).any():
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        what = f'{argument}: expected dates such as "2020-01-31" or numpy.datetime64'
        example = "; of a table, date_format='%d.%m.%Y' names another format" if argument == "time" else ""
        raise UsageError(what + _no_date(listed) + example) from None
    if dates.shape != (count,):
        raise UsageError(f"{argument}: have the shape {list(dates.shape)}; expected one for each of {count} recordings")
    if len({one is other for one, other in zip(listed, known, strict=True)}) > 1:
        raise UsageError(f"{argument}: some have a time zone and others none; expected one kind")
    if np.isnat(dates).any():
        raise UsageError(f"{argument}: recording {int(np.flatnonzero(np.isnat(dates))[0])} (from 0) has no date")
    return dates


def date_text(value: str) -> str:
    """Return a date of eight digits, such as 20200131, with hyphens; any other text as it is."""
    return _DAY.sub(r"\1-\2-\3", value)


def utc(value: Any) -> Any:
    """Return a date with a time zone in UTC, without the zone; any other value as it is."""
    try:
        date = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        return value
    zoned = isinstance(date, datetime) and date.tzinfo is not None
    return date.astimezone(UTC).replace(tzinfo=None) if zoned else value


def _no_date(value: Sequence[Any]) -> str:
    """Return the first entry that is not a date."""
    for date in value:
        try:
            known = bool(_YEARS[0] <= np.datetime64(utc(date), "s") < _YEARS[1])
        except (TypeError, ValueError):
            known = False
        if not known:
            return f", not {shown(date)}"
    return ""


def domains(value: Any, count: int) -> dict[str, list[str]]:
    """Validate columns for domain_il: the domain of each recording, by name."""
    return {name: texts(f"domains[{name!r}]", column, count) for name, column in _named("domains", value).items()}


def groups(value: Any, count: int) -> dict[str, list[str]]:
    """Validate columns for subgroups: the group of each recording, by name; `UNKNOWN` for a missing entry."""
    groups = {}
    for name, column in _named("groups", value, (*_RESERVED, *_ROWS_OF_REPORTS)).items():
        known = column
        if not isinstance(column, str) and isinstance(column, Iterable):
            plain = column.tolist() if isinstance(column, np.ndarray) else list(column)
            known = [UNKNOWN if str(group).strip() in _NO_GROUP else group for group in plain]
        groups[name] = texts(f"groups[{name!r}]", known, count)
    return groups


def _named(argument: str, value: Any, reserved: Sequence[str] = _RESERVED) -> Mapping[str, Any]:
    """Validate a mapping of columns."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise refused(argument, 'a mapping such as {"site": [...]}', value)
    for name in value:
        if not (isinstance(name, str) and name.isidentifier() and name.isascii()) or name in reserved:
            raise refused(argument, f"names of letters and digits, and none of {', '.join(reserved)}", name)
    return value


def parts(value: Any, count: int) -> list[int]:
    """Validate the given split of each recording."""
    return [SPLITS[one_of("split", split, SPLITS)] for split in texts("split", value, count)]


def columns(
    names: Sequence[str],
    classes: Sequence[str],
    written: Any,
    patients: Any,
    times: Any,
    sites: Any,
    split: Any,
    subgroups: Any = None,
    *,
    one: bool = False,
) -> Columns:
    """Validate the facts about recordings.

    Args:
        names: names of the recordings.
        classes: names of the classes.
        written: the labels; None if the files contain them.
        patients: as in `Recordings`, as are `times` and `split`.
        times: see there.
        sites: the domains.
        split: see there.
        subgroups: the groups.
        one: whether errors name arguments in the singular.
    """
    ending, patient, count = ("", "patient", len(names)) if one else ("s", "patients", len(names))
    codes = None if written is None else labels(written, count, classes)
    if patients is None:
        owners = [f"{UNKNOWN_PERSON}{name}" for name in names]
    else:
        owners = texts(patient, patients, count, whole=True)
        _require_people(patient, owners, names)
    return Columns(
        names,
        owners,
        codes,
        None if times is None else moments(f"time{ending}", times, count),
        domains(sites, count),
        None if split is None else parts(split, count),
        groups(subgroups, count),
    )


def _require_people(argument: str, owners: Sequence[str], names: Sequence[str]) -> None:
    """Raise a UsageError if a person has a name that stands for a missing one, such as "unknown" or -1."""
    for owner in dict.fromkeys(owners):
        is_named = any(sign.isalnum() for sign in owner) and owner.casefold() not in _NO_PEOPLE
        if is_named and not _NEGATIVE.fullmatch(owner):
            continue
        of_owner = [name for name, other in zip(names, owners, strict=True) if other == owner]
        raise UsageError(
            f"{argument}: {shown(owner)} is no person, so several people may count as one; leave out the recordings "
            f"that have it ({len(of_owner):,}: {listed(map(str, of_owner))}), or, if each is of another person, give "
            "each a name of its own"
        )


def together(classes: Sequence[str], columns: Columns, left_out: Iterable[LeftOut] = ()) -> None:
    """Validate all recordings together.

    Args:
        classes: the names of the classes.
        columns: facts about the recordings.
        left_out: what is left out, for messages.

    Raises:
        UsageError: no recording, a duplicate name, an empty class or split, a patient in two splits or in none, or too
            few patients to split.
    """
    names, labels = columns.names, columns.labels
    if not names:
        raise UsageError("signals: there is no recording")
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise UsageError(f"names: {shown(twice)} is there twice; expected a name of its own for each recording")
    given: Sequence[int | None] = columns.parts or [None] * len(names)
    parts_of: dict[str, set[int | None]] = {}
    for patient, part in dict.fromkeys(zip(columns.patients, given, strict=True)):
        parts_of.setdefault(patient, set()).add(part)
    in_use = set(given) - {None}
    for patient, numbers_of_splits in parts_of.items():
        if len(numbers_of_splits) > 1 or (in_use and None in numbers_of_splits):
            there = [name for name, number in SPLITS.items() if number in numbers_of_splits]
            where = " and in ".join([*there, *(["none"] if None in numbers_of_splits else [])])
            raise UsageError(f"split: patient {shown(patient)} is in {where}; expected one split for a patient")
    if labels is not None:
        several = labels.ndim == 2
        counts = labels.sum(0, dtype=np.int64) if several else np.bincount(labels, minlength=len(classes))
        require_every_class(classes, counts, "recording", left_out=left_out)
    for name in ("train", "test"):
        if in_use and SPLITS[name] not in in_use:
            raise UsageError(f"split: no recording is in {name!r}; expected some in train and in test at least")
    if not in_use and len(parts_of) < len(SPLITS):
        raise UsageError(
            f"patients: {len(parts_of)} cannot be in three splits; expected three at least, or a split that is given"
        )
    for name, column in columns.groups.items():
        require_few_groups(f"groups[{name!r}]", column)


def require_few_groups(what: str, column: Iterable[str]) -> None:
    """Raise a UsageError if a column has more values than reports of subgroups allow, which make bands of numbers."""
    values = set(column) - {UNKNOWN}
    if len(values) > _MOST_GROUPS and not all(map(is_number, values)):
        raise UsageError(f"{what}: has {len(values):,} values; expected at most {_MOST_GROUPS}, or numbers alone")


def is_number(text: str) -> bool:
    """Return whether a text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def require_every_class(
    classes: Sequence[str],
    counts: NDArray[np.int64],
    what: str,
    dropped: Mapping[str, int] | None = None,
    left_out: Iterable[LeftOut] = (),
) -> None:
    """Check that every class has a frame or recording.

    Args:
        classes: the names of the classes.
        counts: frames or recordings of each class, [C].
        what: what is counted.
        dropped: dropped frames by reason.
        left_out: what is left out.

    Raises:
        UsageError: a class has none; the message lists the labels that are there.
    """
    for name, count in zip(classes, counts, strict=True):
        if not count:
            most = sorted((dropped or {}).items(), key=lambda reason: -reason[1])[:2]
            why = ", ".join(f"{number:,} dropped as {reason}" for reason, number in most)
            there = [f"{number:,} of {label}" for label, number in zip(classes, counts, strict=True) if number]
            there += sentences(left_out)
            known = f"there are {shorten(', '.join(there))}; " if there else ""
            raise UsageError(
                f"classes: no {what} is of class {shown(name)}; {known}leave it out of classes, or look at labels"
                + (f" and window_seconds ({why})" if why else "")
            )
