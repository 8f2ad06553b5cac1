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

    `reader` names the module that prepares it, or is None where this version has no reader yet.
    `epochs_per_task` overrides the scenario's usual number of epochs where the data set calls for another.
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


def _catalog(*datasets: DatasetInfo) -> Mapping[str, DatasetInfo]:
    return {dataset.name: dataset for dataset in datasets}


DATASETS: Mapping[str, DatasetInfo] = _catalog(
    DatasetInfo(
        name="synthetic",
        title="Generated ECG of twelve rhythm classes, shipped with the package",
        licence="Apache-2.0",
        source="generated on this machine",
        size="12 MB",
        scenarios=("class_il",),
        batch_size=16,
        reader="clops_sweep.data.synthetic",
    ),
    DatasetInfo(
        name="mitbih",
        title="MIT-BIH Arrhythmia Database 1.0.0 (Moody and Mark, 2001)",
        licence="ODC-BY 1.0",
        source="https://physionet.org/content/mitdb/1.0.0/",
        size="98 MB",
        scenarios=("class_il",),
        batch_size=16,
        reader="clops_sweep.data.mitbih",
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
