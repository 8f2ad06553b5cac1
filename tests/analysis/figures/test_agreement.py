from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from clops_sweep.analysis.drawing.style import as_png
from clops_sweep.analysis.figures.beta.agreement import (
    draw_rank_agreement,
    draw_replay_overlap,
    rank_agreement,
    replay_overlap,
)


def run(run_id: str, s: list[float], task: str = "A") -> pd.DataFrame:
    return pd.DataFrame({"run_id": run_id, "task": task, "instance": range(len(s)), "s": s})


def test_rank_agreement_by_hand() -> None:
    # ranks 1 2 3 4 against 2 1 3 4: rho = 1 - 6 * 2 / (4 * 15) = 0.8; against its reverse: -1
    rows = pd.concat([run("r1", [1, 2, 3, 4]), run("r2", [2, 1, 3, 4]), run("r3", [4, 3, 2, 1])])
    record = rank_agreement(rows)
    np.testing.assert_allclose(record.rho, [[0.8, -1.0, -0.8]])
    assert as_png(draw_rank_agreement(record)).startswith(b"\x89PNG")


def replays(*times: int) -> pd.DataFrame:
    return pd.DataFrame({"task": "A", "instance": range(len(times)), "times_replayed": times})


def test_overlap_by_hand() -> None:
    record = replay_overlap(
        {
            "one": {(0, 0): replays(4, 0, 2), (0, 1): replays(1, 1, 1)},
            "two": {(0, 0): replays(2, 2, 2), (0, 2): replays(9, 9, 9)},
        }
    )
    assert record.matrix[0, 1] == pytest.approx((2 + 0 + 2) / (4 + 2 + 2))
    np.testing.assert_allclose(record.matrix, record.matrix.T)
    assert record.n.tolist() == [[2, 1], [1, 2]]
    assert as_png(draw_replay_overlap(record)).startswith(b"\x89PNG")
