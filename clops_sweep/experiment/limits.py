"""Bounds of the numeric arguments of a launch, shared by the command and `sweep()`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Literal

from pydantic import AfterValidator

from clops_sweep.experiment.plugins.options import FloatOption, IntOption, Option, checked

_SMALLEST_SHARE = 0.01


def _gpus(share: float) -> float:
    """Check that a number is no GPU, a share of one, or several whole ones."""
    if not (share == 0 or _SMALLEST_SHARE <= share <= 1 or (share > 1 and share.is_integer())):
        raise ValueError(f"expected 0, a share from {_SMALLEST_SHARE} to 1, or a whole number")
    return share


Keep = Literal["predictions", "models", "models:all"]
"""Optional results of a run, in addition to the four tables."""

Device = Literal["auto", "cpu", "gpu"]
"""Devices that a launch may use."""

_GPUS_PER_TRIAL = FloatOption(0)
_GPUS_PER_TRIAL.metadata.append(AfterValidator(_gpus))

OF_SELECTION: Mapping[str, Option] = {"seeds": IntOption(5, ge=1, le=100_000), "limit": IntOption(1, ge=1)}
"""Bounds of a selection of runs, by argument of `sweep()`."""

OF_RESOURCES: Mapping[str, Option] = {
    "cpus_per_trial": FloatOption(1, ge=_SMALLEST_SHARE),
    "gpus_per_trial": _GPUS_PER_TRIAL,
    "max_retries": IntOption(2, ge=0),
    "checkpoint_every": IntOption(0, ge=0),
    "epoch_timeout": FloatOption(60, gt=0),
    "nice": IntOption(0, ge=0, le=19),
}
"""Bounds of the resources of a launch, by argument of `sweep()`."""

_UNITS = {"d": 86_400, "h": 3600, "m": 60, "min": 60, "s": 1}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:d|h|min|m|s))+", re.ASCII)


def seconds_in(duration: object) -> float:
    """Return the seconds of a duration such as "3h55m", "90min" or "1.5h"; a number is seconds.

    Raises:
        ValueError: the text is not a duration above 0; the message says what is expected.
    """
    seconds = 0.0
    if isinstance(duration, str) and _DURATION.fullmatch(duration):
        seconds = sum(float(value) * _UNITS[unit] for value, unit in re.findall(r"([\d.]+)([a-z]+)", duration))
    elif isinstance(duration, int | float) and not isinstance(duration, bool):
        seconds = float(duration)
    if not 0 < seconds < math.inf:
        raise ValueError("expected a duration such as 3h55m, 90min or 30s")
    return seconds


def check_limits(owner: object, limits: Mapping[str, Option], where: str = "") -> None:
    """Check attributes of a frozen object and store them as plain Python numbers; a default of None may stay None.

    Args:
        owner: the object.
        limits: bounds by the name of the attribute.
        where: begins the message.

    Raises:
        UsageError: a value is not a number, or is out of bounds.
    """
    for name, limit in limits.items():
        value = getattr(owner, name)
        if value is None and getattr(type(owner), name, ...) is None:
            continue
        object.__setattr__(owner, name, checked(limit, value, f"{where}{name} = "))
