"""The paper's Class-IL experiments, including the appendix, on the MIT-BIH Arrhythmia Database, to decide its claims.

Every experiment of `paper` is run with five seeds on three patient splits, as in the paper, and with one seed on
further splits. Splits decide more claims than the same number of seeds, because all seeds of a split share its
patients. There are twelve splits, but only four for the grids over b and a and for methods much slower than CLOPS.
"""

from dataclasses import replace

from clops_sweep import SearchSpace
from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_space


def of_paper(scenario, dataset, splits, seeds=range(1), where=None, **settings):
    """Return the paper's experiments in a scenario, on another data set and several patient splits.

    Class-IL has an additional experiment without the penalty on beta, which the paper motivates but does not test.

    Args:
        scenario: the scenario.
        dataset: the data set.
        splits: values of `split_seed`.
        seeds: seeds of each split.
        where: keeps only the configs for which it returns True.
        settings: config fields of all runs.
    """
    spaces = [space for space in load_spaces(shipped_space("paper")) if space.base.scenario == scenario]
    if scenario == "class_il":
        clops = spaces[0].base
        spaces.append(SearchSpace("beta_penalty", clops, {"beta_penalty": [clops.beta_penalty, 0.0]}))
    return [
        replace(
            space,
            name=f"{dataset}_{space.name}",
            base=space.base.replace(dataset=dataset, **settings),
            axes={**space.axes, "split_seed": splits},
            seeds=seeds,
            where=where,
        )
        for space in spaces
    ]


def asked(config):
    """Keep five seeds on three splits; seed 0 also on further ones: twelve in total, four for grids, GEM and MIR."""
    if config.seed > 0 or config.acquisition in ("bald_mcp", "balc_kld"):
        return config.split_seed < 3
    default = (config.storage_fraction, config.acquisition_fraction, config.replay_ratio) == (0.25, 0.5, 1.0)
    return config.split_seed < (12 if default and config.strategy != "gem" else 4)


SPACE = of_paper("class_il", "mitbih", range(12), range(5), where=asked)
