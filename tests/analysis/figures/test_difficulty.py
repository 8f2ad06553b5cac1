from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from clops_sweep.analysis.difficulty import task_similarity
from clops_sweep.analysis.drawing.style import as_png
from clops_sweep.analysis.figures.beta.difficulty_figures import (
    draw_similarity,
)
from clops_sweep.learning.metrics.difficulty import (
    TaskDistribution,
    curriculum,
    similarity,
    similarity_matrix,
)


def frame(run_id: str = "r1", **by_task: list[float]) -> pd.DataFrame:
    rows = [{"run_id": run_id, "task": task, "s": s} for task, values in by_task.items() for s in values]
    return pd.DataFrame(rows)


def test_one_run_gives_what_a_sweep_orders_tasks_by() -> None:
    rng = np.random.default_rng(0)
    values = {task: list(rng.normal(mean, 0.03, 50)) for task, mean in zip("ABCD", rng.normal(19, 0.1, 4), strict=True)}
    record = task_similarity(frame(**values))
    decided = [TaskDistribution.of(s) for s in values.values()]
    assert (record.matrix == similarity_matrix(decided)).all()
    assert record.curriculum == curriculum(decided)
    assert record.anti_curriculum == curriculum(decided, easiest_first=False)


def test_curriculum_starts_at_the_easiest_task() -> None:
    two = pd.concat([frame("r1", A=[1, 2], B=[5, 6], C=[4, 5]), frame("r2", A=[1, 2], B=[5, 6], C=[4.2, 5.2])])
    record = task_similarity(two)
    assert record.n == 2
    assert record.curriculum == (1, 2, 0)
    assert record.anti_curriculum == (0, 2, 1)
    one, other = (similarity(TaskDistribution(5.5, 0.5), TaskDistribution(c, 0.5)) for c in (4.5, 4.7))
    assert record.matrix[1, 2] == pytest.approx((one + other) / 2)
    assert as_png(draw_similarity(record)).startswith(b"\x89PNG")
