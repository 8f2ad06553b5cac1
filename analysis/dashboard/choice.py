"""What a reader has chosen of the runs of an experiment, as the address of a page has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from clops_sweep.experiment.fields import REPLICATES

from ..collect import Experiment
from .runs import RunsTable, kept_labels

VIEWS = {"means": "Means of configurations", "points": "Single runs", "parallel": "Parallel coordinates"}
"""The charts of the page, with their titles."""


@dataclass(frozen=True)
class Choice:
    """What a reader has chosen of the runs of an experiment.

    Attributes:
        view: "means" (a point for each configuration, with its interval), "points" (a point a run) or "parallel" (a
            line a run).
        x: the column along the horizontal axis.
        y: the column along the vertical axis.
        colour: the column that colours tell apart; "none" for one colour.
        keep: the only label to show of some columns.
    """

    view: str
    x: str
    y: str
    colour: str
    keep: Mapping[str, str]

    @classmethod
    def of(cls, given: Mapping[str, str], table: RunsTable, experiment: Experiment) -> Choice:
        """Return the choice of an address; columns that the table lacks are replaced by defaults."""
        columns = [*table.labels, *table.measured]
        several = len(experiment.cells) > 1 and not given.get("runs")
        measure = next(iter(headline_metrics(experiment, table)), columns[-1])
        varied = table.varied or columns
        numeric = [name for name in experiment.number_axes if name in varied]
        first = (numeric or varied)[0]
        others = [name for name in varied if name != first and name not in REPLICATES]
        named = [name for name in others if name not in experiment.number_axes]  # such as the method
        if not numeric and first not in REPLICATES:
            others.append(first)
        return cls(
            view=_known(given.get("view", ""), [*VIEWS], "means" if several else "points"),
            x=_known(given.get("x", ""), columns, first),
            y=_known(given.get("y", ""), columns, measure),
            colour=_known(given.get("colour", ""), ["none", *table.labels], [*named, *others, "none"][0]),
            keep=kept_labels(given, table),
        )

    def of_table(self, table: RunsTable) -> pd.DataFrame:
        """Return the finished runs of a table that have the labels to keep."""
        frame = table.only(self.keep).frame
        return frame[frame["status"] == "finished"]


def headline_metrics(experiment: Experiment, table: RunsTable) -> list[str]:
    """Return the measured headline columns of an experiment: of test people if their scores lead."""
    names = [f"test_{name}" if experiment.on_test else name for name in experiment.headline]
    return [name for name in names if name in table.measured]


def _known(name: str, columns: Sequence[str], default: str) -> str:
    return name if name in columns else default
