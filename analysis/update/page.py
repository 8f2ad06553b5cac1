"""The update report as one self-contained HTML file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from clops_sweep.errors import several

from ..drawing.pictures import Picture, sketch
from ..formats import DASH, TextCell, TextTable, count_cell, interval_text, label_cell, number
from ..report.page import LinkedTable, from_template, no_links
from .figures import draw_flips, draw_reliability
from .findings import Decision, Findings
from .measures import BINS, FIXED, Change, ClassMeasures, Quantity, Slice


def render_page(report: Findings) -> str:
    """Return the page as HTML with all text escaped; equal reports give equal pages."""
    everything, *_ = report.flips
    return from_template(
        "update",
        report=report,
        everything=everything,
        verdict=verdict(report),
        share=percent,
        apart=_apart,
        hardest=" and ".join(_hardest(report)),
        titles=TITLES,
        count=several,
        flips=_flips_picture(report),
        reliability=_reliability_picture(report),
        **_tables(report),
    )


_WHEN = ("before", "after")
_RATES = {"sensitivity": "specificity", "specificity": "sensitivity"}
_OVERALL = ("measure", *_WHEN, "difference")
_CLASSES = ("class", "instances", "from", *(f"{name} {when}" for name in _RATES for when in _WHEN))
_FIXED = ("class", *(f"{name} at {other} {FIXED:g}, {when}" for name, other in _RATES.items() for when in _WHEN))
_SLICES = (
    *("by", "value", "instances", "units", "accuracy before", "accuracy after", "difference"),
    *("became wrong", "became right"),
)
TITLES = {
    "max_flips": "right before, wrong after",
    "max_group_flips": "right before, wrong after, in each subgroup",
    "min_accuracy": "accuracy",
    "max_accuracy_loss": "loss of accuracy",
    "min_group_accuracy": "accuracy in each subgroup",
    "min_sensitivity": "sensitivity",
    "min_specificity": "specificity",
    "max_calibration_error": "expected calibration error",
    "max_drift": "drift of the probabilities",
}
"""Titles of the criteria."""
_NEW_CLASSES = ("class", "instances", "from", "accuracy before", "accuracy after")
_CRITERIA = ("criterion", "of", "limit", "measured", "holds", "the interval")


def verdict(report: Findings) -> str:
    """Return a sentence that says whether the criteria hold."""
    failed, many = sum(not it.holds for it in report.criteria), len(report.criteria)
    if not many:
        return "No acceptance criteria were given."
    if failed:
        return f"{failed} of {several(many, 'acceptance criterion').replace('criterions', 'criteria')} not met."
    return "The acceptance criterion is met." if many == 1 else f"All {many} acceptance criteria are met."


def percent(quantity: Quantity, signed: bool = False) -> str:
    """Format a share with its interval: "1.8 % [0.0, 4.4]", or "+1.8 points [0.0, 4.4]" if `signed`."""
    if not math.isfinite(quantity.value):
        return DASH
    interval = f" [{100 * quantity.low:.1f}, {100 * quantity.high:.1f}]" if math.isfinite(quantity.low) else ""
    value = 100 * quantity.value
    plain = number(value, 1)
    return f"{'+' if value >= 0.05 else ''}{plain} points{interval}" if signed else f"{plain} %{interval}"


def _apart(quantity: Quantity, signed: bool = False) -> tuple[str, str]:
    """Format a share and its interval as two texts."""
    value, _, interval = percent(quantity, signed).partition(" [")
    return value, f"95 % interval {interval.rstrip(']').replace(', ', ' to ')}" if interval else "no interval"


def _hardest(report: Findings) -> list[str]:
    """Describe the class and the subgroup with the largest share of instances that became wrong; empty without any."""
    found = []
    for among in ([it for it in report.flips if it.column == "class"], report.groups):
        worst = max(among, key=lambda it: it.right_to_wrong.value, default=None)
        if worst is not None and worst.right_to_wrong.value > 0:
            units = several(worst.units, report.unit)
            found.append(f"{worst.column} {worst.name} ({percent(worst.right_to_wrong)} became wrong, {units})")
    return found


def _tables(report: Findings) -> dict[str, LinkedTable]:
    """Return the tables of the page by the names that its template uses."""
    overall = [
        [
            label_cell(it.name),
            *(_number(each) for each in (it.before, it.after, it.difference) if it.name == "Brier score"),
            *(shares_of(it, True) if it.name != "Brier score" else ()),
        ]
        for it in report.overall
    ]
    classes = [
        [
            label_cell(it.name),
            count_cell(it.positives, f"{it.positives:,} of {it.instances:,}"),
            _units(it, report),
            *(cell for change in (it.sensitivity, it.specificity) for cell in shares_of(change)),
        ]
        for it in report.classes
    ]
    fixed = [
        [label_cell(it.name), *shares_of(it.sensitivity_at_specificity), *shares_of(it.specificity_at_sensitivity)]
        for it in report.classes
    ]
    became = [
        [label_cell(one), *(replace(count_cell(count), bold=one == other) for other, count in of.items())]
        for one, of in report.became.items()
    ]
    slices = [
        [
            *(label_cell(name) for name in _named(it)),
            *(count_cell(it.instances), _units(it, report)),
            *(*shares_of(it.accuracy, True), _share(it.right_to_wrong), _share(it.wrong_to_right)),
        ]
        for it in report.flips
    ]
    new_classes = [
        [
            label_cell(of.name),
            count_cell(of.instances),
            count_cell(of.units, several(of.units, report.unit)),
            TextCell("not available before", ""),
            _share(of.accuracy),
        ]
        for of in report.new_classes
    ]
    return {
        "new_classes": _table("new-classes", "New classes", _NEW_CLASSES, new_classes),
        "overall": _table("overall", "All instances", _OVERALL, overall),
        "classes": _table("classes", "Each class against the rest", _CLASSES, classes),
        "became": _table("became", "What became what", ("before \\ after", *report.became), became),
        "fixed": _table("fixed", "With a fixed operating point", _FIXED, fixed),
        "slices": _table("slices", "Flips and accuracy", _SLICES, slices, 2),
        "criteria": _table("decisions", "Acceptance criteria", _CRITERIA, list(map(_criterion, report.criteria)), 2),
    }


def _table(
    name: str, title: str, header: Sequence[str], rows: Sequence[Sequence[TextCell]], labels: int = 1
) -> LinkedTable:
    return no_links(TextTable(name, title, tuple(header), tuple(map(tuple, rows)), labels), ())


def _named(it: Slice) -> tuple[str, str]:
    return ("all instances", "") if it.column == "all" else (it.column, it.name)


def _units(it: Slice | ClassMeasures, report: Findings) -> TextCell:
    return count_cell(it.units, several(it.units, report.unit))


def _share(quantity: Quantity, signed: bool = False) -> TextCell:
    return TextCell(percent(quantity, signed), quantity.value)


def _number(quantity: Quantity) -> TextCell:
    return TextCell(number(quantity.value) + interval_text(quantity.low, quantity.high), quantity.value)


def shares_of(change: Change, difference: bool = False) -> list[TextCell]:
    """Return the cells before and after, and of the difference if wanted."""
    before, after = change.before.as_share(), change.after.as_share()
    return [_share(before), _share(after), *([_share(change.difference, True)] if difference else [])]


def _criterion(it: Decision) -> list[TextCell]:
    loss = it.criterion == "max_accuracy_loss"  # negative for a gain
    sign = "\N{LESS-THAN OR EQUAL TO}" if it.criterion.startswith("max") else "\N{GREATER-THAN OR EQUAL TO}"
    interval = ("agrees" if it.certain else "crosses the limit") if math.isfinite(it.measured.low) else DASH
    return [
        *(TextCell(TITLES[it.criterion], it.criterion), TextCell(it.of or "all instances", it.of)),
        *(TextCell(f"{sign} {100 * it.limit:g} %", it.limit), _share(it.measured if loss else it.measured.as_share())),
        *(TextCell("yes" if it.holds else "no", float(it.holds), not it.holds), TextCell(interval, "")),
    ]


def _flips_picture(report: Findings) -> Picture:
    caption = (
        "Share of test instances whose decision became wrong or right, of all instances of the row, whose number is in "
        "brackets. Black lines: 95 % intervals."
    )
    return sketch(draw_flips, report.flips, "flips", "Flips", caption).drawn(files=False)


def _reliability_picture(report: Findings) -> Picture:
    caption = (
        f"Decisions on test instances in {BINS} bins of equal width of their confidence: the share that is right, and "
        "the share of all decisions. On the dashed line, as many decisions are right as their confidence says."
    )
    return sketch(draw_reliability, report.reliability, "reliability", "Reliability", caption).drawn(files=False)
