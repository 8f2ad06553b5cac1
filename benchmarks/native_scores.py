"""Scores on real recordings by the native kernels and by PyTorch: ``python -m benchmarks.native_scores DATA_ROOT``.

The data root holds the folders `cinc2017` and `uci_har...`, as for `search_spaces/networks.py`.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import torch  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from scipy import stats  # noqa: E402

from benchmarks.own_runs import kernels_set_to  # noqa: E402
from benchmarks.programs import EEGNet  # noqa: E402
from benchmarks.timing import table  # noqa: E402
from clops_sweep import ContinualRun, Recordings, RunConfig, dataset, native  # noqa: E402
from clops_sweep.data.frames import FrameSet  # noqa: E402
from clops_sweep.data.preparing.prepare import open_frames, prepare  # noqa: E402
from clops_sweep.experiment.plugins.registry import NETWORKS  # noqa: E402
from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_space  # noqa: E402

RECORDINGS = 2_000
NETWORK_NAMES = ("small_cnn", "usual_eegnet")
METHODS = ("finetune", "er")

load_spaces(shipped_space("networks"))  # declares uci_har


@dataset("cinc2017_small", scenarios=("class_il",), files=["cinc2017"])
def cinc2017_small(data_root: Path) -> Recordings:
    """Return the first five seconds of 2,000 recordings at 100 Hz."""
    labels = pd.read_csv(data_root / "cinc2017" / "REFERENCE-v3.csv", header=None, names=["record", "label"])
    return Recordings.from_wfdb(
        data_root / "cinc2017",
        table=labels.head(RECORDINGS),
        name="record",
        label="label",
        classes=("N", "A", "O", "~"),
        window_seconds=5,
        stride_seconds=60,
        resample_to=100,
    )


@dataclass(frozen=True)
class Data:
    """A data set with the fields of its runs, and the score that is compared."""

    title: str
    config: RunConfig
    score: str


DATA = (
    Data("CinC 2017", RunConfig(dataset="cinc2017_small", epochs_per_task=5, learning_rate=1e-3), "test_auc"),
    Data(
        "UCI-HAR",
        RunConfig(
            dataset="uci_har", scenario="class_il_union", epochs_per_task=5, learning_rate=1e-3, normalize="zscore"
        ),
        "test_accuracy",
    ),
)


@dataclass(frozen=True)
class Measured:
    """Scores and processor seconds of one run for each seed, by backend."""

    scores: NDArray[np.float64]
    seconds: float
    backend: str


def _measured(data: Data, config: RunConfig, frames: FrameSet, seeds: int, choice: str) -> Measured:
    """Return the results of a config with the kernels that `choice` names."""
    scores = []
    backends = set()
    began = time.process_time()
    with kernels_set_to(choice):
        for seed in range(seeds):
            runs = ContinualRun(config.replace(seed=seed), frames).run().runs
            scores.append(float(runs[data.score][0]))
            backends.add(str(runs["backend"][0]))
    (backend,) = backends
    return Measured(np.array(scores), time.process_time() - began, backend)


def _interval(differences: NDArray[np.float64]) -> float:
    """Return half the width of the 95 % interval of a mean, by Student's t."""
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    return float(stats.t.ppf(0.975, len(differences) - 1) * error)


def _rows(data: Data, frames: FrameSet, seeds: int) -> list[list[str]]:
    rows = []
    for network in NETWORK_NAMES:
        for method in METHODS:
            config = data.config.replace(network=network, strategy=method)
            kernels = _measured(data, config, frames, seeds, native.available()[0])
            pytorch = _measured(data, config, frames, seeds, "off")
            assert kernels.backend.startswith("native-")
            assert pytorch.backend == "torch"
            apart = kernels.scores - pytorch.scores
            row = [
                data.title,
                f"`{network}`" if network == "small_cnn" else "EEGNet (8, 2)",
                f"`{method}`",
                f"{pytorch.scores.mean():.3f} ({pytorch.scores.std(ddof=1):.3f})",
                f"{kernels.scores.mean():.3f} ({kernels.scores.std(ddof=1):.3f})",
                f"{apart.mean():+.4f} ± {_interval(apart):.4f}",
                f"{pytorch.seconds / kernels.seconds:.1f}",
            ]
            print(*row, file=sys.stderr, flush=True)
            rows.append(row)
    return rows


def run(data_root: Path, *, seeds: int = 10) -> str:
    """Return a section with a table: a row for each data set, network and method."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, NETWORKS.temporarily("usual_eegnet", EEGNet):
        prepared_root = Path(folder)
        for data in DATA:
            config = data.config
            prepare(config.dataset, prepared_root=prepared_root, data_root=data_root)
            frames = open_frames(
                config.dataset, prepared_root=prepared_root, normalize=config.normalize, leads=config.leads
            )
            rows += _rows(data, frames, seeds)
    header = ["data", "network", "method", "PyTorch", "kernels", "difference within seeds", "times as fast"]
    return (
        f"## Scores by native kernels and by PyTorch\n\n{seeds} seeds, five epochs per task; test AUC (CinC 2017, "
        f"the first five seconds of {RECORDINGS:,} recordings at 100 Hz) and test accuracy (UCI-HAR, one output per "
        "class): mean and standard deviation over seeds. Difference: mean of kernels minus PyTorch over pairs of runs "
        "with the same seed, with its 95 % interval. Times: processor time of whole runs.\n\n" + table(header, rows)
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "Using padding='same' with even kernel")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.native_scores", description=__doc__)
    parser.add_argument("data_root", type=Path, help="folder with the data sets as published")
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    print(run(arguments.data_root, seeds=arguments.seeds))
