#!/usr/bin/env bash
# neurokit2 0.3.0: epochs_create fills integer columns with 0 outside of the signal, and no event lies at time 0.
#
# Guess: samples before the begin and after the end are NaN, as for floats, or an integer column becomes one of floats.
#        The row of the event has the time 0, and rows are 1 / sampling_rate apart.
# Seen:  columns of floats are padded with NaN, columns of integers with 0, without a warning: a stage of sleep, a
#        label or a raw sample that was never recorded. The times are spread from the start to the end, both included, over
#        one row less: at 100 Hz an epoch from -0.5 to 0.5 s has steps of 10.1 ms, and its event lies at 5.1 ms.
# Means: epochs at the ends of a recording have a class of their own or a step to 0; latencies that are read from the
#        index are wrong by up to one sample. Convert to float before, and compute times from the column Index.
#
# Output seen:
#   30 rows before the recording: ecg [0], stage [0], spo2 [nan]
#   steps of 10.1 ms, event at 5.1 ms
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q neurokit2==0.3.0 scipy==1.17.1 numpy==2.4.6
env/bin/python - <<'PYTHON'
import warnings

import neurokit2
import numpy as np
import pandas as pd

warnings.simplefilter("error", UserWarning)
table = pd.DataFrame({"ecg": np.full(1000, 2048), "stage": np.full(1000, 2), "spo2": np.full(1000, 97.5)})
epochs = neurokit2.epochs_create(table, events=[20, 500], sampling_rate=100, epochs_start=-0.5, epochs_end=0.5)
before = epochs["1"][epochs["1"].Index < 0]
print(f"{len(before)} rows before the recording: ecg {before.ecg.unique()}, stage {before.stage.unique()}", end="")
print(f", spo2 {before.spo2.unique()}")
inside = epochs["2"]
event = inside.index[inside.Index == 500][0]
steps = np.diff(inside.index)
print(f"steps of {1000 * steps.mean():.1f} ms, event at {1000 * event:.1f} ms")
assert len(before) == 30 and (before.ecg == 0).all() and (before.stage == 0).all(), "this has changed"
assert before.spo2.isna().all()
assert np.isclose(steps, 1 / 99).all() and np.isclose(event, 0.5 / 99), "this has changed"
PYTHON
