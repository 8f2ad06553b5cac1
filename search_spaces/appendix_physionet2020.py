"""The paper's Domain-IL experiments on the data set that it used, over five splits of the patients.

Also of the first 150 recordings alone (the folder `cpsc2018`): then it is the paper's data in kind and not in number,
and a run of CLOPS takes 25 s.
"""

from clops_sweep.search_spaces.appendix_mitbih import of_paper


def asked(config):
    """Five splits, and on three of them four more seeds of all but MTL, which takes several times as long."""
    return config.seed == 0 or (config.split_seed < 3 and config.strategy != "multitask")


SPACE = of_paper("domain_il", "physionet2020", range(5), range(5), where=asked)
