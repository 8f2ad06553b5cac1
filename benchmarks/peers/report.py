"""The report: means and standard deviations over seeds, and the ratio of the run times of the two sides."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.peers.outcome import Outcome
from benchmarks.peers.settings import CASES
from benchmarks.timing import table


def table_of(runs: Sequence[Outcome]) -> str:
    """Return a Markdown table with a row per case. A case without our side is compared with ours in the row above."""
    rows, beside = [], list[Outcome]()
    for name, case in CASES.items():
        ours, theirs = ([run for run in runs if (run.case, run.side) == (name, side)] for side in ("ours", "rival"))
        beside = ours if case.ours else beside
        if not ours and not theirs:
            continue
        ratio = f"{_processor(theirs) / _processor(beside):.1f}" if theirs and beside else ""
        measured = (_mean_of(of, metric) for metric in ("auc", "bwt") for of in (ours, theirs))
        seeds = " and ".join(str(len(of)) for of in (ours, theirs) if of)
        rows.append([name, *measured, _seconds(ours), _seconds(theirs), ratio, seeds])
    header = ["AUC, ours", "Avalanche", "BWT, ours", "Avalanche", "seconds, ours", "Avalanche", "ratio", "seeds"]
    return table(["method", *header], rows)


def _mean_of(runs: Sequence[Outcome], name: str) -> str:
    if not runs:
        return ""
    values = [getattr(run, name) for run in runs]
    spread = f" ± {statistics.stdev(values):.3f}".replace("0.", ".") if len(values) > 1 else ""
    return f"{statistics.mean(values):.3f}".replace("0.", ".", 1) + spread


def _processor(runs: Sequence[Outcome]) -> float:
    return statistics.mean(run.processor_seconds for run in runs)


def _seconds(runs: Sequence[Outcome]) -> str:
    if not runs:
        return ""
    return f"{_processor(runs):.1f} ({statistics.mean(run.clock_seconds for run in runs):.1f})"
