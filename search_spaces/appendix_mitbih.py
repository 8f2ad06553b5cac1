"""The paper's Class-IL experiments, appendix included, on the MIT-BIH Arrhythmia Database: what its claims take.

Every experiment of `paper` with the paper's five seeds on three splits of the patients, and with one seed on more of
them: seeds of one split share its patients, so that splits decide more of the claims than as many seeds do. Twelve in
all; four for the grids over b and a, and for what takes several times as long as CLOPS does.
"""

from dataclasses import replace

from clops_sweep import SearchSpace
from clops_sweep.experiment.spaces.search_space import load_spaces, shipped_space


def of_paper(scenario, dataset, splits, seeds=range(1), where=None, **settings):
    """The paper's experiments in a scenario, on another data set and over several splits of its patients.

    In Class-IL with one more: the paper says what the penalty on beta is for, and shows no runs without it.

    Args:
        scenario: which.
        dataset: which.
        splits: values of `split_seed`.
        seeds: on each split.
        where: keeps only the configs for which it returns True.
        settings: of every run.
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
    """Five seeds on three splits; one on twelve of what is quick, on four of grids, GEM and MIR's own."""
    if config.seed > 0 or config.acquisition in ("bald_mcp", "balc_kld"):
        return config.split_seed < 3
    default = (config.storage_fraction, config.acquisition_fraction, config.replay_ratio) == (0.25, 0.5, 1.0)
    return config.split_seed < (12 if default and config.strategy != "gem" else 4)


SPACE = of_paper("class_il", "mitbih", range(12), range(5), where=asked)
