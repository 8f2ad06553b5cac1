"""The paper's table of the number of Monte-Carlo samples, T."""

from clops_sweep import RunConfig, SearchSpace

SPACE = SearchSpace(
    name="mc_samples",
    base=RunConfig(scenario="class_il", dataset="cardiology", strategy="clops"),
    axes={"mc_samples": [5, 10, 20, 50]},
    seeds=range(5),
)
