from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from clops_sweep.analysis.figures.curves import (
    Block,
    draw_learning_curves,
    learning_curves,
)
from clops_sweep.errors import UsageError


def rows(run_id: str, shift: float = 0.0) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"run_id": run_id, "epoch": epoch, "training_task": trained, "task": task, "auc": auc + shift, "loss": 0.1}
            for epoch, trained, first, second in [(1, "B", 0.6, 0.5), (2, "B", 0.7, 0.4), (3, "A", 0.5, 0.9)]
            for task, auc in (("A", second), ("B", first))
        ]
    )


def test_record_by_hand() -> None:
    two = pd.concat([rows("r1"), rows("r2", 0.02)])
    record = learning_curves(pd.concat([two, rows("r3", 0.01)]), "All")
    assert record.tasks == ("B", "A")
    assert record.blocks == (Block("B", 1, 2), Block("A", 3, 3))
    assert record.n == 3
    np.testing.assert_allclose(record.mean, [[0.61, 0.71, 0.51], [0.51, 0.41, 0.91]])
    np.testing.assert_allclose(record.sd, np.full((2, 3), 0.01))
    assert np.isnan(learning_curves(two).sd).all(), "two runs have no band"


def test_bands_stay_within_the_limits_of_the_measure() -> None:
    wide = pd.concat([rows("r1", 0.1), rows("r2", -0.4), rows("r3")])
    low, high = learning_curves(wide).band
    assert low.min() == pytest.approx(0.4 - 0.1 - np.std([0.1, -0.4, 0], ddof=1))
    assert high.max() == 1.0
    loss = learning_curves(wide.assign(loss=[3.0, 0.1] * 9), measure="loss")
    assert loss.band[1].max() > 1
    axes = draw_learning_curves([loss]).axes[0]
    assert axes.get_ylim()[1] > 3, "losses have no upper limit"


def test_nothing_and_disagreement_end_in_a_sentence() -> None:
    with pytest.raises(UsageError, match="no finished run"):
        learning_curves(rows("r1").iloc[:0])
    other = rows("r2").assign(training_task="A")
    with pytest.raises(UsageError, match="different tasks at epoch 1"):
        learning_curves(pd.concat([rows("r1"), other]))
    with pytest.raises(UsageError, match="nothing to draw"):
        draw_learning_curves([])


def test_a_run_that_stopped_early_keeps_its_last_value() -> None:
    stopped, whole = rows("r1").assign(auc=0.9), rows("r2").assign(auc=0.5)
    stopped = stopped[stopped["epoch"] != 2]
    np.testing.assert_allclose(learning_curves(pd.concat([stopped, whole])).mean, np.full((2, 3), 0.7))


def test_the_runs_of_a_patient_split_are_averaged_first() -> None:
    table = pd.concat([rows(name).assign(auc=auc) for name, auc in [("r1", 0.2), ("r2", 0.4), ("r3", 0.9)]])
    record = learning_curves(table.assign(unit=table["run_id"].map({"r1": "0", "r2": "0", "r3": "1"})))
    assert record.n == 2
    np.testing.assert_allclose(record.mean, np.full((2, 3), 0.6))


def test_memory_grows_linearly_with_the_runs() -> None:
    one = rows("r")
    many = pd.concat([one] * 1500).assign(run_id=np.repeat([f"r{index}" for index in range(1500)], len(one)))
    tracemalloc.start()
    record = learning_curves(many)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert record.n == 1500
    np.testing.assert_allclose(record.mean, [[0.6, 0.7, 0.5], [0.5, 0.4, 0.9]])
    assert peak < 20e6, "a table of all pairs of runs takes 108 MB"
