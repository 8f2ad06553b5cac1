"""Prediction flips by method in two model updates: two new classes on MIT-BIH, a new group of people on CinC 2017.

All methods have their default options and a memory of 10 %, on several patient splits. An update report compares the
models before and after the last task and needs --keep predictions. `docs/update_report.md` has the results.
"""

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.search_spaces.methods_cinc2017 import cinc2017  # noqa: F401, declares the data set

METHODS = {
    "Fine-tuning": {"strategy": "finetune"},
    "EWC": {"strategy": "ewc"},
    "LwF": {"strategy": "lwf"},
    "Flip penalty": {"strategy": "flip_penalty"},
    "ER": {"strategy": "er"},
    "DER++": {"strategy": "derpp"},
}

SPACE = [
    SearchSpace(
        "updates_mitbih",
        RunConfig(scenario="class_il", dataset="mitbih", memory_fraction=0.1),
        {"method": METHODS, "split_seed": range(10)},
        seeds=range(2),
    ),
    SearchSpace(
        "updates_cinc2017",
        RunConfig(scenario="subject_il", dataset="cinc2017", epochs_per_task=5, memory_fraction=0.1),
        {"method": METHODS, "split_seed": range(5)},
        seeds=range(1),
    ),
]
