"""The paper's table of acquisition functions."""

from clops_sweep import RunConfig, SearchSpace

SPACE = SearchSpace(
    name="acquisition_functions",
    base=RunConfig(scenario="class_il", dataset="cardiology", strategy="clops"),
    axes={"acquisition": ["bald_mcd", "bald_mcp", "balc_kld"]},
    seeds=range(5),
)
