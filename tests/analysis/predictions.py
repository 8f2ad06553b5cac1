"""Rows of the table `predictions`."""

from __future__ import annotations

import numpy as np
import pandas as pd


def with_logits(rows: pd.DataFrame, *, exclusive: bool) -> pd.DataFrame:
    """Return rows with the logits of their probabilities: of a softmax if classes exclude each other, else sigmoids."""
    found = rows.assign(exclusive=exclusive)
    for column in rows.filter(like="probability_"):
        p = rows[column]
        found[column.replace("probability_", "logit_")] = np.log(p) if exclusive else np.log(p / (1 - p))
    return found
