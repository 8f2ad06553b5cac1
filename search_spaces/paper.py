"""All experiments of the paper. Runs that several experiments share are run once."""

from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_space

EXPERIMENTS = [
    "class_il_grid",  # heatmaps of the ablation: AUC, BWT, BWT_t, BWT_lambda
    "storage_order",  # four pairs of heatmaps
    "storage_function",  # a pair of heatmaps
    "mc_samples",  # table
    "acquisition_functions",  # table
    "baselines_class_il",  # table and learning curves
    "baselines_time_il",  # table and learning curves
    "baselines_domain_il",  # table and learning curves
    "task_order",  # two tables and learning curves
    "weighted_replay",  # table
    "mir_grid",  # two tables
]

SPACE = [
    space
    for experiment in EXPERIMENTS
    for space in load_spaces(shipped_space(experiment))
    if not space.name.endswith("fine_tuning")  # the baselines have it
]
