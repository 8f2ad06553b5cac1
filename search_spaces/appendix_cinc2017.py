"""The paper's Class-IL experiments on the CinC Challenge 2017: two tasks, 4,264 people.

Normal rhythm and atrial fibrillation, then other rhythms and noise: enough people for six splits to be alike, and too
few tasks for most of what is claimed of their order. On three of the splits five seeds. Ten epochs a task instead of
forty, for a task has ten times the frames that one of `appendix_mitbih` has.
"""

from clops_sweep.experiment.spaces.search_space import load_spaces, shipped_space
from clops_sweep.search_spaces.appendix_mitbih import of_paper

load_spaces(shipped_space("methods_cinc2017"))  # declares the data set


def asked(config):
    """Six splits; three of what takes several times as long as CLOPS, and of more seeds but for orders."""
    slow = config.acquisition in ("bald_mcp", "balc_kld") or (
        config.strategy == "mir" and (config.replay_ratio != 1.0 or config.acquisition_fraction != 0.5)
    )
    if config.task_order == 1:
        return False  # two tasks that are shuffled by a 1 are in the usual order
    if config.seed > 0 and (slow or config.task_order != "sequential"):
        return False
    return config.split_seed < 3 or (config.seed == 0 and not slow)


SPACE = of_paper("class_il", "cinc2017", range(6), range(5), where=asked, epochs_per_task=10)
