"""The paper's Class-IL experiments, appendix included, on the MIT-BIH Arrhythmia Database: what its claims take.

Every experiment of `paper` over twelve splits of the patients, for few patients carry some classes and so the split
matters more than the seed does. The grids over b and a are coarser than the paper's: all b at a = 0.1, and at a = 0.5
and 1 the smallest b and the largest. Those are the places that claims name, and enough for those about whole grids.

3,900 runs with five seeds, four hours of processor time: --where "split_seed < 3" for three splits, --seeds 1 for one
seed, which decides more of the claims than as many runs with more seeds of fewer splits do.
"""

from dataclasses import replace

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.experiment.search_space import load_spaces, shipped_space

GRIDS = ("class_il_grid", "storage_order", "storage_function")


def of_paper(scenario, dataset, splits, **settings):
    """The paper's experiments in a scenario, on another data set and over several splits of its patients."""
    return [
        replace(
            space,
            name=f"{dataset}_{space.name}",
            base=space.base.replace(dataset=dataset, **settings),
            axes={**space.axes, "split_seed": splits},
            where=at_places if space.name in GRIDS else None,
        )
        for space in load_spaces(shipped_space("paper"))
        if space.base.scenario == scenario
    ]


def at_places(config):
    """Half of the places of a grid."""
    return config.acquisition_fraction == 0.1 or (
        config.acquisition_fraction in (0.5, 1.0) and config.storage_fraction in (0.1, 1.0)
    )


SPACE = [
    *of_paper("class_il", "mitbih", range(12)),
    SearchSpace(
        name="mitbih_beta_penalty",
        base=RunConfig(scenario="class_il", dataset="mitbih", strategy="clops"),
        axes={"beta_penalty": [10.0, 0.0], "split_seed": range(12)},
        seeds=range(5),
    ),
]
