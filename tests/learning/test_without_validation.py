"""Runs on data without a validation set: the test numbers stay equal, and no validation numbers appear."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from clops_sweep import ContinualRun
from clops_sweep.data.frames import TEST, VALIDATION, FrameSet
from clops_sweep.experiment.columns import METRICS
from clops_sweep.testing import tiny_config, tiny_frames


def without_validation(kind: str) -> FrameSet:
    """Return a tiny frame set whose validation instances moved to the test set."""
    frames = tiny_frames(kind, tasks=2)
    return replace(frames, split=np.where(frames.split == VALIDATION, np.int8(TEST), frames.split))


@pytest.mark.parametrize("kind", ["class_il", "time_il", "domain_il"])
@pytest.mark.parametrize("strategy", ["er", "multitask"])
def test_there_are_test_metrics_alone_and_curves_where_they_are_asked_for(kind: str, strategy: str) -> None:
    frames, config = without_validation(kind), tiny_config(kind, strategy=strategy)
    plain = ContinualRun(config, frames).run()
    with_curves = ContinualRun(config.replace(curves="test"), frames, keep_predictions=True).run()

    row, same = plain.runs.iloc[0], with_curves.runs.iloc[0]
    assert row[list(METRICS)].isna().all()
    tested = [f"test_{name}" for name in METRICS]
    assert row["test_auc"] == row["test_auc"]
    pd.testing.assert_series_equal(row[tested], same[tested], check_names=False)
    assert row["patients_validation"] == 0
    assert set(plain.r_matrix["split"]) == {"test"}
    assert plain.curves.empty
    assert set(plain.curves) == set(with_curves.curves)

    names = ["auc", "accuracy", "balanced_accuracy", "f1"]
    curves, epochs = with_curves.curves, int(with_curves.curves["epoch"].max())
    assert epochs == config.epochs_per_task * len(curves["task"].unique())
    last = curves[curves["epoch"] == epochs].set_index("task")[names]
    r = with_curves.r_matrix
    pd.testing.assert_frame_equal(last, r[r["trained_on"] == r["trained_on"].max()].set_index("task")[names])
