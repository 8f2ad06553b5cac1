# ruff: noqa: E501  (a row of a table stays a row)
"""The numbers of the paper (Kiyasseh, Zhu and Clifton: CLOPS, ICLR 2021 format) as data.

Values that the paper prints in parentheses are negative here. Tables are named by their LaTeX label; where the
source gives one label to several tables, a number follows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from clops_sweep.experiment.config import RunConfig, names_of
from clops_sweep.experiment.fields import DRAWS
from clops_sweep.experiment.plugins.registry import unregistered

from .metrics import PAPER

Pair = tuple[float, float] | None


@dataclass(frozen=True)
class PublishedValue:
    """A published mean and, if printed, the standard deviation over five seeds."""

    mean: float
    sd: float | None


@dataclass(frozen=True)
class PublishedRow:
    """One row of a published table, and the config values of runs that repeat it.

    `settings` maps a config field to the values that match the row. All other fields are equal for all rows;
    `departures` lists those in which a run differs from the paper.
    """

    table: str
    row: str
    values: Mapping[str, PublishedValue] = field(hash=False)
    settings: Mapping[str, tuple[Any, ...]] = field(hash=False)


SHUFFLED_ORDER: Final = (1, 4, 0, 5, 3, 2)
"""The released order 1 of the six Class-IL tasks: random.Random(1).sample(range(6), 6)."""

CURRICULUM: Final = (5, 4, 2, 1, 0, 3)
"""The released curriculum: 10-11, 8-9, 4-5, 2-3, 0-1, 6-7. The anti-curriculum is its reverse."""

_AS_IT_COMES: Final = {"task_order": ("sequential", (0, 1, 2, 3, 4, 5))}
_CLOPS: Final[dict[str, tuple[Any, ...]]] = {
    "strategy": ("clops",),
    "storage_fraction": (0.25,),
    "acquisition_fraction": (0.5,),
    "mc_samples": (20,),
    "acquisition": ("bald_mcd",),
    "storage_function": ("area",),
    "storage_order": ("top",),
    "weight_replay": (False,),
    **_AS_IT_COMES,
}
_FINETUNE: Final[dict[str, tuple[Any, ...]]] = {"strategy": ("finetune",), **_AS_IT_COMES}
_MULTITASK: Final[dict[str, tuple[Any, ...]]] = {"strategy": ("multitask",)}
_GEM: Final[dict[str, tuple[Any, ...]]] = {"strategy": ("gem",), "storage_fraction": (0.25,), **_AS_IT_COMES}
_MIR: Final[dict[str, tuple[Any, ...]]] = {
    "strategy": ("mir",),
    "storage_fraction": (0.25,),
    "acquisition_fraction": (0.5,),
    "replay_ratio": (1.0,),
    **_AS_IT_COMES,
}


def _row(
    table: str,
    row: str,
    scenario: str,
    base: Mapping[str, tuple[Any, ...]],
    auc: Pair,
    bwt: Pair = None,
    bwt_t: Pair = None,
    bwt_lambda: Pair = None,
    **changes: tuple[Any, ...],
) -> PublishedRow:
    pairs = zip(PAPER, (auc, bwt, bwt_t, bwt_lambda), strict=True)
    values = {metric: PublishedValue(*pair) for metric, pair in pairs if pair is not None}
    return PublishedRow(table, row, values, {"scenario": (scenario,), **base, **changes})


# fmt: off
_MAIN, _TIME, _DOMAIN = "table:class_IL_results_main", "table:time_IL_main", "table:domain_Il_main"
_SHUFFLED, _ORDER = "table:class_IL_results_order1", "table:effect_of_curriculum"
_WEIGHTED, _SAMPLES = "table:weighted_replayed_instances", "table:effect_of_mc_samples"
_ACQUISITION = "table:effect_of_type_of_acquisition_function"
_MIR_FRACTION, _MIR_RATIO = "table:MIR_ratio", "table:MIR_acquisition_percent"  # the paper's labels are swapped

RESULTS: Final[tuple[PublishedRow, ...]] = (
    _row(_MAIN, "MTL", "class_il", _MULTITASK, (0.701, 0.014)),
    _row(_MAIN, "Fine-tuning", "class_il", _FINETUNE, (0.770, 0.020), (0.037, 0.037), (-0.076, 0.064), (-0.176, 0.080)),
    _row(_MAIN, "GEM", "class_il", _GEM, (0.544, 0.031), (-0.024, 0.028), (-0.046, 0.017), (-0.175, 0.021)),
    _row(_MAIN, "MIR", "class_il", _MIR, (0.753, 0.014), (0.009, 0.018), (0.001, 0.025), (-0.046, 0.022)),
    _row(_MAIN, "CLOPS", "class_il", _CLOPS, (0.796, 0.013), (0.053, 0.023), (0.018, 0.010), (0.008, 0.016)),

    _row(_DOMAIN, "MTL", "domain_il", _MULTITASK, (0.730, 0.016)),
    _row(_DOMAIN, "Fine-tuning", "domain_il", _FINETUNE, (0.687, 0.007), (-0.041, 0.008), (-0.047, 0.004), (-0.070, 0.007)),
    _row(_DOMAIN, "GEM", "domain_il", _GEM, (0.502, 0.012), (-0.025, 0.008), (0.004, 0.010), (-0.046, 0.021)),
    _row(_DOMAIN, "MIR", "domain_il", _MIR, (0.716, 0.011), (-0.022, 0.011), (-0.013, 0.004), (-0.019, 0.006)),
    _row(_DOMAIN, "CLOPS", "domain_il", _CLOPS, (0.731, 0.001), (-0.011, 0.002), (-0.020, 0.004), (-0.019, 0.009)),

    _row(_ORDER, "Random", "class_il", _CLOPS, (0.796, 0.013), (0.053, 0.023), (0.018, 0.010), (0.008, 0.016)),
    _row(_ORDER, "Curriculum", "class_il", _CLOPS, (0.744, 0.009), (0.087, 0.011), (0.038, 0.021), (0.076, 0.037),
         task_order=("curriculum", CURRICULUM)),
    _row(_ORDER, "Anti-curriculum", "class_il", _CLOPS, (0.783, 0.022), (0.058, 0.016), (-0.013, 0.013), (-0.003, 0.014),
         task_order=("anti_curriculum", CURRICULUM[::-1])),

    # "GEM: could not be solved" has no number.
    _row(_TIME, "MTL", "time_il", _MULTITASK, (0.971, 0.006)),
    _row(_TIME, "Fine-tuning", "time_il", _FINETUNE, (0.824, 0.004), (-0.020, 0.005), (-0.007, 0.003), (0.010, 0.001)),
    _row(_TIME, "MIR", "time_il", _MIR, (0.856, 0.010), (-0.007, 0.006), (-0.003, 0.004), (0.001, 0.004)),
    _row(_TIME, "CLOPS", "time_il", _CLOPS, (0.834, 0.014), (-0.018, 0.004), (-0.007, 0.003), (0.007, 0.003)),

    _row(_SHUFFLED, "Fine-tuning", "class_il", _FINETUNE, (0.672, 0.022), (-0.081, 0.049), (0.014, 0.034), (-0.055, 0.025),
         task_order=(1, SHUFFLED_ORDER)),
    _row(_SHUFFLED, "CLOPS", "class_il", _CLOPS, (0.796, 0.006), (0.110, 0.021), (0.096, 0.025), (0.095, 0.036),
         task_order=(1, SHUFFLED_ORDER)),

    _row(_WEIGHTED, "CLOPS", "class_il", _CLOPS, (0.796, 0.013), (0.053, 0.023), (0.018, 0.010), (0.008, 0.016)),
    _row(_WEIGHTED, "CLOPS weighted", "class_il", _CLOPS, (0.800, 0.006), (0.042, 0.020), (0.005, 0.014), (-0.014, 0.016),
         weight_replay=(True,)),
    _row(_WEIGHTED, "CLOPS", "time_il", _CLOPS, (0.834, 0.014), (-0.018, 0.004), (-0.007, 0.003), (0.007, 0.003)),
    _row(_WEIGHTED, "CLOPS weighted", "time_il", _CLOPS, (0.818, 0.012), (-0.024, 0.012), (-0.011, 0.006), (0.007, 0.002),
         weight_replay=(True,)),
    _row(_WEIGHTED, "CLOPS", "domain_il", _CLOPS, (0.731, 0.001), (-0.011, 0.002), (-0.020, 0.004), (-0.019, 0.009)),
    _row(_WEIGHTED, "CLOPS weighted", "domain_il", _CLOPS, (0.741, 0.007), (-0.016, 0.007), (-0.024, 0.001), (-0.024, 0.003),
         weight_replay=(True,)),

    _row(_SAMPLES, "5", "class_il", _CLOPS, (0.765, 0.013), (0.045, 0.019), (0.011, 0.016), (0.002, 0.024), mc_samples=(5,)),
    _row(_SAMPLES, "10", "class_il", _CLOPS, (0.781, 0.016), (0.051, 0.020), (0.014, 0.018), (0.002, 0.024), mc_samples=(10,)),
    _row(_SAMPLES, "20", "class_il", _CLOPS, (0.796, 0.013), (0.053, 0.023), (0.018, 0.010), (0.008, 0.016)),
    _row(_SAMPLES, "50", "class_il", _CLOPS, (0.785, 0.023), (0.061, 0.009), (0.023, 0.008), (0.008, 0.012), mc_samples=(50,)),

    _row(_ACQUISITION, "BALD_MCD", "class_il", _CLOPS, (0.796, 0.013), (0.053, 0.023), (0.018, 0.010), (0.008, 0.016)),
    _row(_ACQUISITION, "BALD_MCP", "class_il", _CLOPS, (0.674, 0.042), (0.068, 0.052), (-0.107, 0.035), (-0.091, 0.034),
         acquisition=("bald_mcp",)),
    _row(_ACQUISITION, "BALC_KLD", "class_il", _CLOPS, (0.716, 0.039), (-0.036, 0.035), (-0.104, 0.039), (-0.104, 0.051),
         acquisition=("balc_kld",)),

    _row(_MIR_FRACTION, "0.1", "class_il", _MIR, (0.799, 0.006), (0.046, 0.022), (-0.005, 0.031), (-0.026, 0.028),
         acquisition_fraction=(0.1,)),
    _row(_MIR_FRACTION, "0.25", "class_il", _MIR, (0.807, 0.010), (0.043, 0.017), (0.013, 0.016), (-0.007, 0.022),
         acquisition_fraction=(0.25,)),
    _row(_MIR_FRACTION, "0.5", "class_il", _MIR, (0.753, 0.014), (0.009, 0.018), (0.001, 0.025), (-0.046, 0.022)),
    _row(_MIR_FRACTION, "1", "class_il", _MIR, (0.800, 0.013), (0.063, 0.023), (0.039, 0.024), (0.021, 0.023),
         acquisition_fraction=(1.0,)),

    _row(_MIR_RATIO, "1:2", "class_il", _MIR, (0.801, 0.013), (0.065, 0.025), (0.011, 0.043), (-0.012, 0.030), replay_ratio=(0.5,)),
    _row(_MIR_RATIO, "1:1", "class_il", _MIR, (0.753, 0.014), (0.009, 0.018), (0.001, 0.025), (-0.046, 0.022)),
    _row(_MIR_RATIO, "2:1", "class_il", _MIR, (0.763, 0.012), (0.016, 0.010), (0.024, 0.017), (-0.020, 0.021), replay_ratio=(2.0,)),
    _row(_MIR_RATIO, "4:1", "class_il", _MIR, (0.752, 0.016), (0.020, 0.021), (0.030, 0.016), (-0.013, 0.021), replay_ratio=(4.0,)),
)
"""Every row of every table of results, in the order of the source."""

def _grid_cell(b: float, a: float, **means: float) -> PublishedRow:
    values = {metric: PublishedValue(mean, None) for metric, mean in means.items()}
    settings = {"scenario": ("class_il",), **_CLOPS, "storage_fraction": (b,), "acquisition_fraction": (a,)}
    return PublishedRow("text", f"CLOPS, b = {b:g}, a = {a:g}", values, settings)


_GRID_CELLS: Final[tuple[PublishedRow, ...]] = (
    _grid_cell(0.1, 0.1, auc=0.758, bwt=0.034),
    _grid_cell(1.0, 1.0, auc=0.832),
    _grid_cell(1.0, 0.1, bwt=0.066),
)
"""The cells of the published heatmaps that the text names."""
# fmt: on

DATASET_OF_SCENARIO: Final[Mapping[str, str]] = {
    "class_il": "cardiology",
    "time_il": "chapman",
    "domain_il": "physionet2020",
}
"""The data of the paper's tables of results."""

_SETTLED: Final = DRAWS.union({"dataset"}, *(row.settings for row in (*RESULTS, *_GRID_CELLS)))
"""Fields that match a run to published rows, and those that the paper does not state."""


@dataclass(frozen=True)
class Departure:
    """A setting that differs from the paper: the field, its value here, and the paper's."""

    field: str
    ours: Any
    paper: Any


def published_rows(config: RunConfig) -> tuple[PublishedRow, ...]:
    """Return the published rows that a configuration repeats, apart from `departures`; those of tables first.

    Empty if the data are not those of the paper's tables for the scenario, since its numbers are not comparable then,
    and if an unregistered plug-in is involved.
    """
    if DATASET_OF_SCENARIO.get(config.scenario) != config.dataset or unregistered(dict(config)):
        return ()
    repeated = []
    for row in (*RESULTS, *_GRID_CELLS):
        if all(getattr(config, name) in accepted for name, accepted in row.settings.items()):
            repeated.append(row)
    return tuple(repeated)


def published_values(config: RunConfig) -> dict[str, PublishedValue]:
    """Return the paper's values for a configuration by metric, from the first table that has the metric."""
    values: dict[str, PublishedValue] = {}
    for row in published_rows(config):
        values = dict(row.values) | values
    return values


def departures(config: RunConfig) -> tuple[Departure, ...]:
    """Return the settings in which a run on the paper's data differs from the paper, apart from fields of published rows.

    Perturbations are in the unit of the frames, so those of other frames are not compared.
    """
    paper = RunConfig(scenario=config.scenario, dataset=config.dataset, strategy=config.strategy)
    seen = json.loads(config.identity).keys() - _SETTLED
    if config.normalize != paper.normalize:
        seen -= {"perturbation_std"}
    pairs = ((name, getattr(config, name), getattr(paper, name)) for name in names_of([config]) if name in seen)
    return tuple(Departure(*pair) for pair in pairs if pair[1] != pair[2])
