"""A small sweep on synthetic ECG, under two minutes on two cores: CLOPS, its random variant, and fine-tuning."""

from clops_sweep import RunConfig, SearchSpace

BASE = RunConfig(scenario="class_il", dataset="synthetic", strategy="clops", epochs_per_task=8, mc_samples=10)

SPACE = [
    SearchSpace(
        name="replay",
        base=BASE,
        axes={
            "storage_fraction": [0.1, 0.5],
            "acquisition_fraction": [0.25, 1.0],
            "variant": {
                "CLOPS": {},
                "Random storage and acquisition": {"storage_order": "random", "acquisition": "random"},
            },
        },
        seeds=range(2),
    ),
    SearchSpace(name="fine-tuning", base=BASE.replace(strategy="finetune"), seeds=range(2)),
]
