"""The outcome of a launch: the state at its end, and how it ended."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from clops_sweep.errors import StoreError, UsageError, several
from clops_sweep.experiment.html_table import html_table
from clops_sweep.experiment.metrics import short_name
from clops_sweep.planning.plan import Plan
from clops_sweep.planning.searches import Search, Tuning
from clops_sweep.planning.state import State
from clops_sweep.store.rows import reason_of
from clops_sweep.store.run_store import RunStore

if TYPE_CHECKING:
    import pandas as pd

    from clops_sweep.execution.jobs import Job


@dataclass(frozen=True)
class NothingToDo:
    """No run could be begun, so nothing was computed; some may wait for runs of other launches or for failed ones."""


@dataclass(frozen=True)
class Ended:
    """The launch came to its end; runs that could not be stored stay pending."""


@dataclass(frozen=True)
class Interrupted:
    """The user stopped the launch; the same launch continues.

    Attributes:
        under_way: number of runs that were being computed.
        checkpointed: number of these that continue from a checkpoint.
    """

    under_way: int
    checkpointed: int

    @classmethod
    def of(cls, jobs: Sequence[Job], store: RunStore) -> Interrupted:
        """Return the end of a launch whose workers had some jobs."""
        return cls(len(jobs), sum(store.has_checkpoint(job.run_id) for job in jobs))


@dataclass(frozen=True)
class Stopped:
    """An error ended the launch early; the same launch continues once this is fixed.

    Attributes:
        error: a full disk, results that are damaged or gone, or a sampler that cannot suggest a trial, for example.
    """

    error: str


Ending = NothingToDo | Ended | Interrupted | Stopped
"""How a launch ended."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a launch.

    Runs that become encoders are computed before the others. If they do not complete, the outcome is theirs alone.

    Attributes:
        state: the state of its runs and searches when it ended. If it was stopped, and the store cannot be
            read, when it began.
        ending: how it ended.
        changed_code: a sentence for each plug-in and encoder that changed since requested runs were computed.
        part: "all" requested runs and searches, or "pretraining": the runs that become encoders.
        scorer: computes `scores`; set by `sweep`.
        doubter: computes `in_doubt`; set by `sweep`.
    """

    state: State
    ending: Ending
    changed_code: tuple[str, ...] = ()
    part: Literal["all", "pretraining"] = "all"
    scorer: Callable[[State, str | None], pd.DataFrame] | None = field(default=None, repr=False, compare=False)
    doubter: Callable[[State], list[str]] | None = field(default=None, repr=False, compare=False)

    @property
    def in_doubt(self) -> list[str]:
        """Sentences on configurations that have not learned a task, and on scores that still rise, as after a launch.

        The first ones are on decisions that moved although a ranking such as AUC was kept.

        Empty if it is not an outcome of `sweep`, without finished runs, and if the store cannot be read.
        """
        if self.doubter is None or self.stopped or not self.plan.count_asked("finished"):
            return []
        try:
            return self.doubter(self.state)
        except (UsageError, StoreError, OSError):  # as a store that was deleted
            return []

    def scores(self, metric: str | None = None) -> pd.DataFrame:
        """Return the scores of each configuration: mean, 95 % interval and n of test people, the best first.

        The columns are those of `clops_sweep.scores`, which computes the same from a search space and its store.

        Args:
            metric: a column of `runs`; by default the first headline metric, of test people.

        Raises:
            UsageError: no run has the metric, or this is not an outcome of `sweep`.
        """
        if self.scorer is None:
            raise UsageError("Outcome.scores: only an outcome of sweep() has scores; call clops_sweep.scores instead")
        return self.scorer(self.state, metric)

    @property
    def ran(self) -> bool:
        """Whether any run was pending."""
        return not isinstance(self.ending, NothingToDo)

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped it; the same launch continues."""
        return isinstance(self.ending, Interrupted)

    @property
    def stopped(self) -> str | None:
        """What ended it early, such as a full disk; the same launch continues once this is fixed."""
        return self.ending.error if isinstance(self.ending, Stopped) else None

    @property
    def under_way(self) -> int:
        """Number of runs that were being computed when the user stopped it."""
        return self.ending.under_way if isinstance(self.ending, Interrupted) else 0

    @property
    def checkpointed(self) -> int:
        """Number of these that continue from a checkpoint."""
        return self.ending.checkpointed if isinstance(self.ending, Interrupted) else 0

    @property
    def store(self) -> RunStore:
        """The store; `store.read("runs")` reads the results."""
        return self.state.asked.store

    @property
    def plan(self) -> Plan:
        """The requested runs, with their ids and states."""
        return self.state.plan

    @property
    def searches(self) -> tuple[Search, ...]:
        """The searches, with their trials; none if it was stopped early."""
        return () if self.stopped else self.state.searches

    @property
    def tuned(self) -> tuple[Tuning, ...]:
        """The tuned spaces, with their choices; none if it was stopped early."""
        return () if self.stopped else self.state.tuned

    @property
    def complete(self) -> bool:
        """Whether all requested runs and trials are finished."""
        runs = not self.plan.of("failed", "pending", "waiting") and all(tuned.is_decided for tuned in self.tuned)
        return runs and all(search.complete for search in self.searches) and not self.stopped

    @property
    def counts(self) -> dict[str, int]:
        """Number of finished, pending and failed requested runs."""
        return {
            "finished": self.plan.count_asked("finished"),
            "pending": self.plan.count_asked("pending", "waiting"),
            "failed": self.plan.count_asked("failed"),
        }

    @property
    def failures(self) -> dict[str, str]:
        """Failed runs by id, with the exception that ended them."""
        failed = [str(run.run_id) for run in self.plan.of("failed")]
        rows = self.store.rows("runs", ["run_id", "reason", "error"], failed) if failed else []
        return {row["run_id"]: reason_of(row) for row in rows}

    @property
    def runs(self) -> pd.DataFrame:
        """The rows of `runs` of the requested runs and trials, without columns that are empty in all of them.

        The column `role` tells trials of tuning from reported runs, as in `clops_sweep.read`.
        """
        from clops_sweep.search.roles import runs_with_roles

        ids = {str(run.run_id) for run in self.plan.asked}
        ids = ids.union(*(search.run_ids for search in self.searches))
        return runs_with_roles(self.store, sorted(ids)).dropna(axis=1, how="all")

    def _repr_html_(self) -> str:
        doubts = [("doubt", sentence) for sentence in self.in_doubt]
        return html_table(str(self), [*self._scores_in_words(), *doubts, *self.failures.items()])

    def __repr__(self) -> str:
        lines = [f"{name}: {scores}" for name, scores in self._scores_in_words()]
        if not lines:
            return f"<Outcome: {self}>"
        lines += self.in_doubt
        return "\n".join([f"<Outcome: {self}", *(f"  {line}" for line in lines), "  scores() has all of them>"])

    def in_lines(self) -> str:
        """Return what a script prints at the end of a sweep: counts, best scores, the results and how to go on."""
        idle = not (self.ran or self.plan.of("waiting"))
        lines = [f"nothing is pending: {self}" if idle else str(self)]
        if not (self.interrupted or self.stopped):
            lines += [f"  {name}: {scores}" for name, scores in self._scores_in_words()]
            lines += self.in_doubt
        lines += [f"failed {run_id}: {reason}" for run_id, reason in self._failures_to_show().items()]
        lines.append(f"results: {self.store.files.shown}")
        if self.interrupted or self.stopped:
            lines.append("the same call of sweep continues; finished runs are not repeated")
        elif self.plan.count_asked("finished"):
            lines.append("report: call write_report with the same search space and results")
        return "\n".join(lines)

    def _failures_to_show(self) -> dict[str, str]:
        """Return some failures; none if the store may not be readable."""
        return {} if self.stopped else dict(itertools.islice(self.failures.items(), _MOST_SHOWN))

    def _scores_in_words(self) -> list[tuple[str, str]]:
        """Return names and scores of the best configurations; none without finished runs, or if they cannot be read."""
        if self.scorer is None or not self.plan.count_asked("finished"):
            return []
        try:
            scores = self.scores()
        except (UsageError, StoreError, OSError):  # as a store that was deleted: the counts are shown still
            return []
        several_spaces = len(set(scores["search_space"])) > 1
        words = []
        for _, rows in scores.groupby("search_space", sort=False):
            for row in rows.head(_MOST_SHOWN).to_dict("records"):
                names = [row["search_space"], row["configuration"]] if several_spaces else [row["configuration"]]
                words.append((", ".join(dict.fromkeys(names)), _score_in_words(row)))
        return words

    def __str__(self) -> str:
        parts = []
        if self.plan.asked or not self.searches:
            counts = ", ".join(f"{count} {state}" for state, count in self.counts.items())
            parts.append(f"{several(len(self.plan.asked), 'run')} asked for, {counts}")
        for search in self.searches:
            trials = several(search.count("complete"), "trial")
            parts.append(f"search {search.space.name!r}: {trials} complete")
        part = "pretraining of encoders: " if self.part == "pretraining" else ""
        return self._ending_in_words + part + "; ".join([*parts, *self.changed_code])

    @property
    def _ending_in_words(self) -> str:
        match self.ending:
            case Interrupted():
                return "interrupted; "
            case Stopped(error):
                return f"stopped: {error}; "
            case NothingToDo() | Ended():
                return ""


_MOST_SHOWN = 5
"""Most configurations of a search space that `repr` shows."""


def _score_in_words(row: dict[Any, Any]) -> str:
    """Return a row of `scores` in words: "test AUC 0.812 [0.790, 0.834], n = 4 patient splits"."""
    spread = ""
    if math.isfinite(row["low"]):
        spread = f" [{row['low']:.3f}, {row['high']:.3f}]"
    elif row["n"] > 1:
        spread = f" ({row['lowest']:.3f} to {row['highest']:.3f})"
    validation = f"; validation {row['validation']:.3f}" if math.isfinite(row["validation"]) else ""
    unit = row["unit"].removesuffix("s") if row["n"] == 1 else row["unit"]
    return f"{short_name(row['metric'])} {row['mean']:.3f}{spread}, n = {row['n']} {unit}{validation}"
