"""The paper's Class-IL experiments, appendix included, on the MIT-BIH Arrhythmia Database: what its claims take.

Every experiment of `paper` over twelve splits of the patients, for few patients carry some classes and so the split
matters more than the seed does. The grids over b and a are coarser than the paper's: all b at a = 0.1, and at a = 0.5
and 1 the smallest b and the largest. Those are the places that claims name, and enough for those about whole grids.

3,900 runs with five seeds, four hours of processor time. --seeds 1 decides more of the claims than as many runs on
fewer splits do: --where "split_seed < 6" halves them.
"""

from dataclasses import replace

from clops_sweep import SearchSpace
from clops_sweep.experiment.search_space import load_spaces, shipped_space

GRIDS = ("class_il_grid", "storage_order", "storage_function")


def of_paper(scenario, dataset, splits, **settings):
    """The paper's experiments in a scenario, on another data set and over several splits of its patients.

    In Class-IL with one more: the paper says what the penalty on beta is for, and shows no runs without it.
    """
    spaces = [space for space in load_spaces(shipped_space("paper")) if space.base.scenario == scenario]
    if scenario == "class_il":
        clops = spaces[0].base
        spaces.append(SearchSpace("beta_penalty", clops, {"beta_penalty": [clops.beta_penalty, 0.0]}, range(5)))
    return [
        replace(
            space,
            name=f"{dataset}_{space.name}",
            base=space.base.replace(dataset=dataset, **settings),
            axes={**space.axes, "split_seed": splits},
            where=at_places if space.name in GRIDS else None,
        )
        for space in spaces
    ]


def at_places(config):
    """Half of the places of a grid."""
    return config.acquisition_fraction == 0.1 or (
        config.acquisition_fraction in (0.5, 1.0) and config.storage_fraction in (0.1, 1.0)
    )


SPACE = of_paper("class_il", "mitbih", range(12))
