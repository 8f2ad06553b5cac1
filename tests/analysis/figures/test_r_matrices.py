"""R and forgetting by task, against values put down by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from clops_sweep.analysis.drawing.style import as_png
from clops_sweep.analysis.figures.forgetting import forgetting
from clops_sweep.analysis.figures.r_matrices import draw_r_matrices, r_matrix
from clops_sweep.errors import UsageError

R = np.array([[0.9, 0.5, 0.4], [0.8, 0.85, 0.5], [0.7, 0.9, 0.95]])
TASKS = ("B", "A", "C")


def rows(run_id: str, shift: float = 0.0, r: np.ndarray = R, tasks: tuple[str, ...] = TASKS) -> pd.DataFrame:
    """R of one run as the store has it, R on the test split being 0.1 lower."""
    first = len(tasks) - len(r) + 1
    return pd.DataFrame(
        [
            {
                "run_id": run_id,
                "split": split,
                "trained_on": first + i,
                "evaluated_on": j + 1,
                "task": tasks[j],
                "auc": value + shift - lower,
                "accuracy": value / 2,
            }
            for split, lower in (("validation", 0.0), ("test", 0.1))
            for (i, j), value in np.ndenumerate(r)
        ]
    )


TWO = pd.concat([rows("r1"), rows("r2", 0.02)])


def test_r_is_the_mean_over_runs() -> None:
    record = r_matrix(TWO, "CLOPS")
    assert record.trained == record.evaluated == TASKS
    assert (record.title, record.metric, record.n) == ("CLOPS", "auc", 2)
    np.testing.assert_allclose(record.mean, R + 0.01)
    np.testing.assert_allclose(record.sd, np.full((3, 3), 0.02 / np.sqrt(2)))
    np.testing.assert_allclose(r_matrix(TWO, split="test").mean, R - 0.09)
    np.testing.assert_allclose(r_matrix(TWO, metric="accuracy").mean, R / 2)
    assert np.isnan(r_matrix(rows("r1")).sd).all()


def test_forgetting_is_the_end_less_what_had_just_been_learned() -> None:
    changed = R.copy()
    changed[2, 0] = 0.5
    record = forgetting(pd.concat([rows("r1"), rows("r2", 0.02, changed)]), "CLOPS")
    assert record.tasks == TASKS
    np.testing.assert_allclose(record.learned, np.diag(R) + 0.01)
    np.testing.assert_allclose(record.final, [0.61, 0.91, 0.96])
    np.testing.assert_allclose([estimate.mean for estimate in record.change], [-0.3, 0.05, 0.0], atol=1e-12)
    np.testing.assert_allclose(record.change[0].sd, 0.2 / np.sqrt(2))


def test_drawing_r_writes_every_value() -> None:
    figure = draw_r_matrices([r_matrix(TWO, "CLOPS"), r_matrix(rows("r1", r=R[2:]), "MTL")])
    written = [text for value in R.flat for text in (f"{value + 0.01:.2f}", "± 0.01")]
    assert [text.get_text() for text in figure.axes[0].texts] == written
    assert as_png(figure).startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="nothing to draw"):
        draw_r_matrices([])


def test_titles_of_r_keep_the_value_of_a_setting() -> None:
    """Panels of one method differ in it alone."""
    records = [r_matrix(TWO, f"finetune, learning_rate = {rate}") for rate in ("0.001", "0.003")]
    axes = draw_r_matrices(records).axes[:2]
    for rate, of_panel in zip(("0.001", "0.003"), axes, strict=True):
        assert f"learning_rate = {rate}" in of_panel.get_title(loc="left")
