"""The report's section on claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from clops_sweep.experiment.axis_names import axis_symbol
from clops_sweep.experiment.metrics import short_name
from clops_sweep.experiment.spaces.claims import Contrast

from .. import statistics
from ..claims.history import history_as_data, history_in_words
from ..claims.verdicts import Verdict
from ..collect import label_text
from ..formats import DASH, TextCell, TextTable, count_cell, label_cell, number, p_cell, plural, with_interval
from ..metrics import metric_named
from ..statistics import ALPHA
from .page import LinkedTable, RunList, Section, free_name
from .sections import SectionFiles

NAME = "claims"
MOST_IN_HEADLINE = 3
"""Most claims in the headline of a report."""
_OF_WHICH_SET = (
    "Measures are of the validation set unless their name says test; those of s and beta are of the training set."
)


def data_in_words(verdict: Verdict) -> str:
    """Describe scenario, data set and departures from the paper: "class_il, mitbih, b = 0.1"."""
    return ", ".join([verdict.claim.scenario, verdict.dataset, *departures_in_words(verdict)])


def departures_in_words(verdict: Verdict) -> list[str]:
    """Describe the settings that differ from the paper."""
    return [f"{axis_symbol(name)} = {label_text(value)}" for name, value in verdict.runs.departures.items()]


def measure_in_words(verdict: Verdict) -> str:
    """Name the measure of the difference that supports the claim least, or the measures of both sides."""
    contrast = verdict.weakest.contrast
    ours = metric_named(contrast.measure).plain
    if contrast.of_theirs in (None, contrast.measure):
        return ours
    return f"{ours} minus {metric_named(contrast.of_theirs).plain}"


def counts_in_words(verdicts: Sequence[Verdict]) -> str:
    """Count the outcomes: "3 hold, 1 does not hold, 20 undecided"."""
    counts = Counter(verdict.outcome for verdict in verdicts)
    holds, fails = counts["holds"], counts["does not hold"]
    hold = "holds" if holds == 1 else "hold"
    do = "does" if fails == 1 else "do"
    return f"{holds} {hold}, {fails} {do} not hold, {counts['undecided']} undecided"


def claims_in_words(
    verdicts: Sequence[Verdict], seal: str = "", most: int = MOST_IN_HEADLINE, files: int = 1
) -> list[str]:
    """Return the outcomes of claims as sentences, with the difference, or with the reason if nothing is compared.

    Several claims are counted before. Of many claims, these are the first ones with a difference.

    Args:
        verdicts: the verdicts.
        seal: whether the claims are sealed, in words, which the first sentence repeats if they are.
        most: most claims that have a sentence.
        files: number of files that have the claims.
    """
    by_evidence = sorted(verdicts, key=lambda verdict: not verdict.weakest.n)
    several_data = len({(verdict.claim.scenario, verdict.dataset) for verdict in verdicts}) > 1
    sealed = f" ({seal})" if seal.startswith("sealed") else ""
    of_files = "this file" if files < 2 else "these files"
    sentences = [f"Claims of {of_files}{sealed}: {counts_in_words(verdicts)}."] if len(verdicts) > 1 else []
    opening = "" if len(verdicts) > 1 else f"Claim{sealed}: "
    for verdict in by_evidence[:most]:
        where = f" on {verdict.dataset}, {verdict.claim.scenario}" if several_data else ""
        evidence = verdict.missing
        if verdict.weakest.n:
            evidence = evidence_in_words(verdict)
            if verdict.outcome == "does not hold":
                evidence += f"; smallest relevant difference: {verdict.claim.matters:.2g}"
            if verdict.as_tuned:
                evidence += f"; as tuned: {verdict.as_tuned}"
            if verdict.missing:
                evidence += f"; {verdict.missing}"
        if changed := history_in_words(verdict):
            evidence += f"; {changed}"
        claim = verdict.claim.sentence
        sentences.append(f"{opening}{claim[0].upper()}{claim[1:]}{where}: {verdict.outcome} ({evidence}).")
    return sentences


def evidence_in_words(verdict: Verdict) -> str:
    """Return the difference that supports the claim least: "AUC of ER minus EWC: +0.1, at least 0.0, n = 5 seeds"."""
    contrast = contrast_in_words(verdict.weakest.contrast)
    return f"{contrast}: {difference_in_words(verdict)}, n = {n_of_units(verdict)}"


def contrast_in_words(contrast: Contrast) -> str:
    """Return what is subtracted from what: "test AUC of ER minus fine-tuning"."""
    ours, theirs = contrast.sides
    measure = short_name(contrast.measure)
    other = short_name(contrast.of_theirs) if contrast.of_theirs else measure
    first = "0" if ours is None else f"{measure} of {ours.name}"
    if theirs is None:
        return first
    if ours is not None and other == measure:
        return f"{first} minus {theirs.name}"
    return f"{first} minus {other} of {theirs.name}"


def difference_in_words(verdict: Verdict) -> str:
    """Format the difference that supports the claim least, with its interval; a dash if nothing was compared.

    A bound alone reads "+0.239, at least 0.020".
    """
    evidence = verdict.weakest
    if not evidence.n:
        return DASH
    interval = evidence.interval
    mean = with_interval(evidence.mean, np.nan, np.nan)
    if np.isposinf(interval.high):
        return f"{mean}, at least {number(interval.low)}"
    if np.isneginf(interval.low):
        return f"{mean}, at most {number(interval.high)}"
    return with_interval(evidence.mean, interval.low, interval.high)


def level_in_words(verdict: Verdict) -> str:
    """Format the level of the interval, such as "95 %"; a dash without one."""
    level = verdict.weakest.interval.level
    return f"{100 * level:.4g} %" if np.isfinite(level) else DASH


def n_of_units(verdict: Verdict) -> str:
    """Describe the number and kind of the units."""
    n = verdict.weakest.n
    if not n:
        return DASH
    kind, _, _ = verdict.unit.partition(" ")
    unit = {"patient": "split", "folds": "fold", "seeds": "seed", "": ""}[kind]
    return plural(n, unit)


def notes_on_units(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """Return sentences on the units of verdicts."""
    units = []
    for verdict in verdicts:
        units += [contrast.units for contrast in verdict.runs.contrasts if contrast.pairs]
    return statistics.units_in_words(units)


def claims_text(verdicts: Sequence[Verdict], seal: str = "") -> TextTable:
    """Return the verdicts on claims as a table: all that a file declares, of the paper's those with runs.

    Its data has all claims.

    Args:
        verdicts: the verdicts.
        seal: whether declared claims are sealed, in words; empty for the paper's claims.
    """
    shown = _shown(verdicts, seal)
    header: tuple[str, ...] = (
        "claim",
        "data",
        "measure",
        "verdict",
        "difference",
        "level",
        "n",
        "smallest relevant difference",
        "p, as claimed",
        "p, contrary",
    )
    rows = [_cells(verdict) for verdict in shown]
    if any(verdict.claim.where for verdict in shown):
        header = (*header, "source" if seal else "paper")
        rows = [(*row, label_cell(verdict.claim.where)) for row, verdict in zip(rows, shown, strict=True)]
    whose = (
        "The paper's claims, in our words, and whether these runs support them. On data other than the paper's, a "
        "verdict says nothing about the paper's own results."
    )
    if seal:
        whose = f"Claims that the search-space file declares, {seal}."
    notes = [
        whose,
        _OF_WHICH_SET,
        "Difference: mean of the differences within the same patient split and seed, with the interval of the t-test "
        "that decides, at its level: one bound if the claim has one direction and is decided, else [low, high]. Of "
        "several differences, the table shows the one that supports the claim least.",
        *notes_on_units(shown),
        f"Verdicts use one-sided t-tests (two for an equality), adjusted by Holm over all claims on a data set (p < "
        f"{ALPHA:g}); the level of an interval includes this adjustment, so that it may be above "
        "95 % where several claims are tested. Holds: shown to be as claimed. Does not hold: "
        "shown to be smaller than the smallest relevant difference or, for an equality, larger. Undecided: neither. "
        "p, as claimed: of the test that can show that the claim holds; p, contrary: of the one that can show that it "
        "does not hold.",
    ]
    limited: dict[str, list[str]] = {}
    for verdict in shown:
        if not verdict.weakest.n:
            notes.append(f"Not compared: {verdict.claim.sentence}: {verdict.missing}.")
        elif verdict.missing:
            limited.setdefault(verdict.missing, []).append(verdict.claim.sentence)
        if verdict.as_tuned:
            notes.append(f"Compared as tuned: {verdict.claim.sentence}: {verdict.as_tuned}.")
        if changed := history_in_words(verdict):
            notes.append(f"Changed verdict: {verdict.claim.sentence}: {changed}.")
    for missing, sentences in limited.items():
        notes.append(f"Limits of the comparison: {'; '.join(sentences)}: {missing}.")
    others = len(verdicts) - len(shown)
    if others:
        notes.append(f"{plural(others, 'further claim')} without runs: the CSV file says what is missing.")
    title = "Claims" if seal else "Claims of the paper"
    data = pd.DataFrame(claims_as_data(verdicts), dtype=object)
    return TextTable(NAME, title, header, tuple(rows), 2, (), tuple(notes), data)


def _shown(verdicts: Sequence[Verdict], seal: str) -> list[Verdict]:
    """Return the verdicts in the table; only claims that a file declares are there without runs."""
    return [verdict for verdict in verdicts if seal or verdict.weakest.n]


def _cells(verdict: Verdict) -> tuple[TextCell, ...]:
    """Return the row of a verdict in the table."""
    evidence = verdict.weakest
    claim = verdict.claim
    return (
        label_cell(claim.sentence),
        label_cell(data_in_words(verdict)),
        label_cell(measure_in_words(verdict)),
        TextCell(verdict.outcome, verdict.outcome, verdict.outcome != "undecided"),
        TextCell(difference_in_words(verdict), evidence.mean),
        TextCell(level_in_words(verdict), evidence.interval.level),
        count_cell(evidence.n, n_of_units(verdict)),
        TextCell(f"{claim.matters:.2g}", claim.matters),
        p_cell(verdict.p_for),
        p_cell(verdict.p_against),
    )


def minus(contrast: Contrast) -> str:
    """Return the difference of a contrast in words: "ER minus fine-tuning"; 0 stands for a missing side."""
    sides = ["0" if side is None else side.name for side in contrast.sides]
    return " minus ".join(sides)


def claims_as_data(verdicts: Sequence[Verdict]) -> list[dict[str, object]]:
    """Return every contrast of every claim in full precision, with the condition that selects its runs."""
    rows: list[dict[str, object]] = []
    for verdict in verdicts:
        claim = verdict.claim
        for evidence in verdict.evidence:
            interval = evidence.interval
            rows.append(
                {
                    "claim": claim.key,
                    "sentence": claim.sentence,
                    "paper": claim.where,
                    "scenario": claim.scenario,
                    "dataset": verdict.dataset,
                    "verdict": verdict.outcome,
                    "says": claim.says,
                    "matters": claim.matters,
                    "measure": evidence.contrast.measure,
                    "minus": minus(evidence.contrast),
                    "difference": evidence.mean,
                    "low": interval.low if np.isfinite(interval.low) else np.nan,
                    "high": interval.high if np.isfinite(interval.high) else np.nan,
                    "level": interval.level,
                    "n": evidence.n,
                    "unit": verdict.unit,
                    "p_for_holm": verdict.p_for,
                    "p_against_holm": verdict.p_against,
                    "missing": evidence.missing,
                    "as_tuned": evidence.as_tuned,
                    "changed": history_in_words(verdict),
                    "where": verdict.runs.condition,
                }
            )
    return rows


def claims_section(
    verdicts: Sequence[Verdict], sections: Sequence[Section], files: SectionFiles, seal: str = ""
) -> Section | None:
    """Return the section on the claims; None if it shows none, as without runs of the paper's claims.

    Args:
        verdicts: verdicts on all claims.
        sections: the other sections of the report, to link to.
        files: receives the tables.
        seal: whether declared claims are sealed, in words; empty for the paper's claims.
    """
    shown = _shown(verdicts, seal)
    if not shown:
        return None
    anchor = free_name(NAME, [section.anchor for section in sections], "-of-the-paper")
    text = claims_text(verdicts, seal)
    runs = tuple(_run_lists(shown, sections, anchor))
    written = files.add_table(text)
    decided = [position for position, verdict in enumerate(shown) if verdict.outcome != "undecided"]
    undecided = [position for position, verdict in enumerate(shown) if verdict.outcome == "undecided"]

    def part(positions: Sequence[int], name: str, title: str, folded: bool) -> LinkedTable:
        rows = tuple(text.rows[position] for position in positions)
        links = tuple(runs[position].anchor for position in positions)
        notes = (_OF_WHICH_SET,) if name != text.name else text.notes
        of_part = replace(text, name=name, title=title, rows=rows, notes=notes)
        return LinkedTable(of_part, links, written, folded, stacked=True)

    tables = [part(decided, text.name, text.title, folded=False)] if decided else []
    if undecided:
        name = f"{text.name}-undecided" if decided else text.name
        title = text.title if seal and not decided else plural(len(undecided), "undecided claim")
        tables.append(part(undecided, name, title, folded=not seal))
    if earlier := _history_text(shown):
        tables.append(LinkedTable(earlier, ("",) * len(earlier.rows), files.add_table(earlier), folded=True))
    return Section(anchor, text.title, f"{counts_in_words(shown)}.", (), (), tuple(tables), (), runs)


def _history_text(verdicts: Sequence[Verdict]) -> TextTable | None:
    """Return the verdicts that the store keeps, oldest first; None unless one was followed by another."""
    if all(len(verdict.earlier) < 2 for verdict in verdicts):
        return None
    kept = history_as_data(verdicts)
    sentences = {verdict.claim.key: verdict.claim.sentence for verdict in verdicts}
    rows = []
    for row in kept:
        numbers = [np.nan if row[name] is None else row[name] for name in ("difference", "low", "high", "p_for")]
        difference, low, high, p = numbers
        rows.append(
            (
                TextCell(row["at"][:16].replace("T", " "), row["at"]),
                label_cell(sentences[row["claim"]]),
                label_cell(row["dataset"]),
                TextCell(row["outcome"], row["outcome"], row["outcome"] != "undecided"),
                TextCell(number(difference), difference),
                TextCell(number(low), low),
                TextCell(number(high), high),
                count_cell(row["n"]),
                count_cell(row["pairs"]),
                p_cell(p),
                label_cell(row["version"]),
            )
        )
    header = ("time (UTC)", "claim", "data", "verdict", "difference", "low", "high", "n", "pairs", "p, as claimed")
    notes = (
        "Each verdict that a launch, a report or the command claims has shown, if it differs from the one before. "
        "Each further look at growing data adds a chance of a wrong verdict; the p-values do not count the looks.",
    )
    data = pd.DataFrame(kept, dtype=object)
    return TextTable(f"{NAME}-history", "Verdicts so far", (*header, "version"), tuple(rows), 3, (), notes, data)


def _run_lists(verdicts: Sequence[Verdict], sections: Sequence[Section], anchor: str) -> Iterator[RunList]:
    anchors = {section.anchor: set(_shown_in(section)) for section in sections}
    homes: dict[str, str] = {}  # of several sections with a run, the first
    for section in reversed(sections):
        for listed in section.runs:
            homes |= {run.run_id: section.anchor for run in listed.runs}
    for position, verdict in enumerate(verdicts):
        ids = verdict.runs.run_ids
        home = Counter(homes[run_id] for run_id in ids if run_id in homes).most_common(1)
        where = home[0][0] if home else ""
        figures = (f"{where}-{part}" for part in verdict.claim.figures)
        figure = next((name for name in figures if name in anchors.get(where, ())), where)
        title = f"{verdict.claim.sentence} ({data_in_words(verdict)})"
        count = plural(len(ids), "run")
        yield RunList(f"{anchor}-runs-{position}", title, count, (), verdict.runs.condition, figure)


def _shown_in(section: Section) -> Iterator[str]:
    yield from (picture.name for picture in (*section.pictures, *section.more_pictures))
    yield from (linked.table.name for linked in section.tables)
