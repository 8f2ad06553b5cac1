"""The paper's table of replayed losses with and without the weight of their final beta, in three scenarios."""

from clops_sweep import RunConfig, SearchSpace

DATASETS = {"class_il": "cardiology", "time_il": "chapman", "domain_il": "physionet2020"}

BASES = {it: RunConfig(scenario=it, dataset=dataset, strategy="clops") for it, dataset in DATASETS.items()}

SPACE = [
    *(
        SearchSpace(f"weighted_replay_{scenario}", base, {"weight_replay": [False, True]}, seeds=range(5))
        for scenario, base in BASES.items()
    ),
    *(
        SearchSpace(f"weighted_replay_{scenario}_fine_tuning", base.replace(strategy="finetune"), seeds=range(5))
        for scenario, base in BASES.items()
    ),
]
