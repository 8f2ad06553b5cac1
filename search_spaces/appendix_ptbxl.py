"""The paper's Time-IL and Domain-IL experiments on PTB-XL, instead of Chapman and the PhysioNet/CinC Challenge 2020.

The publisher has shifted the dates, so the tasks of Time-IL are not real periods of time. On the first 500 recordings,
a run in Time-IL takes 1 s, and a run of CLOPS in Domain-IL, with its twelve tasks, 40 s.
"""

from clops_sweep.search_spaces.appendix_mitbih import of_paper


def asked(config):
    """Keep five seeds of fine-tuning and CLOPS, and one seed of slower methods."""
    return config.seed == 0 or (config.strategy in ("finetune", "clops") and not config.weight_replay)


SPACE = [
    *of_paper("time_il", "ptbxl", range(12), seeds=range(5)),
    *of_paper("domain_il", "ptbxl", range(3), seeds=range(5), where=asked),
]
