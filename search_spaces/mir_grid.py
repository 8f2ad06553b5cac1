"""The paper's two tables of MIR: the share of the buffer that is scored, and the replay ratio."""

from clops_sweep import RunConfig, SearchSpace

BASE = RunConfig(scenario="class_il", dataset="cardiology", strategy="mir")

SPACE = [
    SearchSpace(
        name="mir_acquisition_fraction",
        base=BASE,
        axes={"acquisition_fraction": [0.1, 0.25, 0.5, 1.0]},
        seeds=range(5),
    ),
    SearchSpace(
        name="mir_replay_ratio",
        base=BASE,
        axes={"replay_ratio": [0.5, 1.0, 2.0, 4.0]},
        seeds=range(5),
    ),
    SearchSpace(name="mir_grid_fine_tuning", base=BASE.replace(strategy="finetune"), seeds=range(5)),
]
