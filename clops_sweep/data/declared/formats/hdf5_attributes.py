"""What the attributes of a dataset say of its samples, by the conventions of netCDF: scale, unit, rate, fill value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.units import factor, known
from clops_sweep.errors import UsageError

_FILL: Final = ("_FillValue", "missing_value")
_RATES: Final = ("sampling_rate", "sampling_frequency", "sample_rate", "fs")


def require_scale(
    where: str, attributes: Mapping[str, Any], gain: NDArray[np.float64], units: str, rate: float
) -> None:
    """Check that gain, unit and rate of a data set are those that the attributes of a dataset state.

    Args:
        where: file and dataset, for messages.
        attributes: the attributes of the dataset.
        gain: factor from samples to units, [channels].
        units: the declared unit.
        rate: the declared sampling rate in Hz.

    Raises:
        UsageError: an attribute states something else.
    """
    scale, offset = _number(attributes, "scale_factor"), _number(attributes, "add_offset")
    if offset:
        raise UsageError(
            f"{where}: says add_offset = {offset:g}; read it by from_folder(..., read=function), which adds it"
        )
    if scale is not None and not np.allclose(gain, scale, rtol=1e-6):
        raise UsageError(
            f"{where}: says scale_factor = {scale:g}; give gain={scale:g}, the factor from samples to units"
        )
    unit = attributes.get("units")
    unit = unit.decode("utf-8", "replace") if isinstance(unit, bytes) else unit
    is_plain = scale is None and bool((gain == 1).all())
    if is_plain and isinstance(unit, str) and known(unit) and known(units) and factor(unit, units) != 1:
        raise UsageError(f"{where}: says that it is in {unit}, not in {units}; give its unit, or the factor as gain")
    for name in _RATES:
        stated = _number(attributes, name)
        if stated is not None and not np.isclose(stated, rate, rtol=1e-6):
            raise UsageError(f"{where}: says {name} = {stated:g}; expected sampling_rate={stated:g}, not {rate:g}")


def fill_values(attributes: Mapping[str, Any], stored: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Return where samples have the value that stands for missing ones, as `stored`; None if none has it.

    Missing samples of floats become NaN in place.
    """
    missing = np.zeros(stored.shape, bool)
    for name in _FILL:
        value = _number(attributes, name)
        if value is not None:
            missing |= stored == value
    if not missing.any():
        return None
    if stored.dtype.kind == "f":
        stored[missing] = np.nan
        return None
    return missing


def _number(attributes: Mapping[str, Any], name: str) -> float | None:
    """Return an attribute that is one finite number; None otherwise."""
    value = attributes.get(name)
    if value is None or np.size(value) != 1 or np.asarray(value).dtype.kind not in "iuf":
        return None
    number = float(np.ravel(value)[0])
    return number if np.isfinite(number) else None
