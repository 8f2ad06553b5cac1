"""Files as users have them: a search-space file that declares a data set, and small records for it."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.files.wfdb_records import load_wfdb
from clops_sweep.experiment.spaces.executed_file import names_in


def forget(*names: str) -> None:
    """Unregister declared data sets."""
    for name in names or tuple(DATASETS.added):
        DATASETS.forget(name)


def declare(path: Path, body: str) -> Path:
    """Write a file that declares data sets, and execute it."""
    path.write_text(
        "import numpy as np, pandas as pd\nfrom clops_sweep import Recording, Recordings, dataset\n"
        + textwrap.dedent(body)
    )
    names_in(path)
    return path


def waves(recordings: int, channels: int, samples: int, seed: int = 0) -> NDArray[np.float32]:
    """Return noisy sines, [recordings, channels, samples]; recording r has class c = r % 4, and c + 2 periods."""
    stream = np.random.default_rng(seed)
    time = np.linspace(0, 2 * np.pi, samples)
    sines = np.stack([np.sin((number % 4 + 2) * time) for number in range(recordings)])
    return (sines[:, None] + 0.3 * stream.standard_normal((recordings, channels, samples))).astype(np.float32)


def write_wfdb(
    folder: Path,
    name: str,
    signal: NDArray[Any],
    rate: float,
    channels: Sequence[str] = ("ECG",),
    unit: str = "mV",
    comments: Sequence[str] = (),
    gain: float = 1000.0,
) -> None:
    """Write a record [channels, samples] of integers in format 16."""
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of wfdb about pandas
        load_wfdb().wrsamp(
            name,
            fs=rate,
            units=[unit] * len(signal),
            sig_name=list(channels),
            d_signal=np.ascontiguousarray(signal.T.astype(np.int64)),
            fmt=["16"] * len(signal),
            adc_gain=[gain] * len(signal),
            baseline=[0] * len(signal),
            comments=list(comments),
            write_dir=str(folder),
        )


def write_notes(
    folder: Path, name: str, places: Sequence[int], notes: Sequence[str], resolution: float | None = None
) -> None:
    """Write rhythm annotations of a record to an .atr file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load_wfdb().wrann(
            name, "atr", np.array(places), symbol=["+"] * len(places), aux_note=list(notes), fs=resolution,
            write_dir=str(folder),
        )  # fmt: skip


def write_hospital(folder: Path, people: int = 16, rate: float = 300.0) -> None:
    """Write WFDB records of one lead, of 9 to 12 s, four per person, and `labels.csv`."""
    names = ("normal", "AF", "other", "noise")
    lines = ["record,rhythm,person"]
    for number in range(people * 4):
        samples = int(rate * (9 + number % 4))
        signal = 1000 * waves(number + 1, 1, samples, seed=number)[number]
        write_wfdb(folder, f"h{number:03d}", np.rint(signal), rate)
        lines.append(f"h{number:03d},{names[number % 4]},p{number // 4}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
