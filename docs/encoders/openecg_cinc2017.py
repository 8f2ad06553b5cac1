"""The weights of openecg against a random encoder, MiniRocket and training from scratch, on CinC 2017.

clops-sweep docs/encoders/openecg_cinc2017.py --data-root DIR
"""

import openecg_encoder  # noqa: F401 (declares the encoder; its authors list no CinC 2017 among their data)
import pandas as pd

from clops_sweep import Recordings, RunConfig, SearchSpace, dataset
from clops_sweep.search_spaces.encoders_cinc2017 import random_convolutions  # noqa: F401


@dataset("cinc2017_quarter", scenarios=("class_il",), files=["cinc2017"], title="a quarter of CinC 2017")
def cinc2017_quarter(data_root):
    """Ten seconds of every thirty: 2,500 samples, which the paper's network takes, and openecg at 500 Hz."""
    table = pd.read_csv(data_root / "cinc2017" / "REFERENCE-v3.csv", names=["record", "rhythm"]).iloc[::4]
    return Recordings.from_wfdb(
        data_root / "cinc2017",
        table=table,
        name="record",
        label="rhythm",
        classes=("N", "A", "O", "~"),
        window_seconds=10,
        stride_seconds=30,
        resample_to=250,
    )


METHODS = {
    "Fine-tuning": {"strategy": "finetune"},
    "ER": {"strategy": "er", "memory_fraction": 0.1},
    "NCM": {"strategy": "ncm"},
    "SLDA": {"strategy": "slda"},
    "RanPAC": {"strategy": "ranpac"},
    "Joint": {"strategy": "joint"},
}
ENCODERS = {
    "openecg": {"encoder": "openecg", "network": "linear"},
    "random": {"encoder": "random_convolutions", "network": "linear"},
    "MiniRocket": {"encoder": "minirocket", "network": "linear"},
    "none": {},
}
BASE = RunConfig(
    dataset="cinc2017_quarter", scenario="class_il_union", normalize="zscore", learning_rate=0.001, epochs_per_task=10
)
AXES = {"split_seed": range(5), "encoder_of": ENCODERS, "method": METHODS}
SPACE = SearchSpace("openecg_cinc2017", BASE, AXES, seeds=1)
