"""The metrics that a report shows, and how any numeric column of `runs` is written in text, in figures and in LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import nearest


@dataclass(frozen=True)
class Metric:
    """One numeric column of `runs`.

    `signed` metrics are differences: 0 is their natural centre, and below it lies forgetting. `better` says which of
    two values is the better one, None where neither is. `decimals` are those of a value in a figure, None for three
    significant digits.
    """

    column: str
    plain: str
    figure: str
    latex: str
    signed: bool
    formula: str
    better: Literal["higher", "lower"] | None = "higher"
    decimals: int | None = 3

    def text(self, value: float) -> str:
        """A value as a figure shows it: 0.796, or 1,240 and 3.58 where there is no scale of its own."""
        if self.decimals is not None:
            return f"{value:z.{self.decimals}f}"
        return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:.3g}"

    def with_spread(self, mean: float, sd: float) -> str:
        """A mean ± its standard deviation, where that is defined."""
        return self.text(mean) + (f" ± {self.text(sd)}" if math.isfinite(sd) else "")


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
            "BWT_t",
            r"$\mathrm{BWT}_{t}$",
            signed=True,
            formula="mean over j < N of R[j+1][j] - R[j][j]",
        ),
        Metric(
            "bwt_lambda",
            "BWT_lambda",
            "BWT_λ",
            r"$\mathrm{BWT}_{\lambda}$",
            signed=True,
            formula="mean over j < N of the mean over t of R[j+t][j] - R[j][j]",
        ),
    )
}
"""By column name, in the order in which they are shown. R[i][j]: AUC on task j after training on task i of N."""

_FWT: Final = Metric(
    "fwt", "FWT", "FWT", r"$\mathrm{FWT}$", signed=True, formula="mean over j > 1 of R[j-1][j] less the chance level"
)
_FORGETTING: Final = Metric(
    "forgetting",
    "Forgetting",
    "Forgetting",
    r"$\mathrm{Forgetting}$",
    signed=False,
    formula="mean over j < N of max over i < N of R[i][j], less R[N][j]",
    better="lower",
)
_DIFFERENCES: Final = {name: it for name, it in {**METRICS, "fwt": _FWT}.items() if it.signed} | {
    "forgetting": _FORGETTING
}
_OF_A_SCORE: Final = re.compile(rf"(.+)_({'|'.join(sorted(_DIFFERENCES, key=len, reverse=True))})")
_AVERAGE_OF_ALL_STAGES: Final = "mean over stages i of the mean over tasks j <= i of R[i][j]"
_SCORES: Final = re.compile(r"(^|_)(auc|accuracy|f1|precision|recall|sensitivity|specificity)(_|$)")
_LOSSES: Final = re.compile(r"(^|_)(seconds|loss|error)(_|$)")
_ABBREVIATIONS: Final = {"auc": "AUC", "f1": "macro F1", "mc": "MC"}


def metric_named(column: str) -> Metric:
    """How a numeric column of `runs` is written: what `METRICS` says, or what follows from its name.

    A name that ends in bwt, bwt_t, bwt_lambda, fwt or forgetting is a difference, of the score named before it:
    accuracy_bwt is "BWT of accuracy". The prefix `test_` names the split. Scores are better when higher, seconds,
    losses and forgetting when lower; of anything else nothing is better.
    """
    if column in METRICS:
        return METRICS[column]
    if column.startswith("test_"):
        base = metric_named(column.removeprefix("test_"))
        return replace(
            base, column=column, plain=f"{base.plain}, test", figure=f"{base.figure}, test", latex=f"{base.latex}, test"
        )
    if column in _DIFFERENCES:
        return _DIFFERENCES[column]
    if found := _OF_A_SCORE.fullmatch(column):
        of, difference = _words(found[1]), _DIFFERENCES[found[2]]
        return replace(
            difference,
            column=column,
            plain=f"{difference.plain} of {of}",
            figure=f"{difference.figure} of {of}",
            latex=f"{difference.latex} of {_in_latex(of)}",
        )
    plain = _words(column)
    score = _SCORES.search(column) is not None
    better: Literal["higher", "lower"] | None = "higher" if score else "lower" if _LOSSES.search(column) else None
    return Metric(
        column,
        plain,
        plain,
        _in_latex(plain),
        signed=False,
        formula=_AVERAGE_OF_ALL_STAGES
        if column.startswith("average_incremental_")
        else "mean over tasks j of R[N][j]"
        if score
        else f"the column {column}",
        better=better,
        decimals=3 if score else None,
    )


def known_metric(column: str, numeric: Collection[str]) -> Metric:
    """`metric_named`, of a column that is there.

    Args:
        column: its name.
        numeric: the numeric columns of the runs at hand.

    Raises:
        UsageError: it is none of `METRICS` and no numeric column.
    """
    if column not in METRICS and column not in numeric:
        close = nearest(column, dict.fromkeys((*METRICS, *numeric)))
        raise UsageError(f"metric {column!r}: expected a numeric column of runs, such as {', '.join(METRICS)}{close}")
    return metric_named(column)


def _words(column: str) -> str:
    return " ".join(_ABBREVIATIONS.get(part, part) for part in column.split("_"))


def _in_latex(text: str) -> str:
    return re.sub(r"([%&#$_{}])", r"\\\1", text)
