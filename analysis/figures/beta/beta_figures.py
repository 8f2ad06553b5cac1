"""Figures of the table `instances`: difficulty, similarity, tracings, agreement, overlap of replays."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from clops_sweep.errors import UsageError
from clops_sweep.experiment.fields import any_replicate
from clops_sweep.store.run_store import RunStore

from ...collect import Experiment
from ...difficulty import task_similarity
from ...drawing.pictures import Sketch, sketch
from ...selection import setting, typical_cell, variants
from ..asked import Asked, shown_or_said
from ..frames import Frames
from .agreement import (
    draw_rank_agreement,
    draw_replay_overlap,
    rank_agreement,
    replay_overlap,
)
from .difficulty_figures import (
    distributions,
    draw_distributions,
    draw_similarity,
)
from .tracings import draw_tracings, tracings
from .trajectories import beta_trajectories, draw_trajectories


def beta_figures(asked: Asked) -> list[Sketch | str]:
    """Return figures of one configuration that learns beta, and of the instances that acquisition functions replay.

    Returns:
        Figures, and sentences for figures that cannot be shown.
    """
    experiment, store, prefix = asked.experiment, asked.store, asked.prefix
    cell = _cell_with_beta(experiment)
    items: list[Sketch | str] = []
    if cell is not None:
        run_ids = experiment.run_ids(cell)
        rows = asked.titles.named(store.read("instances", list(run_ids)), experiment, cell)
        known = [run_id for run_id in run_ids if rows.loc[rows["run_id"] == run_id, "s"].notna().any()]
        name = f"the configuration {setting(experiment.cells[cell])}"
        if known and rows["s"].min() == rows["s"].max():
            items.append(f"Figures of s: in {name} it is the same for all instances, as after one epoch.")
        elif known:
            items += _of_one_cell(experiment, rows, known, name, prefix, asked.frames)
    items += _overlap(experiment, store, prefix)
    return items


def _cell_with_beta(experiment: Experiment) -> int | None:
    """Return the typical cell of the first variant that stores by s and has a finished run."""
    for cells in variants(experiment, experiment.number_axes).values():
        cell = typical_cell(experiment, cells)
        if cell is None:
            continue
        config = experiment.cells[cell].config
        if config.strategy == "clops" and config.storage_order != "random":
            return cell
    return None


def _of_one_cell(
    experiment: Experiment,
    rows: pd.DataFrame,
    known: Sequence[str],
    name: str,
    prefix: str,
    frames: Sequence[Frames],
) -> list[Sketch | str]:
    first = rows[rows["run_id"] == known[0]]

    def show_distributions() -> Sketch:
        record = distributions(first)
        caption = (
            f"s of every training instance by task, one run of {name} ({known[0]}). Lines: fitted "
            "Gaussians. Each task has its own height; the text gives mean and standard deviation."
        )
        return sketch(draw_distributions, record, f"{prefix}-s", "Distributions of s", caption)

    def show_similarity() -> Sketch:
        record = task_similarity(rows, known)
        whose = f"mean over {record.n} runs of {name}" if record.n > 1 else f"one run of {name} ({known[0]})"
        caption = (
            f"One minus the Hellinger distance of the Gaussians of s of the training instances, {whose}. Numbered "
            "frames: the resulting curriculum, from the easiest task always to the most similar remaining one."
        )
        return sketch(draw_similarity, record, f"{prefix}-similarity", "Similarity of tasks", caption)

    def show_agreement() -> Sketch:
        record = rank_agreement(rows[rows["run_id"].isin(known)])
        caption = (
            f"Whether difficulty is a property of the training instance: rank correlation of s between "
            f"pairs of {record.runs} runs of {name}, by task (1: equal ranking, 0: unrelated). The line marks the mean."
        )
        return sketch(
            draw_rank_agreement,
            record,
            f"{prefix}-agreement",
            "Rank agreement of s",
            caption,
        )

    def show_tracings() -> Sketch | str:
        data_hash = experiment.runs.loc[experiment.runs["run_id"] == known[0], "data_hash"].iloc[0]
        match = next((item for item in frames if item.data_hash == data_hash), None)
        if match is None:
            return "Tracings of the lowest and highest s: the frames of these runs are not available."
        records = tracings(first, match)
        caption = f"The training instances with the lowest and the highest s of one run of {name} ({known[0]})."
        title = f"Hardest and easiest {'ECG' if all(record.is_ecg for record in records) else 'instances'}"
        return sketch(draw_tracings, records, f"{prefix}-tracings", title, caption)

    def show_trajectories() -> Sketch:
        record = beta_trajectories(first)
        caption = (
            f"beta after each epoch on its task, one run of {name} ({known[0]}): the training instances with the "
            "lowest, the middle and the highest s of each task. Solid: highest, dotted: middle, dashed: lowest. "
            "s is the area under such a line."
        )
        return sketch(draw_trajectories, record, f"{prefix}-beta", "Trajectories of beta", caption)

    made: list[Sketch | str] = []
    for make in (show_distributions, show_trajectories, show_tracings, show_similarity, show_agreement):
        made += shown_or_said(make)
    return made


def _overlap(experiment: Experiment, store: RunStore, prefix: str) -> list[Sketch | str]:
    """Return the cells that differ only in acquisition, at the settings that the other figures show."""
    groups: dict[str, dict[str, int]] = {}
    for index, cell in enumerate(experiment.cells):
        if cell.config.strategy != "clops" or not experiment.run_ids(index):
            continue
        same = any_replicate(cell.config.model_copy(update={"acquisition": "random"}))
        groups.setdefault(repr(same), {})[cell.config.acquisition] = index
    compared = [group for group in groups.values() if len(group) > 1]
    # At a = 1 the whole buffer is replayed with any acquisition function.
    candidates = [g for g in compared if experiment.cells[next(iter(g.values()))].config.acquisition_fraction < 1]
    if not candidates:
        said = (
            "Overlap of replays: all finished configurations that differ only in acquisition replay the whole buffer "
            "(a = 1), so their replays are equal by definition."
        )
        return [said] if compared else []
    typical = typical_cell(experiment, [cell for group in candidates for cell in group.values()])
    chosen = next(group for group in candidates if typical in group.values())

    def show() -> Sketch:
        replays = {}
        for name, cell in chosen.items():
            rows = store.read("instances", list(experiment.run_ids(cell)))
            runs = experiment.runs_of(cell)
            seeds = dict(zip(runs["run_id"], experiment.replicates_of(runs), strict=True))
            replays[name] = {seeds[run_id]: part for run_id, part in rows.groupby("run_id")}
        record = replay_overlap(replays)
        config = experiment.cells[next(iter(chosen.values()))].config
        if not record.n.any():
            raise UsageError("overlap of replays: no run replayed any instance")
        caption = (
            "Overlap of the training instances that acquisition functions replay, for equal seeds: sum of the smaller "
            "over sum of the larger numbers of replays (1: equal, 0: none in common). Shown: "
            f"b = {config.storage_fraction:g}, a = {config.acquisition_fraction:g}, T = {config.mc_samples}, storage "
            f"{config.storage_order} by {config.storage_function}."
        )
        return sketch(
            draw_replay_overlap,
            record,
            f"{prefix}-overlap",
            "Overlap of replays",
            caption,
        )

    return shown_or_said(show)
