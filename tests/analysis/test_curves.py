from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analysis.curves import Block, describe_learning_curves, draw_learning_curves, learning_curves
from analysis.style import as_png
from clops_sweep.errors import BadInput


def rows(run_id: str, shift: float = 0.0) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"run_id": run_id, "epoch": epoch, "training_task": trained, "task": task, "auc": auc + shift, "loss": 0.1}
            for epoch, trained, first, second in [(1, "B", 0.6, 0.5), (2, "B", 0.7, 0.4), (3, "A", 0.5, 0.9)]
            for task, auc in (("A", second), ("B", first))
        ]
    )


def test_record_by_hand() -> None:
    record = learning_curves(pd.concat([rows("r1"), rows("r2", 0.02)]), "Both")
    assert record.tasks == ("B", "A")
    assert record.blocks == (Block("B", 1, 2), Block("A", 3, 3))
    assert record.n == 2
    np.testing.assert_allclose(record.mean, [[0.61, 0.71, 0.51], [0.51, 0.41, 0.91]])
    np.testing.assert_allclose(record.sd, np.full((2, 3), 0.02 / np.sqrt(2)))


def test_one_run_has_no_spread() -> None:
    assert np.isnan(learning_curves(rows("r1")).sd).all()


def test_drawing_names_every_line() -> None:
    record = learning_curves(rows("r1"), "One run")
    figure = draw_learning_curves([record, record, record])
    named = [text.get_text() for text in figure.axes[0].texts]
    assert named == ["B", "A"]
    assert as_png(figure).startswith(b"\x89PNG")
    assert "One run (n = 1) end at: B 0.500, A 0.900" in describe_learning_curves([record])


def test_a_single_epoch_draws() -> None:
    record = learning_curves(rows("r1").query("epoch == 1"))
    assert as_png(draw_learning_curves([record])).startswith(b"\x89PNG")


def test_nothing_and_disagreement_end_in_a_sentence() -> None:
    with pytest.raises(BadInput, match="no finished run"):
        learning_curves(rows("r1").iloc[:0])
    other = rows("r2").assign(training_task="A")
    with pytest.raises(BadInput, match="different tasks at epoch 1"):
        learning_curves(pd.concat([rows("r1"), other]))
    with pytest.raises(BadInput, match="nothing to draw"):
        draw_learning_curves([])
