"""Names of the axes of a search space: in words where there is room, else the paper's symbol."""

from __future__ import annotations

from typing import Final

_NAMES: Final = {
    "storage_fraction": ("storage fraction, b", "b"),
    "acquisition_fraction": ("acquisition fraction, a", "a"),
    "mc_samples": ("Monte-Carlo samples, T", "T"),
    "beta_penalty": ("beta penalty, λ", "λ"),
    "beta_learning_rate": ("beta learning rate, η", "η"),
    "epochs_per_task": ("epochs per task, τ", "τ"),
    "replay_ratio": ("replay ratio", "ratio"),
}
"""Title and symbol."""


def axis_title(axis: str) -> str:
    """Return the name of an axis in words, with the paper's symbol."""
    return _NAMES[axis][0] if axis in _NAMES else axis.replace("_", " ")


def axis_symbol(axis: str) -> str:
    """Return the paper's symbol for an axis; the axis's own name if it has none."""
    return _NAMES[axis][1] if axis in _NAMES else axis
