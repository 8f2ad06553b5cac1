"""What a launch shows of earlier ones."""

from __future__ import annotations

from math import nan
from pathlib import Path

import pyarrow as pa
import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.execution.feeding.sweep_feeds import earlier_results
from clops_sweep.planning.plan import make_plan
from clops_sweep.store.run_store import RunStore
from tests.conftest import Tables
from tests.helpers.stores import write_finished


def test_results_of_earlier_launches_have_the_names_of_this_one(tmp_path: Path, finished_tables: Tables) -> None:
    """Of data without a validation set they are those of the test set."""
    space = SearchSpace("grid", RunConfig(), {"storage_fraction": [0.1, 0.5, 1.0]}, seeds=[0])
    store = RunStore(tmp_path)
    store.open_for_writing()
    assert list(earlier_results(store, make_plan(space.requests(), store, lambda config: "data"))) == []
    for request, auc in zip(space.requests(), (0.75, None), strict=False):
        run_id = request.config.run_id("data")
        tables = finished_tables(run_id, request.config, auc=0.5 if auc is None else auc)
        if auc is None:
            place = tables["runs"].schema.get_field_index("auc")
            tables["runs"] = tables["runs"].set_column(place, "auc", pa.array([nan]))
        write_finished(store, run_id, tables)
    found = {
        str(name): values
        for name, _, values in earlier_results(store, make_plan(space.requests(), store, lambda config: "data"))
    }
    assert found == {
        "storage_fraction 0.1": {"auc": 0.75, "bwt": pytest.approx(0.75)},
        "storage_fraction 0.5": {"test_auc": 0.5, "test_bwt": 0.5},
    }
