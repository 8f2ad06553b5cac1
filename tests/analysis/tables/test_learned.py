"""Configurations that have not learned a task are named, as are scores that still rise at the end of a task."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import linregress

from clops_sweep import Claim, Contrast, Recordings, RunConfig, SearchSpace, Side, claims, dataset, read, sweep
from clops_sweep.analysis.dashboard.app import Dashboard
from clops_sweep.analysis.dashboard.snapshot import FollowedStore
from clops_sweep.analysis.dashboard.source import StoreSource
from clops_sweep.analysis.tables.best_terminal import best_of_state
from clops_sweep.execution.outcome import Outcome
from tests.data.declared_files import forget


@pytest.fixture(autouse=True)
def _worn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Four classes of 30 people whose recordings differ in their mean."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(tmp_path / "prepared"))

    @dataset("worn", scenarios=["class_il_union", "class_il"])
    def worn(data_root: Path | None) -> Recordings:
        labels = np.arange(480) % 4
        samples = np.random.default_rng(0).normal(size=(480, 1, 50)) + labels[:, None, None]
        return Recordings(samples, 50, ["az"], "g", labels, list("abcd"), np.arange(480) // 16)

    yield
    forget("worn")


def _said(*variants: float, epochs: int, **settings: object) -> list[str]:
    """Return the sentences on the training of ER with some learning rates."""
    _, outcome = _swept(*variants, epochs=epochs, **settings)
    (best,) = best_of_state(outcome.state)
    return list(best.in_doubt)


def _swept(*variants: float, epochs: int, **settings: object) -> tuple[SearchSpace, Outcome]:
    methods = {f"rate {rate:g}": {"learning_rate": rate} for rate in variants}
    base = RunConfig(scenario="class_il_union", dataset="worn", network="linear", strategy="er", epochs_per_task=epochs)
    base = base.replace(**settings)
    space = SearchSpace("it", base, {"method": methods, "split_seed": range(2)}, [0])
    return space, sweep(space, ray=False)


def test_a_method_that_learned_nothing_is_named_with_its_score_and_the_best_one() -> None:
    said = _said(3e-2, 1e-9, epochs=8)
    runs = read("results", "runs").set_index("run_id")["learning_rate"]
    matrix = read("results", "r_matrix")
    own = matrix[(matrix["trained_on"] == matrix["evaluated_on"]) & (matrix["split"] == "test")]
    scores = own.groupby([own["run_id"].map(runs), "task"])["balanced_accuracy"].mean()
    expected = [task for task in ("0-1", "2-3") if scores[1e-9, task] < scores[3e-2, task] / 2]
    assert expected
    sentence = next(text for text in said if text.startswith("Not learned: "))
    for task in expected:
        assert (
            f"rate 1e-09 has test balanced accuracy {scores[1e-9, task]:.3f} on {task} directly after training on it, "
            f"where rate 0.03 has {scores[3e-2, task]:.3f}"
        ) in sentence
    assert sentence.count(" directly after training on it, ") == len(expected)


@pytest.mark.parametrize(("epochs", "half", "quarter"), [(2, 1, 1), (5, 2, 1), (9, 4, 2)])
def test_scores_that_rise_at_the_end_are_named_with_the_rise(epochs: int, half: int, quarter: int) -> None:
    said = _said(3e-3, epochs=epochs)
    curves = read("results", "curves")
    own = curves[curves["training_task"] == curves["task"]]
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for (task, _), values in own.sort_values("epoch").groupby(["task", "run_id"])["balanced_accuracy"]:
        scores = values.to_list()
        assert len(scores) == epochs
        of_half = linregress(range(half + 1), scores[-1 - half :]).slope * half
        of_quarter = linregress(range(quarter + 1), scores[-1 - quarter :]).slope * quarter
        rows.setdefault(task, []).append((of_half, of_quarter, scores[-1]))
    means = {task: np.mean(of_task, axis=0) for task, of_task in rows.items()}
    rising = [task for task, (rise, late, end) in means.items() if rise >= 0.05 and late >= 0.02 and end <= 0.9]
    rising.sort(key=lambda task: -means[task][0])
    assert rising
    parts = ", ".join(f"rate 0.003 on {task} by {means[task][0]:.3f}" for task in rising)
    assert said == [
        f"In the last half of the epochs of a task, validation balanced accuracy still rises: {parts}. With more "
        "epochs_per_task, scores and differences may be others."
    ]


def test_with_early_stopping_curves_end_with_the_best_epoch_so_a_rise_there_says_nothing() -> None:
    assert len(_said(1e-3, epochs=4)) == 1
    assert _said(1e-3, epochs=4, early_stopping=2) == []


def test_methods_that_have_learned_leave_no_doubt() -> None:
    assert _said(3e-2, 2e-2, epochs=12, scenario="class_il") == []


def test_python_and_the_dashboard_say_the_same_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    space, outcome = _swept(3e-2, 1e-9, epochs=2)
    (best,) = best_of_state(outcome.state)
    said = list(best.in_doubt)
    assert [sentence.partition(" ")[0] for sentence in said] == ["Not", "In"]
    assert outcome.in_doubt == said
    printed = capsys.readouterr().out
    for sentence in said:
        assert f"\n{sentence}\n" in printed
        assert f"\n  {sentence}\n" in repr(outcome)
        assert escape(sentence) in outcome._repr_html_()

    sides = [Side(f"rate {rate:g}", {"learning_rate": rate}) for rate in (3e-2, 1e-9)]
    with pytest.warns(UserWarning, match="epochs_per_task") as warned:
        table = claims(space, claims=[Claim("it", "a higher rate is better", Contrast(*sides))])
    assert [str(warning.message) for warning in warned] == said
    assert {warning.filename for warning in warned} == {__file__}
    assert table.attrs["in_doubt"] == said

    store = outcome.store
    dashboard = Dashboard(FollowedStore(store, StoreSource(store, lambda key: None, lambda store: [space]), 0))
    shown = {escape(sentence, quote=True) for sentence in said}
    for path in ("", "compare", "report"):
        page = dashboard.page(path, {}) or ""
        assert all(sentence in page for sentence in shown), path
    for row in read("results", "runs").to_dict("records"):
        page = dashboard.page("run", {"id": row["run_id"]}) or ""
        assert ("Not learned: rate 1e-09" in page) is (row["learning_rate"] == 1e-9)
        assert ("still rises: rate 0.03 on" in page) is (row["learning_rate"] == 3e-2)
    dashboard.close()
