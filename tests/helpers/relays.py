"""A relay between workers that a test plays and a feed, with a real store and the real retry policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clops_sweep.execution.feeding.feed import Feed
from clops_sweep.execution.feeding.relay import Relay
from clops_sweep.execution.feeding.retries import Retries
from clops_sweep.execution.feeding.under_way import RunsUnderWay
from clops_sweep.execution.observers.thread import Observers
from clops_sweep.store.run_store import RunStore


def relay_of(feed: Feed, store: RunStore, display: Any, max_retries: int = 1) -> Relay:
    """Return a relay without observers, for runs of generated data."""
    retries = Retries(store, max_retries, lambda config: "generated0001", {})
    under_way = RunsUnderWay(store, (), Path(store.work_folder, "launch.log"))
    return Relay(store, display, feed, Observers([], display.warn), under_way, retries)
