"""The check of declared data sets that are not prepared: their files, and the columns that runs need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from clops_sweep.data.catalog import DATASETS, LEAD
from clops_sweep.data.prepared.prepared_split import require_column_to_stratify
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.data.preparing.still_equal import current_set
from clops_sweep.data.scenarios.domains import require_domain
from clops_sweep.data.sets.declared_set import DeclaredSet
from clops_sweep.data.sets.named import data_set
from clops_sweep.experiment.config import RunConfig


class NeededColumns(NamedTuple):
    """A data set, the column whose values are tasks, and the one to stratify by; None without one."""

    dataset: str
    domain: str | None
    stratify: str | None

    @classmethod
    def of(cls, config: RunConfig) -> NeededColumns:
        """Return what a run needs."""
        has_column = config.scenario == "domain_il" and config.domain != LEAD
        return cls(config.dataset, config.domain if has_column else None, config.stratify)


def check_declared(needed: Iterable[NeededColumns], data: PreparedData) -> None:
    """Check data sets that are declared and not prepared: their files exist, and their tables have the columns.

    Of a table, only its columns are checked, not labels, people or tasks. No recording is read.

    Args:
        needed: what the runs need.
        data: the prepared data.

    Raises:
        AbsentData: a file is missing.
        UsageError: a table lacks a column that its declaration names, or a declaration lacks a domain that a run names.
    """
    of_datasets: dict[str, list[NeededColumns]] = {}
    for columns in dict.fromkeys(needed):
        of_datasets.setdefault(columns.dataset, []).append(columns)
    for name, of_dataset in of_datasets.items():
        if DATASETS.declared(name) is None or current_set(name, data.root, data.source) is not None:
            continue
        dataset = data_set(name)
        dataset.look(data.source)
        table = dataset.domains_of_table(data.source) if isinstance(dataset, DeclaredSet) else None
        if table is None or table.domains is None or table.recordings_have_more:
            continue
        for columns in of_dataset:
            if columns.domain is not None:
                require_domain(name, columns.domain, table.domains)
            if columns.stratify is not None:
                require_column_to_stratify(name, columns.stratify, table.domains)
