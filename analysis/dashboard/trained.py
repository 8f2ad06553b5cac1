"""Which experiments have configurations whose training is in doubt, in the sentences of launch, claims and report."""

from __future__ import annotations

from collections.abc import Sequence

from clops_sweep.errors import UsageError
from clops_sweep.store.run_store import RunStore

from ..tables.best import Best, best_of_page
from ..tables.learned import training_in_doubt, training_in_doubt_of
from .snapshot import Snapshot


def best_by_experiment(snapshot: Snapshot) -> dict[str, list[Best]]:
    """Return the best configurations of each experiment that reports results, by its name; none before a result."""
    best = {}
    for name, section in snapshot.sections.items():
        experiment = section.experiment
        if experiment.is_tuning or not experiment.counts("finished").any():
            continue
        try:
            best[name] = best_of_page([experiment], compares=False)
        except UsageError:  # folds and random splits are mixed
            continue
    return best


class Doubts:
    """The sentences of `training_in_doubt` on the experiments of a dashboard; each is computed again with its runs.

    Args:
        store: the store.
    """

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._computed: dict[str, tuple[frozenset[str], list[str]]] = {}

    def of(self, names: Sequence[str], snapshot: Snapshot) -> list[tuple[str, str]]:
        """Return the sentences on experiments, each after the name of its experiment; the store is listed once."""
        store: RunStore | None = None
        sentences: list[tuple[str, str]] = []
        for name in names:
            best = snapshot.once("best", best_by_experiment).get(name, [])
            runs = frozenset(run for row in best for run in row.experiment.run_ids(row.cell))
            before = self._computed.get(name)
            if before is None or before[0] != runs:
                store = store or self._store.at_one_moment()
                before = runs, training_in_doubt(best, store)
                self._computed[name] = before
            sentences += [(name, sentence) for sentence in before[1]]
        return sentences

    def of_experiment(self, name: str, snapshot: Snapshot) -> list[str]:
        """Return the sentences on an experiment."""
        return [sentence for _, sentence in self.of([name], snapshot)]

    def of_configuration(self, name: str, cell: int, snapshot: Snapshot) -> list[str]:
        """Return the sentences on one configuration of an experiment."""
        best = snapshot.once("best", best_by_experiment).get(name, [])
        return training_in_doubt_of(cell, best, self._store.at_one_moment())
