"""How experiments stand, counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from .snapshot import Followed, Snapshot


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
