"""The paper's pair of heatmaps of the storage function: area under beta, and area under its square."""

from clops_sweep import RunConfig, SearchSpace

FRACTIONS = [0.1, 0.25, 0.5, 1.0]

BASE = RunConfig(scenario="class_il", dataset="cardiology", strategy="clops")

SPACE = [
    SearchSpace(
        name="storage_function",
        base=BASE,
        axes={
            "storage_fraction": FRACTIONS,
            "acquisition_fraction": FRACTIONS,
            "storage_function": ["area", "squared_area"],
        },
        seeds=range(5),
    ),
    SearchSpace(name="storage_function_fine_tuning", base=BASE.replace(strategy="finetune"), seeds=range(5)),
]
