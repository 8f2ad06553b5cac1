from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from clops_sweep.analysis.difficulty import task_similarity
from clops_sweep.analysis.drawing.style import as_png
from clops_sweep.analysis.figures.beta.difficulty_figures import (
    draw_similarity,
)
from clops_sweep.learning.metrics.difficulty import (
    TaskDistribution,
    chain,
    curriculum,
    hellinger_similarity,
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


def test_similarity_is_one_minus_the_hellinger_distance() -> None:
    p, q = stats.norm(18.85, 0.03), stats.norm(18.95, 0.05)
    coefficient, _ = integrate.quad(lambda x: math.sqrt(p.pdf(x) * q.pdf(x)), 18.5, 19.4, points=[18.85, 18.95])
    assert hellinger_similarity(18.85, 0.03, 18.95, 0.05) == pytest.approx(1 - math.sqrt(1 - coefficient), abs=1e-7)


def test_chain_takes_the_most_similar_one_left() -> None:
    matrix = [[1.0, 0.2, 0.9, 0.2], [0.2, 1.0, 0.5, 0.8], [0.9, 0.5, 1.0, 0.1], [0.2, 0.8, 0.1, 1.0]]
    assert chain(matrix, 0) == (0, 2, 1, 3)
    assert chain(matrix, 3) == (3, 1, 2, 0)
    assert chain([[1.0]], 0) == (0,)


def test_curriculum_starts_at_the_easiest_task() -> None:
    two = pd.concat([frame("r1", A=[1, 2], B=[5, 6], C=[4, 5]), frame("r2", A=[1, 2], B=[5, 6], C=[4.2, 5.2])])
    record = task_similarity(two)
    assert record.n == 2
    assert record.curriculum == (1, 2, 0)
    assert record.anti_curriculum == (0, 2, 1)
    one, other = (hellinger_similarity(5.5, 0.5, c, 0.5) for c in (4.5, 4.7))
    assert record.matrix[1, 2] == pytest.approx((one + other) / 2)
    assert as_png(draw_similarity(record)).startswith(b"\x89PNG")


def test_the_whole_report_imports_neither_torch_nor_ray() -> None:
    heavy = ("torch", "ray", "matplotlib.pyplot")
    code = f"import sys, clops_sweep.analysis.report.write; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.strip() == "[]"
