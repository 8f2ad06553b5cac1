"""The paper's table of replayed losses with and without the weight of their final beta, in three scenarios."""

from clops_sweep import RunConfig, SearchSpace

DATASETS = {"class_il": "cardiology", "time_il": "chapman", "domain_il": "physionet2020"}

SPACE = [
    SearchSpace(
        name=f"weighted_replay_{scenario}",
        base=RunConfig(scenario=scenario, dataset=dataset, strategy="clops"),
        axes={"weight_replay": [False, True]},
        seeds=range(5),
    )
    for scenario, dataset in DATASETS.items()
]
