"""How the axes of a search space are called: in words where there is room, by the paper's symbol where there is not."""

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
    """An axis in words, with the symbol that the paper gives it."""
    return _NAMES[axis][0] if axis in _NAMES else axis.replace("_", " ")


def axis_symbol(axis: str) -> str:
    """An axis as the paper writes it in formulas; one without a symbol by its own name."""
    return _NAMES[axis][1] if axis in _NAMES else axis
