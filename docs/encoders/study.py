"""The study of encoders: collects its runs from a store, and makes figure and page from the collected runs.

python docs/encoders/study.py                   draws the figure and writes docs/results/encoders.md
python docs/encoders/study.py collect RESULTS   writes the runs of `encoders_cinc2017` in RESULTS to runs.parquet
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from clops_sweep import read
from clops_sweep.analysis.drawing.style import as_png, new_figure, styled
from clops_sweep.analysis.statistics import PairedDifference, holm, paired_difference, partitions

FOLDER = Path(__file__).parent
RUNS, MEASURE = FOLDER / "runs.parquet", "test_balanced_accuracy"
DOCUMENT = FOLDER.parent / "results" / "encoders.md"
HEAD = """# Frozen encoders: tables

`python docs/encoders/study.py` made this page from `docs/encoders/runs.parquet`.
[Findings](../encoders.md#comparison-of-encoders-on-cinc-2017) sums it up and explains the columns.
Balanced accuracy on test people.
"""
METHODS = {
    **{"finetune": "Fine-tuning", "lwf": "LwF", "clops": "CLOPS", "er": "ER", "ranpac": "RanPAC", "ts_acl": "TS-ACL"},
    **{"slda": "SLDA", "ncm": "NCM", "joint": "Joint"},
}
SCRATCH = "none, batch norm"
ENCODERS = {
    **{"random": ("o", "0.6"), "PTB-XL": ("s", "#d17c13"), SCRATCH: ("^", "#7b6fb0")},
    **{"none, layer norm": ("v", "#b8aed6"), "CinC 2017": ("D", "#1b7837")},
}


def collect(results: str) -> None:
    """Write the runs of the study to runs.parquet, with the name of the pretraining data of their encoder."""
    runs = read(results, "runs")
    pretrained = runs.set_index("run_id")["dataset"].map({"ptbxl": "PTB-XL", "cinc2017_pretrained": "CinC 2017"})

    def name(encoder: object, norm: str) -> str:
        if not isinstance(encoder, str):
            return f"none, {norm} norm"
        return "random" if ":" not in encoder else str(pretrained[encoder.removeprefix("run:")])

    runs = runs[(runs["dataset"] == "cinc2017_evaluated") & (runs["status"] == "finished")]
    runs = runs.assign(encoder=[name(*it) for it in zip(runs["encoder"], runs["norm"], strict=True)])
    columns = ["strategy", "encoder", "split_seed", "split", "seed", MEASURE, f"{MEASURE}_forgetting", "cpu_seconds"]
    columns += ["memory_bytes", "split_hash", "patients_train", "patients_validation", "patients_test"]
    runs[columns].sort_values(columns[:5]).to_parquet(RUNS, index=False)


def difference(runs: pd.DataFrame, ours: tuple[str, str], theirs: tuple[str, str]) -> PairedDifference:
    """Return the corrected difference between two methods on two encoders, over patient splits."""
    sides = [runs[(runs["strategy"] == method) & (runs["encoder"] == of)] for method, of in (ours, theirs)]
    both = sides[0].merge(sides[1], on=["split_seed", "seed"])
    known = partitions(runs)
    replicates = list(zip(both["split_seed"].tolist(), both["seed"].tolist(), strict=True))
    return paired_difference(both[f"{MEASURE}_x"], both[f"{MEASURE}_y"], replicates, known, MEASURE)


def tables(runs: pd.DataFrame) -> str:
    """Return means ± standard deviations by method and encoder, and the differences named on the page."""
    found = runs.groupby(["strategy", "encoder"])[MEASURE].agg(["mean", "std"])
    lines = [f"| | {' | '.join(ENCODERS)} |", f"| --- |{' ---: |' * len(ENCODERS)}"]
    for method, title in METHODS.items():
        cells = [found.loc[method, it] if (method, it) in found.index else None for it in ENCODERS]
        texts = ["" if cell is None else f"{cell['mean']:.3f} ± {cell['std']:.3f}" for cell in cells]
        lines.append(f"| {title} | {' | '.join(texts)} |")
    compared = {
        "NCM on CinC 2017 minus ER from scratch": (("ncm", "CinC 2017"), ("er", SCRATCH)),
        "NCM on CinC 2017 minus joint training from scratch": (("ncm", "CinC 2017"), ("joint", SCRATCH)),
        "NCM minus ER, both on CinC 2017": (("ncm", "CinC 2017"), ("er", "CinC 2017")),
        "ER on CinC 2017 minus ER from scratch": (("er", "CinC 2017"), ("er", SCRATCH)),
        "NCM on CinC 2017 minus NCM from scratch": (("ncm", "CinC 2017"), ("ncm", SCRATCH)),
        "NCM on PTB-XL minus NCM on the random encoder": (("ncm", "PTB-XL"), ("ncm", "random")),
        "ER, layer norm minus batch norm, from scratch": (("er", "none, layer norm"), ("er", SCRATCH)),
    }
    each = [difference(runs, *sides) for sides in compared.values()]
    lines += ["", "| difference | mean [95 %, unadjusted] | p |", "| --- | ---: | ---: |"]
    for name, it, p in zip(compared, each, holm([it.p for it in each]).tolist(), strict=True):
        lines.append(
            f"| {name} | {it.mean:+.3f} [{it.low:+.3f}, {it.high:+.3f}] | {'< .001' if p < 1e-3 else f'{p:.3f}'} |"
        )
    return "\n".join(lines)


@styled
def draw(
    runs: pd.DataFrame,
    encoders: Mapping[str, tuple[str, str]] = ENCODERS,
    methods: Mapping[str, str] = METHODS,
) -> bytes:
    """Draw means and standard deviations over splits, with a row per method."""
    figure = new_figure(6.5, 3.6)
    axes = figure.add_subplot()
    found = runs.groupby(["strategy", "encoder"])[MEASURE].agg(["mean", "std"])
    for place, (encoder, (marker, color)) in enumerate(encoders.items()):
        there = [(row, method) for row, method in enumerate(methods) if (method, encoder) in found.index]
        mean = np.array([found.loc[(method, encoder), "mean"] for _, method in there])
        spread = np.array([found.loc[(method, encoder), "std"] for _, method in there])
        rows = np.array([row for row, _ in there]) + 0.14 * (2 - place)
        axes.errorbar(mean, rows, xerr=spread, fmt=marker, color=color, markersize=4, linewidth=1, label=encoder)
    axes.axvline(0.25, color="0.8", linewidth=0.8)
    axes.set_yticks(range(len(methods)), methods.values())
    axes.set_xlabel("balanced accuracy on test people (chance: 0.25)")
    axes.legend(
        title="encoder", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, title_fontsize=7
    )
    return as_png(figure)


def main() -> None:
    """Collect, or draw and write the page."""
    if sys.argv[1:2] == ["collect"]:
        collect(sys.argv[2])
        return
    runs = pd.read_parquet(RUNS)
    (FOLDER / "figure.png").write_bytes(draw(runs))
    DOCUMENT.write_text(f"{HEAD}\n{tables(runs)}\n")


if __name__ == "__main__":
    main()
