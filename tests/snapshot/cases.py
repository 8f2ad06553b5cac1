"""Which runs the snapshot holds, as data: a name, the fields of its config, and what it is computed on and with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NATIVE, PYTORCH = "avx2", "off"
"""Values of CLOPS_NATIVE. Vectors of one size are used everywhere, as their size decides the last bits of a sum."""

TINY: Mapping[str, Any] = {
    "epochs_per_task": 2,
    "batch_size": 8,
    "mc_samples": 3,
    "storage_fraction": 0.4,
    "acquisition_fraction": 0.5,
    "beta_learning_rate": 1e-2,
    "learning_rate": 1e-3,
}
"""The fields that every case starts from."""


@dataclass(frozen=True)
class Case:
    """One run.

    Attributes:
        fields: of its `RunConfig`, over those of `TINY`.
        frames: arguments of `tiny_frames`; None for the frames of the config's data set.
        kernels: the value of CLOPS_NATIVE.
    """

    fields: Mapping[str, Any]
    frames: Mapping[str, Any] | None = field(default_factory=dict)
    kernels: str = NATIVE


SCENARIOS = ("class_il", "class_il_union", "time_il", "domain_il")
STRATEGIES = (
    *("clops", "replay", "finetune", "joint", "multitask", "gem", "mir", "er", "er_ace", "derpp", "agem", "gdumb"),
    *("ewc", "si", "mas", "lwf"),
)
NEEDS_AN_OUTPUT_PER_CLASS = {"er_ace": ("class_il_union", "time_il")}

VARIATIONS: Mapping[str, Mapping[str, Any]] = {
    **{f"acquisition {it}": {"acquisition": it} for it in ("bald_mcp", "balc_kld", "entropy", "variation_ratio")},
    "acquisition random": {"acquisition": "random"},
    **{
        f"storage {function} {order}": {"storage_function": function, "storage_order": order}
        for function in ("area", "squared_area")
        for order in ("top", "bottom")
    },
    "storage random": {"storage_order": "random"},
    "everything stored and replayed": {"storage_fraction": 1.0, "acquisition_fraction": 1.0},
    "acquisition every other epoch": {"acquire_every": 2, "epochs_per_task": 3},
    "replay weighted by beta": {"weight_replay": True},
    "no penalty on beta": {"beta_penalty": 0.0, "beta_learning_rate": 0.1},
    "shuffled tasks": {"task_order": 3},
    "tasks in a given order": {"task_order": (2, 0, 1)},
    "groups of classes": {"task_classes": ((0, "D"), (1, "E"))},
    "groups of different sizes": {"scenario": "class_il_union", "task_classes": ((0, 1, 2), (3, "E"))},
    "domains by site": {"scenario": "domain_il", "domain": "site"},
    "weight seed": {"weight_seed": 5},
    "seed": {"seed": 4},
    "GEM stores a tenth": {"strategy": "gem", "storage_fraction": 0.1},
    "MIR replays twice as many": {"strategy": "mir", "replay_ratio": 2.0},
    "ER in equal shares of tasks": {"strategy": "er", "memory_division": "task_balanced"},
    "ER in equal shares of classes": {"strategy": "er", "memory_division": "class_balanced", "memory_fraction": 0.3},
    "DER++ without one term": {"strategy": "derpp", "derpp_alpha": 0.0},
    "A-GEM on small batches": {"strategy": "agem", "agem_batch_size": 4},
    "EWC online": {"strategy": "ewc", "ewc_online": True, "ewc_decay": 0.8, "ewc_strength": 1000.0},
    "SI": {"strategy": "si", "si_strength": 10.0, "si_damping": 0.01},
    "MAS": {"strategy": "mas", "mas_strength": 10.0},
    "LwF": {"strategy": "lwf", "lwf_strength": 3.0, "lwf_temperature": 1.5},
    "batches of one": {"batch_size": 1, "epochs_per_task": 1},
}

OWN: Mapping[str, Mapping[str, Any]] = {
    "data set": {},
    "data set, by channel": {"scenario": "domain_il"},
    "data set, by site, all channels": {
        "scenario": "domain_il",
        "domain": "site",
        "leads": "all",
        "network": "snap_network",
    },
    "scenario": {"scenario": "snap_sites"},
    "network": {"network": "snap_network", "snap_width": 4},
    "strategy": {"strategy": "snap_ewc", "snap_strength": 1000.0},
    "acquisition": {"acquisition": "snap_unsure", "snap_power": 2.0},
    "storage function": {"storage_function": "snap_last"},
}
"""On the data set and with the components of own.py."""


CASES: Mapping[str, Case] = {
    **{
        f"{strategy}, {scenario}": Case({"strategy": strategy, "scenario": scenario})
        for strategy in STRATEGIES
        for scenario in NEEDS_AN_OUTPUT_PER_CLASS.get(strategy, SCENARIOS)
    },
    **{name: Case(fields) for name, fields in VARIATIONS.items()},
    "tasks of three classes": Case({"task_classes": ((0, 1, 2), (3, 4, 5), (6, 7, 8))}, {"group": 3}),
    "six tasks in the paper's curriculum": Case({"task_order": "paper_curriculum"}, {"tasks": 6}),
    **{
        f"{network}, {strategy}": Case(
            {"network": network, "strategy": strategy, "epochs_per_task": 1, "mc_samples": 2}, {"tasks": 2}
        )
        for network, strategy in (("resnet1d_wang", "clops"), ("resnet1d_wang", "gem"), ("inception_time", "clops"))
    },
    **{f"own {name}": Case({"dataset": "snap_data", **fields}, None) for name, fields in OWN.items()},
    "generated ECG, min-max": Case({"epochs_per_task": 1, "normalize": "minmax"}, None),
    "generated ECG, time_il": Case({"scenario": "time_il", "strategy": "er", "epochs_per_task": 1}, None),
    "generated ECG, domain_il": Case({"scenario": "domain_il", "strategy": "finetune", "epochs_per_task": 1}, None),
    **{
        f"{strategy}, class_il, {name}": Case({"strategy": strategy}, kernels=kernels)
        for strategy in ("clops", "finetune", "gem", "mir", "ewc", "derpp")
        for name, kernels in (("PyTorch", PYTORCH), ("AVX-512", "avx512"), ("baseline", "baseline"))
    },
    **{
        f"{strategy}, domain_il, PyTorch": Case({"strategy": strategy, "scenario": "domain_il"}, kernels=PYTORCH)
        for strategy in ("clops", "er", "lwf")
    },
}
