"""WESAD: ECG and respiration of the chest belt, labelled by the study's protocol. Its pickles are not opened."""

import numpy as np

from clops_sweep import Recording, Recordings, RunConfig, SearchSpace, dataset


def seconds(text):
    minutes, _, rest = text.partition(".")  # 7.08 is 7 minutes 8 seconds, and 50.3 is 50 minutes 30 seconds
    return 60 * int(minutes) + int(f"{rest:0<2}")


def chest(path):
    counts = np.loadtxt(path, np.float32, usecols=(2, 9)).T / 2**16 - 0.5  # columns nSeq, DI, CH1 to CH8
    lines = path.with_name(f"{path.parent.name}_quest.csv").read_text().splitlines()
    order, start, end = (line.split(";")[1:] for line in lines[1:4])
    intervals = [(seconds(a), seconds(b), name) for name, a, b in zip(order, start, end, strict=False) if name]
    return Recording(counts, patient=path.parent.name, sampling_rate=700, channels=("ECG", "RESP"), units=("mV", "%"),
                     gain=(3, 100), intervals=intervals)  # fmt: skip


@dataset("wesad", files=["WESAD"])
def wesad(data_root):
    labels = {"Base": "baseline", "TSST": "stress", "Fun": "amusement", "Medi 1": "meditation", "Medi 2": "meditation"}
    return Recordings.from_folder(data_root / "WESAD", "S*/S*_respiban.txt", read=chest, classes=labels,
                                  window_seconds=10, resample_to=100)  # fmt: skip


SPACE = SearchSpace("wesad", RunConfig(dataset="wesad", network="small_cnn", epochs_per_task=5), {}, seeds=range(3))
