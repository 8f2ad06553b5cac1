#!/usr/bin/env bash
# pyedflib 0.1.42: compare_edf, "True if signals are equal, else raises error", accepts signals that differ.
#
# Guess: it raises if a sample of a signal differs; the documentation leaves out the header and annotations only.
# Seen:  it compares absolute values, so a reversed lead is equal. 1 % of the samples of each signal may differ. It
#        converts all signals of both files to physical values with the ranges of the last signal of the first file, so a
#        gain that is 1,000 times as large is equal. It ignores signals that only one of the files has.
# Means: it does not notice swapped electrodes, lost pieces, wrong gains and lost leads. anonymize_edf(verify=True) trusts
#        it. Compare the results of read_edf with np.array_equal.
#
# Output seen (two leads of 10 s at 1,000 Hz, and a changed copy):
#   the first lead reversed: equal; samples that differ: 10,000
#   the gain of the first lead times 1,000: equal; samples that differ: 10,000
#   90 samples of the first lead lost: equal; samples that differ: 90
#   the second lead removed: equal; signals: 1 instead of 2
#   200 samples of the first lead lost: AssertionError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q pyedflib==0.1.42 numpy==2.4.6
env/bin/python -W ignore - <<'PYTHON'
import numpy as np
from pyedflib import highlevel

COUNT = 10_000
generator = np.random.default_rng(0)
magnitudes = generator.integers(100, 2000, (2, COUNT))
signals = (magnitudes * generator.choice([-1, 1], (2, COUNT))).astype(np.int32)


def write(name, signals, largest=5):
    headers = []
    for label, limit in zip(("I", "II")[: len(signals)], (largest, 5), strict=False):
        header = highlevel.make_signal_header(
            label,
            dimension="mV",
            sample_frequency=1000,
            physical_min=-limit,
            physical_max=limit,
            digital_min=-2048,
            digital_max=2047,
        )
        headers.append(header)
    highlevel.write_edf(name, signals, headers, digital=True)
    return highlevel.read_edf(name)[0]


def lose(count):
    changed = signals.copy()
    changed[0, generator.permutation(COUNT)[:count]] = 0
    return changed


before = write("before.edf", signals)
reversed_lead = np.stack([-signals[0], signals[1]])
COPIES = {
    "the first lead reversed": {"signals": reversed_lead},
    "the gain of the first lead times 1,000": {"signals": signals, "largest": 5000},
    "90 samples of the first lead lost": {"signals": lose(90)},
    "the second lead removed": {"signals": signals[:1]},
}
for text, options in COPIES.items():
    after = write("after.edf", **options)
    result = highlevel.compare_edf("before.edf", "after.edf")
    assert result is True, "this has changed"
    if len(after) == len(before):
        different = np.sum(after != before)
        print(f"{text}: equal; samples that differ: {different:,}")
        assert different >= 90
    else:
        print(f"{text}: equal; signals: {len(after)} instead of {len(before)}")
write("after.edf", lose(200))
message = "equal"
try:
    highlevel.compare_edf("before.edf", "after.edf")
except AssertionError as error:
    message = type(error).__name__
print(f"200 samples of the first lead lost: {message}")
assert message == "AssertionError"
PYTHON
