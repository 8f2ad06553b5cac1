"""The paper's table of acquisition functions."""

from clops_sweep import RunConfig, SearchSpace

BASE = RunConfig(scenario="class_il", dataset="cardiology", strategy="clops")

SPACE = [
    SearchSpace(
        name="acquisition_functions",
        base=BASE,
        axes={"acquisition": ["bald_mcd", "bald_mcp", "balc_kld"]},
        seeds=range(5),
    ),
    SearchSpace(name="acquisition_functions_fine_tuning", base=BASE.replace(strategy="finetune"), seeds=range(5)),
]
