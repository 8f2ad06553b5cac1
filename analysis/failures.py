"""Why runs have failed, in a sentence."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from clops_sweep.analysis.formats import plural
from clops_sweep.store.rows import failure_reason

_MOST_REASONS = 3


def failure_notices(runs: pd.DataFrame) -> Iterator[str]:
    """How many runs have failed and for which reasons, the most frequent first; nothing where none has.

    Args:
        runs: rows with the columns `status` and, where a run has failed, `error`.
    """
    failed = runs[runs["status"] == "failed"]
    if failed.empty:
        return
    counts = failed["error"].map(failure_reason).value_counts(sort=False).sort_values(ascending=False, kind="stable")
    listed = [f"{_times(count)} {text}" for text, count in counts.head(_MOST_REASONS).items()]
    others = len(counts) - len(listed)
    if others:
        listed.append(f"the rest for {plural(others, 'other reason')}")
    yield f"{plural(len(failed), 'run')} failed: {'; '.join(listed).rstrip('.')}."


def _times(count: int) -> str:
    return "once" if count == 1 else plural(count, "time")
