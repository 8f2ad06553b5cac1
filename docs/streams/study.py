"""The study of streams: collects its runs from a store, and makes figure and page from the collected runs.

python docs/streams/study.py                   draws the figure and writes docs/results/streams.md
python docs/streams/study.py collect RESULTS   copies the runs that `FILES` request from RESULTS
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from clops_sweep import read
from clops_sweep.analysis import draw_learning_curves, learning_curves
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.drawing.style import as_png
from clops_sweep.analysis.statistics import estimate, holm, paired_difference, partitions
from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_space

FOLDER = Path(__file__).parent
RUNS, CURVES, FIGURE = FOLDER / "runs.parquet", FOLDER / "curves.parquet", FOLDER / "figure.png"
DOCUMENT = FOLDER.parent / "results" / "streams.md"
HEAD = """# New people and online streams: tables

`python docs/streams/study.py` made this page from `docs/streams/runs.parquet`.
[Findings](../streams.md#results-on-mit-bih-and-cinc-2017) sums it up and explains the columns.

Version 0.3 computed the rows "ER, flip penalty", whose option `er` no longer has.
"""
FILES = ("subject_il_mitbih", "subject_il_cinc2017", "online_mitbih", "online_cinc2017")
AFTER = ("test_accuracy", "test_balanced_accuracy", "test_accuracy_bwt", "unseen_accuracy")
STREAM = ("prequential_accuracy", "prequential_auc")
MEASURES = (*AFTER, *STREAM)
OF_PEOPLE = ("worst", "spread", "gain", "retention")
BASELINE = "Fine-tuning"
DRAWN = (BASELINE, "ER", "CLOPS", "SLDA")
TABLES = {  # title: space, condition, measure to compare with fine-tuning, further columns
    "MIT-BIH, epochs, later recordings": (FILES[0], "split_within == 'time'", AFTER[0], (*AFTER[2:], *OF_PEOPLE)),
    "MIT-BIH, epochs, other people": (FILES[0], "split_within == 'people'", AFTER[0], AFTER[1:2]),
    "CinC 2017, epochs, other people": (FILES[1], "blurry == 0", AFTER[0], AFTER[1:2]),
    "MIT-BIH, online": (FILES[2], "blurry == 0", STREAM[0], (STREAM[1], AFTER[0], *AFTER[2:])),
    "MIT-BIH, online, blurry = 0.3": (FILES[2], "blurry > 0", STREAM[0], (STREAM[1], AFTER[0], *AFTER[2:])),
    "CinC 2017, online, other people": (FILES[3], "blurry == 0", STREAM[0], (STREAM[1], *AFTER[:2])),
}


def collected(results: Path) -> pd.DataFrame:
    """Return a row for each finished run of the study, with accuracies over people."""
    runs, people = read(results, "runs"), read(results, "people")
    of_run = people[people["evaluated_on"] > 0].groupby("run_id")
    by_person = of_run["accuracy"].agg(worst="min", spread="std").join(of_run[["gain", "retention"]].mean())
    columns = ["run_id", "split_seed", "seed", "split_within", "blurry", "split_hash", "cpu_seconds", *MEASURES]
    columns += [f"patients_{part}" for part in ("train", "validation", "test", "unseen", "all")]
    rows = []
    for experiment in collect([space for file in FILES for space in load_spaces(shipped_space(file))], runs):
        finished = experiment.runs[experiment.runs["status"] == "finished"]
        method = [experiment.cells[cell].labels["method"] for cell in finished["cell"]]
        rows.append(finished[columns].assign(space=experiment.name, method=method).join(by_person, on="run_id"))
    return pd.concat(rows, ignore_index=True)


def table(runs: pd.DataFrame, title: str) -> str:
    """Return one of `TABLES` in Markdown: means and standard deviations over splits, and paired differences."""
    space, condition, measure, more = TABLES[title]
    here = runs[runs["space"] == space].query(condition).set_index(["split_seed", "seed"])
    methods, known = dict(list(here.groupby("method", sort=False))), partitions(here.reset_index())
    theirs = methods[BASELINE][measure]
    differences = {
        name: paired_difference(rows[measure], theirs[rows.index], list(rows.index), known, measure)
        for name, rows in methods.items()
        if name != BASELINE
    }
    p_values = dict(zip(differences, holm([it.p for it in differences.values()]), strict=True))
    heads = [f"`{it}`" if it in MEASURES else it for it in (measure, *more)]
    lines = [["", heads[0], "minus fine-tuning", "p", *heads[1:]]]
    lines.append(["---", *["---:"] * (len(lines[0]) - 1)])
    for name, rows in methods.items():
        cells = [estimate(rows[it].groupby(level="split_seed").mean()) for it in (measure, *more)]
        values, less = [f"{it.mean:.3f} ± {it.sd:.3f}" for it in cells], ["", ""]
        if name in differences:
            found, p = differences[name], p_values[name]
            less = [f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]", "< .01" if p < 0.01 else f"{p:.2f}"]
        lines.append([name, values[0], *less, *values[1:]])
    return f"**{title}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tables(runs: pd.DataFrame) -> Iterator[str]:
    """Return all tables of docs/results/streams.md."""
    return (table(runs, title) for title in TABLES)


def draw(runs: pd.DataFrame, curves: pd.DataFrame) -> bytes:
    """Draw the prequential accuracy of some methods on MIT-BIH."""
    shown = runs[(runs["space"] == FILES[2]) & (runs["blurry"] == 0)].groupby("method")["run_id"]
    of_methods = {name: curves[curves["run_id"].isin(shown.get_group(name))] for name in DRAWN}
    return as_png(draw_learning_curves([learning_curves(it, name, "accuracy") for name, it in of_methods.items()]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["collect"]:
        found = collected(Path(sys.argv[2]))
        found.to_parquet(RUNS)
        drawn = found[(found["space"] == FILES[2]) & (found["blurry"] == 0) & found["method"].isin(DRAWN)]["run_id"]
        of_all = read(sys.argv[2], "curves")
        columns = ["run_id", "epoch", "training_task", "task", "accuracy"]
        of_all.loc[of_all["run_id"].isin(drawn), columns].to_parquet(CURVES)
    study = pd.read_parquet(RUNS)
    FIGURE.write_bytes(draw(study, pd.read_parquet(CURVES)))
    DOCUMENT.write_text("\n".join([HEAD, *(f"{found}\n" for found in tables(study))]))
