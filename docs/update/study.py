"""The study of updates: collects update reports from a store, and makes docs/results/updates.md.

python docs/update/study.py collect RESULTS   writes the update reports of search_spaces/updates.py to updates.csv
python docs/update/study.py flips RESULTS     draws flips.png: ER on MIT-BIH, split_seed 1, seed 0
python docs/update/study.py                   writes the page
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pandas as pd
from PIL import Image

from clops_sweep import read, update_report
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.formats import plural
from clops_sweep.analysis.statistics import paired_difference, partitions
from clops_sweep.analysis.update.figures import Flips, draw_flips
from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_space
from clops_sweep.store.run_store import RunStore

FILE = Path(__file__).with_name("updates.csv")
PICTURE = FILE.with_name("flips.png")
DOCUMENT = FILE.parents[1] / "results" / "updates.md"
HEAD = """# Updates: tables

`python docs/update/study.py` made this page from `docs/update/updates.csv`.
[Findings](../update_report.md#comparison-of-methods) sums it up and explains the columns.

Version 0.3 computed the rows "ER, flip penalty", whose option `er` no longer has.
"""
BASELINE = "Fine-tuning"
PEOPLE = ["patients_train", "patients_validation", "patients_test", "split_hash"]
MEASURES = {
    "test_right_to_wrong": "became wrong",
    "test_accuracy": "accuracy after",
    "test_calibration": "calibration error after",
    "test_new": "accuracy on the last task",
}


def collected(results: str) -> pd.DataFrame:
    """Return a row for each finished run with predictions: the results of its update report on all instances."""
    store, rows = RunStore(results), []
    there = store.predicted()
    for experiment in collect(load_spaces(shipped_space("updates")), read(results)):
        runs = experiment.runs[experiment.runs["run_id"].isin(there)]
        for run in runs.to_dict("records"):
            report = update_report(results, run["run_id"])
            everything, *_ = report.flips
            found = {
                "space": experiment.name,
                "method": experiment.cells[run["cell"]].labels["method"],
                "split_seed": run["split_seed"],
                "seed": run["seed"],
                **{name: run[name] for name in PEOPLE},
                "test_right_to_wrong": everything.right_to_wrong.value,
                "test_wrong_to_right": everything.wrong_to_right.value,
                "test_accuracy": everything.accuracy.after.value,
                "test_accuracy_before": everything.accuracy.before.value,
                "test_calibration": report.uncut_calibration.after.value,
                "test_new": float("nan") if report.new is None else report.new.accuracy.after.value,
                "drift": report.drift.value,
            }
            rows.append(found)
    return pd.DataFrame(rows)


def table(runs: pd.DataFrame) -> str:
    """Return a row per method: means over splits, and the difference from fine-tuning with its corrected interval."""
    known, by_method = partitions(runs), dict(list(runs.groupby("method", sort=False)))
    shown = {name: title for name, title in MEASURES.items() if runs[name].notna().any()}
    lines = ["| method | " + " | ".join(shown.values()) + " |", "|---|" + "---:|" * len(shown)]
    base = by_method[BASELINE].set_index(["split_seed", "seed"])
    for method, of_method in by_method.items():
        ours, cells = of_method.set_index(["split_seed", "seed"]), []
        for name in shown:
            mean = 100 * ours[name].groupby("split_seed").mean().mean()
            theirs = base[name].reindex(ours.index)
            less = paired_difference(ours[name], theirs, list(ours.index), known, name)
            ends = f" ({100 * less.mean:+.1f} [{100 * less.low:.1f}, {100 * less.high:.1f}])"
            cells.append(f"{mean:.1f} %" + (ends if method != BASELINE else ""))
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(results: str) -> None:
    """Draw the picture of docs/update_report.md from the run that the page shows."""
    runs = read(results, columns=["run_id", "dataset", "strategy", "split_seed", "seed"])
    (run_id,) = runs.query("dataset == 'mitbih' and strategy == 'er' and split_seed == 1 and seed == 0")["run_id"]
    report = update_report(results, run_id, groups=["sex"])
    whole = io.BytesIO()
    draw_flips(Flips(report.flips, report.noun)).savefig(whole, format="png", dpi=190)
    Image.open(whole).convert("RGB").quantize(64).save(PICTURE, optimize=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["flips"]:
        draw(sys.argv[2])
    if sys.argv[1:2] == ["collect"]:
        collected(sys.argv[2]).to_csv(FILE, index=False, float_format="%.6g", lineterminator="\n")
    parts = [HEAD]
    for space, runs in pd.read_csv(FILE).groupby("space", sort=False):
        splits, seeds = runs["split_seed"].nunique(), runs["seed"].nunique()
        parts.append(f"**{space}: {splits} splits, {plural(seeds, 'seed')}, {len(runs)} runs**\n\n{table(runs)}\n")
    DOCUMENT.write_text("\n".join(parts))
