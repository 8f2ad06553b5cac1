"""The paper's table and learning curves of the Domain-IL scenario."""

from clops_sweep import RunConfig, SearchSpace

SPACE = SearchSpace(
    name="baselines_domain_il",
    base=RunConfig(scenario="domain_il", dataset="physionet2020"),
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
