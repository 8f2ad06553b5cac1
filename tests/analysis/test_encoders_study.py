"""The study of encoders: the tables of docs/results/encoders.md follow from the runs that lie beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_has_the_tables_that_follow_from_the_runs(loaded: Callable[[str, Path], ModuleType]) -> None:
    study = loaded("encoders_study", DOCS / "encoders" / "study.py")
    runs = pd.read_parquet(study.RUNS)
    page = (DOCS / "results" / "encoders.md").read_text("utf-8")
    for table in study.tables(runs).split("\n\n"):
        assert table in page
    found = study.difference(runs, ("ncm", "CinC 2017"), ("er", study.SCRATCH))
    ncm = runs.query("strategy == 'ncm' and encoder == 'CinC 2017'").set_index("split_seed")[study.MEASURE]
    er = runs.query("strategy == 'er' and encoder == @study.SCRATCH").set_index("split_seed")[study.MEASURE]
    assert sorted(found.each) == pytest.approx(sorted(ncm - er))
    assert found.units is not None
    assert found.units.overlap == pytest.approx(427 / 1279, rel=1e-2)
