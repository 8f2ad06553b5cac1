"""The paper's Domain-IL experiments on the data set that it used, over five splits of the patients.

Also of the first 150 recordings alone (the folder `cpsc2018`): then it is the paper's data in kind and not in number,
and a run of CLOPS takes 25 s.
"""

from clops_sweep.search_spaces.appendix_mitbih import of_paper


def asked(config):
    """Five splits, three of MIR, which takes several times as long, and not GEM; four more seeds of what is quick."""
    if config.seed > 0:
        return config.split_seed < 3 and config.strategy in ("finetune", "clops") and not config.weight_replay
    return config.strategy != "gem" and (config.strategy != "mir" or config.split_seed < 3)


SPACE = of_paper("domain_il", "physionet2020", range(5), range(5), where=asked)
