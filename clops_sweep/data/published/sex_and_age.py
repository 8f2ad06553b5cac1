"""Columns for subgroups in published ECG data sets: sex and age band."""

from __future__ import annotations

from typing import Final

from clops_sweep.data.declared.recording_checks import UNKNOWN

_SEX: Final = {
    **dict.fromkeys(("m", "male"), "male"),
    **dict.fromkeys(("f", "female"), "female"),
}
_AGE_BANDS: Final = ((80, "80 and older"), (60, "60 to 79"), (40, "40 to 59"), (0, "under 40"))


def sex_and_age(sex: str, age: str) -> dict[str, str]:
    """Return the columns `sex` and `age` of a recording, "unknown" for text that is not a sex or an age in years."""
    try:
        years = float(age)
    except ValueError:
        years = -1
    band = next((name for least, name in _AGE_BANDS if years >= least), UNKNOWN)
    return {"sex": _SEX.get(sex.strip().lower(), UNKNOWN), "age": band}
