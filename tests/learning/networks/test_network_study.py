"""The packaged study of networks, from its file to whole runs, on generated recordings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clops_sweep import ContinualRun
from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.files.wfdb_records import load_wfdb
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.experiment.spaces.search_space import SearchSpace, load_spaces, shipped_space

SUPERCLASS_OF = {"NORM": "NORM", "IMI": "MI", "NST_": "STTC", "LAFB": "CD", "LVH": "HYP"}
LEADS = ["I", "II", "III", "AVR", "AVL", "AVF", "V1", "V2", "V3", "V4", "V5", "V6"]


def write_ptbxl(folder: Path, recordings: int = 75) -> None:
    """Write equally many people per superclass and third of the years; the first lead's frequency tells the
    superclass."""
    stream = np.random.default_rng(0)
    rows, time = [], np.arange(1500) / 500
    (folder / "records500").mkdir(parents=True)
    for number in range(recordings):
        code = list(SUPERCLASS_OF)[number % 5]
        wave = np.sin(2 * np.pi * (1 + number % 5) * time) + 0.3 * stream.standard_normal((12, len(time)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of wfdb about pandas
            load_wfdb().wrsamp(
                f"{number:05}_hr", 500, ["mV"] * 12, LEADS, wave.T, fmt=["16"] * 12, write_dir=folder / "records500"
            )
        codes = {code: 100.0, "SR": 0.0} if number else {"SR": 0.0}  # the first has only a rhythm, and is dropped
        rows.append([number, float(number), f"{1984 + number // 25}-11-09 09:17:34", str(codes), number])
    table = pd.DataFrame(rows, columns=["ecg_id", "patient_id", "recording_date", "scp_codes", "file"])
    table["filename_hr"] = [f"records500/{number:05}_hr" for number in table.pop("file")]
    table.to_csv(folder / "ptbxl_database.csv", index=False)
    pd.DataFrame({"diagnostic_class": SUPERCLASS_OF | {"SR": None}}).to_csv(folder / "scp_statements.csv")


def write_uci_har(folder: Path) -> None:
    """Write windows whose frequency, equal in all channels, tells the activity."""
    stream, time = np.random.default_rng(0), np.linspace(0, 2 * np.pi, 128)
    for part, count in (("train", 60), ("test", 24)):
        labels = np.arange(count) % 6
        signals = folder / part / "Inertial Signals"
        signals.mkdir(parents=True)
        np.savetxt(folder / part / f"y_{part}.txt", labels + 1, fmt="%d")
        for kind in ("body_acc", "body_gyro", "total_acc"):
            for axis in "xyz":
                wave = np.sin(np.outer(labels + 1, time)) + 0.3 * stream.standard_normal((count, 128))
                np.savetxt(signals / f"{kind}_{axis}_{part}.txt", wave, fmt="%.7e")


@pytest.fixture(scope="module")
def spaces() -> Iterator[dict[str, SearchSpace]]:
    yield {space.name: space for space in load_spaces(shipped_space("networks"))}
    NETWORKS.forget("residual_small")
    for name in ("ptbxl_100hz", "uci_har"):
        DATASETS.added.pop(name), DATASETS._declared.pop(name)


@pytest.mark.parametrize(
    ("dataset", "shape", "tasks"),
    [
        pytest.param("ptbxl", (12, 250), ["Term 1", "Term 2", "Term 3"], marks=pytest.mark.nightly),
        ("uci_har", (9, 128), ["0-1", "2-3", "4-5"]),
    ],
)
def test_each_method_trains_each_network(
    spaces: dict[str, SearchSpace], tmp_path: Path, dataset: str, shape: tuple[int, int], tasks: list[str]
) -> None:
    {"ptbxl": write_ptbxl, "uci_har": write_uci_har}[dataset](tmp_path / "root" / dataset)
    space = spaces[f"networks_{dataset}"]
    name = space.base.dataset
    prepare(name, prepared_root=tmp_path / "prepared", data_root=tmp_path / "root", workers=1)
    small = space.overridden({"epochs_per_task": 1, "mc_samples": 2}).with_seeds(1)
    requests = list(small.requests())
    assert len(requests) == 6
    for config in (request.config for request in requests):
        frames = open_frames(name, prepared_root=tmp_path / "prepared", **config.data_key.view)
        assert (frames.channels, frames.samples) == shape
        result = ContinualRun(config, frames).run()
        assert list(dict.fromkeys(result.r_matrix["task"])) == tasks
        assert result.r_matrix["auc"].between(0, 1).all()
