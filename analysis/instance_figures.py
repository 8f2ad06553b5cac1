"""Pictures of what the table `instances` holds: difficulty, similarity, tracings, agreement, overlap of replays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from analysis.agreement import (
    describe_rank_agreement,
    describe_replay_overlap,
    draw_rank_agreement,
    draw_replay_overlap,
    rank_agreement,
    replay_overlap,
)
from analysis.collect import Experiment
from analysis.difficulty import task_similarity
from analysis.difficulty_figures import (
    describe_distributions,
    describe_similarity,
    distributions,
    draw_distributions,
    draw_similarity,
)
from analysis.formats import plural
from analysis.page import Picture, picture
from analysis.selection import cell_name, typical_cell, variants
from analysis.tracings import Frames, describe_tracings, draw_tracings, tracings
from analysis.trajectories import beta_trajectories, describe_trajectories, draw_trajectories
from clops_sweep.errors import BadInput
from clops_sweep.store import RunStore


def instance_figures(
    experiment: Experiment, store: RunStore, prefix: str, frames: Sequence[Frames] = ()
) -> list[Picture | str]:
    """Pictures of one configuration that learns beta, and of what acquisition functions replay.

    Returns:
        Pictures, and sentences for those that cannot be shown.
    """
    cell = _cell_with_beta(experiment)
    items: list[Picture | str] = []
    if cell is not None:
        run_ids = experiment.run_ids(cell)
        rows = store.read("instances", list(run_ids))
        known = [run_id for run_id in run_ids if rows.loc[rows["run_id"] == run_id, "s"].notna().any()]
        if known:
            name = cell_name(experiment.cells[cell]) or experiment.name
            items += _of_one_cell(experiment, rows, known, name, prefix, frames)
    items += _overlap(experiment, store, prefix)
    return items


def shown_or_said(make: Callable[[], Picture | str]) -> list[Picture | str]:
    """A picture, or the sentence that says why there is none."""
    try:
        return [make()]
    except ValueError as error:  # BadInput is one
        text = str(error)
        return [text[0].upper() + text[1:] + "."]


def _cell_with_beta(experiment: Experiment) -> int | None:
    """The typical cell of the first variant that has a finished run and stores by s."""
    for cells in variants(experiment, experiment.number_axes).values():
        cell = typical_cell(experiment, cells)
        if cell is None:
            continue
        config = experiment.cells[cell].config
        if config.strategy == "clops" and config.storage_order != "random":
            return cell
    return None


def _of_one_cell(
    experiment: Experiment, rows: pd.DataFrame, known: Sequence[str], name: str, prefix: str, frames: Sequence[Frames]
) -> list[Picture | str]:
    first = rows[rows["run_id"] == known[0]]

    def show_distributions() -> Picture:
        record = distributions(first)
        caption = (
            f"s of every training instance by task, one run of {name} ({known[0]}). Lines: fitted "
            "Gaussians. Each task has its own height; the text gives mean and standard deviation."
        )
        figure = draw_distributions(record)
        return picture(figure, f"{prefix}-s", "Distributions of s", caption, describe_distributions(record))

    def show_similarity() -> Picture:
        record = task_similarity(rows, known)
        caption = (
            f"One minus the Hellinger distance of the Gaussians, mean over {plural(record.n, 'run')} of {name}. "
            "Numbered frames: the chain of the curriculum, from the easiest task always to the most similar one left."
        )
        figure = draw_similarity(record)
        return picture(figure, f"{prefix}-similarity", "Similarity of tasks", caption, describe_similarity(record))

    def show_agreement() -> Picture:
        record = rank_agreement(rows[rows["run_id"].isin(known)])
        caption = (
            f"Whether difficulty belongs to the instance: rank correlation of s between each two of {record.runs} "
            f"runs of {name}, by task; 1: the same ranking, 0: none in common. The line marks the mean."
        )
        figure = draw_rank_agreement(record)
        return picture(figure, f"{prefix}-agreement", "Rank agreement of s", caption, describe_rank_agreement(record))

    def show_tracings() -> Picture | str:
        data_hash = experiment.runs.loc[experiment.runs["run_id"] == known[0], "data_hash"].iloc[0]
        match = next((item for item in frames if item.data_hash == data_hash), None)
        if match is None:
            return "ECG tracings of the lowest and highest s: the frames of these runs were not at hand."
        records = tracings(first, match)
        caption = f"The training instances with the lowest and the highest s of one run of {name} ({known[0]})."
        figure = draw_tracings(records)
        return picture(figure, f"{prefix}-tracings", "Hardest and easiest ECG", caption, describe_tracings(records))

    def show_trajectories() -> Picture:
        record = beta_trajectories(first)
        caption = (
            f"beta after each epoch on its task, one run of {name} ({known[0]}): the instances with the lowest, the "
            "middle and the highest s. s is the area under such a line."
        )
        figure = draw_trajectories(record)
        return picture(figure, f"{prefix}-beta", "Trajectories of beta", caption, describe_trajectories(record))

    made: list[Picture | str] = []
    for make in (show_distributions, show_trajectories, show_tracings, show_similarity, show_agreement):
        made += shown_or_said(make)
    return made


def _overlap(experiment: Experiment, store: RunStore, prefix: str) -> list[Picture | str]:
    """Cells that differ in acquisition alone, at the place on all other axes that is shown elsewhere too."""
    groups: dict[str, dict[str, int]] = {}
    for index, cell in enumerate(experiment.cells):
        if cell.config.strategy != "clops" or not experiment.run_ids(index):
            continue
        same = cell.config.model_copy(update={"acquisition": "random", "seed": 0, "split_seed": 0})
        groups.setdefault(same.model_dump_json(), {})[cell.config.acquisition] = index
    candidates = [group for group in groups.values() if len(group) > 1]
    if not candidates:
        return []
    typical = typical_cell(experiment, [cell for group in candidates for cell in group.values()])
    chosen = next(group for group in candidates if typical in group.values())

    def show() -> Picture:
        replays = {}
        for name, cell in chosen.items():
            rows = store.read("instances", list(experiment.run_ids(cell)))
            runs = experiment.runs[experiment.runs["cell"] == cell]
            seeds = dict(zip(runs["run_id"], zip(runs["split_seed"], runs["seed"], strict=True), strict=True))
            replays[name] = {seeds[run_id]: part for run_id, part in rows.groupby("run_id")}
        record = replay_overlap(replays)
        if not record.n.any():
            raise BadInput("overlap of replays: none of the runs replayed anything")
        caption = (
            "How far acquisition functions replay the same instances, same seeds compared: sum of the smaller over "
            "sum of the larger numbers of replays; 1: the same, 0: none in common."
        )
        figure = draw_replay_overlap(record)
        return picture(figure, f"{prefix}-overlap", "Overlap of replays", caption, describe_replay_overlap(record))

    return shown_or_said(show)
