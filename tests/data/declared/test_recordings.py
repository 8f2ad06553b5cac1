"""Recordings from arrays: every argument is checked, and frames equal those of a plain loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clops_sweep import Recording, Recordings
from clops_sweep.data.declared.one_by_one import one_by_one
from clops_sweep.data.files.units import of_each
from clops_sweep.data.records import Common, Stretch
from clops_sweep.data.windowing import Windowing
from clops_sweep.errors import UsageError

X = np.arange(6 * 2 * 20, dtype=np.float32).reshape(6, 2, 20)
GOOD: dict[str, Any] = {
    "signals": X,
    "sampling_rate": 10.0,
    "channels": ("a", "b"),
    "units": "g",
    "labels": [0, 1, 2, 0, 1, 2],
    "classes": ("x", "y", "z"),
    "patients": [1, 1, 2, 2, 3, 3],
}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no recording": ({"signals": np.zeros((0, 2, 20))}, r"^signals: there is no recording: the shape is \[0, 2, 20\]"),
    "no sample": ({"signals": np.zeros((6, 2, 0))}, r"^signals: expected \[n, channels, samples\], not the shape"),
    "an empty list": ({"signals": []}, "^signals: there is no recording"),
    "a single number": ({"signals": 3.0}, "^signals: expected an array or a list of arrays"),
    "four dimensions": ({"signals": np.zeros((6, 2, 20, 1))}, "^signals: expected .* not the shape"),
    "text as signals": ({"signals": np.full((6, 2, 20), "a")}, "^signals: expected an array of numbers"),
    "complex signals": ({"signals": X * 1j}, "^signals: holds complex numbers .* expected real ones"),
    "one sample": ({"signals": X[:, :, :1]}, "^signals: has 1 samples; expected two at least"),
    "channels that are not named": ({"channels": ("a", "b", "c")}, r"^signals\[0\]: has 2 channels; expected 3"),
    "one channel without its axis": (
        {"signals": X[:, 0]},
        r"^signals: the shape \[6, 20\] is \[n, samples\] of one channel; expected \[n, channels, samples\] with 2 "
        "channels, as there are names in channels$",
    ),
    "a list of one channel without its axis": (
        {"signals": [*X[:5], X[5, 0]]},
        r"^signals\[5\]: the shape \[20\] is \[samples\] of one channel; expected \[channels, samples\] with 2 ",
    ),
    "ragged channels": ({"signals": [[[1, 2], [1]]] * 6}, r"^signals\[0\]: its channels have different lengths"),
    "lengths that differ": (
        {"signals": [*X[:5], X[5, :, :9]]},
        r"^signals\[5\]: has 9 samples where .* window_seconds",
    ),
    "a rate of 0": ({"sampling_rate": 0}, "^sampling_rate: expected a number above 0"),
    "a rate of nan": ({"sampling_rate": float("nan")}, "^sampling_rate: expected a number above 0"),
    "a rate as text": ({"sampling_rate": "10"}, "^sampling_rate: expected a number above 0, not '10'"),
    "channels as one text": ({"channels": "ab"}, "^channels: expected a list of names"),
    "a channel twice": ({"channels": ("a", "a")}, "^channels: 'a' is there twice"),
    "a unit that is no text": ({"units": None}, "^units: expected text"),
    "fewer units than channels": ({"units": ["g"] * 9}, "^units: expected text such as .mV., or one for each of "),
    "a unit with a comma": ({"units": ["g, mV"]}, "^units: expected text such as .mV., or one for each of "),
    "one class": ({"classes": ("x",)}, "^classes: expected at least 2"),
    "a class twice": ({"classes": ("x", "y", "x")}, "^classes: 'x' is there twice"),
    "a class without a recording": (
        {"classes": ("x", "y", "z", "w")},
        r"^classes: no recording is of class 'w'; there are \d of x, \d of y, \d of z; leave it out of classes",
    ),
    "labels that are too many": ({"labels": [0, 1, 2]}, r"^labels: have the shape \[3\]; expected one for each of 6"),
    "a label out of range": ({"labels": [0, 1, 2, 0, 1, 3]}, "^labels: 3 is no position in classes; expected 0 to 2"),
    "a label below 0": ({"labels": [0, 1, 2, 0, 1, -1]}, "^labels: -1 is no position in classes"),
    "a label in between": (
        {"labels": [0, 1, 2, 0, 1, 0.5]},
        r"^labels: 0\.5 of recording 5 \(from 0\) is no whole number",
    ),
    "a label of no class": (
        {"labels": ["x", "y", "z", "x", "y", "Z"]},
        r"^labels: 'Z' \(did you mean 'z'\?\) is not one of the classes x, y, z$",
    ),
    "several labels of no class": (
        {"labels": ["x", "up", " Y ", "z", "up", "up stairs"]},
        r"^labels: 'up', 'Y' \(did you mean 'y'\?\) and 'up stairs' are not among the classes x, y, z$",
    ),
    "a label with other spaces": (
        {"labels": ["upstairs", "y", "z"] * 2, "classes": ("up stairs", "y", "z")},
        r"^labels: 'upstairs' \(did you mean 'up stairs'\?\) is not one of the classes up stairs, y, z$",
    ),
    "six labels of no class": (
        {"labels": list("abcdef")},
        "^labels: 'a', 'b', 'c', 'd', 'e' and 1 more are not among the classes x, y, z$",
    ),
    "labels from 1": (
        {"labels": [1, 2, 3, 1, 2, 3]},
        "^labels: 3 is no position in classes; labels count from 0; yours go from 1 to 3: subtract 1$",
    ),
    "labels from 1 as floats": ({"labels": np.array([1.0, 2, 3] * 2)}, "; labels count from 0; yours go from 1 to 3:"),
    "true and false": ({"labels": [True] * 6}, "^labels: expected whole numbers or names of classes, not bool"),
    "columns of another number": ({"labels": np.ones((6, 2), int)}, "^labels: have 2 columns; expected 3"),
    "two in a column": ({"labels": np.full((6, 3), 2)}, "^labels: .* expected only 0 and 1"),
    "patients that are too few": ({"patients": [1, 2]}, "^patients: there are 2; expected one for each of 6"),
    "a patient that is nan": (
        {"patients": [1, 1, 2, 2, 3, float("nan")]},
        "^patients: 1 recording of 6 has no value, the first at position 5",
    ),
    "domains of joined tables": (
        {"domains": {"ward": [*"AABB", float("nan"), None]}},
        r"^domains\['ward'\]: 2 recordings of 6 have no value \(one of several joined tables may lack the column\)",
    ),
    "a patient that is NA": ({"patients": [*"112233"[:5], "NA"]}, "^patients: expected names .*missing, not 'NA'"),
    "two patients": ({"patients": [1, 1, 1, 2, 2, 2]}, "^patients: 2 cannot be in three splits"),
    "dates that are none": ({"times": ["soon"] * 6}, "^times: expected dates"),
    "dates as seconds": ({"times": ["1551285712"] * 6}, "^times: expected dates .*, not '1551285712'"),
    "dates as days": ({"times": np.array(["43831"] * 6)}, "^times: expected dates .*, not '43831'"),
    "a date that is missing": ({"times": [*["2020-01-01"] * 5, "NaT"]}, r"^times: recording 5 \(from 0\) has no date"),
    "dates that are too few": ({"times": ["2020-01-01"]}, r"^times: have the shape \[1\]"),
    "domains that are no mapping": ({"domains": ["A"] * 6}, "^domains: expected a mapping"),
    "a domain with a bad name": ({"domains": {"the site": ["A"] * 6}}, "^domains: expected names of letters"),
    "a domain called lead": ({"domains": {"lead": ["A"] * 6}}, "^domains: expected names .* none of lead"),
    "groups that are no mapping": ({"groups": ["A"] * 6}, "^groups: expected a mapping"),
    "groups called class": ({"groups": {"class": ["A"] * 6}}, "^groups: expected names .* not 'class'"),
    "groups that are too few": ({"groups": {"sex": ["A"]}}, r"^groups\['sex'\]: there are 1; expected"),
    "a domain that is too short": ({"domains": {"site": ["A"]}}, r"^domains\['site'\]: there are 1; expected"),
    "a split of no name": ({"split": ["train"] * 5 + ["dev"]}, "^split: expected one of train, validation, test"),
    "a patient in two splits": (
        {"split": ["train", "test", "validation", "validation", "test", "test"]},
        "^split: patient '1' is in train and in test; expected one split for a patient",
    ),
    "a split without a recording": ({"split": ["train"] * 4 + ["validation"] * 2}, "^split: no recording is in 'test'"),
    "a window of nothing": ({"window_seconds": 0}, "^window_seconds: expected a number above 0"),
    "a stride without a window": ({"stride_seconds": 1}, "^stride_seconds: .* it goes with window_seconds"),
    "a new rate below 0": ({"resample_to": -1}, "^resample_to: expected a number above 0"),
    "a name twice": ({"names": list("abcdea")}, "^names: 'a' is there twice"),
    "a name of a line break": (
        {"names": [*"abcde", "\n"]},
        "^names: 1 recording of 6 has no value, the first at position 5",
    ),
    "a gain of 0": ({"gain": 0}, "^gain: expected numbers other than 0"),
    "gains of other channels": ({"gain": [1, 2, 3]}, "^gain: expected a number, or one for each of 2 channels"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_is_one_sentence_that_begins_with_the_argument(what: str) -> None:
    changes, says = BAD[what]
    with pytest.raises(UsageError, match=says) as caught:
        Recordings(**(GOOD | changes))
    assert "\n" not in str(caught.value)
    assert ". " not in str(caught.value)


@settings(max_examples=60)
@given(
    samples=st.integers(2, 90),
    rate=st.sampled_from([5.0, 10.0, 12.5]),
    window=st.floats(0.4, 4),
    stride=st.none() | st.floats(0.2, 5),
    notes=st.lists(st.tuples(st.integers(0, 89), st.integers(0, 2)), max_size=4),
)
def test_windows_are_those_of_a_loop(
    samples: int, rate: float, window: float, stride: float | None, notes: list[tuple[int, int]]
) -> None:
    common = Common(("x", "y", "z"), ("a",), "g", windowing=Windowing(window, stride))
    changes = sorted({begin: label for begin, label in notes if begin < samples}.items())
    ends = [*(begin for begin, _ in changes[1:]), samples]
    stretches = [Stretch(begin, end, label) for (begin, label), end in zip(changes, ends, strict=False)]
    width, step = round(window * rate), round((window if stride is None else stride) * rate)
    for label in (1, stretches):
        expected = []
        for begin, end, of in [(0, samples, 1)] if label == 1 else [tuple(each) for each in stretches]:
            at = begin
            while at + width <= end:
                expected.append((at, of))
                at += max(1, step)
        begins, found, labels = common.windows(samples, rate, label)
        assert (found, list(zip(begins.tolist(), labels, strict=True))) == (width, expected)


def _recordings(**changes: Any) -> Iterator[Recording]:
    for number in range(6):
        own = {"signal": X[number], "label": number % 3, "patient": number // 2, "sampling_rate": 10.0}
        own |= {"channels": ("a", "b"), "units": "g", "classes": ("x", "y", "z")}
        yield Recording(**(own | {key: value for key, value in changes.items() if number == 5}))


def test_a_generator_is_taken_one_by_one() -> None:
    common, items = one_by_one(_recordings(), {"window_seconds": 1.0})
    assert (common.classes, common.channels, common.windowing.window) == (("x", "y", "z"), ("a", "b"), 1.0)
    assert [label for item in items for label in item.columns.labels.tolist()] == [0, 1, 2] * 2
    with pytest.raises(UsageError, match="yields no Recording"):
        one_by_one(iter(()), {})
    with pytest.raises(UsageError, match="classes: neither @dataset"):
        one_by_one(iter([Recording(X[0], 0, 1)]), {})
    with pytest.raises(UsageError, match="yields 3; expected Recording"):
        one_by_one(iter([3]), {})


def test_the_repr_of_a_recording_is_one_line_without_samples() -> None:
    signal = np.zeros((2, 10_000))
    recording = Recording(signal, name="r1", channels=("II", "V1"), units="mV", sampling_rate=250.0)
    assert repr(recording) == "<Recording r1: 2 x 10,000 samples; channels II, V1; mV; 250 Hz>"
    rates = Recording(
        [signal[0], signal[1, :500]], channels=("II", "V1"), units=("mV", "uV"), sampling_rate=[250, 12.5]
    )
    assert repr(rates) == "<Recording: 10,000, 500 samples; channels II, V1; mV, uV; 250, 12.5 Hz>"
    assert repr(Recording(np.zeros(5))) == "<Recording: 5 samples>"
    assert repr(Recording("a.csv")) == "<Recording: str>"
    assert repr(Recording(signal, channels=list("abcdefghi"))).endswith("channels a, b, c, d, e, f, g, h, ...>")


@pytest.mark.parametrize(
    ("units", "common", "each"),
    [("g", "g", ("g", "g")), (["g", "g"], "g", ("g", "g")), (("g", "mV"), "g, mV", ("g", "mV"))],
)
def test_channels_may_have_a_unit_each(units: Any, common: str, each: tuple[str, ...]) -> None:
    recordings = Recordings(**GOOD | {"units": units})
    assert recordings.common.units == common
    assert of_each(common, 2) == each
