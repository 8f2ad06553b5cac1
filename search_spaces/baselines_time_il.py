"""The paper's table and learning curves of the Time-IL scenario."""

from clops_sweep import RunConfig, SearchSpace

SPACE = SearchSpace(
    name="baselines_time_il",
    base=RunConfig(scenario="time_il", dataset="chapman"),
    axes={
        "method": {
            "MTL": {"strategy": "multitask"},
            "Fine-tuning": {"strategy": "finetune"},
            "GEM": {"strategy": "gem"},
            "MIR": {"strategy": "mir"},
            "CLOPS": {"strategy": "clops"},
        }
    },
    seeds=range(5),
)
