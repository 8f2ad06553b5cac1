#!/usr/bin/env bash
# braindecode 1.8.1: resampling after windows were cut keeps their sample numbers, so labels lie on other seconds.
#
# Guess: preprocess(windows, [Preprocessor("resample", sfreq=125)]) gives windows of the same seconds with half as many
#        samples, as it does for windows of MNE epochs, or refuses.
# Seen:  by default create_windows_from_events keeps a recording and the sample numbers of its windows. The recording is
#        resampled, the numbers stay. From 250 to 125 Hz each window starts at twice its time and is twice as long:
#        the one with the label of 5 to 7 s has 10 to 14 s. The last is cut short. There is a warning about
#        apply_on_array, none about times. With use_mne_epochs=True, seconds and labels stay together.
# Means: a network learns labels of other seconds, with windows of the shape that it expects. Resample before cutting.
#
# Output seen:
#   250 Hz: "left" 1.0 to 3.0 s, "right" 5.0 to 7.0 s, "left" 9.0 to 11.0 s
#   resampled to 125 Hz: "left" 2.0 to 6.0 s, "right" 10.0 to 14.0 s, "left" 18.0 to 20.0 s
#   resampled to 125 Hz, use_mne_epochs=True: "left" 1.0 to 3.0 s, "right" 5.0 to 7.0 s, "left" 9.0 to 11.0 s
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q braindecode==1.8.1 mne==1.13.2 torch==2.11.0 torchaudio==2.11.0 numpy==2.4.6
cat > look.py <<'PYTHON'
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import mne
    import numpy as np
    from braindecode.datasets import BaseConcatDataset, RawDataset
    from braindecode.preprocessing import Preprocessor, create_windows_from_events, preprocess

mne.set_log_level("ERROR")
CLASSES = {"left": 0, "right": 1}


def windows(**options):
    """Return windows of 2 s of a recording whose samples are its time in seconds."""
    times = np.arange(20 * 250) / 250
    raw = mne.io.RawArray(np.tile(times, (2, 1)), mne.create_info(["C3", "C4"], 250, "eeg"))
    raw.set_annotations(mne.Annotations([1, 5, 9], 2, ["left", "right", "left"]))
    recordings = BaseConcatDataset([RawDataset(raw, description={"subject": 1})])
    return create_windows_from_events(recordings, mapping=CLASSES, preload=True, **options)


def shown(name, found, rate):
    """Print the seconds of each window, from the mean of its times without the edges, which a filter bends."""
    lines, spans = [], []
    for values, target, _ in found:
        edge = values.shape[1] // 10
        middle, length = float(values[0, edge:-edge].mean()), values.shape[1] / rate
        spans.append((round(middle - length / 2, 1), round(middle + length / 2, 1)))
        label = {number: text for text, number in CLASSES.items()}[target]
        lines.append(f'"{label}" {spans[-1][0]} to {spans[-1][1]} s')
    print(f"{name}: {', '.join(lines)}")
    return spans


before = shown("250 Hz", windows(), 250)
halved, epochs = windows(), windows(use_mne_epochs=True)
with warnings.catch_warnings(record=True) as raised:
    warnings.simplefilter("always")
    preprocess(halved, [Preprocessor("resample", sfreq=125)])
    preprocess(epochs, [Preprocessor("resample", sfreq=125)])
after = shown("resampled to 125 Hz", halved, 125)
kept = shown("resampled to 125 Hz, use_mne_epochs=True", epochs, 125)
assert not [warning for warning in raised if "window" in str(warning.message) or "time" in str(warning.message)]
assert before == kept == [(1, 3), (5, 7), (9, 11)]
assert after == [(2, 6), (10, 14), (18, 20)], "this has changed"
PYTHON
env/bin/python look.py
