"""The paper's four pairs of heatmaps of the storage order: the easiest instances (top) or the hardest (bottom)."""

from clops_sweep import RunConfig, SearchSpace

FRACTIONS = [0.1, 0.25, 0.5, 1.0]

BASE = RunConfig(scenario="class_il", dataset="cardiology", strategy="clops")

SPACE = [
    SearchSpace(
        name="storage_order",
        base=BASE,
        axes={
            "storage_fraction": FRACTIONS,
            "acquisition_fraction": FRACTIONS,
            "storage_order": ["top", "bottom"],
        },
        seeds=range(5),
    ),
    SearchSpace(name="storage_order_fine_tuning", base=BASE.replace(strategy="finetune"), seeds=range(5)),
]
