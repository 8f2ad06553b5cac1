"""Class-IL on the open MIT-BIH Arrhythmia Database: CLOPS and random replay over b and a, and fine-tuning."""

from clops_sweep import RunConfig, SearchSpace

BASE = RunConfig(scenario="class_il", dataset="mitbih", strategy="clops")

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
        seeds=range(3),
    ),
    SearchSpace(name="fine-tuning", base=BASE.replace(strategy="finetune"), seeds=range(3)),
]
