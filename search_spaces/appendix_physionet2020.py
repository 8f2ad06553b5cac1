"""The paper's Domain-IL experiments on its own data set, over five patient splits.

The first 150 recordings (folder `cpsc2018`) suffice to try it: the same kind of data as in the paper but fewer, and a
run of CLOPS takes 25 s.
"""

from clops_sweep.search_spaces.appendix_mitbih import of_paper


def asked(config):
    """Keep five splits with seed 0, and seeds 1 to 4 on three of them, except for slow multi-task training."""
    return config.seed == 0 or (config.split_seed < 3 and config.strategy != "multitask")


SPACE = of_paper("domain_il", "physionet2020", range(5), range(5), where=asked)
