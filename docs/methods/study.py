"""The study of methods: collects its runs from a store, and makes figures and tables from the collected runs.

python docs/methods/study.py                   writes the figures and docs/results/methods.md
python docs/methods/study.py chosen            prints the options that the tuning chose
python docs/methods/study.py collect RESULTS   writes the requested runs in RESULTS to runs.parquet
python docs/methods/study.py measure           writes processor seconds of a run of each method to seconds.parquet
"""

from __future__ import annotations

import re
import sys
import time
from ast import literal_eval
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from clops_sweep import ContinualRun, read
from clops_sweep.analysis.drawing.labels import name_rows
from clops_sweep.analysis.drawing.style import GRID, MUTED, as_png, new_figure, styled
from clops_sweep.analysis.figures.performance import Performance, draw_performance, performance
from clops_sweep.analysis.report.notebook import open_sweep
from clops_sweep.analysis.statistics import (
    ALPHA,
    Estimate,
    PairedDifference,
    estimate,
    holm,
    paired_difference,
    partitions,
)
from clops_sweep.analysis.tables.strategies import draw_difference
from clops_sweep.data.preparing.prepare import open_frames
from clops_sweep.experiment.spaces.axes import in_words
from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_space

FOLDER = Path(__file__).parent
RUNS, SECONDS, FIGURE, PROFILES = (
    FOLDER / name for name in ("runs.parquet", "seconds.parquet", "figure.png", "profiles.png")
)
FILES = ("methods_mitbih", "methods_cinc2017", "methods_uci_har")
MEASURES = ("auc", "bwt", "accuracy", "accuracy_bwt", "balanced_accuracy", "balanced_accuracy_bwt")
PEOPLE = ("patients_train", "patients_validation", "patients_test", "split_hash")
LEVEL = "[95 %, unadjusted]"
"""The level of intervals, in headings."""

DOCUMENT = FOLDER.parent / "results" / "methods.md"
HEAD = """# Comparison of methods: tables

`python docs/methods/study.py` made this page from `docs/methods/runs.parquet`.
[Findings](../methods.md) sums it up and explains the columns.

Version 0.3 computed the rows "ER, ...", whose options `er` no longer has: parts of CLOPS.
"""
FINETUNING, ER = "Fine-tuning", "ER"
PROFILED = (FINETUNING, "LwF", "Replay", "CLOPS", ER, "Joint")


@dataclass(frozen=True)
class Study:
    """The measures of a study: columns for performance and forgetting, and the unit of pairing."""

    title: str
    measure: str
    forgotten: str
    unit: str
    memory: float = 0.1


STUDIES = {
    "methods_mitbih": Study("MIT-BIH, class_il", "auc", "test_bwt", "split_seed"),
    "methods_cinc2017_class_il": Study("CinC 2017, class_il", "auc", "test_bwt", "split_seed"),
    "methods_cinc2017_class_il_union": Study(
        "CinC 2017, class_il_union", "balanced_accuracy", "test_balanced_accuracy_bwt", "split_seed"
    ),
    "methods_uci_har": Study("UCI-HAR, class_il_union", "accuracy", "test_forgetting", "seed", 0.05),
}


@dataclass(frozen=True)
class Row:
    """A method compared with a baseline on the test split. The value of a patient split is the mean over its seeds."""

    method: str
    value: Estimate
    forgotten: Estimate
    difference: PairedDifference
    corrected: float


def collected(results: Path) -> pd.DataFrame:
    """Return a row for each finished run that the search spaces request, with the name of its method there."""
    matrix = read(results, "r_matrix")
    lost = forgetting(matrix[matrix["split"] == "test"])
    columns = ["split_seed", "seed", *MEASURES, *(f"test_{it}" for it in MEASURES), "run_id", "data_hash", *PEOPLE]
    rows = []
    experiments = [it for file in FILES for it in open_sweep(shipped_space(file), results)]
    # The tuning of `memory` shares its runs with another experiment.
    for experiment in (it for it in experiments if not it.name.startswith(f"{FILES[0]}_memory_selection")):
        space, selection, tuned = experiment.name.partition("_selection")
        finished = experiment.runs[experiment.runs["status"] == "finished"]
        cells = [experiment.cells[cell] for cell in finished["cell"]]
        memory = [it.config.storage_fraction for it in cells]
        method = [f"{tuned[1:]}, {in_words(it.labels)}" if tuned else it.labels["method"] for it in cells]
        found = finished[columns].assign(test_forgetting=finished["run_id"].map(lost))
        rows.append(found.assign(space=space + selection, method=method, memory=memory))
    return pd.concat(rows, ignore_index=True)


def forgetting(matrix: pd.DataFrame) -> pd.Series:
    """Return the mean over tasks j < N of max over i < N of a[i][j] - a[N][j], with accuracies a (Chaudhry, 2018)."""
    last = matrix.groupby("run_id")["trained_on"].max().rename("last")
    earlier = matrix.join(last, on="run_id").query("evaluated_on < last")
    by_task = ["run_id", "evaluated_on"]
    best = earlier.query("trained_on < last").groupby(by_task)["accuracy"].max()
    end = earlier.query("trained_on == last").groupby(by_task)["accuracy"].max()
    return (best - end).groupby("run_id").mean()


def chosen(runs: pd.DataFrame, space: str) -> dict[str, dict[str, float]]:
    """Return the value of each method's option with the highest mean over the tuning runs, on the validation split."""
    tried = runs[runs["space"] == f"{space}_selection"]
    means = tried.groupby("method", sort=False)[STUDIES[space].measure].mean().sort_values(ascending=False)
    found: dict[str, dict[str, float]] = {}
    for label in means.index:
        method, option, value = re.fullmatch(r"(.*), (\w+) (\S+)", label).groups()
        found.setdefault(method, {option: literal_eval(value)})
    return found


def compared(
    runs: pd.DataFrame, space: str, baseline: str, methods: Sequence[str] = (), memory: float | None = None
) -> list[Row]:
    """Return methods minus a baseline, paired by split and seed; p-values are corrected by Holm over these methods.

    Args:
        runs: the runs of the study.
        space: a key of `STUDIES`.
        baseline: a method, with the same memory if it has one.
        methods: the methods; by default all methods of the study except the baseline.
        memory: memory as a share of the training instances; by default that of the study.
    """
    study = STUDIES[space]
    here = runs[runs["space"].isin([space, f"{space}_memory"])].set_index(["split_seed", "seed"])
    of_size = dict(list(here[here["memory"] == (memory or study.memory)].groupby("method", sort=False)))
    usual = dict(list(here[here["memory"] == study.memory].groupby("method")))
    column, known, found = f"test_{study.measure}", partitions(here.reset_index()), []
    for name in methods or [name for name in of_size if name != baseline]:
        pairs = of_size[name].assign(theirs=of_size.get(baseline, usual[baseline])[column])
        units = pairs.index.get_level_values(study.unit)
        over = pairs.groupby(units)[[column, study.forgotten]].mean()
        difference = paired_difference(pairs[column], pairs["theirs"], list(pairs.index), known, column)
        found.append((name, estimate(over[column]), estimate(over[study.forgotten]), difference))
    corrected = holm([difference.p for *_, difference in found])
    return [Row(*row, float(p)) for row, p in zip(found, corrected, strict=True)]


def performances(runs: pd.DataFrame) -> dict[str, Performance]:
    """Return methods over all studies, from the scores of `compared`: one per split, or per seed on UCI-HAR."""
    scores: dict[str, list[pd.Series]] = {}
    for space, study in STUDIES.items():
        for name, of_method in runs[runs["space"] == space].groupby("method", sort=False):
            scores.setdefault(str(name), []).append(of_method.groupby(study.unit)[f"test_{study.measure}"].mean())
    return {name: performance(of_all) for name, of_all in scores.items() if len(of_all) == len(STUDIES)}


def tables(runs: pd.DataFrame, cost: pd.Series) -> Iterator[str]:
    """Yield the tables of docs/results/methods.md in Markdown."""
    for space, study in STUDIES.items():
        options = chosen(runs, space)
        finetuning = {row.method: row for row in compared(runs, space, FINETUNING)}
        er = {row.method: row for row in compared(runs, space, ER)}
        head = [
            study.title,
            "option",
            f"test {study.measure}",
            study.forgotten.replace("_", " ", 1),
            f"minus fine-tuning {LEVEL}",
            "p",
        ]
        lines = []
        for method in runs.loc[runs["space"] == space, "method"].unique():
            row = finetuning.get(method) or er[method]
            option = ", ".join(f"{name} {value}" for name, value in options.get(method.split(",")[0], {}).items())
            cells = [method, option, _of(row.value), _of(row.forgotten)]
            cells += [*_less(finetuning.get(method)), *_less(er.get(method))]
            lines.append([*cells, f"{cost[method]:.1f}"] if study is STUDIES[FILES[0]] else cells)
        yield _markdown([*head, f"minus ER {LEVEL}", "p", *(["seconds"] if study is STUDIES[FILES[0]] else [])], lines)
    lines = [
        [name, f"{it.interquartile_mean:.3f} [{it.low:.3f}, {it.high:.3f}]"] for name, it in performances(runs).items()
    ]
    yield _markdown(["All four settings", "interquartile mean of test scores"], lines)
    sizes = sorted(runs.loc[runs["space"].str.startswith(FILES[0]), "memory"].unique())
    by_size = [{row.method: row for row in compared(runs, FILES[0], FINETUNING, memory=size)} for size in sizes]
    names = [name for name in by_size[0] if all(name in rows for rows in by_size)]
    lines = [[name, *(_of(rows[name].value) for rows in by_size)] for name in names]
    yield _markdown(["MIT-BIH: test auc", *(f"{size:.0%}" for size in sizes)], lines)
    variants = [name for name in names if "," in name]
    parts = [{row.method: row for row in compared(runs, FILES[0], ER, variants, size)} for size in sizes]
    lines = [[name, *(text for rows in parts for text in _less(rows[name]))] for name in variants]
    yield _markdown(
        [f"MIT-BIH: test auc minus ER {LEVEL}", *(text for size in sizes for text in (f"{size:.0%}", "p"))], lines
    )


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---", *["---:"] * (len(head) - 1)], *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _of(value: Estimate) -> str:
    return f"{value.mean:.3f} ± {value.sd:.3f}" if value.n else "-"


def _less(row: Row | None) -> tuple[str, str]:
    if row is None:
        return "", ""
    difference = row.difference
    text = f"{difference.mean:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"
    return text, "< .001" if row.corrected < 0.001 else f"{row.corrected:.3f}"


@styled
def figure(runs: pd.DataFrame) -> Figure:
    """Draw a panel per study with a row per method: difference from fine-tuning, filled if the corrected p < 0.05."""
    panels = {space: compared(runs, space, FINETUNING) for space in STUDIES}
    methods = list(dict.fromkeys(row.method for rows in panels.values() for row in rows))
    drawn = new_figure(9.2, 0.24 * len(methods) + 1.0)
    columns = drawn.subplots(1, len(STUDIES), sharey=True)
    for axes, (space, rows) in zip(columns, panels.items(), strict=True):
        axes.grid(axis="x", color=GRID, lw=0.6)
        axes.axvline(0, color=MUTED, lw=0.9)
        for row in rows:
            at, found = methods.index(row.method), row.difference
            draw_difference(axes, found, at, row.corrected < ALPHA)
        study = STUDIES[space]
        axes.set_title(study.title.replace(", ", "\n"), fontweight="normal")
        axes.set_xlabel({"auc": "AUC"}.get(study.measure, study.measure.replace("_", " ")))
        axes.tick_params(axis="y", length=0)
        axes.locator_params(axis="x", nbins=4)
    name_rows(columns[0], methods, range(len(methods)), 0.24)
    columns[0].set_ylim(len(methods) - 0.5, -0.5)
    drawn.supxlabel("test split, less fine-tuning: mean of paired differences [95 %, unadjusted]", fontsize=9)
    return drawn


def seconds() -> pd.Series:
    """Return the measured processor seconds by method."""
    return pd.read_parquet(SECONDS).set_index("method")["seconds"]


def measured() -> pd.DataFrame:
    """Measure the processor seconds of a run of each method on MIT-BIH, without opening the frames."""
    space, *_ = load_spaces(shipped_space(FILES[0]))
    options = chosen(pd.read_parquet(RUNS), space.name)
    assert space.tuned is not None
    reported = space.tuned.reported({it.name: options.get(it.name, {}) for it in space.tuned.methods if not it.like})
    rows = []
    for request in reported.requests():
        config = request.config
        if config.seed or config.split_seed:
            continue
        frames = open_frames(config.dataset, **config.data_key.view)
        began = time.process_time()
        ContinualRun(config, frames).run()
        rows.append((request.labels["method"], time.process_time() - began))
    return pd.DataFrame(rows, columns=["method", "seconds"])


def main(arguments: Sequence[str]) -> None:
    """Run the command line."""
    match arguments:
        case ["collect", results]:
            collected(Path(results)).to_parquet(RUNS, index=False, compression="zstd")
        case ["measure"]:
            measured().to_parquet(SECONDS, index=False)
        case ["chosen"]:
            for space in STUDIES:
                print(space, chosen(pd.read_parquet(RUNS), space))
        case []:
            runs = pd.read_parquet(RUNS)
            FIGURE.write_bytes(as_png(figure(runs)))
            found = performances(runs)
            PROFILES.write_bytes(as_png(draw_performance({name: found[name] for name in PROFILED}, "score")))
            DOCUMENT.write_text("\n".join([HEAD, *(f"{table}\n" for table in tables(runs, seconds()))]))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
