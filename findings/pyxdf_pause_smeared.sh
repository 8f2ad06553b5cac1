#!/usr/bin/env bash
# pyxdf 1.17.5: by default, a pause of up to 500 samples disappears from the time stamps.
#
# Guess: load_xdf keeps a pause longer than its threshold of 1 s; it smooths jitter of milliseconds.
# Seen:  a break needs both thresholds, 1 s and 500 samples. At 250 Hz a pause of 1.5 s is spread over the whole
#        stream: each time stamp moves, by up to 0.75 s, and the effective rate is 224.7 Hz. A pause of 0.5 s moves
#        them by 0.25 s and gives no message at all about the rate. With 2.5 s the pause is kept. At 32 Hz even 2.5 s
#        disappear.
# Means: samples and markers of other streams no longer lie side by side; pauses are found only with
#        dejitter_timestamps=False.
#
# Output seen:
#   250 Hz, pause 0.5 s: largest step 0.0042 s, time stamps moved by up to 0.250 s, effective rate 240.96 Hz
#   250 Hz, pause 1.5 s: largest step 0.0045 s, time stamps moved by up to 0.750 s, effective rate 224.72 Hz
#   250 Hz, pause 2.5 s: largest step 2.5040 s, time stamps moved by up to 0.000 s, effective rate 250.00 Hz
#   32 Hz, pause 2.5 s: largest step 0.0371 s, time stamps moved by up to 1.247 s, effective rate 26.95 Hz
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q pyxdf==1.17.5
env/bin/python - <<'PYTHON'
import struct
from pathlib import Path

import numpy as np
import pyxdf


def chunk(tag, content):
    body = struct.pack("<H", tag) + content
    return b"\x04" + struct.pack("<I", len(body)) + body


def write_stream(path, rate, times):
    """Write one float32 stream with a time stamp for each sample, as the XDF specification describes."""
    head = f"""<?xml version="1.0"?><info><name>ecg</name><type>ECG</type><channel_count>1</channel_count>
        <nominal_srate>{rate}</nominal_srate><channel_format>float32</channel_format></info>"""
    foot = f"""<?xml version="1.0"?><info><first_timestamp>{times[0]}</first_timestamp>
        <last_timestamp>{times[-1]}</last_timestamp><sample_count>{len(times)}</sample_count></info>"""
    samples = b"".join(b"\x08" + struct.pack("<df", time, number) for number, time in enumerate(times))
    stream = struct.pack("<I", 1)
    Path(path).write_bytes(
        b"XDF:"
        + chunk(1, b'<?xml version="1.0"?><info><version>1.0</version></info>')
        + chunk(2, stream + head.encode())
        + chunk(3, stream + b"\x04" + struct.pack("<I", len(times)) + samples)
        + chunk(6, stream + foot.encode())
    )


def seen(rate, pause):
    times = 100 + np.arange(20 * rate) / rate
    times[10 * rate :] += pause
    write_stream("pause.xdf", rate, times)
    ((stream,), _) = pyxdf.load_xdf("pause.xdf")
    ((plain,), _) = pyxdf.load_xdf("pause.xdf", dejitter_timestamps=False)
    assert np.array_equal(plain["time_stamps"], times)
    read = stream["time_stamps"]
    step, moved, effective = np.diff(read).max(), np.abs(read - times).max(), stream["info"]["effective_srate"]
    print(
        f"{rate} Hz, pause {pause} s: largest step {step:.4f} s, time stamps moved by up to {moved:.3f} s, "
        f"effective rate {effective:.2f} Hz"
    )
    return round(float(moved), 3)


assert [seen(250, 0.5), seen(250, 1.5), seen(250, 2.5), seen(32, 2.5)] == [0.25, 0.75, 0.0, 1.247]
PYTHON
