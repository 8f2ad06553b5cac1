"""The paper's table and learning curves of the Class-IL scenario."""

from clops_sweep import RunConfig, SearchSpace

SPACE = SearchSpace(
    name="baselines_class_il",
    base=RunConfig(scenario="class_il", dataset="cardiology"),
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
