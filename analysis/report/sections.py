"""The report's section on one search space: its figures and tables, with captions."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clops_sweep.errors import listed
from clops_sweep.experiment.fields import REPLICATES
from clops_sweep.experiment.metrics import without_split
from clops_sweep.store.run_store import RunStore

from ..collect import Experiment, computed_on, label_text
from ..drawing.pictures import Picture, Sketch, sketch
from ..editions import left_aside_in_words, replaced_in_words
from ..failures import failure_notices
from ..figures.asked import Asked
from ..figures.beta.beta_figures import beta_figures
from ..figures.differences import difference_heatmap
from ..figures.frames import Frames
from ..figures.heatmaps import draw_heatmap, heatmap
from ..figures.profiles import draw_profile, profile
from ..figures.sweep_figures import sweep_figures
from ..figures.task_figures import task_figures
from ..figures.task_titles import TaskTitles
from ..formats import TextTable, as_csv, plural, plus_minus, published_text, result_text, to_markdown
from ..metrics import PAPER, metric_named
from ..published import Departure
from ..results import Reference, ResultTable, result_table
from ..selection import cell_name, cells_by_data, competing_cells, shown_metrics, variants
from ..statistics import Estimate, Fold, Split, estimate, split_name
from ..tables.comparisons import Comparisons, comparison_text, comparisons, without_undecided
from ..tables.latex import figure_to_latex, to_latex
from ..tables.patients import patients_text
from .page import LinkedTable, RunEntry, RunList, Section, no_links
from .provenance import distinct_runs

_WHERE_VALUES_ARE = " Values are also in the tooltips of the SVG file."

_MOST_OPEN_ROWS = 20
"""Most rows of a table of single runs that is not folded."""

_COMPARED_APART = "Rows are compared within each data set and scenario."

BWT_VARIANTS = ("bwt_t", "bwt_lambda")
"""Variants of BWT, whose figures are folded."""


@dataclass
class SectionFiles:
    """Files of a report to write: name to content.

    Args:
        study: name of the report, the first part of labels in LaTeX.
        journal: whether figures are drawn in the format of journals.
        figures: figures as PNG, PDF, SVG and LaTeX.
        tables: tables as Markdown, LaTeX and CSV.
        together: names of the searches whose history and slices are drawn with those of other methods.
        folder: folder of added figures inside that of all figures; empty for none.
    """

    journal: bool = False
    study: str = ""
    figures: dict[str, bytes] = field(default_factory=dict)
    tables: dict[str, bytes] = field(default_factory=dict)
    together: frozenset[str] = frozenset()
    folder: str = ""

    def add_picture(self, item: Sketch) -> Picture:
        """Draw a figure and add its files."""
        return self.draw(item)

    def draw(self, item: Sketch) -> Picture:
        """Draw a figure now, and add its files: three formats, and LaTeX that shows the PDF."""
        picture = item.for_journals() if self.journal else item.drawn()
        gc.collect(1)  # frees tens of thousands of objects now, not at the end
        self.figures[f"{picture.path}.png"] = picture.png
        self.figures[f"{picture.path}.pdf"] = picture.pdf
        self.figures[f"{picture.path}.svg"] = picture.svg.encode("utf-8", "replace")
        text = figure_to_latex(
            picture.name,
            picture.title,
            picture.caption,
            self.study,
            full_width=not self.journal,
            in_two_columns=picture.is_wide,
        )
        self.figures[f"{picture.path}.tex"] = text.encode()
        return picture

    def add_table(self, table: TextTable) -> tuple[str, ...]:
        """Add the three files of a table."""
        contents = {
            "md": to_markdown(table),
            "tex": to_latex(table, self.study, journal=self.journal),
            "csv": as_csv(table.data),
        }
        for ending, content in contents.items():
            self.tables[f"{table.name}.{ending}"] = content.encode()
        return tuple(f"{table.name}.{ending}" for ending in contents)


@dataclass
class CountedFiles(SectionFiles):
    """Files of a report whose figures wait until all are known, so that drawing can be counted.

    Args:
        waiting: the figures that are not drawn yet.
        space: the search space that captions of added figures begin with; empty on a page of one.
    """

    waiting: list[Sketch] = field(default_factory=list)
    space: str = ""

    def add_picture(self, item: Sketch) -> Picture:
        """Return a figure that `draw_all` draws later."""
        if self.space:
            item = replace(item, caption=f"Search space {self.space}. {item.caption}")
        item = replace(item, folder=self.folder)
        self.waiting.append(item)
        return item.undrawn()

    def draw_all(self, progress: Callable[[int, int], None]) -> dict[str, Picture]:
        """Draw the figures that wait, and return them by name.

        Args:
            progress: called before each figure with its number, from 1, and the number of all.
        """
        count = len(self.waiting)
        pictures = {}
        for number in range(1, count + 1):
            progress(number, count)
            item = self.waiting.pop(0)
            pictures[item.name] = self.draw(item)
        return pictures


def with_pictures(section: Section, pictures: Mapping[str, Picture]) -> Section:
    """Return a section with figures that are drawn instead of those that waited."""
    return replace(
        section,
        pictures=tuple(pictures[picture.name] for picture in section.pictures),
        more_pictures=tuple(pictures[picture.name] for picture in section.more_pictures),
    )


def with_split(item: Sketch, experiment: Experiment, metrics: Sequence[str]) -> Sketch:
    """Return a figure whose caption says on whose data its metrics are computed."""
    of_data = any(metric_named(metric).split is not None for metric in metrics)
    if item.states_split or not of_data:
        return item
    return replace(item, caption=f"{item.caption} Metrics of {computed_on([experiment], metrics)}.")


def build_section(
    experiment: Experiment,
    references: Sequence[Reference],
    store: RunStore,
    prefix: str,
    axes: tuple[str, str] | None,
    frames: Sequence[Frames],
    titles: TaskTitles,
    apart: Sequence[str],
    files: SectionFiles,
    compared: Comparisons | None = None,
) -> Section:
    """Compute and draw the section of one search space; figures that cannot be shown are named with the reason.

    On the dashboard, each figure is drawn as soon as it is computed, the first ones before anything slow.

    Args:
        experiment: the experiment.
        references: cells of other experiments to compare with.
        store: the store with the runs' tables.
        prefix: beginning of the names of figures and tables.
        axes: the axes of heatmaps; by default the first two numeric axes.
        frames: prepared frames, for tracings.
        titles: titles of the tasks.
        apart: sentences on experiments that cannot be compared with this one.
        files: receives figures and tables.
        compared: the comparisons, corrected with those of the rest of the page; by default only among themselves.
    """
    grid = _grid_axes(experiment, axes)
    notices = [*_notices(experiment), *apart]
    metrics = shown_metrics([experiment, *(reference.experiment for reference in references)])

    def add(item: Sketch) -> Picture:
        return files.add_picture(with_split(item, experiment, metrics))

    pictures: list[Picture] = []
    folded: list[Picture] = []
    main, of_bwt = apart_from_variants(metrics)
    same = same_words(metrics)
    pictures += [add(item) for item in _heatmaps(experiment, references, main, grid, prefix, "metrics", same)]
    of_variants = _heatmaps(experiment, references, of_bwt, grid, prefix, "metrics-variants-of-bwt", "")
    folded += [add(item) for item in of_variants]
    if compared is None:
        compared = comparisons(experiment, references)
    differences = _difference_pictures(experiment, grid, compared, prefix) if grid is not None else ()
    pictures += [add(item) for item in differences]
    asked = Asked(experiment, store, prefix, titles, grid, references, frames)
    pictures += [add(item) for item in task_figures(asked)]
    of_training, of_sweep = list(beta_figures(asked)), list(sweep_figures(asked))
    more = [*of_training, *of_sweep]
    more_pictures = [*folded]
    more_pictures += [files.add_picture(item) for item in of_training if isinstance(item, Sketch)]
    more_pictures += [add(item) for item in of_sweep if isinstance(item, Sketch)]
    tables = list(_result_tables(experiment, references, compared, metrics, prefix, files))
    title = f"Intervals over test patients, {experiment.name}"
    if over_patients := patients_text(experiment, store, f"{prefix}-patients", title):
        is_long = len(over_patients.rows) > _MOST_OPEN_ROWS
        tables.append(replace(no_links(over_patients, files.add_table(over_patients)), folded=is_long))
    counts = distinct_runs([experiment])
    progress = f"{counts['finished']:,} of {sum(counts.values()):,} runs finished"
    progress += f", {counts['failed']:,} failed" if counts["failed"] else ""
    if shared := len(experiment.runs) - sum(counts.values()):
        progress += f"; equal configurations share {plural(shared, 'run')}"
    return Section(
        prefix,
        experiment.name,
        progress + ".",
        tuple(notices),
        tuple(pictures),
        tuple(tables),
        tuple(more_pictures),
        tuple(_run_lists(experiment, references, prefix)),
        tuple(item for item in more if isinstance(item, str)),
    )


def apart_from_variants(metrics: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return metrics without the variants of BWT, and those variants, whose figures are folded."""
    main = tuple(metric for metric in metrics if without_split(metric) not in BWT_VARIANTS)
    if not main:
        return tuple(metrics), ()
    return main, tuple(metric for metric in metrics if without_split(metric) in BWT_VARIANTS)


def _heatmaps(
    experiment: Experiment,
    references: Sequence[Reference],
    metrics: Sequence[str],
    grid: tuple[str, str] | None,
    prefix: str,
    name: str,
    same: str,
) -> Iterator[Sketch]:
    """Yield a heatmap of each metric; without two numeric axes, one figure of all metrics with the given name.

    `same` is a sentence on metrics that are left out because they equal BWT.
    """
    if grid is not None:
        for metric in metrics:
            if np.isfinite(experiment.by_replicate(metric)).any():
                yield _heatmap_picture(experiment, metric, grid, references, prefix, same)
    elif metrics and experiment.counts("finished").any():
        record = profile(experiment, metrics=metrics)
        caption = f"{_means(experiment)}."
        if len(experiment.repetitions) > 1:
            caption = f"{_means(experiment)} with one standard deviation from n = 3 on; small dots are the n values."
        title = "Variants of BWT" if set(map(without_split, metrics)) <= set(BWT_VARIANTS) else "Metrics"
        yield sketch(draw_profile, record, f"{prefix}-{name}", title, caption + same)


def reference_estimates(references: Sequence[Reference], metric: str) -> dict[str, Estimate]:
    """Return mean and standard deviation of every reference with a value."""
    found = {r.name: estimate(r.experiment.by_split(metric)[r.cell]) for r in references}
    return {name: value for name, value in found.items() if value.n}


def _grid_axes(experiment: Experiment, axes: tuple[str, str] | None) -> tuple[str, str] | None:
    if axes is not None and all(axis in experiment.axes for axis in axes):
        return axes
    scales = experiment.number_axes
    return (scales[0], scales[1]) if len(scales) > 1 else None


def same_words(metrics: Sequence[str]) -> str:
    """Return a sentence on metrics that are left out because they equal a metric that is shown."""
    shown = [without_split(metric) for metric in metrics]
    others = [metric_named(metric).plain for metric in PAPER if metric not in shown] if "bwt" in shown else []
    if not others:
        return ""
    return f" {' and '.join(others)}: equal to BWT in every run, as with two tasks; not shown separately."


def _heatmap_picture(
    experiment: Experiment,
    metric: str,
    axes: tuple[str, str],
    references: Sequence[Reference],
    prefix: str,
    same: str,
) -> Sketch:
    record = heatmap(experiment, metric, axes, reference_estimates(references, metric))
    deviation = " ± one standard deviation" * (len(experiment.repetitions) > 1 and not record.is_large)
    of_what = "each data set and scenario" if len(cells_by_data(experiment)) > 1 else "all"
    caption = (
        f"{_means(experiment)}{deviation}, one colour scale for all panels. Frame: the best cell of a panel; star: the "
        f"best of {of_what}; hatched: no finished run."
    )
    competing = competing_cells(experiment, metric)
    if record.metric.better is not None and len(competing) < np.isfinite(experiment.by_split(metric)).any(axis=1).sum():
        caption += " Cells without all of their runs are not ranked."
    if record.references:
        values = "; ".join(f"{name} {plus_minus(e.mean, e.sd)} (n = {e.n})" for name, e in record.references.items())
        caption += f" For comparison: {values}."
    caption += same if without_split(metric) == "bwt" else ""
    caption += _WHERE_VALUES_ARE if record.is_large else ""
    name, title = f"{prefix}-heatmap-{metric}", record.metric.plain
    return sketch(draw_heatmap, record, name, title, caption, values_in=f"{prefix}-results")


def _difference_pictures(
    experiment: Experiment, axes: tuple[str, str], compared: Comparisons, prefix: str
) -> Iterator[Sketch]:
    if len(variants(experiment, axes)) < 2 or not set(axes) <= set(experiment.number_axes):
        return
    for metric in experiment.headline[:2]:
        if not any(row.differences[metric].n for row in compared.rows if row.kind == "variant"):
            continue
        record = difference_heatmap(experiment, compared, metric, axes)
        caption = (
            f"Mean paired differences over {replicates_in_words(experiment)}. Asterisk: p < 0.05, corrected by Holm "
            "over all comparisons of the page in this metric."
        )
        if record.is_large:
            caption = caption.replace("Asterisk", "Dot") + _WHERE_VALUES_ARE
        name = f"{prefix}-difference-{metric}"
        title = record.metric.plain
        yield sketch(draw_heatmap, record, name, title, caption, values_in=f"{prefix}-differences")


def _result_tables(
    experiment: Experiment,
    references: Sequence[Reference],
    compared: Comparisons,
    metrics: Sequence[str],
    prefix: str,
    files: SectionFiles,
) -> Iterator[LinkedTable]:
    table = without_undecided(result_table(experiment, references), compared)
    links = [f"{prefix}-runs-{i}" for i in range(len(table.rows))]
    notes = (
        f"Mean ± standard deviation (n - 1) over {replicates_in_words(experiment)}."
        if len(experiment.repetitions) > 1
        else "Values of single runs.",
        f"Metrics of {computed_on([experiment], metrics)}.",
        "Bold: the best row, if each paired difference to another row has an unadjusted 95 % interval without 0 and a "
        "corrected p below 0.05, as far as the page compares them. Rows equal to it in all runs are bold, too.",
        *(sentence for sentence in [same_words(metrics).strip()] if sentence),
        *([_COMPARED_APART] if len(cells_by_data(experiment)) > 1 else []),
    )
    text = result_text(table, f"{prefix}-results", f"Results of {experiment.name}", notes, metrics)
    yield LinkedTable(text, tuple(links), files.add_table(text))
    if compared.rows:
        title = f"Paired differences in {experiment.name}"
        text = comparison_text(compared, f"{prefix}-differences", title, metrics)
        rows = tuple(f"{prefix}-runs-{row.cell}" for row in compared.rows)
        yield LinkedTable(text, rows, files.add_table(text))
    published = table.published
    if published.rows:
        title = f"Results of {experiment.name} beside the paper's"
        text = published_text(published, f"{prefix}-published", title, tuple(_published_notes(published)))
        kept = [link for link, row in zip(links, table.rows, strict=True) if row.published]
        yield LinkedTable(text, tuple(kept), files.add_table(text))


def _published_notes(published: ResultTable) -> Iterator[str]:
    if published.tested:
        yield "Metrics of the validation set; test: of the test set."
    yield "Published: the paper's mean ± standard deviation over five seeds. Difference: ours minus published."
    rows_of: dict[Departure, list[str]] = {}
    for row in published.rows:
        for departure in row.departures:
            rows_of.setdefault(departure, []).append(f'"{row.name}"')
    if rows_of:
        settings = (
            f"{unlike.field} = {label_text(unlike.ours)} (the paper: {label_text(unlike.paper)})"
            + (f" in {' and '.join(names)}" if len(names) < len(published.rows) else "")
            for unlike, names in rows_of.items()
        )
        yield f"These settings differ from the paper's, so the values may differ: {'; '.join(settings)}."


def tuning_notice(experiment: Experiment) -> Iterator[str]:
    """Yield a sentence on runs that are no results, if the experiment has only such runs."""
    if experiment.is_tuning:
        yield "Tuning trials: they choose a configuration and are no results. Other sections rank the reported runs."


def same_splits_in_words(experiment: Experiment) -> Iterator[str]:
    """Yield a sentence on patient splits with the same people, if there are any."""
    same: dict[Split, list[Split]] = {}
    for split, first in experiment.distinct.items():
        same.setdefault(first, []).append(split)
    repeated = [listed(splits) for splits in same.values() if len(splits) > 1]
    if repeated:
        yield (
            f"Patient splits {' and '.join(repeated)} have the same people in training, validation and test: they "
            "count as one split in means, deviations and n."
        )


def _notices(experiment: Experiment) -> Iterator[str]:
    yield from tuning_notice(experiment)
    if not experiment.counts("finished").any():
        yield "No run of this search space is finished yet."
    shown_hashes = {edition.data_hash for edition in experiment.shown}
    for phrase, data_hash in left_aside_in_words(experiment.left_aside):
        shown_by = "" if data_hash in shown_hashes else f"; --data-hash {data_hash[:12]} shows them"
        yield f"Not shown and not included in any mean: {phrase}{shown_by}."
    if replaced := replaced_in_words(experiment.replaced):
        yield f"{replaced}."
    yield from failure_notices(experiment.runs)
    if experiment.on_test:
        of_curves = any(cell.config.curves == "test" for cell in experiment.cells)
        yield (
            "The data have no validation set: all metrics, R and forgetting are computed on the test set"
            f"{', and so are the learning curves' * of_curves}. Do not choose anything by them."
        )
    yield from same_splits_in_words(experiment)
    if len(experiment.repetitions) == 1:
        yield "One seed only: there are no standard deviations, no intervals and no p-values."
    # A network trained on all tasks together forgets none: its missing BWT needs no warning.
    one_by_one = [cell.config.strategy != "multitask" for cell in experiment.cells]
    for metric in map(metric_named, experiment.headline):
        cells = one_by_one if metric.signed or metric.better == "lower" else [True] * len(one_by_one)
        finished = int(experiment.counts("finished")[cells].sum())
        undefined = finished - int(np.isfinite(experiment.by_replicate(metric.column)[cells]).sum())
        if undefined > 0:
            yield f"{metric.plain} is undefined in {undefined} of {finished} finished runs; its means leave them out."


def _run_lists(experiment: Experiment, references: Sequence[Reference], prefix: str) -> Iterator[RunList]:
    """Return the runs of every row of the table of results, in its order."""
    grouped = _run_entries(experiment)
    for cell, config in enumerate(experiment.cells):
        yield _run_list(f"{prefix}-runs-{cell}", cell_name(config) or experiment.name, grouped[cell])
    elsewhere = {id(reference.experiment): _run_entries(reference.experiment) for reference in references}
    for position, reference in enumerate(references, len(experiment.cells)):
        runs = elsewhere[id(reference.experiment)][reference.cell]
        yield _run_list(f"{prefix}-runs-{position}", reference.name, runs)


def _run_entries(experiment: Experiment) -> dict[int, list[RunEntry]]:
    several_splits = len({split for split, _ in experiment.replicates}) > 1
    remarks = {"failed": "failed", "missing": "not finished", "finished": ""}
    grouped: dict[int, list[RunEntry]] = {}
    ordered = experiment.runs.sort_values(["cell", *REPLICATES])
    columns = [ordered[column] for column in ("cell", "run_id", "status")]
    for cell, run_id, status, (split, seed) in zip(*columns, experiment.replicates_of(ordered), strict=True):
        replicate = f"{split_name(split)}, seed {seed}" if several_splits else f"seed {seed}"
        entry = RunEntry(replicate, str(run_id), remarks[str(status)], in_store=status != "missing")
        grouped.setdefault(int(cell), []).append(entry)
    return grouped


def _run_list(anchor: str, title: str, runs: Sequence[RunEntry]) -> RunList:
    done = sum(not run.remark for run in runs)
    return RunList(anchor, title, f"{done} of {len(runs)}" if done < len(runs) else f"{done}", tuple(runs))


def _means(experiment: Experiment) -> str:
    runs, splits = len(experiment.repetitions), len({split for split, _ in experiment.repetitions})
    n = splits if splits > 1 else runs
    if runs == 1:
        return "Values of single runs"
    finished = experiment.counts("finished")
    every = len(experiment.replicates)
    fewer = " or fewer, where runs are missing" if (finished[finished > 0] < every).any() else ""
    return f"Means over {replicates_in_words(experiment)} (n = {n}{fewer})"


def replicates_in_words(experiment: Experiment) -> str:
    """Return what repeats each configuration, as in "3 patient splits with 2 seeds each"."""
    seeds = Counter(split for split, _ in experiment.repetitions)
    counts = sorted(Counter(seeds.values()).items(), reverse=True)
    if len(seeds) == 1:
        return plural(counts[0][0], "seed")
    splits = f"{len(seeds)} {'folds' if all(isinstance(split, Fold) for split in seeds) else 'patient splits'}"
    if len(counts) == 1:
        return f"{splits} with {plural(counts[0][0], 'seed')} each"
    texts = [f"{plural(count, 'seed')} on {of}" for count, of in counts]
    return f"{splits} with {' and '.join(texts)}"
