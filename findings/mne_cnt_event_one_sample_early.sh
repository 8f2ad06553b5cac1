#!/usr/bin/env bash
# mne 1.13.2: events of Neuroscan CNT files lie one sample before the sample that their offset names, and the width of a
# sample is taken from the caller without a check.
#
# Guess: an event whose byte offset points at sample 100 is at 100 / 250 Hz = 0.4 s. A file of 16-bit samples that is
#        read with data_format="int32" is refused, because a length or the amplitudes no longer fit.
# Seen:  the event is at 0.396 s, sample 99; only the first sample keeps its place, at 0 s. With the wrong width, the
#        reader returns half of the samples, of volts instead of microvolts, without a warning. Files that leave the
#        number of samples in their header 0, as many do, need this argument: "auto" raises an error.
# Means: epochs are cut 4 ms early at 250 Hz, by the documented layout; a wrong guess of the width is noise.
#
# Output seen:
#   event at sample 99, in the file at 100
#   auto: RuntimeError
#   int16: 1000 samples, largest 100 microvolt, warnings []
#   int32: 500 samples, largest above a volt: True, warnings []
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q mne==1.13.2
env/bin/python - <<'PYTHON'
import struct
import warnings

import mne
import numpy as np

NAMES, RATE, SAMPLES, EVENT = ("Fz", "Cz"), 250, 1000, 100


def write(path, samples_in_header):
    """Write a file after the documented layout: microvolts are sample x sensitivity x calibration / 204.8."""
    header = bytearray(900)
    header[225:245] = b"05/10/20\0\x0017:35:31\0\0"
    struct.pack_into("<H", header, 370, len(NAMES))
    struct.pack_into("<H", header, 376, RATE)
    struct.pack_into("<i", header, 864, samples_in_header)
    electrodes = b""
    for number, name in enumerate(NAMES, 1):
        electrode = bytearray(75)
        electrode[: len(name)] = name.encode()
        struct.pack_into("<2f", electrode, 19, number, -2.0 * number)
        struct.pack_into("<f", electrode, 59, 2.048)
        struct.pack_into("<f", electrode, 71, 10.0)
        electrodes += electrode
    ramp = np.linspace(-1000, 1000, SAMPLES).round().astype("<i2")
    data = np.stack([ramp, ramp], axis=1).tobytes()
    first = len(header) + len(electrodes)
    struct.pack_into("<i", header, 886, first + len(data))
    event = struct.pack("<HBBi", 7, 0, 0, first + EVENT * len(NAMES) * 2) + bytes(11)
    with open(path, "wb") as file:
        file.write(bytes(header) + electrodes + data + struct.pack("<Bii", 2, len(event), 0) + event)


write("complete.cnt", SAMPLES)
raw = mne.io.read_raw_cnt("complete.cnt", verbose="error")
at = round(float(raw.annotations.onset[0]) * RATE)
print(f"event at sample {at}, in the file at {EVENT}")
assert at == EVENT - 1

write("unsaid.cnt", 0)
try:
    mne.io.read_raw_cnt("unsaid.cnt", verbose="error")
except RuntimeError as error:
    assert "data_format" in str(error)
    print("auto: RuntimeError")
else:
    raise SystemExit("auto read the file")
seen = {}
for width in ("int16", "int32"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        raw = mne.io.read_raw_cnt("unsaid.cnt", data_format=width, preload=True, verbose="warning")
    largest = float(np.abs(raw.get_data()).max())
    said = [str(warning.message) for warning in caught]
    shown = f"largest {largest * 1e6:.0f} microvolt" if width == "int16" else f"largest above a volt: {largest > 1}"
    print(f"{width}: {raw.n_times} samples, {shown}, warnings {said}")
    seen[width] = (raw.n_times, largest, said)
assert seen["int16"][0] == SAMPLES and abs(seen["int16"][1] - 100e-6) < 1e-9 and not seen["int16"][2]
assert seen["int32"][0] == SAMPLES // 2 and seen["int32"][1] > 1 and not seen["int32"][2]
PYTHON
