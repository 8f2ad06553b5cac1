"""`cardiology`: the public test set of Hannun et al., twelve rhythms in single-lead ambulatory recordings of 30 s.

Hannun et al., "Cardiologist-level arrhythmia detection and classification in ambulatory electrocardiograms using a
deep neural network", Nature Medicine 25, 2019.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.files.folder import is_file, shorten
from clops_sweep.data.files.resampling import resampled
from clops_sweep.data.frames import FRAME_LENGTH
from clops_sweep.data.published.locate import find_folder
from clops_sweep.data.reader import Index, Reader, Signals, Source, Windows
from clops_sweep.data.same_samples import samples_digest
from clops_sweep.data.splits import random_split
from clops_sweep.data.synthetic.rhythms import RHYTHMS
from clops_sweep.errors import BadInput

RATE: Final = 200.0
SAMPLES: Final = 6000
WINDOW: Final = 256
GRID: Final = 2.0**-8
"""Stored samples are multiples of 1/256 of the recorder's unit."""

_SAME: Final = {"AVB_TYPE2": "AVB", "AFL": "AFIB"}
_LEFT_OUT: Final = "SUDDEN_BRADY"


class Cardiology(Reader):
    """Non-overlapping frames of 256 samples (1.28 s), resampled to 2500, in the recorder's unit."""

    name = "cardiology"
    unit = "adu"
    classes = tuple(RHYTHMS)
    lead_names = ("ECG",)

    def find(self, data_root: Path | None) -> list[Source]:
        """All `*.ecg`, each with its `*_grp*.episodes.json`; also in folders below, and where only one of both is."""
        folder = find_folder(data_root, DATASETS[self.name].folders, self.name, ("**/*.ecg",), ("*.ecg",))
        labelled = {_signal_of(path) for path in folder.rglob("*_grp*.episodes.json")}
        return [
            Source(path.stem, (path, *sorted(path.parent.glob(f"{_escaped(path.stem)}_grp*.episodes.json"))))
            for path in sorted({*folder.rglob("*.ecg")} | labelled)
        ]

    def windows(self, source: Source) -> Windows:
        """Whole frames, each labelled by the rhythm at its first sample; those in SUDDEN_BRADY are dropped."""
        signal, *labels = source.files
        if not labels:
            raise BadInput(
                f"{shorten(signal)}: no file {source.record}_grp*.episodes.json lies beside it; "
                "download the record again"
            )
        if not is_file(signal):
            raise BadInput(
                f"{shorten(signal)}: the recording is missing, and {labels[0].name} labels it; download it again"
            )
        if len(labels) > 1:
            raise BadInput(
                f"{shorten(signal)}: {len(labels)} files {source.record}_grp*.episodes.json lie beside it; "
                "keep one of them"
            )
        samples = self._samples(signal)
        episodes = read_episodes(labels[0], samples)
        for _, name in episodes:
            if name not in (*self.classes, _LEFT_OUT):
                known = ", ".join((*self.classes, *_SAME, _LEFT_OUT))
                raise BadInput(f"{shorten(labels[0])}: rhythm {name[:60]!r} is unknown; expected one of {known}")
        begins = np.arange(0, samples - WINDOW + 1, WINDOW)
        onsets = np.array([onset for onset, _ in episodes])
        names = [episodes[i][1] for i in np.searchsorted(onsets, begins + 1, side="right") - 1]
        kept = [i for i, name in enumerate(names) if name != _LEFT_OUT]
        return Windows(
            patient=source.record.split("_")[0],
            begin=begins[kept].astype(np.int64),
            length=np.full(len(kept), WINDOW, np.int64),
            start=begins[kept] / RATE,
            leads=np.zeros(len(kept), np.int16),
            labels=np.array([self.classes.index(names[i]) for i in kept], np.int64),
            dropped=Counter({f"rhythm {_LEFT_OUT}": len(names) - len(kept)}) if len(kept) < len(names) else {},
        )

    def signals(self, source: Source, windows: Windows) -> Signals:
        """Resampled from 256 to 2500 samples by scipy.signal.resample, rounded to multiples of 1/256."""
        raw = np.fromfile(source.files[0], dtype="<i2")
        cut = np.stack([raw[begin : begin + WINDOW] for begin in windows.begin])
        ones = np.ones(len(cut), np.float32)
        return Signals(resampled(cut, FRAME_LENGTH, GRID), ones, ones * 0, recording=samples_digest(raw))

    def split(self, index: Index, seed: int) -> NDArray[np.int8]:
        """floor(.6 n), floor(.2 n), rest of the patients, shuffled by the seed."""
        return random_split.sixty_twenty_twenty(len(index.patient_names), seed)

    def _samples(self, path: Path) -> int:
        size = path.stat().st_size
        if size != 2 * SAMPLES:
            what = "no sample" if not size else f"{size:,} bytes"
            raise BadInput(
                f"{shorten(path)}: holds {what}, expected {2 * SAMPLES:,} bytes "
                f"({SAMPLES} int16 samples at {RATE:g} Hz); download the record again"
            )
        return SAMPLES


def read_episodes(path: Path, samples: int) -> list[tuple[int, str]]:
    """Onset (sample, from 1) and rhythm of the episodes of a recording, by time, that together cover all of it.

    Raises:
        BadInput: not such a file, an episode that ends before it begins or outside the recording, or episodes that
            overlap, leave out the first sample, or leave gaps of more than the sample at their border.
    """
    try:
        listed = json.loads(path.read_bytes())["episodes"]
        episodes = sorted((_whole(e["onset"]), _whole(e["offset"]), str(e["rhythm_name"])) for e in listed)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise BadInput(
            f"{shorten(path)}: not a list of episodes with onset, offset and rhythm_name; download the record again"
        ) from None
    _refuse_gaps(path, episodes, samples)
    return [(onset, _SAME.get(name, name)) for onset, _, name in episodes]


def _refuse_gaps(path: Path, episodes: Sequence[tuple[int, int, str]], samples: int) -> None:
    for onset, offset, _ in episodes:
        if onset < 0 or offset > samples:
            raise BadInput(
                f"{shorten(path)}: an episode from sample {onset} to {offset} in a recording of {samples}; "
                "correct the episodes"
            )
        if offset < onset:
            raise BadInput(
                f"{shorten(path)}: an episode from sample {onset} to {offset} ends before it begins; "
                "correct the episodes"
            )
    reached = 0
    for onset, offset, _ in [*episodes, (samples + 1, samples + 1, "")]:
        # A sample left out between two episodes has the rhythm before it; before the first one there is none.
        if onset > reached + (2 if reached else 1):
            raise BadInput(f"{shorten(path)}: no episode between samples {reached} and {onset}; correct the episodes")
        if onset < reached:
            raise BadInput(f"{shorten(path)}: episodes overlap at sample {onset}; correct the episodes")
        reached = offset


def _whole(value: Any) -> int:
    if isinstance(value, bool) or int(value) != value:
        raise TypeError(value)
    return int(value)


def _signal_of(episodes: Path) -> Path:
    return episodes.with_name(f"{episodes.name.rpartition('_grp')[0]}.ecg")


def _escaped(name: str) -> str:
    """A file name as a glob pattern that matches only itself."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)
