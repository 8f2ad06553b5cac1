"""The study of streams: the tables of docs/results/streams.md follow from the runs that lie beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_has_the_tables_that_follow_from_the_runs(loaded: Callable[[str, Path], ModuleType]) -> None:
    study = loaded("streams_study", DOCS / "streams" / "study.py")
    runs, page = pd.read_parquet(study.RUNS), (DOCS / "results" / "streams.md").read_text("utf-8")
    for table in study.tables(runs):
        assert table in page
    online = runs[(runs["space"] == "online_mitbih") & (runs["blurry"] == 0)].pivot_table(
        index="split_seed", columns="method", values="prequential_accuracy"
    )
    d = online["ER"] - online["Fine-tuning"]
    people = runs[runs["space"] == "online_mitbih"].groupby("split_seed")[["patients_train", "patients_all"]].first()
    rho = (people["patients_train"] / (people["patients_all"] - people["patients_train"])).mean()
    half = 2.7764451 * d.std() * (1 / 5 + rho) ** 0.5  # t(0.975; 4)
    assert f"{d.mean():+.3f} [{d.mean() - half:+.3f}, {d.mean() + half:+.3f}]" in page
    assert len(study.draw(runs, pd.read_parquet(study.CURVES))) > 1000
    assert d.mean() == pytest.approx(0.053, abs=1e-3)
