"""The paper's ablation heatmaps over b and a: CLOPS, random storage, random acquisition and both, with five seeds."""

from clops_sweep import RunConfig, SearchSpace

FRACTIONS = [0.1, 0.25, 0.5, 1.0]

BASE = RunConfig(scenario="class_il", dataset="cardiology", strategy="clops")

SPACE = [
    SearchSpace(
        name="class_il_grid",
        base=BASE,
        axes={
            "storage_fraction": FRACTIONS,
            "acquisition_fraction": FRACTIONS,
            "variant": {
                "CLOPS": {},
                "Random storage": {"storage_order": "random"},
                "Random acquisition": {"acquisition": "random"},
                "Random storage and acquisition": {"storage_order": "random", "acquisition": "random"},
            },
        },
        seeds=range(5),
    ),
    SearchSpace(name="class_il_grid_fine_tuning", base=BASE.replace(strategy="finetune"), seeds=range(5)),
]
