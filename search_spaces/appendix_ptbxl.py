"""The paper's Time-IL and Domain-IL experiments on PTB-XL, instead of Chapman's terms and the Challenge's leads.

The publisher has shifted the dates, so that what is learned one after the other are not real terms. A run in Time-IL
takes a second on the first 500 recordings, one of CLOPS in Domain-IL, with its twelve tasks, 40.
"""

from clops_sweep.search_spaces.appendix_mitbih import of_paper


def asked(config):
    """In Domain-IL five seeds of fine-tuning and CLOPS, one of what takes several times as long as that."""
    return config.seed == 0 or (config.strategy in ("finetune", "clops") and not config.weight_replay)


SPACE = [
    *of_paper("time_il", "ptbxl", range(12), seeds=range(5)),
    *of_paper("domain_il", "ptbxl", range(3), seeds=range(5), where=asked),
]
