"""The four metrics that a report shows, and how each is written in text, in figures and in LaTeX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """One column of `runs`. All four are better when higher.

    `signed` metrics are differences of AUCs: 0 is their natural centre, and below it lies forgetting.
    """

    column: str
    plain: str
    figure: str
    latex: str
    signed: bool
    formula: str


METRICS: Mapping[str, Metric] = {
    metric.column: metric
    for metric in (
        Metric(
            "auc",
            "Average AUC",
            "Average AUC",
            r"$\mathrm{Average\ AUC}$",
            signed=False,
            formula="mean over tasks j of R[N][j]",
        ),
        Metric(
            "bwt",
            "BWT",
            "BWT",
            r"$\mathrm{BWT}$",
            signed=True,
            formula="mean over j < N of R[N][j] - R[j][j]",
        ),
        Metric(
            "bwt_t",
            "BWT_t",
            r"$\mathrm{BWT}_{t}$, $t = 1$",
            r"$\mathrm{BWT}_{t}$",
            signed=True,
            formula="mean over j < N of R[j+1][j] - R[j][j]",
        ),
        Metric(
            "bwt_lambda",
            "BWT_lambda",
            r"$\mathrm{BWT}_{\lambda}$",
            r"$\mathrm{BWT}_{\lambda}$",
            signed=True,
            formula="mean over j < N of the mean over t of R[j+t][j] - R[j][j]",
        ),
    )
}
"""By column name, in the order in which they are shown. R[i][j]: AUC on task j after training on task i of N."""
