"""Names never lie over one another, however many and however long they are."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.difficulty import task_similarity
from clops_sweep.analysis.drawing.labels import in_lines, in_one_size, inches, shortened
from clops_sweep.analysis.drawing.style import styled
from clops_sweep.analysis.figures.agreement import (
    ReplayOverlap,
    draw_rank_agreement,
    draw_replay_overlap,
    rank_agreement,
)
from clops_sweep.analysis.figures.cost import cost_frontier, draw_cost_frontier
from clops_sweep.analysis.figures.curves import draw_learning_curves, learning_curves
from clops_sweep.analysis.figures.difficulty_figures import distributions, draw_distributions, draw_similarity
from clops_sweep.analysis.figures.forgetting import draw_forgetting, forgetting
from clops_sweep.analysis.figures.heatmaps import draw_heatmap, heatmap
from clops_sweep.analysis.figures.profiles import draw_profile, profile
from clops_sweep.analysis.figures.r_matrices import draw_r_matrices, r_matrix
from clops_sweep.store.run_store import RunStore

LEADS = [f"Lead {name}" for name in ("I", "II", "III", "aVL", "aVR", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")]
WORDS = ("walking", "walking_upstairs", "walking_downstairs", "sitting", "standing", "laying", "cycling in the park")
LONG = [" / ".join(group) for group in itertools.combinations(WORDS, 3)]
NAMES = {"many": [*LONG[:8], *LEADS[:4]], "one word": ["x" * 60, "y" * 60, "z" * 3]}


@pytest.fixture(params=list(NAMES))
def tables(request: pytest.FixtureRequest, generated: ModuleType) -> dict[str, pd.DataFrame]:
    """The tables of two runs on tasks of such names."""
    names = NAMES[request.param]
    found = [
        generated.generated_tables(RunConfig(seed=seed), f"{seed:024x}", tasks=names, epochs=2, instances=6)
        for seed in range(2)
    ]
    return {name: pd.concat([tables[name].to_pandas() for tables in found]) for name in found[0]}


def assert_readable(overlaps: ModuleType, *figures: Figure) -> None:
    for figure in figures:
        assert overlaps.texts_in_each_other(figure) == []


TITLES = (
    "CLOPS, b = 0.25, a = 0.5",
    "Random storage and acquisition, b = 0.25, a = 0.5, T = 100, from the hardest task on",
)


def test_names_of_tasks(tables: dict[str, pd.DataFrame], overlaps: ModuleType) -> None:
    instances = tables["instances"]
    assert_readable(
        overlaps,
        draw_learning_curves([learning_curves(tables["curves"], title) for title in TITLES]),
        draw_r_matrices([r_matrix(tables["r_matrix"], title) for title in TITLES]),
        draw_forgetting([forgetting(tables["r_matrix"], title) for title in TITLES]),
        draw_similarity(task_similarity(instances)),
        draw_distributions(distributions(instances[instances["run_id"] == "0" * 24])),
        draw_rank_agreement(rank_agreement(instances)),
    )


def test_names_of_variants(tmp_path: Path, generated: ModuleType, overlaps: ModuleType) -> None:
    names = [*LONG[:8], ", ".join(LONG[:3])]
    variants = {name: {"mc_samples": 5 + position} for position, name in enumerate(names)}
    space = SearchSpace("s", RunConfig(), {"variant": variants, "storage_fraction": [0.001, 0.25, 0.5]}, seeds=[0])
    store = RunStore(tmp_path)
    generated.write_given_runs(
        store,
        [(r.config, {"auc": r.config.mc_samples / 100, "bwt": -0.1, "seconds": 1234.5}) for r in space.requests()],
    )
    (found,) = collect([space], store.read("runs"))
    assert_readable(
        overlaps,
        draw_heatmap(heatmap(found, "auc", ("storage_fraction", "variant"))),
        draw_heatmap(heatmap(found, "seconds", ("variant", "storage_fraction"))),
        draw_profile(profile(found)),
        draw_profile(profile(found, "variant")),
        draw_cost_frontier(cost_frontier(found)),
        draw_replay_overlap(ReplayOverlap(tuple(names), np.eye(len(names)), np.ones((len(names),) * 2, dtype=int))),
    )


def test_the_finder_finds(overlaps: ModuleType) -> None:
    """Level, turned and cut off: what overlaps is named, what does not is not."""
    figure = Figure(figsize=(4, 4))
    figure.text(0.1, 0.5, "one text")
    figure.text(0.15, 0.5, "another")
    figure.text(0.95, 0.1, "cut off")
    turned = [figure.text(0.2 + 0.06 * k, 0.8, "neighbours", rotation=45) for k in range(2)]
    assert overlaps.texts_in_each_other(figure) == ["'cut off' is cut off", "'one text' over 'another'"]
    for text in turned:
        text.set_rotation(10)
    assert "'neighbours' over 'neighbours'" in overlaps.texts_in_each_other(figure)


@styled
def test_texts_in_the_room_there_is() -> None:
    text = "walking upstairs / walking downstairs, b = 0.25"
    assert in_lines(text, 9, 8) == text
    lines = in_lines(text, 1.2, 8).split("\n")
    assert max(inches(line, 8) for line in lines) <= 1.2
    assert " ".join(lines) == text
    assert "b = 0.25" in in_lines(text, 0.8, 8, most=9).split("\n"), "a value stays with its name"
    assert in_lines(text, 1.2, 8, most=1).endswith("…")
    assert shortened("abc", 0.0, 8) == "…"
    names, size = in_one_size(["a b", "c"], [1.0, 1.0], (8, 6), 1)
    assert (names, size) == (["a b", "c"], 8)
    names, size = in_one_size(["x" * 30, "c"], [0.01, 1.0], (8, 6), 1)
    assert (names, size) == (["", "c"], 6)
