"""Decisions and scores of rows of the table `predictions`, as the measures in `runs` define them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import logsumexp

from clops_sweep.data.frames import UNKNOWN_PERSON
from clops_sweep.errors import UsageError, option

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions of a model for n instances.

    Attributes:
        targets: bool [n, outputs].
        probabilities: [n, outputs].
        scores: [n, outputs], which rank the instances: the log-odds of the probabilities.
        said: decisions, bool [n, outputs]: of exclusive classes the first with the largest logit, else the outputs with
            a logit above 0.
        exclusive: whether exactly one class is decided for each instance.
    """

    targets: Bools
    probabilities: Floats
    scores: Floats
    said: Bools
    exclusive: bool

    @classmethod
    def of(cls, predictions: pd.DataFrame) -> Predicted:
        """Return the predictions of rows of the table.

        Raises:
            UsageError: no rows.
        """
        if predictions.empty:
            raise UsageError(f"the run has no predictions: a sweep keeps them with {option('keep', 'predictions')}")
        of_targets = [column for column in predictions if str(column).startswith("target_")]
        count = sum(bool(predictions[column].notna().all()) for column in of_targets)

        def columns(name: str) -> pd.DataFrame:
            return predictions[[f"{name}_{output}" for output in range(count)]]

        targets = columns("target").to_numpy() > 0
        probabilities = columns("probability").to_numpy(dtype=float)
        softmax = count > 1 and bool(np.allclose(probabilities.sum(1), 1, atol=1e-3))
        exclusive = bool(predictions["exclusive"].all())
        logits = columns("logit").to_numpy(dtype=float)
        scores = log_odds(logits) if exclusive and softmax else logits
        said = np.arange(count) == logits.argmax(1)[:, None] if exclusive else logits > 0
        return cls(targets, probabilities, scores, said, exclusive)

    @property
    def right(self) -> Bools:
        """Whether all decisions on an instance equal its targets, bool [n]."""
        return np.asarray((self.said == self.targets).all(1))

    def take(self, rows: npt.NDArray[np.generic]) -> Predicted:
        """Return a subset of the instances, by index or mask."""
        return Predicted(
            self.targets[rows], self.probabilities[rows], self.scores[rows], self.said[rows], self.exclusive
        )


def joined_predictions(parts: Sequence[Predicted]) -> Predicted:
    """Return the predictions of several models, each for its own instances, as one; outputs mean the same in all."""
    return Predicted(
        np.concatenate([part.targets for part in parts]),
        np.concatenate([part.probabilities for part in parts]),
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.said for part in parts]),
        parts[0].exclusive,
    )


def drawn_units(rows: pd.DataFrame) -> tuple[str, npt.NDArray[np.object_]]:
    """Return what intervals over rows of the table `predictions` draw, and its name for each row.

    Patients; recordings if data name no people; and instances if the rows name neither, as in earlier versions.
    """
    names = rows["patient"].fillna("").astype(str)
    if (names == "").any():
        return "instance", rows["instance"].astype(str).to_numpy(dtype=object)
    unit = "recording" if names.str.startswith(UNKNOWN_PERSON).any() else "patient"
    return unit, names.to_numpy(dtype=object)


def log_odds(logits: Floats) -> Floats:
    """Return log(p_c / (1 - p_c)) of the softmax p of logits [n, C], which has no ties where p saturates at 1."""
    others = [logsumexp(np.delete(logits, c, axis=1), axis=1) for c in range(logits.shape[1])]
    return np.asarray(logits - np.stack(others, axis=1))
