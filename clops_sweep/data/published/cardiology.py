"""`cardiology`: the public test set of Hannun et al., twelve rhythms in single-lead ambulatory recordings of 30 s.

Hannun et al., "Cardiologist-level arrhythmia detection and classification in ambulatory electrocardiograms using a
deep neural network", Nature Medicine 25, 2019.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from glob import escape
from pathlib import Path
from typing import Any, Final

import numpy as np

from clops_sweep.data.catalog import DATASETS, Rules
from clops_sweep.data.files.folder import is_file, shorten, visible
from clops_sweep.data.published.locate import find_folder
from clops_sweep.data.records import Common, Frames, Source
from clops_sweep.data.same_samples import samples_digest
from clops_sweep.data.sets.packaged_set import packaged
from clops_sweep.data.splits import random_split
from clops_sweep.data.synthetic.rhythms import RHYTHMS
from clops_sweep.errors import UsageError

RATE: Final = 200.0
SAMPLES: Final = 6000
_WINDOW: Final = 256
GRID: Final = 2.0**-8
"""Stored samples are multiples of 1/256 of the recorder's unit."""

_SAME: Final = {"AVB_TYPE2": "AVB", "AFL": "AFIB"}
_LEFT_OUT: Final = "SUDDEN_BRADY"


CLASSES: Final = tuple(RHYTHMS)


@packaged("cardiology", classes=CLASSES, channels=("ECG",), units="adu", rules=Rules(split=random_split.shuffled))
def cardiology(data_root: Path | None) -> list[Source]:
    """Find all `*.ecg` and `*_grp*.episodes.json`, also in subfolders; a file without its partner is a record too."""
    folder = find_folder(data_root, DATASETS["cardiology"].folders, "cardiology", ("**/*.ecg",), ("*.ecg",))
    signals = set(visible(folder.rglob("*.ecg"), folder))
    for path in visible(folder.rglob("*_grp*.episodes.json"), folder):
        name, _, _ = path.name.rpartition("_grp")
        signals.add(path.with_name(f"{name}.ecg"))
    records = list[Source]()
    for signal in sorted(signals):
        labels = sorted(signal.parent.glob(f"{escape(signal.stem)}_grp*.episodes.json"))
        records.append(CardiologyRecord((signal.stem,), (signal, *labels)))
    return records


class CardiologyRecord(Source):
    """Non-overlapping frames of 256 samples (1.28 s), resampled to 2500, in the recorder's unit."""

    def read(self, common: Common) -> Frames:
        """Read whole frames, each labelled by the rhythm at its first sample; frames in SUDDEN_BRADY are dropped.

        Frames are resampled from 256 to 2500 samples by scipy.signal.resample and rounded to multiples of 1/256.
        """
        signal, *labels = self.files
        if not labels:
            raise UsageError(
                f"{shorten(signal)}: no file {self.record}_grp*.episodes.json lies beside it; download the record again"
            )
        if not is_file(signal):
            raise UsageError(
                f"{shorten(signal)}: the recording is missing, and {labels[0].name} labels it; download it again"
            )
        if len(labels) > 1:
            raise UsageError(
                f"{shorten(signal)}: {len(labels)} files {self.record}_grp*.episodes.json lie beside it; "
                "keep one of them"
            )
        _require_size(signal)
        episodes = _read_episodes(labels[0], SAMPLES)
        for _, name in episodes:
            if name not in (*CLASSES, _LEFT_OUT):
                known = ", ".join((*CLASSES, *_SAME, _LEFT_OUT))
                raise UsageError(f"{shorten(labels[0])}: rhythm {name[:60]!r} is unknown; expected one of {known}")
        begins = np.arange(0, SAMPLES - _WINDOW + 1, _WINDOW)
        onsets = np.array([onset for onset, _ in episodes])
        episode_of = np.searchsorted(onsets, begins + 1, side="right") - 1
        names = [episodes[episode][1] for episode in episode_of]
        kept = [row for row, name in enumerate(names) if name != _LEFT_OUT]
        left_out = len(names) - len(kept)
        windows = common.offered(
            begins[kept],
            [CLASSES.index(names[row]) for row in kept],
            _WINDOW,
            RATE,
            patient=self.record.split("_")[0],
            dropped={f"rhythm {_LEFT_OUT}": left_out} if left_out else {},
        )
        raw = np.fromfile(signal, dtype="<i2")
        return Frames.resampled(windows, windows.cut(raw[None]), GRID, samples_digest(raw))


def _require_size(path: Path) -> None:
    size = path.stat().st_size
    if size != 2 * SAMPLES:
        what = "no sample" if not size else f"{size:,} bytes"
        raise UsageError(
            f"{shorten(path)}: holds {what}, expected {2 * SAMPLES:,} bytes "
            f"({SAMPLES} int16 samples at {RATE:g} Hz); download the record again"
        )


def _read_episodes(path: Path, samples: int) -> list[tuple[int, str]]:
    """Return onset (sample, from 1) and rhythm of the episodes of a recording by time; they cover all of it.

    Raises:
        UsageError: the file is invalid, an episode ends before it begins or outside the recording, or episodes overlap,
            leave out the first sample, or leave a gap of more than one sample between them.
    """
    try:
        listed = json.loads(path.read_bytes())["episodes"]
        episodes = sorted((_whole(e["onset"]), _whole(e["offset"]), str(e["rhythm_name"])) for e in listed)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise UsageError(
            f"{shorten(path)}: not a list of episodes with onset, offset and rhythm_name; download the record again"
        ) from None
    _refuse_gaps(path, episodes, samples)
    return [(onset, _SAME.get(name, name)) for onset, _, name in episodes]


def _refuse_gaps(path: Path, episodes: Sequence[tuple[int, int, str]], samples: int) -> None:
    for onset, offset, _ in episodes:
        if onset < 0 or offset > samples or offset < onset:
            what = "ends before it begins" if onset >= 0 and offset <= samples else f"in a recording of {samples}"
            raise UsageError(
                f"{shorten(path)}: an episode from sample {onset} to {offset} {what}; correct the episodes"
            )
    reached = 0
    for onset, offset, _ in [*episodes, (samples + 1, samples + 1, "")]:
        # samples between two episodes belong to the episode before them
        if onset > reached + (2 if reached else 1):
            raise UsageError(f"{shorten(path)}: no episode between samples {reached} and {onset}; correct the episodes")
        if onset < reached:
            raise UsageError(f"{shorten(path)}: episodes overlap at sample {onset}; correct the episodes")
        reached = offset


def _whole(value: Any) -> int:
    if isinstance(value, bool) or int(value) != value:
        raise TypeError(value)
    return int(value)
