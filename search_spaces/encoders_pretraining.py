"""Encoders for `encoders_cinc2017.py`: the paper's network, pretrained on PTB-XL and on half of CinC 2017's people.

clops-sweep search_spaces/encoders_pretraining.py --data-root DIR --keep models
"""

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.search_spaces.encoders_cinc2017 import PRETRAINED

SPACE = [
    SearchSpace(
        "pretraining_ptbxl",
        RunConfig(dataset="ptbxl", scenario="domain_il", strategy="joint", normalize="zscore", epochs_per_task=20),
        seeds=range(1),
    ),
    SearchSpace(
        "pretraining_cinc2017",
        RunConfig(
            dataset=PRETRAINED,
            scenario="class_il_union",
            task_classes=[[0, 1, 2, 3]],
            strategy="finetune",
            normalize="zscore",
            learning_rate=0.001,
            epochs_per_task=40,
        ),
        seeds=range(1),
    ),
]
