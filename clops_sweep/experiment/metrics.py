"""The registry of metrics, by column of `runs`.

A metric is a measure of performance on tasks (`MEASURES`) averaged over tasks, or its change while other tasks are
learned (BWT, forgetting, ...). Columns, figures, tables, searches and commands use these names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

Split = Literal["validation", "test", "unseen", "stream"]

MEASURES = ("auc", "accuracy", "balanced_accuracy", "f1", "auc_seen")
"""Measures of performance on a task: the entries of R."""

PAPER = ("auc", "bwt", "bwt_t", "bwt_lambda")
"""The metrics of the paper's tables: default headline metrics of a scenario."""

CLASS_INCREMENTAL = ("balanced_accuracy", "balanced_accuracy_forgetting")
"""Headline metrics of scenarios with one output per class of all tasks."""

OF_PEOPLE = ("accuracy", "accuracy_bwt")
"""Headline metrics of scenarios whose tasks are groups of people: a person often has one class only, and no AUC."""


@dataclass(frozen=True)
class Metric:
    """One numeric column of `runs`.

    Attributes:
        column: name of the column.
        plain: name in text, tables and figures.
        latex: name in LaTeX.
        signed: whether it is a difference around 0.
        formula: formula in terms of R.
        better: whether higher or lower values are better; None if neither.
        decimals: decimals of a value in a figure; None for three significant digits.
        measure: the measure in R, one of `MEASURES`; None if it is not computed from R.
        split: whose data it is computed on: validation or test people, people in no task ("unseen"), or training
            people of an online stream ("stream"); None for costs, counts and settings.
    """

    column: str
    plain: str
    latex: str
    signed: bool
    formula: str
    better: Literal["higher", "lower"] | None = "higher"
    decimals: int | None = 3
    measure: str | None = None
    split: Split | None = "validation"

    @property
    def limits(self) -> tuple[float, float]:
        """The least and largest possible value of a measure or a change of one; infinite for other columns."""
        name = without_split(self.column)
        if name not in METRICS:
            return -math.inf, math.inf
        return (0.0, 1.0) if _of_transfer(name) is None else (-1.0, 1.0)

    def text(self, value: float) -> str:
        """Format a value for a figure: 0.796, or with three significant digits 1,240 and 3.58."""
        if self.decimals is not None:
            return f"{value:z.{self.decimals}f}"
        return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:.3g}"

    def with_spread(self, mean: float, sd: float) -> str:
        """Format a mean and, if defined, ± its standard deviation."""
        return self.text(mean) + (f" ± {self.text(sd)}" if math.isfinite(sd) else "")


_TRANSFERS: Final = (
    Metric("bwt", "BWT", r"$\mathrm{BWT}$", True, "mean over j < N of R[N][j] - R[j][j]"),
    Metric("bwt_t", "BWT_t", r"$\mathrm{BWT}_{t}$", True, "mean over j < N of R[j+1][j] - R[j][j]"),
    Metric(
        "bwt_lambda",
        "BWT_lambda",
        r"$\mathrm{BWT}_{\lambda}$",
        True,
        "mean over j < N of the mean over t of R[j+t][j] - R[j][j]",
    ),
    Metric("fwt", "FWT", r"$\mathrm{FWT}$", True, "mean over j > 1 of R[j-1][j] less the chance level"),
    Metric(
        "forgetting",
        "Forgetting",
        "Forgetting",
        False,
        "mean over j < N of max over i < N of R[i][j], less R[N][j]",
        better="lower",
    ),
)
"""Changes of a measure while other tasks are learned, in the order of the columns.

R[i][j]: a measure on task j after training on task i of N.
"""

_BY_NAME: Final = {transfer.column: transfer for transfer in _TRANSFERS}
_LONGEST_FIRST: Final = sorted(_TRANSFERS, key=lambda transfer: len(transfer.column), reverse=True)
_ALL_STAGES: Final = "average_incremental_"
_SCORES: Final = frozenset({"auc", "accuracy", "f1", "precision", "recall", "sensitivity", "specificity"})
"""Words in the names of scores, of which higher ones are better."""
_LOSSES: Final = frozenset({"seconds", "loss", "error"})
"""Words in the names of columns of which lower values are better."""
_OTHER_SPLITS: Final[Mapping[str, Split]] = {"unseen": "unseen", "prequential": "stream"}

SPLIT_TITLES: Final[Mapping[Split, str]] = {
    "validation": "validation",
    "test": "test",
    "unseen": "unseen people",
    "stream": "stream",
}
"""Names of the splits, in the order of tables."""

_WORDS: Final = {"auc_seen": "AUC over classes seen"}
_ABBREVIATIONS: Final = {"auc": "AUC", "f1": "macro F1", "mc": "MC"}


def metrics_of(measure: str) -> tuple[str, ...]:
    """Return the metrics of one measure by column.

    These are its average, BWT, BWT_t, BWT_lambda, FWT, forgetting and the average incremental measure; for AUC without
    a prefix.
    """
    transfers = (_of_measure(transfer.column, measure) for transfer in _TRANSFERS)
    return (measure, *transfers, f"{_ALL_STAGES}{measure}")


def _of_measure(transfer: str, measure: str) -> str:
    """Return the column of BWT, forgetting and so on of a measure; those of AUC have no prefix."""
    return transfer if measure == "auc" else f"{measure}_{transfer}"


def metric_named(column: str) -> Metric:
    """Return the metric of a numeric column of `runs`, from its name.

    A name that ends in bwt, bwt_t, bwt_lambda, fwt or forgetting belongs to the score before it: accuracy_bwt is "BWT
    of accuracy". The prefix `test_` names the split. Higher scores are better; lower seconds, losses and forgetting are
    better; other columns have no direction.
    """
    if column.startswith("test_"):
        base = metric_named(column.removeprefix("test_"))
        plain, latex = f"test {_small(base.plain)}", f"test {_small(base.latex)}"
        return replace(base, column=column, split="test", plain=plain, latex=latex)
    of_transfer = _of_transfer(column)
    if of_transfer is not None:
        return _transfer(column, *of_transfer)
    if column == "auc":
        latex = "Average AUC"
        return Metric(column, "Average AUC", latex, False, _average(column), measure="auc")
    plain = words(column)
    measure = column.removeprefix(_ALL_STAGES)
    in_r = measure if measure in MEASURES else None
    parts = column.split("_")
    if not _SCORES.isdisjoint(parts):
        split = _OTHER_SPLITS.get(parts[0], "validation")
        formula = _average(column)
        return Metric(column, plain, _in_latex(plain), False, formula, measure=in_r, split=split)
    return Metric(
        column,
        plain,
        _in_latex(plain),
        signed=False,
        formula=f"the column {column}",
        better=None if _LOSSES.isdisjoint(parts) else "lower",
        decimals=None,
        measure=in_r,
        split=None,
    )


def _of_transfer(column: str) -> tuple[Metric, str] | None:
    """Return the change, such as BWT, and the measure that a column names; None for other columns."""
    for transfer in _LONGEST_FIRST:
        measure = column.removesuffix(f"_{transfer.column}")
        if column == transfer.column:
            return transfer, "auc"
        if measure and measure != column:
            return transfer, measure
    return None


def _transfer(column: str, transfer: Metric, measure: str) -> Metric:
    # The paper has BWT of AUC only, and no forgetting: "Forgetting" alone would be read as that of accuracy.
    of = "" if measure == "auc" and transfer.column != "forgetting" else f" of {words(measure)}"
    return replace(
        transfer,
        column=column,
        plain=f"{transfer.plain}{of}",
        latex=f"{transfer.latex}{_in_latex(of)}",
        measure=measure if measure in MEASURES else None,
    )


def _average(column: str) -> str:
    if column.startswith(_ALL_STAGES):
        return "mean over stages i of the mean over tasks j <= i of R[i][j]"
    return "mean over tasks j of R[N][j]"


def words(column: str) -> str:
    """Return the name of a measure or other column in words."""
    if column.startswith(_ALL_STAGES):
        return f"average incremental {words(column.removeprefix(_ALL_STAGES))}"
    return _WORDS.get(column) or " ".join(_ABBREVIATIONS.get(part, part) for part in column.split("_"))


def _in_latex(text: str) -> str:
    return re.sub(r"([%&#$_{}])", r"\\\1", text)


def limits_of_difference(ours: str | None, theirs: str | None) -> tuple[float, float]:
    """Return the least and largest difference of two columns of `runs`; None is the number 0."""
    our_least, our_largest = (0.0, 0.0) if ours is None else metric_named(ours).limits
    their_least, their_largest = (0.0, 0.0) if theirs is None else metric_named(theirs).limits
    return our_least - their_largest, our_largest - their_least


METRICS: Mapping[str, Metric] = {name: metric_named(name) for measure in MEASURES for name in metrics_of(measure)}
"""Metrics of the validation split by column; for the test split, add the prefix `test_`."""


def without_split(column: str) -> str:
    """Return the column of a metric without the prefix of its split: "auc" for "test_auc"."""
    prefix, _, rest = column.partition("_")
    return rest if prefix in ("test", *_OTHER_SPLITS) else column


def headline_of(names: object) -> tuple[str, ...]:
    """Return the headline metrics that a scenario declares, as columns.

    BWT, forgetting and so on without a measure belong to the preceding measure: ("accuracy", "forgetting") means
    ("accuracy", "accuracy_forgetting").

    Raises:
        ValueError: not a list of metrics of the validation split that begins with a measure.
    """
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise ValueError(f"{names!r}: expected a list of metrics, such as ('accuracy', 'forgetting')")
    columns: list[str] = []
    measure: str | None = None
    for name in names:
        column = _of_measure(name, measure) if measure is not None and str(name) in _BY_NAME else name
        if not isinstance(column, str) or column not in METRICS:
            raise ValueError(f"{name!r} is not a metric; expected some of {', '.join((*MEASURES, *_BY_NAME))}")
        measure = METRICS[column].measure if column in MEASURES else measure
        if measure is None:
            raise ValueError(f"{name!r}: expected one of {', '.join(MEASURES)} first, by which runs are ranked")
        columns.append(column)
    return tuple(dict.fromkeys(columns))


def in_words(values: Mapping[str, float], prefix: str = "") -> str:
    """Format metrics in one line without undefined ones: "AUC 0.812, BWT -0.046".

    The measure of a transfer metric is named only if it differs from the first.
    """
    parts, first = [], None
    for column, value in values.items():
        metric = metric_named(column)
        first = first or metric.measure
        if math.isfinite(value):
            name = short_name(column, first)
            parts.append(f"{prefix}{name} {value:+.3f}" if metric.signed else f"{prefix}{name} {metric.text(value)}")
    return ", ".join(parts)


def columns_behind(values: Mapping[str, float]) -> str:
    """Return a sentence with the columns of `runs` behind `scores_in_words`; empty if the words name them."""
    columns = list(values)
    first = metric_named(columns[0]).measure if columns else None
    if all(short_name(column, first).lower().replace(" ", "_") == column for column in columns):
        return ""
    return f"scores: columns {', '.join(columns)} of runs"


def scores_in_words(values: Mapping[str, float]) -> str:
    """Format headline metrics in one line that says whose they are: "validation AUC 0.812, BWT -0.046"."""
    text = in_words(values)
    first = next((column for column, value in values.items() if math.isfinite(value)), "")
    return f"validation {text}" if first and metric_named(first).split == "validation" else text


def short_name(column: str, measure: str | None = None) -> str:
    """Return the name of a metric in a line: "AUC", "forgetting", or "forgetting of AUC" if `measure` is another."""
    if column.startswith("test_"):
        return f"test {short_name(column.removeprefix('test_'), measure)}"
    metric = metric_named(column)
    name = metric.plain.removeprefix("Average ")
    if metric.measure is not None and metric.measure == measure:
        name = name.removesuffix(f" of {words(measure)}")
    return _small(name)


def _small(name: str) -> str:
    """Return a name that begins with a small letter, unless it begins with an abbreviation, such as BWT."""
    return name[0].lower() + name[1:] if name[:2].istitle() else name
