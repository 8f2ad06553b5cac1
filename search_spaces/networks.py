"""Two networks for multi-channel frames: a published ResNet and a small residual network that is declared here.

PTB-XL is used as in its benchmark (Strodthoff et al., 2021: all 12 leads, 2.5 s at 100 Hz, five superclasses), in three
terms. UCI-HAR (Anguita et al., 2013: 9 channels, 2.56 s at 50 Hz) has six activities in three tasks of two, with one
output per activity. The data root must contain folders `ptbxl...` and `uci_har...` (or `UCI HAR...`).

There are five epochs per task, because the validation loss of the ResNet is lowest after four on 500 PTB-XL recordings.
"""

import ast

import numpy as np

from clops_sweep import IntOption, Recordings, RunConfig, SearchSpace, dataset, network

ACTIVITIES = ("walking", "upstairs", "downstairs", "sitting", "standing", "laying")


@dataset(
    "ptbxl_100hz",
    scenarios=("time_il",),
    files=["ptbxl*"],
    title="PTB-XL, all leads, 2.5 s at 100 Hz (Wagner et al., 2020)",
    licence="CC BY 4.0",
    source="https://physionet.org/content/ptb-xl/",
    normalize="zscore",
)
def ptbxl_100hz(data_root):
    """Recordings with one of the five superclasses or more."""
    import pandas as pd

    folder = next(data_root.glob("ptbxl*"))
    statements = pd.read_csv(folder / "scp_statements.csv", index_col=0)["diagnostic_class"].dropna()
    table = pd.read_csv(folder / "ptbxl_database.csv")
    codes = table["scp_codes"].map(ast.literal_eval)
    table["superclasses"] = codes.map(lambda found: " ".join(statements[code] for code in found if code in statements))
    return Recordings.from_wfdb(
        folder,
        table=table,
        name="filename_hr",
        label="superclasses",
        separator=" ",
        classes=("NORM", "MI", "STTC", "CD", "HYP"),
        patient="patient_id",
        time="recording_date",
        window_seconds=2.5,
        resample_to=100,
    )


@dataset(
    "uci_har",
    scenarios=("class_il", "class_il_union"),
    files=["[uU][cC][iI]*[hH][aA][rR]*"],
    title="UCI-HAR, a smartphone at the waist (Anguita et al., 2013)",
    licence="CC BY 4.0",
    source="https://archive.ics.uci.edu/dataset/240",
    normalize="zscore",
)
def uci_har(data_root):
    """Windows of 2.56 s."""
    folder = next(data_root.glob("[uU][cC][iI]*[hH][aA][rR]*"))
    files = sorted(file.stem.removesuffix("_train") for file in (folder / "train" / "Inertial Signals").iterdir())
    parts, signals, labels = ("train", "test"), [], []
    for part in parts:
        read = [np.loadtxt(folder / part / "Inertial Signals" / f"{it}_{part}.txt", dtype=np.float32) for it in files]
        signals.append(np.stack(read, axis=1))
        labels.append(np.loadtxt(folder / part / f"y_{part}.txt", dtype=np.int64) - 1)
    counts = [len(part) for part in labels]
    fitted = counts[0] * 4 // 5  # people follow one another; the publisher's test set stays what it is
    split = ["train"] * fitted + ["validation"] * (counts[0] - fitted) + ["test"] * counts[1]
    return Recordings(
        signals=np.concatenate(signals),
        sampling_rate=50,
        channels=files,
        units="g, rad/s",
        labels=np.concatenate(labels),
        classes=ACTIVITIES,
        patients=None,  # not published for this subset
        split=split,
    )


@network("residual_small", options={"residual_width": IntOption(32, ge=4, le=256, log=True)})
def residual_small(channels, samples, outputs, *, residual_width):
    """A stem and two residual layers."""
    from torch import nn

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(
                nn.Conv1d(residual_width, residual_width, 5, padding=2), nn.BatchNorm1d(residual_width), nn.ReLU()
            )

        def forward(self, hidden):
            return hidden + self.inner(hidden)

    stem = nn.Sequential(nn.Conv1d(channels, residual_width, 9, stride=2), nn.ReLU())
    body = [Residual(), nn.MaxPool1d(4), nn.Dropout(0.1), Residual(), nn.AdaptiveAvgPool1d(1), nn.Flatten()]
    return nn.Sequential(stem, *body, nn.Linear(residual_width, outputs))


METHODS = {
    "Fine-tuning": {"strategy": "finetune"},
    "Replay": {"strategy": "replay"},
    "CLOPS": {"strategy": "clops", "acquisition": "bald_mcp"},  # the only uncertainty of a ResNet without dropout
}
AXES = {"network": ["residual_small", "resnet1d_wang"], "method": METHODS}
SHORT = {"epochs_per_task": 5, "mc_samples": 10}
SPACE = [
    SearchSpace("networks_ptbxl", RunConfig(dataset="ptbxl_100hz", scenario="time_il", **SHORT), AXES, seeds=range(2)),
    SearchSpace(
        "networks_uci_har", RunConfig(dataset="uci_har", scenario="class_il_union", **SHORT), AXES, seeds=range(2)
    ),
]
