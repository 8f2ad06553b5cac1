"""The paper's six strategies on the open MIT-BIH Arrhythmia Database: five patient splits with three seeds each.

Some classes come from few patients, so the patient split matters more than the method: compare methods within a split.
"""

from clops_sweep import RunConfig, SearchSpace

SPACE = SearchSpace(
    name="strategies_mitbih",
    base=RunConfig(scenario="class_il", dataset="mitbih"),
    axes={
        "method": {
            "Multi-task": {"strategy": "multitask"},
            "Fine-tuning": {"strategy": "finetune"},
            "GEM": {"strategy": "gem"},
            "MIR": {"strategy": "mir"},
            "Replay": {"strategy": "replay"},
            "CLOPS": {"strategy": "clops"},
        },
        "split_seed": [0, 1, 2, 3, 4],
    },
    seeds=range(3),
)
