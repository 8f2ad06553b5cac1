"""Sessions of an Empatica E4 as downloaded, a ZIP file each, and sessions.csv: file,condition,person."""

import zipfile
from datetime import UTC, datetime

import numpy as np

from clops_sweep import Recording, Recordings, RunConfig, SearchSpace, dataset


def session(path):
    signal, starts, rates = [], [], []
    with zipfile.ZipFile(path) as file:
        for sensor in ("BVP", "EDA", "TEMP", "ACC"):
            start, rate, *samples = np.loadtxt(file.open(f"{sensor}.csv"), delimiter=",", ndmin=2)
            signal += list(np.transpose(samples))
            starts += list(start)
            rates += list(rate)
    begin = max(starts)  # of the sensor that starts last
    date = datetime.fromtimestamp(begin, UTC)
    channels = zip(signal, starts, rates, strict=True)
    signal = [samples[round((begin - start) * rate) :] for samples, start, rate in channels]
    return Recording(signal, sampling_rate=rates, channels=("BVP", "EDA", "TEMP", "x", "y", "z"),
                     units=("nW", "uS", "degC", "g", "g", "g"), gain=(1, 1, 1, 1 / 64, 1 / 64, 1 / 64),
                     time=date, start=date)  # fmt: skip


@dataset("e4", files=["e4"])
def e4(data_root):
    return Recordings.from_folder(data_root / "e4", "*.zip", read=session, table="sessions.csv", name="file",
                                  label="condition", patient="person", window_seconds=10)  # fmt: skip


SPACE = SearchSpace("e4", RunConfig(dataset="e4", network="small_cnn", epochs_per_task=5), {}, seeds=range(3))
