"""The page that a dashboard begins with: how experiments stand, and why runs have failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from clops_sweep.errors import one_line

from ...failures import Failure, failures
from ...formats import DASH, plural
from ..snapshot import Followed, Snapshot
from ..view import View
from .element import Element, element, link, notice, signature
from .widgets import table


@dataclass(frozen=True)
class Progress:
    """One experiment. `last` is when its last run has ended, None where none has; `trials` are those of a search."""

    name: str
    finished: int
    failed: int
    missing: int
    last: pd.Timestamp | None
    trials: Mapping[str, int]

    @property
    def asked(self) -> int:
        """How many runs there are to be, as far as that is known: of a store alone, those that have ended."""
        return self.finished + self.failed + self.missing


def progress(snapshot: Snapshot) -> list[Progress]:
    """How every experiment stands."""
    return [_progress(name, followed) for name, followed in snapshot.followed.items()]


def _progress(name: str, followed: Followed) -> Progress:
    runs = followed.experiment.runs.drop_duplicates("run_id") if _ids_known(followed) else followed.experiment.runs
    counts = runs["status"].value_counts()
    ended = None
    if "started_at" in runs and runs["started_at"].notna().any():
        seconds = pd.to_timedelta(runs["seconds"].fillna(0.0).astype(float), unit="s")
        ended = (runs["started_at"] + seconds).max()
    trials = pd.Series([trial.state for trial in followed.study.trials] if followed.study else [], dtype=object)
    return Progress(
        name,
        int(counts.get("finished", 0)),
        int(counts.get("failed", 0)),
        int(counts.get("missing", 0)),
        ended,
        {str(state): int(count) for state, count in trials.value_counts().items()},
    )


def _ids_known(followed: Followed) -> bool:
    """Whether every run has an id: those of data that nothing is known of have none."""
    return bool((followed.experiment.runs["run_id"] != "").all())


_MOST_REASONS = 50
_MOST_RUNS = 20


def progress_page(view: View, snapshot: Snapshot) -> tuple[Element, ...]:
    """How every experiment stands, then its failed runs."""
    found = progress(snapshot)
    if not found:
        return (notice("No run has ended here yet; this page shows them as soon as there are any."),)
    header = ("experiment", "finished", "failed", "missing", "progress", "last run ended", "trials")
    rows = [_row(view, it) for it in found]
    failed = [(name, it) for name, followed in snapshot.followed.items() for it in failures(followed.experiment.runs)]
    return (table("Experiments", header, rows), *_failed(failed))


def _row(view: View, it: Progress) -> list[Element | str]:
    bar = element(
        "Progress",
        value=str(it.finished),
        max=str(max(it.asked, 1)),
        aria_label=f"{it.name}: {it.finished:,} of {plural(it.asked, 'run')} finished",
    )
    trials = ", ".join(f"{count:,} {state}" for state, count in it.trials.items())
    fresh = View(experiment=it.name)
    target = fresh.address(page="search" if trials else "heatmap")
    failed = link(f"{it.failed:,}", fresh.address(page="runs", where='status == "failed"')) if it.failed else "0"
    return [
        link(it.name, target),
        f"{it.finished:,}",
        failed,
        f"{it.missing:,}",
        bar,
        it.last.strftime("%Y-%m-%d %H:%M:%S UTC") if it.last is not None else DASH,
        trials or DASH,
    ]


def _failed(found: list[tuple[str, Failure]]) -> list[Element]:
    if not found:
        return []
    parts = [element("H2", "Failed runs")]
    for experiment, failure in found[:_MOST_REASONS]:
        runs = [element("Li", element("Code", run_id)) for run_id in failure.run_ids[:_MOST_RUNS]]
        if len(failure.run_ids) > _MOST_RUNS:
            address = View(page="runs", experiment=experiment, where='status == "failed"').address()
            runs.append(element("Li", link(f"all {len(failure.run_ids):,}", address)))
        summary = element(
            "Summary",
            element("Span", f"{experiment}: {plural(len(failure.run_ids), 'run')}, "),
            element("Code", one_line(failure.reason)),
        )
        key = f"failed-{signature((element('Code', experiment, failure.reason),))[:12]}"
        parts.append(element("Details", summary, element("Pre", failure.error), element("Ul", *runs), id=key))
    if len(found) > _MOST_REASONS:
        parts.append(element("P", f"{len(found) - _MOST_REASONS} other reasons are not listed here."))
    return parts
