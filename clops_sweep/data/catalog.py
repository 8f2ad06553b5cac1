"""What every data set is, before any of it is read: names, licences, sources and the paper's settings for it.

This file imports nothing heavy, so that a configuration is validated without numpy, torch or Ray.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ScenarioName = Literal["class_il", "time_il", "domain_il"]
Normalization = Literal["none", "minmax", "zscore"]


@dataclass(frozen=True)
class DatasetInfo:
    """One data set as a reader of the paper knows it.

    `reader` names the module and class that prepare it, or is None where this version has no reader yet.
    `epochs_per_task` overrides the scenario's usual number of epochs where the data set calls for another.
    `folders` are the names its folder goes by under a data root. `reference_lead` stands for a recording of many
    leads where a scenario wants one instance per recording; None where a recording gives one lead anyway.
    `terms` are the ISO dates that end the terms of Time-IL, empty for terciles of the dates.
    """

    name: str
    title: str
    licence: str
    source: str
    size: str
    scenarios: tuple[ScenarioName, ...]
    batch_size: int
    reader: str | None
    learning_rate: float = 1e-4
    normalize: Normalization = "none"
    epochs_per_task: int | None = None
    folders: tuple[str, ...] = ()
    reference_lead: str | None = None
    leads_are_simultaneous: bool = False
    time_il_all_leads: bool = False
    terms: tuple[str, ...] = ()


def _catalog(*datasets: DatasetInfo) -> Mapping[str, DatasetInfo]:
    return {dataset.name: dataset for dataset in datasets}


DATASETS: Mapping[str, DatasetInfo] = _catalog(
    DatasetInfo(
        name="synthetic",
        title="Generated ECG of twelve rhythm classes, shipped with the package",
        licence="Apache-2.0",
        source="generated on this machine",
        size="75 MB",
        scenarios=("class_il", "time_il", "domain_il"),
        batch_size=16,
        reader="clops_sweep.data.synthetic:Synthetic",
        learning_rate=1e-3,
        reference_lead="II",
        leads_are_simultaneous=True,
        terms=("2019-01-01", "2020-01-01", "2021-01-01"),
    ),
    DatasetInfo(
        name="mitbih",
        title="MIT-BIH Arrhythmia Database 1.0.0 (Moody and Mark, 2001)",
        licence="ODC-BY 1.0",
        source="https://physionet.org/content/mitdb/1.0.0/",
        size="98 MB",
        scenarios=("class_il",),
        batch_size=16,
        reader="clops_sweep.data.mitbih:MitBih",
        folders=("mitdb", "mit-bih-arrhythmia-database-1.0.0", "mitbih"),
        epochs_per_task=40,
    ),
    DatasetInfo(
        name="cardiology",
        title="Cardiologist-level arrhythmia detection, public test set (Hannun et al., 2019)",
        licence="research use, behind a form",
        source="https://irhythm.github.io/cardiol_test_set/",
        size="about 10 MB",
        scenarios=("class_il",),
        batch_size=16,
        reader=None,
    ),
)
