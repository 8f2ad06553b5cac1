from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from clops_sweep.analysis.drawing.style import as_png
from clops_sweep.analysis.drawing.task_styles import natural_order, short_names
from clops_sweep.analysis.figures.curves import (
    Block,
    LearningCurves,
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


def test_one_run_has_no_spread() -> None:
    assert np.isnan(learning_curves(rows("r1")).sd).all()


def test_another_measure() -> None:
    table = rows("r1").assign(balanced_accuracy=lambda it: it["auc"] - 0.1)
    record = learning_curves(table, "One run", "balanced_accuracy")
    np.testing.assert_allclose(record.mean, learning_curves(table).mean - 0.1)
    assert draw_learning_curves([record]).axes[0].get_ylabel() == "validation balanced accuracy"
    with pytest.raises(UsageError, match="measure 'f1': expected one of auc, accuracy, "):
        learning_curves(table, measure="f1")
    with pytest.raises(UsageError, match="measure 'epoch': expected"):
        learning_curves(table, measure="epoch")


def test_drawing_names_every_line() -> None:
    record = learning_curves(rows("r1"), "One run")
    figure = draw_learning_curves([record, record, record])
    named = [text.get_text() for text in figure.axes[0].texts]
    assert named == ["B", "A", "B", "A"]  # the blocks, then the lines
    assert as_png(figure).startswith(b"\x89PNG")


LEADS = [f"Lead {name}" for name in ("I", "II", "III", "aVL", "aVR", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")]


def twelve(order: list[str]) -> LearningCurves:
    """Twelve tasks whose lines end close together, a few of them at the same value."""
    ends = {task: 0.8 + 0.01 * (position // 2) for position, task in enumerate(LEADS)}
    mean = np.array([np.linspace(0.5, ends[task], 24) for task in order])
    blocks = tuple(Block(task, 2 * i + 1, 2 * i + 2) for i, task in enumerate(order))
    return LearningCurves("Domain-IL", tuple(order), np.arange(1, 25), mean, np.full(mean.shape, np.nan), 1, blocks)


def test_names_of_twelve_lines_are_apart_and_no_leader_runs_through_one() -> None:
    figure = draw_learning_curves([twelve(LEADS), twelve(LEADS[::-1]), twelve(LEADS)])
    as_png(figure)  # lays it out
    for axes in figure.axes[:3]:
        names = {text.get_text(): text.get_window_extent() for text in axes.texts[12:]}
        assert set(names) == set(LEADS)
        boxes = sorted(names.values(), key=lambda box: box.y0)
        assert all(below.y1 < above.y0 for below, above in itertools.pairwise(boxes))
        leaders = [line for line in axes.lines if not line.get_clip_on()]
        assert len(leaders) == 24
        assert all(line.get_window_extent().x1 < box.x0 for line in leaders for box in boxes)
        blocks = [text.get_window_extent() for text in axes.texts[:12]]
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(blocks))


def test_twelve_tasks_look_different_also_in_their_blocks() -> None:
    figure = draw_learning_curves([twelve(LEADS)])
    lines = [line for line in figure.axes[0].lines if line.get_clip_on()]
    assert len({line.get_color() for line in lines}) == 12
    strips = [p for p in figure.axes[0].patches if not p.get_clip_on()]
    assert len({(p.get_facecolor(), p.get_hatch()) for p in strips}) == 12
    assert [text.get_text() for text in figure.axes[0].texts[:12]] == [lead.removeprefix("Lead ") for lead in LEADS]


def test_a_task_keeps_its_colour_where_another_order_is_trained() -> None:
    other = LEADS[5:] + LEADS[:5]
    figure = draw_learning_curves([twelve(LEADS), twelve(other)])
    colours = [
        dict(zip(order, (line.get_color() for line in axes.lines if line.get_clip_on()), strict=True))
        for order, axes in zip((LEADS, other), figure.axes, strict=True)
    ]
    assert colours[0] == colours[1]


def test_tasks_are_ordered_by_the_numbers_in_their_names() -> None:
    assert natural_order(["10-11", "2-3", "0-1", "2-3"]) == ("0-1", "2-3", "10-11")
    assert natural_order(["Term 10", "Lead I", "1", ""]) == ("", "1", "Lead I", "Term 10")
    assert short_names(["Lead I", "Lead V1"]) == {"Lead I": "I", "Lead V1": "V1"}
    assert short_names(["0-1", "2-3"]) == {"0-1": "0-1", "2-3": "2-3"}
    assert short_names(["Lead", "Lead I"]) == {"Lead": "Lead", "Lead I": "I"}


def test_a_single_epoch_draws() -> None:
    record = learning_curves(rows("r1").query("epoch == 1"))
    assert as_png(draw_learning_curves([record])).startswith(b"\x89PNG")


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
