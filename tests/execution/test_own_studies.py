"""Three studies on recordings of one's own, as a user would write them, in one sweep: killed, resumed, repeated, shown.

Real recordings where they are at hand, else generated ones of the same form.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from tests.data.declared_files import write_wfdb
from tests.helpers.launching import Sweep

pytestmark = pytest.mark.nightly

Launch = Callable[..., Sweep]
Command = Callable[..., "subprocess.CompletedProcess[str]"]

HEARTS = """
from clops_sweep import Recordings, RunConfig, SearchSpace, dataset

@dataset("hearts", scenarios=("class_il",), files=["hearts"])
def hearts(data_root):
    classes = {"N": "normal", "A": "AF", "O": "other", "~": "noise"}
    folder = data_root / "hearts"
    labels = dict(table="REFERENCE.csv", label=1, classes=classes)
    return Recordings.from_wfdb(folder, **labels, window_seconds=5, resample_to=500)

BASE = RunConfig(dataset="hearts", epochs_per_task=2, mc_samples=2)
SPACE = SearchSpace("hearts", BASE, axes={"strategy": ["clops", "finetune"]}, seeds=[0])
"""

ACTIVITIES = """
import numpy as np
from clops_sweep import Recordings, RunConfig, SearchSpace, dataset, network

@dataset("activities", scenarios=("class_il",), files=["activities.npz"])
def activities(data_root):
    file = np.load(data_root / "activities.npz")
    names = [f"{kind} {axis}" for kind in ("body", "turn", "total") for axis in "xyz"]
    classes = ("walking", "upstairs", "downstairs", "sitting", "standing", "laying")
    return Recordings(file["x"], 50, names, "g", file["y"], classes, np.arange(len(file["y"])), split=file["split"])

@network("small")
def small(channels, samples, outputs):
    from torch import nn
    layers = [nn.Conv1d(channels, 8, 5), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1), nn.AdaptiveAvgPool1d(4)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32, outputs))

BASE = RunConfig(dataset="activities", scenario="class_il_union", network="small", epochs_per_task=1, mc_samples=2)
SPACE = SearchSpace("activities", BASE, axes={"strategy": ["clops", "multitask"]}, seeds=[0])
"""

CLINICS = """
import numpy as np
from clops_sweep import Recordings, RunConfig, SearchSpace, dataset

@dataset("clinics", scenarios=("time_il", "domain_il"), files=["clinics.npz"])
def clinics(data_root):
    file = np.load(data_root / "clinics.npz")
    return Recordings(file["x"], 500, ("lead",), "mV", file["y"], ("sinus", "other"), file["who"], times=file["day"],
                      domains={"site": file["site"]})

BASE = RunConfig(dataset="clinics", scenario="time_il", strategy="replay", epochs_per_task=1)
SPACE = [SearchSpace("years", BASE, seeds=[0]),
         SearchSpace("sites", BASE.replace(scenario="domain_il", domain="site"), seeds=[0])]
"""
FILES = ("hearts.py", "activities.py", "clinics.py")


def _real(name: str) -> Path | None:
    root = os.environ.get("CLOPS_DATA_ROOT")
    return Path(root) / name if root and (Path(root) / name).is_dir() else None


def _write_hearts(folder: Path) -> None:
    """Records of 9 to 60 s of one lead at 300 Hz, and their labels in a table."""
    folder.mkdir()
    real = _real("cinc2017")
    if real is not None:
        table = pd.read_csv(real / "REFERENCE-v3.csv", header=None, names=["record", "label"])
        table = table.groupby("label").head(3)  # more than 15 records are read by processes that take longer to start
        for record in table["record"]:
            for ending in (".hea", ".mat"):
                shutil.copy(real / f"{record}{ending}", folder)
    else:
        stream = np.random.default_rng(0)
        rows = [(f"A{number:05d}", "NAO~"[number % 4], int(stream.integers(9, 61))) for number in range(15)]
        for record, label, seconds in rows:
            signal = np.cumsum(stream.normal(0, 20 + 20 * "NAO~".index(label), (1, 300 * seconds)), axis=1)
            write_wfdb(
                folder, record, np.rint(signal - signal.mean()).clip(-30000, 30000), 300, ("ECG",), "mV", gain=1000
            )
        table = pd.DataFrame(rows, columns=["record", "label", "seconds"])[["record", "label"]]
    table.to_csv(folder / "REFERENCE.csv", header=False, index=False)


def _write_activities(path: Path) -> None:
    """Windows of nine channels and 128 samples, of six activities, with a test set of the publisher's."""
    x, y, split = [], [], []
    for part in ("train", "test"):
        some, labels = _windows(part, 240 if part == "train" else 120)
        x.append(some)
        y.append(labels)
        split += ["test" if part == "test" else "validation" if i % 4 == 0 else "train" for i in range(len(labels))]
    np.savez(path, x=np.concatenate(x), y=np.concatenate(y), split=np.array(split))


def _windows(part: str, count: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    real = _real("uci_har_subset")
    if real is None:
        stream = np.random.default_rng(len(part))
        labels = np.arange(count) // 4 % 6  # every fourth window is for validation
        waves = np.sin(np.linspace(0, 6.28, 128) * (labels[:, None] + 1))[:, None] * np.ones((1, 9, 1))
        return (waves + stream.normal(0, 0.3, waves.shape)).astype(np.float32), labels
    labels = np.loadtxt(real / part / f"y_{part}.txt", dtype=np.int64) - 1
    chosen = np.sort(np.concatenate([np.flatnonzero(labels == code)[: count // 6] for code in range(6)]))
    channels = [np.loadtxt(file, dtype=np.float32) for file in sorted((real / part / "Inertial Signals").iterdir())]
    return np.stack(channels, axis=1)[chosen], labels[chosen]


def _write_clinics(path: Path) -> None:
    stream = np.random.default_rng(1)
    who, y = np.repeat(np.arange(30), 6), np.tile([0, 1], 90)
    x = np.sin(np.linspace(0, 60, 2500) * (1 + y[:, None])) + stream.normal(0, 0.5, (180, 2500))
    day = np.datetime64("2019-01-01") + (np.arange(180) % 6) * 100
    np.savez(
        path, x=x.astype(np.float32)[:, None], y=y, who=who, day=day, site=np.where(who % 3 == 0, "Oxford", "Paris")
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name, text in zip(FILES, (HEARTS, ACTIVITIES, CLINICS), strict=True):
        (tmp_path / name).write_text(text)
    _write_hearts(tmp_path / "hearts")
    _write_activities(tmp_path / "activities.npz")
    _write_clinics(tmp_path / "clinics.npz")
    return tmp_path


def test_studies_of_one_s_own(attach: Launch, clops_sweep: Command, place: Path) -> None:
    command = (*FILES, "--data-root", str(place), "--prepared-root", str(place / "prepared"))
    killed = attach(*command)
    killed.read_until("[2/6]")
    killed.kill()
    resumed = attach(*command)
    assert resumed.wait() == 0, resumed.output + resumed.errors
    assert "6 runs asked for, 6 finished, 0 pending, 0 failed" in resumed.output

    runs = pd.read_parquet(place / "results" / "runs")
    assert runs.groupby("dataset").size().to_dict() == {"hearts": 2, "activities": 2, "clinics": 2}
    assert runs["auc"].between(0, 1).all()
    plugins = [part for name in FILES for part in ("--plugins", name)]
    run_id = runs.loc[runs["dataset"] == "activities", "run_id"].iloc[0]  # a data set and a network of the files
    again = clops_sweep("rerun", run_id, "--verify", "--prepared-root", place / "prepared", *plugins)
    assert again.returncode == 0, again.stdout + again.stderr

    tasks = pd.read_parquet(place / "results" / "r_matrix").merge(runs[["run_id", "dataset", "scenario"]])
    names = tasks.groupby(["dataset", "scenario"])["task"].unique().map(list).to_dict()
    assert names["clinics", "domain_il"] == ["site Oxford", "site Paris"]
    assert len(names["clinics", "time_il"]) == 3
    page = next((place / "results" / "report").rglob("index.html")).read_text()
    for words in ("walking / upstairs", "normal / AF", "Oxford"):
        assert words in page
    assert "paper's" not in page.lower().replace("the paper's network", "")
