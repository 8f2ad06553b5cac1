"""New people over time on the MIT-BIH Arrhythmia Database: ten groups of people as tasks, held out by time or person.

All methods have their default options, a memory of 10 % and 20 epochs per group, on five patient splits. For the
accuracy of each person, use --keep predictions, then clops_sweep.read("results", "people").
"""

from clops_sweep import RunConfig, SearchSpace

METHODS = {
    "Fine-tuning": {"strategy": "finetune"},
    "ER": {"strategy": "er"},
    "A-GEM": {"strategy": "agem"},
    "DER++": {"strategy": "derpp"},
    "CLOPS": {"strategy": "clops"},
    "SLDA": {"strategy": "slda"},
    "RanPAC": {"strategy": "ranpac"},
}
"""Methods that also work on an online stream."""

NEED_TASKS = {
    "LwF": {"strategy": "lwf"},
    "Flip penalty": {"strategy": "flip_penalty"},
}
BASE = RunConfig(
    scenario="subject_il",
    dataset="mitbih",
    epochs_per_task=20,
    batch_size=32,
    learning_rate=1e-3,
    storage_fraction=0.1,
    memory_fraction=0.1,
    projection_size=200,
)
SPACE = SearchSpace(
    "subject_il_mitbih",
    BASE,
    {"split_within": ["time", "people"], "method": METHODS | NEED_TASKS, "split_seed": range(5)},
    seeds=range(1),
)
