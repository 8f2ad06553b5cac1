"""The paper's table of the number of Monte-Carlo samples, T."""

from clops_sweep import RunConfig, SearchSpace

BASE = RunConfig(scenario="class_il", dataset="cardiology", strategy="clops")

SPACE = [
    SearchSpace(
        name="mc_samples",
        base=BASE,
        axes={"mc_samples": [5, 10, 20, 50]},
        seeds=range(5),
    ),
    SearchSpace(name="mc_samples_fine_tuning", base=BASE.replace(strategy="finetune"), seeds=range(5)),
]
