"""The report: every figure and table of search spaces, as files and as one page."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

import numpy as np

from clops_sweep.data.catalog import DATASETS
from clops_sweep.errors import UsageError, listed, one_line, option, shown
from clops_sweep.experiment.spaces.claims import FileClaims
from clops_sweep.experiment.spaces.gc_paused import gc_paused
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.selection import check_names, file_name
from clops_sweep.store.launch_folders import prepared_root_to_name
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import SCHEMAS

from ..claims.history import verdicts_by_file
from ..claims.verdicts import verdicts
from ..collect import Experiment, computed_on, headline_of
from ..drawing.journal import check_journal
from ..drawing.pictures import Picture, sketch
from ..drawing.style import write_whole
from ..editions import Present
from ..figures.best_figure import draw_best
from ..figures.frames import Frames
from ..formats import plural
from ..leading import is_choice, what_was_tuned
from ..metrics import metric_named
from ..search_trials import collect_with_searches
from ..statistics import MIN_UNITS
from ..tables.best import (
    Best,
    Failing,
    best_sentences,
    best_text,
    failing_configurations,
)
from ..tables.by_task import by_task_text, forgetting_text, scores_by_task
from ..tables.learned import training_in_doubt
from ..tables.strategies import compare_strategies
from ..tables.tuning import TunedMethod, budgets_of, seen_in_words, tuning_text
from .best_means import best_means
from .claims_section import claims_in_words, claims_section
from .marks import DRAWN_FROM, MARKER, OF_FILES
from .page import LinkedTable, Section, free_name, no_links, render_page
from .page_comparisons import compared_on_page, fine_tuning_elsewhere, judged_by_metrics
from .planned import Found, PlannedSection, planned_sections
from .provenance import distinct_runs, files_of_plugins, provenance
from .sections import CountedFiles, SectionFiles, with_pictures
from .setup_table import Shown, people_in_words, setup_text
from .strategies_section import strategies_section
from .tuning_figures import TuningFigures, tuning_figures

_FOLDER_OF_TUNING = "tuning"
"""Folder of the figures of tuning, inside that of all figures."""
_MOST_BY_TASK = 3
"""Most search spaces with a table of scores by task."""
_MOST_DRAWN = 40
"""Most configurations in the figure of the best ones."""


@dataclass(frozen=True)
class ReportPaths:
    """Paths of a report: the page, the figures as PNG, PDF and SVG, the tables as .md, .tex and .csv.

    As the last line of a notebook's cell, it shows the page.
    """

    index: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]

    def __repr__(self) -> str:
        return f"<ReportPaths: {self.index}, {plural(len(self.figures), 'file')} of figures>"

    def _repr_html_(self) -> str:
        page = escape(self.index.read_text(encoding="utf-8"), quote=True)
        name = escape(str(self.index), quote=True)
        return f'<iframe srcdoc="{page}" title="{name}" style="width: 100%; height: 640px; border: 0"></iframe>'


@gc_paused()
def write_report(
    spaces: Sequence[SearchSpace],
    store: RunStore,
    folder: Path,
    *,
    title: str = "",
    axes: tuple[str, str] | None = None,
    metrics: Sequence[str] = (),
    data_hashes: Collection[str] = (),
    present: Present = lambda dataset: None,
    frames: Sequence[Frames] = (),
    experiments: Sequence[Experiment] = (),
    as_stored: Sequence[Experiment] = (),
    claims: Sequence[FileClaims] = (),
    seal: str = "not sealed",
    keep_verdicts: bool = False,
    tuned: Sequence[TunedMethod] = (),
    commands: Sequence[tuple[str, str]] = (),
    retry: str = "",
    notices: Sequence[str] = (),
    journal: bool = False,
    progress: Callable[[int, int], None] = lambda number, count: None,
) -> ReportPaths:
    """Write `index.html`, `figures/` and `tables/` into a folder, from the store alone.

    The sweep may be unfinished: missing cells are hatched, counted or named. Equal stores give equal files, byte for
    byte.

    Args:
        spaces: the search spaces to show, on one page.
        store: the store with the runs.
        folder: folder of the report; created if missing.
        title: heading of the page; by default the names of the search spaces.
        axes: rows and columns of the heatmaps; by default the first two numeric axes.
        metrics: columns of `runs` to show instead of the scenarios' headline metrics.
        data_hashes: data hashes or prepared hashes, or prefixes of them, of the editions to show instead of the newest.
        present: see `Preparations`.
        frames: prepared frames, for tracings and task titles of runs with their `data_hash`.
        experiments: further experiments without a search space
            (`clops_sweep.analysis.as_stored.stored_experiments`).
        as_stored: further experiments with unregistered plug-ins; claims are not decided on them.
        claims: the claims that each search-space file declares, decided on its own runs instead of the paper's.
        seal: whether the claims are sealed, in words.
        keep_verdicts: whether the store keeps the verdicts on these claims (`claims.looks`).
        tuned: the methods of tuned spaces, with their scores while tuning and when reported.
        commands: commands for the last section of the page, each with its purpose.
        retry: the command that repeats failed runs; empty to leave it out.
        notices: sentences for the top of the page, such as that runs are of an earlier edition of the data.
        journal: whether figures are drawn in the format of journals, 89, 120 or 183 mm wide.
        progress: called before each figure is drawn with its number, from 1, and the number of all figures.

    Raises:
        UsageError: there is no search space, two have the same name, an axis, metric or data hash is unknown, the
            folder cannot be written to or contains other files, or a package for `journal` is missing.
    """
    if not spaces and not experiments and not as_stored:
        raise UsageError("report: expected at least one search space")
    check_names(spaces)
    check_folder(folder, store)
    if journal:
        check_journal()
    known = {
        axis
        for axes_of in (*(it.axes for it in spaces), *(it.axes for it in (*experiments, *as_stored)))
        for axis in axes_of
    }
    for axis in axes or ():
        if axis not in known:
            raise UsageError(f"no search space has an axis {axis!r}; there are {', '.join(sorted(known)) or 'none'}")
    runs = store.read("runs")
    collected = collect_with_searches(spaces, store, data_hashes, axes or (), runs, present)
    every = [*(it for it, _ in collected), *experiments, *as_stored]
    judged = judged_by_metrics(every, (row.space for row in tuned), metrics)
    found: list[Found] = []
    for experiment, space, (_, record) in zip(judged, spaces, collected, strict=False):
        found.append((experiment, space, record))
    stored = judged[len(spaces) :]
    experiments = stored[: len(experiments)]
    planned = planned_sections([*found, *((it, None, None) for it in stored)], store, axes, frames)
    shown = [it.experiment for it in planned]
    written = [it for it, space, _ in found if space is not None and space.search is None]
    grids = [*written, *(it for it in stored if not it.is_tuning)]
    study = title or " ".join(it.experiment.name for it in planned[:1])
    files = CountedFiles(journal, file_name(study))
    drawn = [it for it in planned if not it.alone]
    page_of = compared_on_page(planned, compare_strategies(grids), grids, fine_tuning_elsewhere(runs, shown))
    names = [file_name(it.experiment.name) for it in drawn]
    overview = _overview(page_of.best, names, files)
    joint = _tuning_figures(tuned, found, [section.experiment.name for section in drawn])
    files.together = frozenset[str]().union(*(of_space.searches for of_space in joint.values()))
    sections = []
    for it, of_section in zip(drawn, page_of.sections, strict=True):
        files.space = it.experiment.name if len(drawn) > 1 else ""
        files.folder = _FOLDER_OF_TUNING if it.experiment.is_tuning else ""
        section = replace(it.draw(files, of_section), of_tuning=it.experiment.is_tuning)
        if retry and it.experiment.counts("failed").any():
            section = replace(section, notices=(*section.notices, f"Run the failed runs again with: {retry}"))
        sections.append(_folded_where_repeated(section, it.experiment, page_of.best))
    files.space, files.folder = "", ""
    compared = strategies_section(page_of.strategies, [section.anchor for section in sections], files)
    title = title or " · ".join(section.title for section in sections[:3]) + " · …" * (len(sections) > 3)
    of_tuned = {row.space for row in tuned}
    sections = [_named_apart(section, title, of_tuned) for section in sections]
    if compared is not None:
        sections.insert(0, compared)
    if tuned:
        of_results = [section for section in sections if not section.of_tuning]
        tuning = _tuning_section(tuned, [section.anchor for section in sections], files, joint)
        sections.insert(len(of_results), tuning)
    results = [it for it in experiments if not it.is_tuning]
    if claims:
        decided = verdicts_by_file(claims, written, store, frames, record=keep_verdicts)
    else:
        of_paper = verdicts([*written, *results], store, frames)
        decided = [verdict for verdict in of_paper if verdict.dataset not in DATASETS.added]
    claimed = claims_section(decided, sections, files, seal if claims else "")
    declared = claims_in_words(decided, seal, files=len(claims)) if claims else []
    best, lead = _best(planned, page_of.best, files, declared, tuned)
    lead += training_in_doubt(page_of.best, store)
    if tuned and lead:
        lead.append(_what_was_tuned(tuned))
    if all(it.experiment.is_tuning for it in drawn):
        lead = ["No result yet: the reported runs wait for the choices of the tuning."]
    of_names = {space.name: space for space in spaces}
    of_setup = [Shown(it.experiment, it.titles, of_names.get(it.experiment.name)) for it in planned]
    setup = setup_text(of_setup, free_name("setup", names, "-of-all"))
    pictures = files.draw_all(progress)
    sections = [with_pictures(section, pictures) for section in sections]
    overview = tuple(pictures[picture.name] for picture in overview)
    by_task = _by_task(planned, page_of.best, store, files)
    page = render_page(
        title,
        [*map(_as_sentence, notices), *lead, f"{_lead(shown)}{_people(shown)}"],
        best,
        sections,
        [*_metrics(shown), *provenance(shown)],
        claimed,
        store.files.anywhere,
        no_links(setup, files.add_table(setup)),
        overview,
        by_task,
        files_of_plugins(store, shown),
        prepared_root_to_name(store),
        commands,
        _path_in_store(folder, store),
    )
    try:
        write_whole(folder / MARKER, b"")
        for of_earlier_report in (DRAWN_FROM, OF_FILES):
            (folder / of_earlier_report).unlink(missing_ok=True)
        for name in _moved(files):
            (folder / "figures" / name).unlink(missing_ok=True)
        figures = [write_whole(folder / "figures" / name, content) for name, content in files.figures.items()]
        tables = [write_whole(folder / "tables" / name, content) for name, content in files.tables.items()]
        index = write_whole(folder / "index.html", page.encode())
    except OSError as error:
        raise UsageError(
            f"report folder {str(folder)!r}: cannot be written to ({error.strerror}); give "
            f"another one with {option('output')}"
        ) from None
    return ReportPaths(index, tuple(figures), tuple(tables))


def _path_in_store(folder: Path, store: RunStore) -> str:
    """Return the path of a page inside its store; empty if it is elsewhere."""
    root = store.files.folder
    if root is None:
        return ""
    page = folder.resolve() / "index.html"
    return page.relative_to(root.resolve()).as_posix() if page.is_relative_to(root.resolve()) else ""


def _named_apart(section: Section, title: str, spaces: Collection[str]) -> Section:
    """Return a section of runs that has another title than its page; that of tuning names the method."""
    if section.of_tuning and spaces:
        return replace(section, title=f"Tuning of {what_was_tuned(section.title, spaces)}")
    return replace(section, title=f"Runs of {section.title}") if section.title == title else section


def _folded_where_repeated(section: Section, experiment: Experiment, best: Sequence[Best]) -> Section:
    """Return a section whose first figure and table are folded, if the top of the page has all of its configurations.

    That is so where methods or named variants are compared, and none of them is chosen.
    """
    of_section = [row.cell for row in best if row.experiment is experiment]
    finished = np.flatnonzero(experiment.counts("finished"))
    if is_choice(experiment) or len(finished) < 2 or set(of_section) != set(finished.tolist()):
        return section
    repeated = [picture for picture in section.pictures if picture.name == f"{section.anchor}-metrics"]
    others = [picture for picture in section.pictures if picture not in repeated]
    tables = []
    for linked in section.tables:
        is_repeated = linked.table.name == f"{section.anchor}-results"
        tables.append(replace(linked, folded=True) if is_repeated else linked)
    more = (*repeated, *section.more_pictures)
    return replace(section, pictures=tuple(others), more_pictures=more, tables=tuple(tables))


def _moved(files: SectionFiles) -> list[str]:
    """Return the names of the figures of tuning that earlier versions wrote beside the others."""
    names = [Path(name).name for name in files.figures if name.startswith(f"{_FOLDER_OF_TUNING}/")]
    for search in sorted(files.together):
        for kind in ("history", "slices"):
            names += [f"{file_name(search)}-{kind}.{ending}" for ending in ("png", "pdf", "svg", "tex")]
    return names


def _tuning_figures(
    tuned: Sequence[TunedMethod], found: Sequence[Found], taken: Sequence[str]
) -> dict[str, TuningFigures]:
    """Return the figures of all methods of each tuned space, by its name."""
    prefix = free_name("tuning", [file_name(name) for name in taken], "-of-all")
    spaces = dict.fromkeys(row.space for row in tuned)
    return {space: tuning_figures(found, space, prefix) for space in spaces}


def _tuning_section(
    rows: Sequence[TunedMethod], taken: Sequence[str], files: SectionFiles, joint: Mapping[str, TuningFigures]
) -> Section:
    """Return the section with a table and the figures of all methods for each tuned space."""
    anchor, tables = free_name("tuning", taken, "-of-all"), []
    for space in dict.fromkeys(row.space for row in rows):
        of_space = [row for row in rows if row.space == space]
        text = tuning_text(of_space, f"{anchor}-{file_name(space)}")
        tables.append(replace(no_links(text, files.add_table(text)), stacked=True))
    chosen = sum(row.chosen is not None for row in rows)
    files.folder = _FOLDER_OF_TUNING
    pictures = [files.add_picture(item) for of_space in joint.values() for item in of_space.sketches]
    files.folder = ""
    progress = f"{chosen} of {plural(len(rows), 'choice')} made."
    return Section(anchor, "Tuning", progress, (), tuple(pictures), tuple(tables), (), ())


def _as_sentence(text: str) -> str:
    """Return a sentence of the terminal as one of a page, with a capital letter and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


def check_folder(folder: Path, store: RunStore) -> None:
    """Check that a report may be written to a folder: a new or empty one, or that of an earlier report.

    Raises:
        UsageError: the folder belongs to the store, or contains files that are not from a report.
    """
    where = f"report folder {shown(str(folder))}"
    try:
        resolved = folder.resolve()
        root = store.files.folder.resolve() if store.files.folder is not None else None
        for own in () if root is None else (root / name for name in (*SCHEMAS, ".work")):
            if resolved == own or own in resolved.parents:
                raise UsageError(f"{where}: it belongs to the store in {root}; expected a separate folder")
        if resolved == root:
            raise UsageError(
                f"{where}: it is the store itself; expected a separate folder, such as one inside the store"
            )
        if os.path.lexists(folder) and any(folder.iterdir()) and not _is_of_a_report(folder):
            raise UsageError(f"{where}: it contains files that are not from a report; expected a new or empty folder")
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, UsageError):
            raise
        what = error.strerror if isinstance(error, OSError) else one_line(error)
        raise UsageError(f"{where}: cannot be written to ({what})") from None


def _is_of_a_report(folder: Path) -> bool:
    if (folder / MARKER).is_file():
        return True
    index = folder / "index.html"  # written by a version that left no mark
    return index.is_file() and b'<section id="provenance">' in index.read_bytes()


def _best(
    planned: Sequence[PlannedSection],
    found: Sequence[Best],
    files: SectionFiles,
    claimed: Sequence[str],
    tuned: Sequence[TunedMethod],
) -> tuple[LinkedTable | None, list[str]]:
    """Return the best configurations of all search spaces, as a table and in sentences, if any run is finished.

    Claims that the search-space file declares come first, and say what is compared, instead of fine-tuning.
    """
    if not found:
        return None, []
    drawn = [section for section in planned if not section.alone]
    failing: list[Failing] = []
    for experiment in {id(best.experiment): best.experiment for best in found}.values():
        failing += failing_configurations(experiment)
    name = free_name("best", [file_name(section.experiment.name) for section in drawn], "-of-all")
    text = best_text(found, name, failing)
    text = replace(text, notes=(*text.notes, *_on_budgets(tuned)))
    links = [_anchor_of_runs(best.experiment, best.cell, drawn) for best in found]
    links += [_anchor_of_runs(failed.experiment, failed.cell, drawn) for failed in failing]
    table = LinkedTable(text, tuple(links), files.add_table(text), stacked=True)
    return table, [*claimed, *best_sentences(found, compares=not claimed)]


def _by_task(
    planned: Sequence[PlannedSection], found: Sequence[Best], store: RunStore, files: SectionFiles
) -> list[LinkedTable]:
    """Return the test scores and the forgetting by task of the best configurations of the first search spaces."""
    drawn = [section for section in planned if not section.alone]
    reporting = [section for section in drawn if not section.experiment.is_tuning]
    tables: list[LinkedTable] = []
    many = 0
    for section in drawn:
        experiment = section.experiment
        cells = [best.cell for best in found if best.experiment is experiment]
        titles = section.titles.of(experiment, cells[0]) if cells else {}
        record = scores_by_task(experiment, cells, store, titles)
        if record is None or many == _MOST_BY_TASK:
            continue
        many += 1
        name = file_name(experiment.name)
        links = tuple(_anchor_of_runs(experiment, cell, drawn) for cell in record.cells)
        texts = [by_task_text(record, f"{name}-by-task", of_several=len(reporting) > 1)]
        forgetting = forgetting_text(record, f"{name}-forgetting-by-task", of_several=len(reporting) > 1)
        if forgetting is not None:
            texts.append(forgetting)
        for text in texts:
            tables.append(LinkedTable(text, links, files.add_table(text), stacked=True))
    return tables


def _anchor_of_runs(experiment: Experiment, cell: int, drawn: Sequence[PlannedSection]) -> str:
    """Return the anchor of the runs of a configuration, which may be listed as a reference of another section."""
    for section in drawn:
        name = file_name(section.experiment.name)
        if section.experiment is experiment:
            return name if section.is_search else f"{name}-runs-{cell}"
        for position, reference in enumerate(section.references, len(section.experiment.cells)):
            if reference.experiment is experiment and reference.cell == cell:
                return f"{name}-runs-{position}"
    return ""


def _on_budgets(tuned: Sequence[TunedMethod]) -> list[str]:
    """Return a sentence for each tuned space whose methods were tuned on different numbers of configurations."""
    spaces = dict.fromkeys(row.space for row in tuned)
    sentences = []
    for space in spaces:
        unequal = budgets_of([row for row in tuned if row.space == space])
        if unequal:
            sentences.append(f"{space}: {unequal}." if len(spaces) > 1 else f"{unequal}.")
    return sentences


def _what_was_tuned(tuned: Sequence[TunedMethod]) -> str:
    """Return a sentence on the scores that chose the configurations."""
    measures = list(dict.fromkeys(metric_named(row.measure).plain for row in tuned))
    ways = list(dict.fromkeys(row.tune_on for row in tuned))
    seen = seen_in_words(tuned)
    also = f"; {seen} of them were validation people while tuning, in another split" if seen else ""
    return (
        f"Tuning chose the configurations by {' and '.join(measures)} on validation people ({listed(ways)}); scores of "
        f"reported runs are on test people{also}."
    )


def _overview(found: Sequence[Best], taken: Sequence[str], files: SectionFiles) -> tuple[Picture, ...]:
    """Return the figure of the best configurations with their intervals, if there are several."""
    if not 1 < len(found) <= _MOST_DRAWN:
        return ()
    record = best_means(found)
    whose = computed_on([best.experiment for best in found], list(record.means))
    caption = f"{_intervals_in_words(found)} Metrics of {whose}."
    name = free_name("methods-with-intervals", taken, "-of-all")
    best_table = free_name("best", taken, "-of-all")
    item = sketch(draw_best, record, name, "Methods with intervals", caption, values_in=best_table)
    return (files.add_picture(item),)


def _intervals_in_words(found: Sequence[Best]) -> str:
    """Return what the intervals of the figure of the best configurations are over, in sentences."""
    means = [best.means[metric] for best in found for metric in best.columns.results]
    kinds = {mean.units.kind for mean in means if mean.units is not None}
    if not any(np.isfinite(mean.low) for mean in means):
        return f"Means without intervals: fewer than {MIN_UNITS} values each. Rings: single values."
    over = " over the seeds of one patient split, not over people" if kinds == {"seeds"} else ""
    return (
        f"Means with 95 % intervals{over}, unadjusted. Small rings: single values, where there are fewer than "
        f"{MIN_UNITS}."
    )


def _lead(experiments: Sequence[Experiment]) -> str:
    """Count the runs of experiments; those of tuning apart."""
    reported = [experiment for experiment in experiments if not experiment.is_tuning]
    tuning = [experiment for experiment in experiments if experiment.is_tuning]
    if not tuning or not reported:
        return f"{_counted(experiments, 'run')}."
    return f"{_counted(reported, 'reported run')}, and {_counted(tuning, 'tuning run')}."


def _people(experiments: Sequence[Experiment]) -> str:
    """Return a sentence with the numbers of people of the reported runs; empty if search spaces differ in them."""
    reported = [experiment for experiment in experiments if not experiment.is_tuning]
    texts = {people_in_words(experiment.runs) for experiment in reported or experiments}
    text = texts.pop() if len(texts) == 1 else ""
    return f" People of a run: {text}." if text and not text.startswith("unknown") else ""


def _counted(experiments: Sequence[Experiment], noun: str) -> str:
    counts = distinct_runs(experiments)
    asked = sum(counts.values())
    text = f"{counts['finished']:,} of {plural(asked, noun)} {'is' if asked == 1 else 'are'} finished"
    text += f", {counts['failed']:,} failed" if counts["failed"] else ""
    if asked < sum(len(experiment.runs) for experiment in experiments):
        text += "; equal configurations share runs"
    return text


def _metrics(experiments: Sequence[Experiment]) -> Iterator[tuple[str, str]]:
    """Return the split that metrics are computed on, and the formula of each."""
    names = headline_of(experiments)
    yield "Metrics", f"Computed on {computed_on(experiments, names)}."
    for metric in map(metric_named, names):
        better = "" if metric.better is None else f"; better when {metric.better}"
        yield "Metrics", f"{metric.plain}: {metric.formula}{better}."
