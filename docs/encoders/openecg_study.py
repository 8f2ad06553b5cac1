"""The study of openecg: collects its runs from a store, and makes figure and page from the collected runs.

python docs/encoders/openecg_study.py                   draws the figure and writes docs/results/openecg.md
python docs/encoders/openecg_study.py collect RESULTS   writes the runs of `openecg_cinc2017` in RESULTS
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from study import MEASURE, difference, draw

from clops_sweep import read
from clops_sweep.analysis.statistics import ALPHA, holm

FOLDER = Path(__file__).parent
RUNS, DOCUMENT = FOLDER / "openecg_runs.parquet", FOLDER.parent / "results" / "openecg.md"
METHODS = {
    **{"finetune": "Fine-tuning", "er": "ER", "ncm": "NCM", "slda": "SLDA", "ranpac": "RanPAC", "joint": "Joint"},
}
ENCODERS = {
    **{"openecg": ("D", "#1b7837"), "minirocket": ("s", "#d17c13"), "random": ("o", "0.6"), "none": ("^", "#7b6fb0")},
}
HEAD = """# Published weights: openecg

`python docs/encoders/openecg_study.py` made this page from `docs/encoders/openecg_runs.parquet`.

A quarter of the people of CinC 2017, ten seconds of each record, four rhythms in two tasks:
`clops-sweep docs/encoders/openecg_cinc2017.py --data-root DIR`.
[openecg](../encoders.md) has seen other people, among them those of MIT-BIH; "none" is the paper's
network, trained on the signals. Balanced accuracy on test people, mean ± standard deviation over
patient splits; chance is 0.25.

![Balanced accuracy of six methods on three encoders and without one](../encoders/openecg_figure.png)
"""


def collect(results: str) -> None:
    """Write the finished runs of the study, with short names of encoders, to a file."""
    runs = read(results, "runs").query("status == 'finished' and dataset == 'cinc2017_quarter'")
    runs = runs.assign(encoder=runs["encoder"].fillna("none").replace("random_convolutions", "random"))
    columns = ["strategy", "encoder", "split_seed", "split", "seed", MEASURE, f"{MEASURE}_forgetting", "cpu_seconds"]
    columns += ["split_hash", "patients_train", "patients_validation", "patients_test"]
    runs[columns].sort_values(columns[:5]).to_parquet(RUNS, index=False)


def page(runs: pd.DataFrame) -> str:
    """Return means by method and encoder, the distances from openecg, and what they show."""
    found = runs.groupby(["strategy", "encoder"])[MEASURE].agg(["mean", "std", "size"])
    lines = [f"| | {' | '.join(ENCODERS)} |", f"| --- |{' ---: |' * len(ENCODERS)}"]
    for method, title in METHODS.items():
        there = [found.loc[method, it] if (method, it) in found.index else None for it in ENCODERS]
        cells = ["" if it is None else f"{it['mean']:.3f} ± {it['std']:.3f} ({it['size']:.0f})" for it in there]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    lines += ["", "Numbers of splits are in brackets."]
    lines += ["Intervals are those of the corrected resampled t-test; p values are adjusted by Holm."]
    pairs = [
        (method, other)
        for method in METHODS
        for other in list(ENCODERS)[1:]
        if min(found["size"].get((method, it), 0) for it in ("openecg", other)) > 2
    ]
    each = [difference(runs, (method, "openecg"), (method, other)) for method, other in pairs]
    lines += ["", "| openecg minus | mean [95 %, unadjusted] | p |", "| --- | ---: | ---: |"]
    better: dict[str, list[str]] = {}
    unsettled: dict[str, list[str]] = {}
    for (method, other), it, p in zip(pairs, each, holm([it.p for it in each]).tolist(), strict=True):
        interval = f"{it.mean:+.3f} [{it.low:+.3f}, {it.high:+.3f}]"
        lines.append(f"| {other}, {METHODS[method]} | {interval} | {'< .001' if p < 1e-3 else f'{p:.3f}'} |")
        (better if it.mean > 0 and p < ALPHA else unsettled).setdefault(other, []).append(METHODS[method])
    said = []
    for other in list(ENCODERS)[1:]:
        than = "training from scratch" if other == "none" else other
        if other in better:
            said.append(f"- openecg is better than {than} with {', '.join(better[other])}.")
        if other in unsettled:
            said.append(f"- Against {than}, these splits settle nothing for {', '.join(unsettled[other])}.")
    best = found["mean"].idxmax()
    said.append(f"- The best mean is that of {METHODS[best[0]]} on {best[1]}: {found['mean'].max():.3f}.")
    said.append("- Nothing was tuned, and heads were trained for ten epochs a task: Joint is no upper bound here.")
    return "\n".join([*lines, "", *said])


def main() -> None:
    """Collect, or draw and write the page."""
    if sys.argv[1:2] == ["collect"]:
        collect(sys.argv[2])
        return
    runs = pd.read_parquet(RUNS)
    (FOLDER / "openecg_figure.png").write_bytes(draw(runs, ENCODERS, METHODS))
    DOCUMENT.write_text(f"{HEAD}\n{page(runs)}\n")


if __name__ == "__main__":
    main()
