"""Counts of a prepared data set: frames and patients per class, task and split."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def count_table(
    labels: NDArray[Any], split: NDArray[np.int8], classes: tuple[str, ...], split_names: tuple[str, ...]
) -> dict[str, dict[str, int]]:
    """Frames of every class (outer key) in every split (inner key); labels [n] codes or [n, C] multi-hot."""
    table = {}
    for code, name in enumerate(classes):
        has = labels[:, code] > 0 if labels.ndim == 2 else labels == code
        table[name] = {part: int((has & (split == number)).sum()) for number, part in enumerate(split_names)}
    return table
