"""The update report as one self-contained HTML file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from clops_sweep.errors import several

from ..drawing.pictures import Picture, sketch
from ..formats import DASH, TextCell, TextTable, count_cell, label_cell, number
from ..page_head import CRITERIA, PARTS, VERDICT
from ..people.patient_intervals import FEW_PEOPLE
from ..report.page import LinkedTable, from_template, no_links
from ..statistics import MIN_UNITS
from .criteria import BY_GROUP, BY_TASK, OF_LAST_TASK
from .earlier import clear_changes, is_clearly_worse
from .figures import Flips, Reliability, draw_flips, draw_reliability, draw_tracing_of_flip
from .findings import FILE_OF_CRITERIA, OF_RUNS, Decision, EarlierTask, Findings
from .measures import BINS, FIXED, Change, ClassMeasures, Quantity, Slice
from .people import BECAME, CHANGES, MOST_CHANGES, MOST_PEOPLE, ChangedPerson, Flip, Matrix
from .shares import bound_without_flips, decimals_of, measured, percent, percents

Cells = list[TextCell]


def render_page(report: Findings) -> str:
    """Return the page as HTML with all text escaped; equal reports give equal pages."""
    content: dict[str, object] = {"report": report, "everything": report.flips[0]}
    content["verdict"] = verdict(report).replace(" %", "\N{NO-BREAK SPACE}%")
    content |= {"what": what_is_reported(report), "lead": lead(report)}
    content["hardest"] = " and ".join(_hardest(report))
    content |= {"of_criteria": _caption_of_criteria(report), "how_to_judge": _how_to_judge(report)}
    content["of_earlier"] = _caption_of_earlier(report)
    content |= {"share": percent, "apart": _apart, "count": several, "how_many": _how_many}
    content["accuracy"] = percents(report.flips[0].accuracy, report.units)
    content["changes"] = changes_in_all(report, report.people)
    content["of_recordings"] = _caption_of_recordings(report)
    content["new_changes"] = changes_in_all(report, report.new_people)
    content |= {"can_be_shown": what_can_be_shown(report), "drift_decimals": 2 + decimals_of(report.units)}
    content |= {"unrounded": _UNROUNDED, "least": MIN_UNITS, "few_people": FEW_PEOPLE}
    content |= {"criteria_name": CRITERIA, "file_of_criteria": report.data.get(FILE_OF_CRITERIA, "")}
    judged = json.dumps({"verdict": verdict(report), "limits": dict(report.limits)}) if report.criteria else ""
    content |= {"verdict_name": VERDICT, "judged": judged}
    content |= {"parts_name": PARTS, "parts": json.dumps(sorted(report.parts))}
    content["flips"] = _flips_picture(report)
    content["reliability"] = _reliability_picture(report)
    content |= {"tracings": _tracings_pictures(report), "of_tracings": _caption_of_tracings(report)}
    content |= _tables(report)
    return from_template("update", **content)


def what_is_reported(report: Findings) -> str:
    """Return data set, runs and the day of the last one, for the top of the page."""
    runs = f"run {report.run_id[:8]}" + (f" against {report.against[:8]}" if report.against else "")
    if report.folds:
        others = f" and {len(report.folds) - 1} more"
        runs = f"{len(report.folds)} folds, {runs.replace(' against', f'{others} against')}{others}"
    facts = {name: after for name, _, after in report.models}
    days = sorted(stamp[:10] for stamp in facts.get("computed on", "").split("; ") if stamp)
    return "; ".join([f"data set {report.data['data set']}", runs, *(f"computed on {day}" for day in days[-1:])])


def lead(report: Findings) -> str:
    """Return a sentence on the models that are compared, and on what."""
    compared = f"on {report.data['compared on']}"
    began = f" {report.data['began from']}." if "began from" in report.data else ""
    if report.against and report.folds:
        k = len(report.folds)
        return (
            f"The models of {k} folds, run {report.run_id[:8]} and {k - 1} more, replace those of run "
            f"{report.against[:8]} and {k - 1} more, {compared}. {settings_that_differ(report)}"
        )
    if report.against:
        replaced = f"The model of run {report.run_id[:8]} replaces that of run {report.against[:8]}, {compared}."
        return f"{replaced} {settings_that_differ(report)}{began}"
    (last,) = (after for name, _, after in report.description if name == "last task")
    new = "" if report.last_task is None else " (new)"
    models, they_are = "The model", "It is"
    if report.folds:
        models, they_are = f"The models of {len(report.folds)} folds", "They are"
    return (
        f"{models} learned {last}{new}. {they_are} compared before and after this update, {compared} of earlier tasks "
        f"({report.data['tasks']}).{began}"
    )


def settings_that_differ(report: Findings) -> str:
    """Return a sentence on the settings in which two runs differ, such as "strategy lwf before, er after".

    Empty for a run that is compared with itself.
    """
    if not report.against:
        return ""
    differing = []
    for name, before, after in report.description:
        if name not in OF_RUNS:
            differing.append(f"{name} {before} before, {after} after")
    if not differing:
        return "Both have the same settings."
    more = len(differing) - _MOST_SETTINGS
    others = f"; and {more} more, in Description of the change" if more > 0 else ""
    return f"Settings that differ: {'; '.join(differing[:_MOST_SETTINGS])}{others}."


_WHEN = ("before", "after")
_RATES = {"sensitivity": "specificity", "specificity": "sensitivity"}
_OVERALL = ("measure", *_WHEN, "difference")
_CLASSES = ("class", "instances", "from", *(f"{name} {when}" for name in _RATES for when in _WHEN))
_FIXED = ("class", *(f"{name} at {other} {FIXED:g}, {when}" for name, other in _RATES.items() for when in _WHEN))
_SLICES = (
    *("by", "value", "instances", "from", "accuracy before", "accuracy after", "difference"),
    *("became wrong", "became right"),
)
_IN_EACH = ", in each subgroup"
TITLES = {
    "max_flips": "decisions that became wrong",
    "max_group_flips": f"decisions that became wrong{_IN_EACH}",
    "min_accuracy": "accuracy",
    "max_accuracy_loss": "loss of accuracy",
    "max_task_accuracy_loss": "loss of accuracy",
    "min_group_accuracy": f"accuracy{_IN_EACH}",
    "min_sensitivity": "sensitivity",
    "min_specificity": "specificity",
    "max_calibration_error": "calibration error beyond chance",
    "max_drift": "drift of the probabilities",
    "min_new_accuracy": "accuracy",
    "min_new_sensitivity": "sensitivity",
    "min_new_specificity": "specificity",
}
"""Titles of the criteria."""
_NEW_CLASSES = ("class", "instances", "from", "accuracy before", "accuracy after")
_LAST_TASK = ("class", "instances", "from", *_RATES)
_FOLDS = (
    *("fold", "run", "from", "instances", "accuracy before", "accuracy after", "became wrong"),
    *("AUC before", "AUC after"),
    *("Brier score before", "Brier score after", "calibration error before", "calibration error after"),
)
_PEOPLE = ("person", "instances", "became wrong", "became right", "stayed wrong", "what changed")
_RECORDINGS = (
    *("person", "number", "task", "true class", "before", "after"),
    *("probability before", "probability after", "change"),
)
_CRITERIA = ("verdict", "criterion", "limit", "measured", "tested on")
_CROSSES = "the interval crosses the limit"
_MOST_HARDEST = 2
"""Most groups that the sentence on those for whom an update costs most names."""
_MOST_NAMED = 3
"""Most failed criteria that the verdict on all names."""
_EARLIER = (
    *("task", "clear change", "AUC", "difference of AUC", "accuracy", "difference of accuracy"),
    *("became wrong", "became right", "units with a changed decision"),
)
_MOST_SETTINGS = 6
"""Most settings that the top of the page names."""
_UNROUNDED = "Differences are those of unrounded values."
_MOST_EARLIER = 12
"""Most tasks in the table of earlier tasks."""
_MOST_COUNTS = 4
"""Most columns of a table of counts that fit the screen of a phone side by side."""
_MOST_TASKS = 8
"""Most tasks that have a column each in the table of test patients."""


def verdict(report: Findings) -> str:
    """Return a sentence that says whether the criteria hold."""
    many = len(report.criteria)
    if not many:
        return "No acceptance criteria were given, so the update is not judged."
    failed = [decision for decision in by_verdict(report.criteria) if decision.holds is False]
    not_judged = [decision for decision in report.criteria if decision.holds is None]
    few = _why_not_judged(not_judged, report.unit)
    if failed:
        criteria = "acceptance criterion" if many == 1 else "acceptance criteria"
        worst = "; ".join(map(_missed, failed[:_MOST_NAMED]))
        first = ", worst first" if len(failed) > 1 else ""
        others = f"; and {len(failed) - _MOST_NAMED} more" if len(failed) > _MOST_NAMED else ""
        return " ".join([f"{len(failed)} of {many} {criteria} not met{first}: {worst}{others}.", *few])
    met = many - len(not_judged)
    if not met:
        return " ".join(["No acceptance criterion can be judged.", *few])
    doubtful = sum(not decision.certain for decision in report.criteria if decision.holds)
    doubt = f", {doubtful} of {met} not certain" if doubtful else ""
    if not_judged:
        return " ".join([f"{met} of {many} acceptance criteria {'is' if met == 1 else 'are'} met{doubt}.", *few])
    if many == 1:
        return f"The acceptance criterion is met{', but not certain' if doubtful else ''}."
    return f"All {many} acceptance criteria are met{doubt}."


def _why_not_judged(decisions: Sequence[Decision], unit: str) -> list[str]:
    """Return sentences on criteria that are not judged: those about few units, and those that are not certain."""
    few = [decision for decision in decisions if decision.is_about_few]
    sentences = []
    if few:
        is_about = "it is" if len(few) == 1 else "they are"
        sentences.append(
            f"{len(few)} cannot be judged, because {is_about} about fewer than {several(few[0].needed, unit)}."
        )
    doubtful = len(decisions) - len(few)
    if doubtful:
        verb = "is" if doubtful == 1 else "are"
        sentences.append(f"{doubtful} {verb} within the limit, but not certainly, as the criteria demand.")
    return sentences


def _name(decision: Decision) -> str:
    """Return a criterion and what it is about, such as "sensitivity of AF" or "accuracy in sex f"."""
    title = TITLES[decision.criterion].removesuffix(_IN_EACH)
    if decision.of:
        title += f" {'in' if decision.criterion in (*BY_GROUP, *BY_TASK) else 'of'} {decision.of}"
    return f"{title} in {decision.where}" if decision.criterion in OF_LAST_TASK else title


def _missed(decision: Decision) -> str:
    """Return a failed criterion with value and limit, such as "specificity of AF 58 % (limit: at least 90 %)"."""
    value, _, _ = measured(decision, _shown(decision)).partition(" [")
    limit = f"at {'most' if decision.criterion.startswith('max') else 'least'} {100 * decision.limit:g} %"
    return f"{_name(decision)} {value} (limit: {limit})"


def _shown(decision: Decision) -> Quantity:
    """Return the measured value as it is shown: a share, or a loss of accuracy, which is negative for a gain."""
    is_loss = decision.criterion in ("max_accuracy_loss", *BY_TASK)
    return decision.measured if is_loss else decision.measured.as_share()


def by_verdict(decisions: Iterable[Decision]) -> list[Decision]:
    """Return the failed decisions, the farthest beyond its limit first, then those not judged, then those that hold."""

    def place(decision: Decision) -> tuple[int, float]:
        order = (False, None, True).index(decision.holds)
        return order, -decision.beyond if decision.holds is False else 0.0

    return sorted(decisions, key=place)


def verdict_in_words(decision: Decision, unit: str) -> str:
    """Return "holds", "fails" or "not judged" for one criterion, and whether that is not certain and why."""
    if not decision.is_tested:
        return "not tested"
    if decision.holds is None and decision.is_about_few:
        return f"too few {unit}s to judge"
    word = {True: "holds", False: "fails", None: "not judged"}[decision.holds]
    doubt = doubt_about(decision, unit)
    return f"{word}, {doubt}" if doubt else word


def doubt_about(decision: Decision, unit: str) -> str:
    """Return why a verdict is not certain; empty if it is."""
    if decision.certain:
        return ""
    if decision.crosses:
        return f"not certain: {_CROSSES}"
    if decision.units < FEW_PEOPLE:
        return f"not certain: fewer than {FEW_PEOPLE} {unit}s"
    return "not certain: all resamples agree, and others may differ"


def evaluated(decision: Decision, report: Findings) -> str:
    """Return what a criterion is about, such as "40 recordings of 5 patients in ward A"."""
    if not decision.is_tested:
        which = f"{report.noun} of the other tasks" if report.other_data else f"compared {report.noun}"
        return f"no {which}: only {decision.where} has this subgroup"
    about = _about(decision, report)
    return f"{about} in {decision.where}" if decision.where else about


def _about(decision: Decision, report: Findings) -> str:
    """Return the number of instances that a criterion is about, and of people."""
    instances = several(decision.instances, report.noun)
    if report.unit in ("instance", report.noun):
        return instances
    return f"{instances} of {several(decision.units, report.unit)}"


def _tested_on(decision: Decision, report: Findings) -> str:
    """Return what a criterion is about, without tasks that its name has."""
    has_tasks = decision.criterion in (*OF_LAST_TASK, *BY_TASK)
    return _about(decision, report) if has_tasks else evaluated(decision, report)


def what_can_be_shown(report: Findings) -> str:
    """Return a sentence on what the number of patients cannot rule out."""
    bound = 100 * bound_without_flips(report.units)
    most = f"up to {bound:.0f}" if bound >= 1 else "fewer than 1"
    sentence = (
        f"{several(report.units, f'test {report.unit}')} cannot rule out rare harm: even if no decision about them had "
        f"become wrong, this could still happen to {most} of 100 other {report.unit}s (with 95 % confidence)."
    )
    if report.units < FEW_PEOPLE:
        sentence += f" With fewer than {FEW_PEOPLE} {report.unit}s, the intervals are too narrow."
    return sentence


def _apart(quantity: Quantity, units: int) -> tuple[str, str]:
    """Format a share and its interval as two texts."""
    value, _, interval = percent(quantity, units).partition(" [")
    return value, f"95 % interval {interval.rstrip(']').replace(', ', ' to ')}" if interval else "no interval"


def _how_many(report: Findings, became: str) -> list[str]:
    """Return how many decisions became one of `BECAME`, and of how many people: "10 of 12 patients affected"."""
    counts = [person.count(became) for person in report.people]
    texts = [f"{sum(counts):,} of {several(report.instances, report.noun)}"]
    if report.unit not in ("instance", report.noun):
        affected = sum(count > 0 for count in counts)
        texts.append(f"{affected:,} of {several(report.units, report.unit)} affected")
    return texts


def _hardest(report: Findings) -> list[str]:
    """Describe two of the class, the task and the subgroup with the largest share of instances that became wrong.

    One whose interval includes 0 is left out: the share of other people may be 0.
    """
    of_classes = [part for part in report.flips if part.column == "class"]
    of_tasks = [part for part in report.flips if part.column == "task"]
    hardest = []
    for among in (of_classes, of_tasks, report.groups):
        sure = [part for part in among if part.units >= MIN_UNITS and _is_above_zero(part.right_to_wrong)]
        if sure:
            hardest.append(max(sure, key=lambda part: part.right_to_wrong.value))
    hardest.sort(key=lambda part: -part.right_to_wrong.value)
    descriptions = []
    for part in hardest[:_MOST_HARDEST]:
        share = percent(part.right_to_wrong, part.units)
        name = part.name if part.column == "task" else f"{part.column} {part.name}"
        descriptions.append(f"{name} ({share} became wrong, {several(part.units, report.unit)})")
    return descriptions


def _is_above_zero(share: Quantity) -> bool:
    """Return whether a share of several people is above 0 in all resamples; if all agree, it has no interval."""
    return share.low > 0 or (math.isnan(share.low) and share.value > 0)


def _tables(report: Findings) -> dict[str, LinkedTable | None]:
    """Return the tables of the page by the names that its template uses."""
    tables: dict[str, LinkedTable | None] = {}
    tables["new_classes"] = _table("new-classes", "New classes", _header(_NEW_CLASSES, report), _new_class_rows(report))
    tables["earlier"] = _earlier_table(report)
    overall = [_overall_row(change, report.units) for change in report.overall]
    tables["overall"] = _table("overall", f"All {report.noun}s", _OVERALL, overall)
    classes = [_class_row(part, report) for part in report.classes]
    tables["classes"] = _table("classes", "Each class against the rest", _header(_CLASSES, report), classes)
    became = ("before \\ after", *report.became)
    tables["last_task"] = _last_task_table(report)
    what_became = _table("became", "What became what", became, _became_rows(report))
    tables["became"] = replace(what_became, stacked=len(became) > _MOST_COUNTS)
    for when in _WHEN:
        tables[f"confusion_{when}"] = _confusion_table(when, report.confusion[when])
    fixed = [_fixed_row(part) for part in report.classes]
    tables["fixed"] = _table("fixed", "With a fixed operating point", _FIXED, fixed)
    tables["slices"] = _slices_table(report)
    title = "People whose decisions changed"
    tables["people"] = _table("people-changed", title, _header(_PEOPLE, report), _people_rows(report.people))
    tables["new_people"] = _new_people_table(report)
    tables["recordings"] = _recordings_table(report)
    tables["criteria"] = _criteria_table(report)
    tables["folds"] = _folds_table(report)
    tables["counts"] = _counts_table(report)
    return tables


def _earlier_table(report: Findings) -> LinkedTable | None:
    """Return the table of earlier tasks, one a row; None if all tasks are tested on the same instances."""
    if not report.earlier:
        return None
    rows = [_earlier_row(task, report) for task in _shown_of_earlier(report)]
    title = "Task by task" if report.against else "Earlier tasks"
    header = [name.replace("units", f"{report.unit}s") for name in _EARLIER]
    return _table("earlier", title, header, rows)


def _shown_of_earlier(report: Findings) -> Sequence[EarlierTask]:
    """Return the tasks in the order of training; of many, those whose accuracy falls most, the worst first."""
    if len(report.earlier) <= _MOST_EARLIER:
        return report.earlier
    return sorted(report.earlier, key=lambda task: task.accuracy.difference.value)[:_MOST_EARLIER]


def _earlier_row(task: EarlierTask, report: Findings) -> Cells:
    words = _clear_changes(task, report.unit) or "none"
    if task.units < MIN_UNITS:
        words = f"too few {report.unit}s"
    accuracy = [text.partition(" [")[0] for text in percents(task.accuracy, task.units)[:2]]
    auc = _aucs(task)
    before_and_after = [cell.text.partition(" [")[0] for cell in auc[:2]]
    return [
        label_cell(task.title),
        TextCell(words, words, bold=any(map(is_clearly_worse, (task.auc, task.accuracy)))),
        TextCell(" → ".join(before_and_after), task.auc.after.value),
        auc[2],
        TextCell(" → ".join(accuracy), task.accuracy.after.value),
        TextCell(percents(task.accuracy, task.units)[2], task.accuracy.difference.value),
        count_cell(task.right_to_wrong, f"{task.right_to_wrong:,} of {task.instances:,}"),
        count_cell(task.wrong_to_right, f"{task.wrong_to_right:,} of {task.instances:,}"),
        count_cell(task.units_changed, f"{task.units_changed:,} of {task.units:,}"),
    ]


def _aucs(task: EarlierTask) -> Cells:
    """Return the cells of AUC before and after, and of the difference.

    They have one more decimal if before and after round alike, but their difference does not round to 0, or the other
    way round.
    """
    quantities = (task.auc.before, task.auc.after, task.auc.difference)
    digits = 2 + decimals_of(task.units)
    before, after, difference = (number(quantity.value, digits) for quantity in quantities)
    if (before == after) != (difference == number(0.0, digits)):
        digits += 1
    return [_number(quantity, digits) for quantity in quantities]


def _clear_changes(task: EarlierTask, unit: str) -> str:
    """Return the clear changes of a task, with a remark if they are about few people; empty without any."""
    changes = clear_changes(task)
    return f"{changes} (few {unit}s)" if changes and task.units < FEW_PEOPLE else changes


def _caption_of_earlier(report: Findings) -> str:
    """Return the caption of the table of earlier tasks."""
    caption = (
        "Each row compares the two models on the test data of one task. A change is clear if its whole 95 % interval "
        f"is on one side of 0. Became wrong and became right count decisions on {report.noun}s. {_UNROUNDED}"
    )
    if report.folds:
        caption += " AUC is the mean of the folds' own AUCs; all other numbers pool the folds."
    if any(task.units < FEW_PEOPLE for task in report.earlier):
        caption += f" With fewer than {FEW_PEOPLE} {report.unit}s, a clear change can still be chance."
    many = len(report.earlier)
    if many > _MOST_EARLIER:
        caption += f" Of {many} tasks, those whose accuracy falls most; all are in the table of subgroups."
    return caption


def earlier_in_words(report: Findings) -> Iterator[str]:
    """Yield a line on each earlier task for a terminal."""
    for task in _shown_of_earlier(report):
        auc_before, auc_after, _ = _aucs(task)
        auc = f"{auc_before.text.partition(' [')[0]} to {auc_after.text}"
        before, after, _ = percents(task.accuracy, task.units)
        accuracy = f"{before.partition(' [')[0]} to {after}"
        counts = f"{task.right_to_wrong:,} of {several(task.instances, report.noun)} became wrong"
        changed = f"decisions changed for {task.units_changed:,} of {several(task.units, report.unit)}"
        flips = f"{counts}, {task.wrong_to_right:,} became right"
        line = f"{task.title}: AUC {auc}, accuracy {accuracy}; {flips}; {changed}"
        clear = _clear_changes(task, report.unit)
        yield f"{line}; clear change: {clear}" if clear else line


def _folds_table(report: Findings) -> LinkedTable | None:
    """Return the table of the folds; None for a single run."""
    if not report.folds:
        return None
    last = report.last_task
    rows = []
    for fold in report.folds:
        changes = [*shares_of(fold.accuracy, fold.units), _share(fold.right_to_wrong, fold.units)]
        digits = 2 + decimals_of(fold.units)
        scores = []
        for change in (fold.auc, fold.brier):
            scores += [_number(change.before, digits), _number(change.after, digits)]
        cells = [
            label_cell(fold.fold),
            label_cell(fold.run_id[:8]),
            _counted(fold.units, report),
            count_cell(fold.instances),
        ]
        cells += [*changes, *scores, *shares_of(fold.calibration, fold.units)]
        if last is not None:
            new = fold.new_accuracy
            cells.append(TextCell(DASH, "") if new is None else _share(new, fold.new_units))
            cells.append(_counted(fold.new_units, report))
        rows.append(cells)
    header = _header(_FOLDS, report)
    if last is not None:
        header += (f"accuracy after in {last.title} (new)", "from, new")
    return _table("folds", "The models of each fold", header, rows, 2)


def _counts_table(report: Findings) -> LinkedTable | None:
    """Return the table of test patients by task; None with many tasks, or without people."""
    titles = list(report.counts[0].units)
    if len(titles) > _MOST_TASKS or report.unit == "instance":
        return None
    last = None if report.last_task is None or report.against else report.last_task.title
    rows = []
    for part in report.counts:
        cells = [label_cell(part.name)]
        for title in titles:
            units = part.units[title]
            text = f"{units:,}" if report.unit == report.noun else f"{units:,} ({part.instances[title]:,})"
            cells.append(count_cell(units, text))
        rows.append(cells)
    header = ("of", *(f"{title} (new)" if title == last else title for title in titles))
    table = _table("counts", f"Test {report.unit}s", header, rows)
    return replace(table, stacked=len(header) > _MOST_COUNTS)


def _slices_table(report: Findings) -> LinkedTable:
    """Return the table of groups of instances; those of fewer than three people are grey."""
    rows = [_slice_row(part, report) for part in report.flips]
    few = [position for position, part in enumerate(report.flips) if part.units < MIN_UNITS]
    table = _table("slices", "Each class, task and subgroup", _header(_SLICES, report), rows, 2)
    return replace(table, greyed=frozenset(few))


def _caption_of_criteria(report: Findings) -> str:
    """Return the caption of the table of criteria; empty without any."""
    if not report.criteria:
        return ""
    order = "Failed criteria come first, the one farthest from its limit at the top."
    return f"{report.judged_on} {order}".lstrip()


def _how_to_judge(report: Findings) -> str:
    """Return how a criterion is judged, and what its marks mean; empty without criteria."""
    if not report.criteria:
        return ""
    rule = "The measured value decides, not its interval."
    if any(decision.criterion == "max_calibration_error" for decision in report.criteria):
        rule += " One exception: a calibration error fails only if its whole interval is above the limit."
    return (
        f"{rule} A verdict is certain if it is about at least {FEW_PEOPLE} {report.unit}s, and the whole interval "
        f"is on one side of the limit. A criterion about fewer than {several(report.criteria[0].needed, report.unit)} "
        "is not judged: it neither holds nor fails. Marks: check, holds; cross, fails; question mark, not judged; "
        "filled, certain; an outline, not certain."
    )


def _criteria_table(report: Findings) -> LinkedTable:
    """Return the table of criteria; those with too few units to judge are grey."""
    ordered = by_verdict(report.criteria)
    rows = [_criterion(decision, report) for decision in ordered]
    unjudged = [position for position, decision in enumerate(ordered) if decision.holds is None]
    table = _table("decisions", "Verdicts", _CRITERIA, rows, 2)
    return replace(table, greyed=frozenset(unjudged))


def _last_task_table(report: Findings) -> LinkedTable | None:
    """Return the table of the updated model on the last task; None without test instances of its own."""
    last = report.last_task
    if last is None:
        return None
    rows = []
    for part in last.classes:
        instances = count_cell(part.positives, f"{part.positives:,} of {part.instances:,}")
        rates = [_share(part.sensitivity.after, part.units), _share(part.specificity.after, part.units_without)]
        rows.append([label_cell(part.name), instances, _units(part, report), *rates])
    return _table("last-task", f"Each class in {last.title}, after the update", _header(_LAST_TASK, report), rows)


def _overall_row(change: Change, units: int) -> Cells:
    if change.name != "Brier score":
        return [label_cell(change.name), *shares_of(change, units, True)]
    digits = 2 + decimals_of(units)
    numbers = [_number(quantity, digits) for quantity in (change.before, change.after, change.difference)]
    return [label_cell(change.name), *numbers]


def _class_row(part: ClassMeasures, report: Findings) -> Cells:
    instances = count_cell(part.positives, f"{part.positives:,} of {part.instances:,}")
    rates = [*shares_of(part.sensitivity, part.units), *shares_of(part.specificity, part.units_without)]
    return [label_cell(part.name), instances, _units(part, report), *rates]


def _fixed_row(part: ClassMeasures) -> Cells:
    fewest = min(part.units, part.units_without)
    sensitivity = shares_of(part.sensitivity_at_specificity, fewest)
    specificity = shares_of(part.specificity_at_sensitivity, fewest)
    return [label_cell(part.name), *sensitivity, *specificity]


def _became_rows(report: Findings) -> list[Cells]:
    return [_count_row(before, counts) for before, counts in report.became.items()]


def _count_row(name: str, counts: Mapping[str, int]) -> Cells:
    """Return a row of a square table of counts; the cell on its diagonal is bold."""
    cells = [label_cell(name)]
    for other, count in counts.items():
        cells.append(replace(count_cell(count), bold=name == other))
    return cells


def _confusion_table(when: str, matrix: Matrix) -> LinkedTable | None:
    """Return a confusion matrix as a table; None if instances have several classes."""
    if not matrix:
        return None
    names = next(iter(matrix.values()))
    rows = [_count_row(truth, counts) for truth, counts in matrix.items()]
    table = _table(f"confusion-{when}", f"Confusion matrix {when}", ("true \\ decided", *names), rows)
    return replace(table, stacked=len(table.table.header) > _MOST_COUNTS)


def _slice_row(part: Slice, report: Findings) -> Cells:
    name, value = (part.title(report.noun), "") if part.column == "all" else (part.column, part.name)
    counts = [count_cell(part.instances), _units(part, report)]
    flips = [_share(part.right_to_wrong, part.units), _share(part.wrong_to_right, part.units)]
    return [label_cell(name), label_cell(value), *counts, *shares_of(part.accuracy, part.units, True), *flips]


def _new_class_rows(report: Findings) -> list[Cells]:
    rows = []
    for part in report.new_classes:
        missing = TextCell("not available before", "")
        counts = [count_cell(part.instances), _counted(part.units, report)]
        rows.append([label_cell(part.name), *counts, missing, _share(part.accuracy, part.units)])
    return rows


def _new_people_table(report: Findings) -> LinkedTable | None:
    """Return the table of people of the last task whose decisions changed; None without any."""
    if report.last_task is None or not report.new_people:
        return None
    title = f"Those of {report.last_task.title} (new)"
    return _table("new-people-changed", title, _header(_PEOPLE, report), _people_rows(report.new_people))


def _people_rows(people: Sequence[ChangedPerson]) -> list[Cells]:
    rows = []
    for person in people[:MOST_PEOPLE]:
        counts = [count_cell(person.instances)]
        for became in BECAME:
            counts.append(count_cell(person.count(became)))
        changes = TextCell("; ".join(_changes_in_words(person.flips)), "")
        rows.append([label_cell(person.pseudonym), *counts, changes])
    return rows


def _recordings_table(report: Findings) -> LinkedTable | None:
    """Return the table of decisions that changed, those of the last task at the end; None without any."""
    rows = []
    for person, flip in _changes(report)[:MOST_CHANGES]:
        words = [flip.task_title, flip.label or "no class", flip.before, flip.after]
        cells = [label_cell(person.pseudonym), count_cell(flip.instance, str(flip.instance))]
        cells += [TextCell(text, text) for text in words]
        for probability in (flip.probability_before, flip.probability_after):
            cells.append(TextCell(number(probability, 2), probability))
        rows.append([*cells, TextCell(CHANGES[flip.became], flip.became)])
    if not rows:
        return None
    return _table("recordings-changed", f"Each {report.noun} whose decision changed", _RECORDINGS, rows)


def _changes(report: Findings) -> list[tuple[ChangedPerson, Flip]]:
    """Return the decisions that changed with their people, in the order of the tables of people."""
    changes = []
    for person in (*report.people, *report.new_people):
        changes += [(person, flip) for flip in person.flips]
    return changes


def _caption_of_recordings(report: Findings) -> str:
    """Return the caption of the table of decisions that changed."""
    many = len(_changes(report))
    first = f" The first {MOST_CHANGES} of {many:,}; JSON has all." if many > MOST_CHANGES else ""
    looked_up = ""
    if report.pseudonyms_are_kept:
        looked_up = (
            " On the machine with the secret, update-report --who flipped has names and dates of the recordings."
        )
    return (
        f"Probabilities are those of the true class. The number is that of the {report.noun} in the prepared data."
        f"{first}{looked_up}"
    )


def changes_in_all(report: Findings, people: Sequence[ChangedPerson]) -> str:
    """Return a sentence on decisions that changed: "26 windows: 0 became wrong, 23 right, 3 stayed wrong."."""
    counts = dict.fromkeys(BECAME, 0)
    for person in people:
        for flip in person.flips:
            counts[flip.became] += 1
    wrong, right, otherwise = counts.values()
    how = ", but with another decision" if otherwise else ""
    instances = several(wrong + right + otherwise, report.noun)
    sentence = f"{instances}: {wrong:,} became wrong, {right:,} right, {otherwise:,} stayed wrong{how}."
    if len(people) > MOST_PEOPLE:
        sentence += f" The first {MOST_PEOPLE} of {len(people):,}; JSON has all."
    return sentence


def _changes_in_words(flips: Sequence[Flip]) -> Iterable[str]:
    """Yield each change of decision with the number of its instances: "3 of AFIB: AFIB before, NSR after"."""
    counts: dict[tuple[str, str, str], int] = {}
    for flip in flips:
        key = flip.label, flip.before, flip.after
        counts[key] = counts.get(key, 0) + 1
    for (label, before, after), count in counts.items():
        yield f"{count} of {label or 'no class'}: {before} before, {after} after"


def _header(names: Sequence[str], report: Findings) -> tuple[str, ...]:
    """Return the header of a table with the word of the report for instances."""
    return tuple(f"{report.noun}s" if name == "instances" else name for name in names)


def _table(
    name: str, title: str, header: Sequence[str], rows: Sequence[Sequence[TextCell]], labels: int = 1
) -> LinkedTable:
    text = TextTable(name, title, tuple(header), tuple(map(tuple, rows)), labels)
    return replace(no_links(text, ()), stacked=True)


def _units(part: Slice | ClassMeasures, report: Findings) -> TextCell:
    return _counted(part.units, report)


def _counted(units: int, report: Findings) -> TextCell:
    """Return a number of patients in words that stay on one line."""
    return count_cell(units, several(units, report.unit).replace(" ", "\N{NO-BREAK SPACE}"))


def _share(quantity: Quantity, units: int, signed: bool = False) -> TextCell:
    return TextCell(percent(quantity, units, signed), quantity.value)


def _number(quantity: Quantity, digits: int) -> TextCell:
    """Return a number with its interval."""
    text = number(quantity.value, digits)
    if math.isfinite(quantity.low):
        text += f" [{number(quantity.low, digits)}, {number(quantity.high, digits)}]"
    return TextCell(text, quantity.value)


def shares_of(change: Change, units: int, difference: bool = False) -> Cells:
    """Return the cells before and after, and of the difference if wanted."""
    before, after = change.before.as_share(), change.after.as_share()
    if not difference:
        return [_share(before, units), _share(after, units)]
    values = before.value, after.value, change.difference.value
    return [TextCell(text, value) for text, value in zip(percents(change, units), values, strict=True)]


def _criterion(decision: Decision, report: Findings) -> Cells:
    is_maximum = decision.criterion.startswith("max")
    sign = "\N{LESS-THAN OR EQUAL TO}" if is_maximum else "\N{GREATER-THAN OR EQUAL TO}"
    limit = TextCell(f"{sign}\N{NO-BREAK SPACE}{100 * decision.limit:g}\N{NO-BREAK SPACE}%", decision.limit)
    value = _shown(decision)
    words = verdict_in_words(decision, report.unit)
    outcome = TextCell(words, words, bold=decision.holds is False)
    about = TextCell(_tested_on(decision, report), decision.units)
    return [outcome, label_cell(_name(decision)), limit, TextCell(measured(decision, value), value.value), about]


def _flips_picture(report: Findings) -> Picture:
    caption = (
        f"For each row, the share of its test {report.noun}s whose decision became wrong or right; their number is in "
        f"brackets. Black lines: 95 % intervals. Grey: fewer than {MIN_UNITS} {report.unit}s."
    )
    return sketch(draw_flips, Flips(report.flips, report.noun), "flips", "What became wrong and right", caption).drawn(
        files=False
    )


def _reliability_picture(report: Findings) -> Picture:
    caption = (
        f"Decisions on test {report.noun}s in {BINS} bins of equal width of their confidence: the share that is right, "
        "and the share of all decisions. On the dashed line, as many decisions are right as their confidence says."
    )
    record = Reliability(*report.reliability)
    return sketch(draw_reliability, record, "reliability", "Reliability", caption).drawn(files=False)


def _tracings_pictures(report: Findings) -> list[Picture]:
    """Return a figure for each tracing of a flip; none without flips or without frames."""
    pictures = []
    for position, tracing in enumerate(report.tracings, 1):
        item = sketch(draw_tracing_of_flip, tracing, f"tracing-{position}", f"Tracing {position}", "")
        pictures.append(item.drawn(files=False))
    return pictures


def _caption_of_tracings(report: Findings) -> str:
    """Return the caption of the tracings; empty without any."""
    if not report.tracings:
        return ""
    unit = report.tracings[0].unit
    many = len(report.tracings)
    whose = f"each of the first {many} {report.unit}s" if many > 1 else f"the first {report.unit}"
    return (
        f"The first decision that changed, of {whose} of the table, without its "
        f"mean{f', in {unit}' if unit else ''}. Titles: pseudonym, true class and decisions."
    )
