"""Frozen encoders against training from scratch, on half of the people of the CinC Challenge 2017.

`encoders_pretraining.py` pretrains encoders on the other half and on PTB-XL: run it first, with --keep models. Without
its runs in ./results, only the random encoder and training from scratch are compared.
"""

from clops_sweep import Recordings, RunConfig, SearchSpace, UsageError, dataset, encoder, read

EVALUATED, PRETRAINED = "cinc2017_evaluated", "cinc2017_pretrained"


def every_other_person(data_root, first):
    """Five seconds of every ten; each record is of one person, and the label "-" leaves a record out."""
    import pandas as pd

    table = pd.read_csv(data_root / "cinc2017" / "REFERENCE-v3.csv", names=["record", "rhythm"])
    table.loc[(1 - first) :: 2, "rhythm"] = "-"
    return Recordings.from_wfdb(
        data_root / "cinc2017",
        table=table,
        name="record",
        label="rhythm",
        classes=("N", "A", "O", "~"),
        window_seconds=5,
        stride_seconds=10,
        resample_to=500,
    )


@dataset(EVALUATED, scenarios=("class_il",), files=["cinc2017"], title="every other person of CinC 2017")
def cinc2017_evaluated(data_root):
    return every_other_person(data_root, 0)


@dataset(PRETRAINED, scenarios=("class_il",), files=["cinc2017"], title="the other people of CinC 2017")
def cinc2017_pretrained(data_root):
    return every_other_person(data_root, 1)


@encoder("random_convolutions", channels=1, samples=2500)
def random_convolutions(weights):
    """Two convolutions with random weights, and the means of each map over eighths."""
    from torch import nn

    return nn.Sequential(
        *(nn.Conv1d(1, 32, 7, stride=3), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(32, 64, 7, stride=3), nn.ReLU()),
        *(nn.AdaptiveAvgPool1d(8), nn.Flatten()),
    )


def pretrained():
    """Return the encoders that `encoders_pretraining.py` stored in ./results, by name."""
    try:
        runs = read("results", "runs", columns=["run_id", "dataset", "strategy", "scenario"])
    except UsageError:  # no results yet
        return {}
    found = {"PTB-XL": "dataset == 'ptbxl' and strategy == 'joint'", "CinC 2017": f"dataset == '{PRETRAINED}'"}
    return {
        name: {"encoder": f"run:{of_it['run_id'].iloc[0]}", "network": "linear"}
        for name, condition in found.items()
        if len(of_it := runs.query(condition))
    }


HEADS = {
    "Fine-tuning": {"strategy": "finetune"},
    "LwF": {"strategy": "lwf"},
    "CLOPS": {"strategy": "clops"},
    "ER": {"strategy": "er", "memory_fraction": 0.1},
    "NCM": {"strategy": "ncm"},
    "SLDA": {"strategy": "slda"},
    "RanPAC": {"strategy": "ranpac"},
    "TS-ACL": {"strategy": "ts_acl"},
    "Joint": {"strategy": "joint"},
}
BASE = RunConfig(
    dataset=EVALUATED, scenario="class_il_union", normalize="zscore", learning_rate=0.001, epochs_per_task=10
)
ENCODERS = {
    "none, batch norm": {},
    "random": {"encoder": "random_convolutions", "network": "linear"},
    **pretrained(),
}
SPACE = [
    SearchSpace(
        "encoders_cinc2017",
        BASE,
        axes={"encoder_of": ENCODERS, "method": HEADS, "split_seed": range(5)},
        seeds=range(1),
    ),
    SearchSpace(
        "encoders_cinc2017_layer_norm",
        BASE.replace(norm="layer"),
        axes={"method": {name: HEADS[name] for name in ("Fine-tuning", "ER", "Joint")}, "split_seed": range(5)},
        seeds=range(1),
    ),
]
