"""`@dataset`: the declaration of a data set in a user's file."""

from __future__ import annotations

import hashlib
import inspect
import json
import numbers
from collections.abc import Callable, Sequence
from datetime import date
from os import PathLike, fspath
from pathlib import PurePath
from typing import Any, TypeVar, get_args

from clops_sweep.arguments import named_arguments
from clops_sweep.data.catalog import (
    DATASETS,
    PERTURBATION_STD,
    DatasetInfo,
    Declared,
    Leads,
    Normalization,
)
from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.markers import Markers
from clops_sweep.data.files.filters import Filters
from clops_sweep.data.origins import remember_origin
from clops_sweep.data.read_values import read_hash
from clops_sweep.data.source_code import code_hash, source_file
from clops_sweep.errors import UsageError, prefixed, shown

Member = TypeVar("Member", bound=Callable[..., Any])

_OF_RECORDINGS = ("classes", "channels", "units", "sampling_rate", *checks.OF_WINDOWS)
"""Arguments of `@dataset` that a generator's recordings share; also arguments of `Recordings`."""


@named_arguments
def dataset(
    name: str,
    *,
    scenarios: Sequence[str] = ("class_il",),
    files: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    title: str = "",
    licence: str = "not said",
    source: str = "",
    size: str = "",
    batch_size: int = 16,
    learning_rate: float = 1e-3,
    normalize: str = "none",
    epochs_per_task: int | None = None,
    perturbation_std: float = PERTURBATION_STD,
    terms: Sequence[str] = (),
    reference_channel: str | None = None,
    leads: str = "all",
    people_of: str = "",
    one_recording_per_person: bool = False,
    folds: str | PathLike[str] | None = None,
    classes: Sequence[str] | None = None,
    channels: Sequence[str] | None = None,
    units: str | None = None,
    sampling_rate: float | None = None,
    window_seconds: float | None = None,
    stride_seconds: float | None = None,
    resample_to: float | None = None,
    missing: str | None = None,
    gaps: str | None = None,
    interval_rule: str | None = None,
    trim: str | None = None,
    markers: str = "refuse",
    bandpass: tuple[float | None, float | None] | None = None,
    notch: float | None = None,
    scale: str | None = None,
    clip: float | tuple[float, float] | None = None,
) -> Callable[[Member], Member]:
    """Declare a data set: a function from the data root to `Recordings`, or a generator of `Recording` objects.

    Example::

        @dataset("wearable", scenarios=("class_il",), files=["wearable.npz"])
        def wearable(data_root):
            file = np.load(data_root / "wearable.npz")
            return Recordings(signals=file["x"], sampling_rate=50, channels=("ax", "ay", "az"), units="g", ...)

    It is prepared once, and again when one of `files`, an argument here, or the source code of the function or of
    anything it uses changes (`source_code.code_hash`).

    Values that the code takes from elsewhere do not count, such as those of a JSON file or an environment variable:
    name the file in `files`, or write the value into the code.

    Args:
        name: name in configs.
        scenarios: the supported scenarios.
        files: its source files under the data root: paths, folders with their content, or patterns.
        title: one line for lists and reports.
        licence: its licence.
        source: its origin.
        size: its size in words.
        batch_size: default of that config field, as are `learning_rate`, `normalize`, `perturbation_std` and `leads`.
        learning_rate: learning rate of Adam.
        normalize: normalisation of each frame and channel: none, minmax or zscore.
        epochs_per_task: default of that config field; None for the scenario's default.
        perturbation_std: standard deviation of the noise of perturbed inputs, in the unit of the frames.
        terms: ISO dates that end the terms of time_il, each the first day after its term; empty for terciles.
        reference_channel: the channel that represents a recording if instances are single channels.
        leads: `all` for frames of all channels, `single` for one instance per channel.
        people_of: the data set whose people these are, if their names are the same there; networks trained on one are
            then not evaluated on the same people of the other.
        one_recording_per_person: whether each recording is of another person. It is then no doubt that recordings name
            no people, and a person with two recordings is refused.
        folds: a CSV file under the data root with the columns person, fold and split_seed, as `clops-sweep data folds`
            writes it: people stay in these folds, whatever their labels. People that it lacks are dealt as usual.
        classes: for a generator: names of the classes.
        channels: for a generator: names of the channels.
        units: for a generator: unit of the signals.
        sampling_rate: for a generator: default sampling rate of recordings in Hz.
        window_seconds: for a generator: duration of the frames that recordings are cut into.
        stride_seconds: for a generator: time between the starts of consecutive windows.
        resample_to: for a generator: sampling rate of the frames in Hz.
        missing: for a generator: what to do about missing samples, as in `Recordings`.
        gaps: for a generator: "split" to cut between missing samples, as in `Recordings`.
        interval_rule: for a generator: how intervals and frames meet, as in `Recordings.from_folder`.
        trim: for a generator: "flat" to cut frames between the flat ends of recordings, as in `Recordings`.
        markers: what to do about a channel of few values that follow the labels, as triggers do: "refuse", or "keep".
        bandpass: edges in Hz of a Butterworth filter of order 4 and zero phase, such as (0.5, 40); one of them may be
            None. Whole recordings are filtered, as `scipy.signal.sosfiltfilt` does.
        notch: frequency in Hz of a notch filter of zero phase, such as 50.
        scale: unit that the signals are converted to, such as "mV".
        clip: least and largest sample, after the filters, or one number for both signs.

    Raises:
        UsageError: an argument is invalid, or the name is in use.
    """
    given = dict(locals())
    if not isinstance(name, str):
        raise UsageError(f'dataset {_kind(name)}: expected the name that configs call it by, as in @dataset("mine")')
    if not (name.isidentifier() and name.isascii()):
        raise UsageError(f"dataset {shown(name)}: expected a name of letters, digits and underscores")
    with prefixed(f"dataset {name!r}"):
        for key in ("classes", "channels"):
            if given[key] is not None:
                given[key] = checks.names(key, given[key])
        info = DatasetInfo(
            name=name,
            title=_text("title", title) or f"{name}, declared by a search-space file",
            licence=_text("licence", licence),
            source=_text("source", source),
            size=_text("size", size),
            scenarios=_scenarios("scenarios", scenarios),
            classes=None if classes is None else len(given["classes"]),
            batch_size=_whole("batch_size", batch_size),
            simultaneous_leads=0 if channels is None else len(given["channels"]),
            learning_rate=checks.positive("learning_rate", learning_rate),
            normalize=checks.one_of("normalize", normalize, get_args(Normalization)),
            perturbation_std=checks.positive("perturbation_std", perturbation_std),
            epochs_per_task=None if epochs_per_task is None else _whole("epochs_per_task", epochs_per_task),
            reference_lead=None if reference_channel is None else _text("reference_channel", reference_channel),
            terms=_dates("terms", terms),
            leads=checks.one_of("leads", leads, get_args(Leads)),
            people_of=_text("people_of", people_of),
        )
        windowing = {argument: given[argument] for argument in checks.OF_WINDOWS if given[argument] is not None}
        checks.windowing(**windowing)
        checks.optional_positive("sampling_rate", sampling_rate)
        checks.units("" if units is None else units)
        checks.one_of("markers", markers, get_args(Markers))
        checks.one_of("one_recording_per_person", one_recording_per_person, (True, False))
        filters = Filters.given(bandpass, notch, scale, clip)
        patterns = _files("files", files)
        table_of_folds = None if folds is None else _files("folds", fspath(folds))[0]
    recording = {key: given[key] for key in _OF_RECORDINGS if given[key] is not None}

    def declare(member: Member) -> Member:
        _check_member(name, member)
        options: dict[str, Any] = {
            "files": patterns,
            "terms": info.terms,
            "reference": info.reference_lead,
            "recording": recording,
        }
        # Options at their defaults are left out, so that they change no fingerprint of a set prepared without them.
        if filters is not None:
            options["filters"] = repr(filters)
        if markers != "refuse":
            options["markers"] = markers
        if one_recording_per_person:
            options["one_recording_per_person"] = True
        if table_of_folds is not None:
            options["folds"] = table_of_folds
        code = code_hash(member)
        canonical = json.dumps([code, options, *_other_values(name, code, member)], sort_keys=True, default=str)
        fingerprint = hashlib.sha256(canonical.encode()).hexdigest()
        file = str(source_file(member) or "a notebook")
        declared = Declared(
            member,
            file,
            patterns,
            fingerprint,
            recording,
            filters=filters,
            markers=markers,
            one_recording_per_person=bool(one_recording_per_person),
            folds=table_of_folds,
        )
        DATASETS.register(info, declared)
        remember_origin("dataset", name, member)
        return member

    return declare


_FIRST_READ: dict[tuple[str, str], str] = {}
"""What the first definition in this process reads (`read_hash`), by name and code of the data set."""


def _other_values(name: str, code: str, member: Any) -> list[str]:
    """Return what a definition reads, if an earlier one of this name and code in this process reads something else.

    A script may define a data set anew with the same text, as in a loop. The values are no part of other fingerprints,
    so that sets that were prepared by earlier versions keep theirs.
    """
    read = read_hash(member)
    if read is None or read == _FIRST_READ.setdefault((name, code), read):
        return []
    return [read]


def _check_member(name: str, member: Any) -> None:
    if not inspect.isfunction(member):
        raise UsageError(f"dataset {name!r}: expected a function of the data root, not {_kind(member)}")
    try:
        inspect.signature(member).bind(None)
    except TypeError:
        raise UsageError(
            f"dataset {name!r}: {member.__name__}() is called with the data root alone; expected a function of one "
            "argument"
        ) from None


def _text(argument: str, value: Any) -> str:
    if not isinstance(value, str) or not (value.isprintable() and len(value) <= 500):
        raise checks.refused(argument, "a line of text", value)
    return value


def _whole(argument: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not 1 <= int(value) < 2**31:
        raise checks.refused(argument, "a whole number from 1", value)
    return int(value)


def _scenarios(argument: str, value: Any) -> tuple[str, ...]:
    names = checks.names(argument, value, least=1)
    for name in names:
        if not name.isidentifier():
            raise checks.refused(argument, 'names of scenarios such as "class_il"', name)
    return names


def _dates(argument: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise checks.refused(argument, 'a list of dates such as "2020-01-31"', value)
    for text in value:
        try:
            date.fromisoformat(text)
        except (TypeError, ValueError):
            raise checks.refused(argument, 'dates such as "2020-01-31"', text) from None
    if list(value) != sorted(set(value)):
        raise checks.refused(argument, "dates that rise", list(value))
    return tuple(value)


def _files(argument: str, value: Any) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str | PathLike) else value
    if not isinstance(listed, Sequence):
        raise checks.refused(argument, "a list of paths under the data root", value)
    patterns = []
    for pattern in listed:
        if not isinstance(pattern, str | PathLike):
            raise _not_below_root(argument, pattern)
        path = PurePath(fspath(pattern))
        if path.is_absolute() or ".." in path.parts or path == PurePath():
            raise _not_below_root(argument, pattern)
        patterns.append(path.as_posix())
    return tuple(patterns)


def _not_below_root(argument: str, pattern: object) -> UsageError:
    return checks.refused(argument, "paths, folders or patterns under the data root", pattern)


def _kind(value: object) -> str:
    name = getattr(value, "__name__", None)
    return f"{name}()" if callable(value) and isinstance(name, str) else f"something of type {type(value).__name__}"
