"""The report: means and standard deviations over seeds, and how often a run of one side goes into one of the other."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.peers.outcome import Outcome
from benchmarks.peers.settings import CASES
from benchmarks.timing import table


def table_of(runs: Sequence[Outcome]) -> str:
    """A Markdown table, a row a case. A case that only Avalanche has is compared with ours before it."""
    rows, ours = [], list[Outcome]()
    for name, case in CASES.items():
        theirs = [run for run in runs if run.case == name and run.side == "rival"]
        ours = [run for run in runs if run.case == name and run.side == "ours"] or ours
        own = ours if case.ours else []
        if not own and not theirs:
            continue
        rows.append(
            [
                name,
                _mean_of(own, "auc"),
                _mean_of(theirs, "auc"),
                _mean_of(own, "bwt"),
                _mean_of(theirs, "bwt"),
                _seconds(own),
                _seconds(theirs),
                f"{_processor(theirs) / _processor(ours):.0f}" if theirs and ours else "",
            ]
        )
    header = ["method", "AUC, ours", "Avalanche", "BWT, ours", "Avalanche", "seconds, ours", "Avalanche", "ratio"]
    return table(header, rows)


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
