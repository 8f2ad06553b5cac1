"""All experiments of the paper, reduced: synthetic ECG, four epochs per task, the corners of each grid, one seed.

It shows the layout of the complete report in a few minutes on two cores. Its numbers say nothing about the methods.
"""

from dataclasses import replace

from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_space

CORNERS = {
    "storage_fraction": [0.1, 1.0],
    "acquisition_fraction": [0.1, 1.0],
    "mc_samples": [5, 20],
    "replay_ratio": [0.5, 2.0],
}

SPACE = [
    replace(
        space,
        base=space.base.replace(dataset="synthetic", epochs_per_task=4),
        axes={axis: CORNERS.get(axis, values) for axis, values in space.axes.items()},
        seeds=range(1),
    )
    for space in load_spaces(shipped_space("paper"))
]
