"""Running runs of search spaces whose run ids are unknown, because the store holds no run of them yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from clops_sweep.experiment.fields import REPLICATES
from clops_sweep.store.launches import UnderWay, request_id

from ..collect import Experiment
from ..report.planned import PlannedSection


class Placed:
    """The sections of a report, in which running runs have their ids.

    Args:
        sections: the sections, by name of the experiment.
    """

    def __init__(self, sections: Mapping[str, PlannedSection]) -> None:
        self._sections = sections
        self._known: set[str] = set()
        self._rows: dict[str, dict[str, list[int]]] | None = None
        for section in sections.values():
            self._known.update(section.experiment.runs["run_id"])

    def with_ids_of(self, under_way: Sequence[UnderWay]) -> Mapping[str, PlannedSection]:
        """Return the sections with the ids of running runs where the store does not tell them."""
        unknown = {run.request: run.run_id for run in under_way if run.request and run.run_id not in self._known}
        if not unknown or "" not in self._known:
            return self._sections
        if self._rows is None:
            self._rows = {name: _requested(section.experiment) for name, section in self._sections.items()}
        placed = dict(self._sections)
        for name, rows in self._rows.items():
            ids = {}
            for request in rows.keys() & unknown.keys():
                ids.update(dict.fromkeys(rows[request], unknown[request]))
            if ids:
                placed[name] = _with_ids(self._sections[name], ids)
        return placed


def _requested(experiment: Experiment) -> dict[str, list[int]]:
    """Return the rows of `runs` without an id, by the id of their request."""
    rows: dict[str, list[int]] = {}
    unnamed = experiment.runs[experiment.runs["run_id"] == ""]
    for position, row in zip(unnamed.index, unnamed[["cell", *REPLICATES]].to_dict("records"), strict=True):
        drawn = {name: row[name] for name in REPLICATES}
        config = experiment.cells[row["cell"]].config.replace(**drawn)
        rows.setdefault(request_id(config), []).append(position)
    return rows


def _with_ids(section: PlannedSection, ids: Mapping[int, str]) -> PlannedSection:
    """Return a section whose rows at some positions have ids."""
    runs = section.experiment.runs.copy()
    runs.loc[list(ids), "run_id"] = list(ids.values())
    return replace(section, experiment=replace(section.experiment, runs=runs))
