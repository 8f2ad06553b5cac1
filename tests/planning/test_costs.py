"""The mean cost of runs of a kind, and the estimate of pending ones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from clops_sweep import RunConfig
from clops_sweep.planning.costs import Costs, estimate, kind_of
from clops_sweep.planning.plan import PlannedRun
from clops_sweep.store.run_store import RunStore
from tests.conftest import Tables
from tests.helpers.stores import write_finished


def test_a_run_costs_the_mean_of_its_kind() -> None:
    costs, base = Costs(), RunConfig(dataset="mitbih", epochs_per_task=10)
    clops, fine, longer, repeated, stored = (
        kind_of(base.replace(**change))
        for change in (
            {},
            {"strategy": "finetune"},
            {"epochs_per_task": 30},
            {"learning_rate": 0.9, "seed": 3},
            {"storage_fraction": 0.9},
        )
    )
    assert repeated == clops
    assert stored != clops
    costs.add(clops, 20)
    costs.add(repeated, 40)
    costs.add(fine, 6)
    assert (costs.seconds(clops), costs.seconds(fine), costs.seconds(longer), costs.seconds(None)) == (30, 6, None, 22)
    assert (costs.seconds(stored), costs.guess(stored), costs.guess(longer)) == (None, 30, None)


@pytest.mark.parametrize(("present", "expected"), [("newer", 1), ("former", 1), ("another", 2), (None, 0)])
def test_an_estimate_counts_runs_on_another_edition_of_the_data(
    present: str | None, expected: int, tmp_path: Path, finished_tables: Tables
) -> None:
    """Runs of three tasks were taken for runs of the four that the data have now."""
    store = RunStore(tmp_path)
    for letter, prepared in (("a", "former"), ("b", "newer"), ("c", None)):
        tables = dict(finished_tables(letter * 24, RunConfig()))
        (row,) = tables["runs"].to_pylist()
        tables["runs"] = pa.Table.from_pylist([row | {"prepared_hash": prepared}], schema=tables["runs"].schema)
        write_finished(store, letter * 24, tables)
    pending = [PlannedRun("d" * 24, RunConfig(seed=1), "pending")]
    found = estimate(pending, [], store, present=lambda dataset: present)
    assert (found.finished, found.other_data) == (3, expected)
