"""The paper's Class-IL experiments on the CinC Challenge 2017: two tasks, 4,264 people.

The first task is normal rhythm and atrial fibrillation, the second other rhythms and noise. With so many people, six
splits give similar results. Two tasks are too few for most claims about task order. There are six splits, three of
them with five seeds. Tasks have ten times the frames of `appendix_mitbih`, so there are ten epochs per task, not forty.
"""

from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_space
from clops_sweep.search_spaces.appendix_mitbih import of_paper

load_spaces(shipped_space("methods_cinc2017"))  # declares the data set


def asked(config):
    """Keep six splits with seed 0 (three for slow methods), and seeds 1 to 4 on three splits for fast methods."""
    slow = config.acquisition in ("bald_mcp", "balc_kld") or (
        config.strategy == "mir" and (config.replay_ratio != 1.0 or config.acquisition_fraction != 0.5)
    )
    if config.task_order == 1:
        return False  # shuffling two tasks with seed 1 does not change their order
    if config.seed > 0 and (slow or config.task_order != "sequential"):
        return False
    return config.split_seed < 3 or (config.seed == 0 and not slow)


SPACE = of_paper("class_il", "cinc2017", range(6), range(5), where=asked, epochs_per_task=10)
