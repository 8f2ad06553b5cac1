"""Snapshots of a store, and following it: only new runs are read."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import pandas as pd

from clops_sweep.errors import UsageError, one_line, reason
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.store.launches import UnderWay, runs_under_way
from clops_sweep.store.parts import owners_of
from clops_sweep.store.run_store import RunStore

from ..collect import Experiment
from ..figures.frames import Frames
from ..leading import names_of_tuned, with_leading_scores
from ..report.planned import Found, PlannedSection, planned_sections
from .placed import Placed

T = TypeVar("T")

_IDLE = 5
"""Times `seconds` after which a snapshot is read anew for a page that is opened; an open page asks more often."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The content of a store at one moment.

    Attributes:
        version: increases with every change.
        runs: the table `runs`, by run id.
        sections: the sections of a report, by name of the experiment.
        problem: why the store could not be read since then; else empty.
        under_way: the running runs.
        epochs: increases whenever they progress.
        requested: names of the experiments whose runs a search space requests.
        searched: the search spaces of the requested searches, by name of the experiment.
        predicted: ids of the runs with predictions.
    """

    version: int
    runs: pd.DataFrame
    sections: Mapping[str, PlannedSection] = field(default_factory=dict)
    problem: str = ""
    under_way: tuple[UnderWay, ...] = ()
    epochs: int = 0
    requested: frozenset[str] = frozenset()
    searched: Mapping[str, SearchSpace] = field(default_factory=dict)
    predicted: frozenset[str] = frozenset()
    _computed: dict[str, Any] = field(default_factory=dict)

    def once(self, name: str, compute: Callable[[Snapshot], T]) -> T:
        """Return what a function computes from runs and sections; it is computed once until they change."""
        if name not in self._computed:
            self._computed[name] = compute(self)
        return cast(T, self._computed[name])

    @cached_property
    def running(self) -> frozenset[str]:
        """Ids of the running runs."""
        return frozenset(it.run_id for it in self.under_way)


def log_fault(what: str, error: Exception) -> None:
    """Log in one line what cannot be shown, why, and where the error was raised; the traceback at level DEBUG."""
    raised = traceback.extract_tb(error.__traceback__)[-1]
    logger = logging.getLogger(__name__)
    logger.error("%s cannot be shown: %s (%s, line %s)", what, reason(error), raised.filename, raised.lineno)
    logger.debug("%s", what, exc_info=error)


class Source(Protocol):
    """Source of experiments: search-space files, or the store alone."""

    def experiments(self, runs: pd.DataFrame, store: RunStore) -> list[Found]:
        """Return the experiments of runs, given by run id, in a store at one moment."""

    def frames(self, experiments: Sequence[Experiment]) -> Sequence[Frames]:
        """Return their available prepared frames."""

    def mark(self) -> Hashable:
        """Return a value that changes when a study changes."""


class FollowedStore:
    """A store that is read repeatedly.

    Args:
        store: the store.
        source: the source of its experiments.
        seconds: how long a snapshot is considered current.

    Attributes:
        read_at: when the store was last read, in seconds since 1970.

    Raises:
        UsageError: the store cannot be read.
    """

    def __init__(self, store: RunStore, source: Source, seconds: float) -> None:
        self.store = store
        self.seconds = seconds
        self._source = source
        self._one_reader = threading.Lock()
        self._mark: Hashable = None
        self._placed = Placed({})
        self._asked = 0.0
        self.read_at = 0.0
        moment = store.at_one_moment()
        self.snapshot = Snapshot(0, moment.read("runs", []).set_index("run_id", drop=False))
        try:
            self.snapshot = self._read(moment)
        except (UsageError, OSError):
            raise
        except Exception as error:
            self.snapshot = self._as_before(error)
        self._asked = time.monotonic()

    def refresh(self) -> Snapshot:
        """Return the current snapshot. Of concurrent calls, one reads the store; the others get the last snapshot."""
        if not self._one_reader.acquire(blocking=False):
            return self.snapshot
        try:
            if time.monotonic() - self._asked >= self.seconds:
                self.snapshot = self._read(self.store.at_one_moment())
        except Exception as error:  # a store is untrusted input
            self.snapshot = self._as_before(error)
        finally:
            self._asked = time.monotonic()
            self._one_reader.release()
        return self.snapshot

    def current(self) -> Snapshot:
        """Return the snapshot without reading the store, unless that was read some time ago, as with no page open."""
        is_old = time.monotonic() - self._asked >= _IDLE * self.seconds
        return self.refresh() if is_old else self.snapshot

    def _as_before(self, error: Exception) -> Snapshot:
        """Return the last snapshot with the error of reading the store as its problem."""
        self._mark = None
        before = self.snapshot
        if isinstance(error, UsageError | OSError):
            problem = one_line(error)
        else:
            problem = reason(error)
            if problem != before.problem:
                log_fault("the store", error)
        return replace(before, version=before.version + (problem != before.problem), problem=problem)

    def _read(self, store: RunStore) -> Snapshot:
        """Return the snapshot of the store at one moment."""
        self.store.files.check_is_there()
        owners = owners_of(store.parts.live())
        statuses = {run_id: part.statuses[run_id] for run_id, part in owners.items()}
        failures = {run_id: part.name for run_id, part in owners.items() if statuses[run_id] == "failed"}
        self.read_at = time.time()
        mark = (frozenset(statuses.items()), frozenset(failures.items()), self._source.mark())
        under_way = runs_under_way(self.store)
        epochs = self.snapshot.epochs + (under_way != self.snapshot.under_way)
        if mark == self._mark:
            if epochs == self.snapshot.epochs:
                return self.snapshot
            placed = self._placed.with_ids_of(under_way)
            return replace(self.snapshot, under_way=under_way, epochs=epochs, sections=placed)
        before = self.snapshot.runs
        same = [
            status == statuses.get(run_id) == "finished"  # a failed run may have failed again
            for run_id, status in zip(map(str, before.index), map(str, before["status"]), strict=True)
        ]
        kept = before[np.array(same, dtype=bool)]
        new = sorted(statuses.keys() - set(kept.index))
        read = store.read("runs", new).set_index("run_id", drop=False)
        runs = pd.concat([kept, read]).sort_index() if len(kept) else read
        found = _judged(self._source.experiments(runs, store))
        frames = self._source.frames([it[0] for it in found])
        sections: Mapping[str, PlannedSection] = {
            it.experiment.name: it for it in planned_sections(found, self.store, frames=frames)
        }
        self._mark = mark
        self._placed = Placed(sections)
        sections = self._placed.with_ids_of(under_way)
        requested = frozenset(experiment.name for experiment, space, _ in found if space is not None)
        searched = {it.name: space for it, space, _ in found if space is not None and space.search is not None}
        return Snapshot(
            self.snapshot.version + 1,
            runs,
            sections,
            under_way=under_way,
            epochs=epochs,
            requested=requested,
            searched=searched,
            predicted=frozenset(run_id for run_id, part in owners.items() if run_id in part.predicted),
        )


def _judged(found: Sequence[Found]) -> list[Found]:
    """Return experiments judged by the scores that lead, each on its own as after its launch."""
    tuned = names_of_tuned(experiment for experiment, _, _ in found)
    judged = []
    for experiment, space, study in found:
        (leading,) = with_leading_scores([experiment], tuned)
        judged.append((leading, space, study))
    return judged
