"""New people over time on the MIT-BIH Arrhythmia Database: ten groups, each held out by time or by person.

Every method with its default options and a memory of 10 %, on three splits of the people and two seeds. Keep
predictions to see how each person fares: --keep predictions, then clops_sweep.read("results", "people").
"""

from clops_sweep import RunConfig, SearchSpace

SPACE = SearchSpace(
    "subject_il_mitbih",
    RunConfig(scenario="subject_il", dataset="mitbih", memory_fraction=0.1),
    {
        "split_within": ["time", "people"],
        "method": {
            "Fine-tuning": {"strategy": "finetune"},
            "LwF": {"strategy": "lwf"},
            "Flip penalty": {"strategy": "flip_penalty"},
            "ER": {"strategy": "er"},
            "ER, flip penalty": {"strategy": "er", "er_flip_strength": 1.0},
        },
        "split_seed": range(3),
    },
    seeds=range(2),
)
