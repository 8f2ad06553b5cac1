#!/usr/bin/env bash
# tsfel 0.2.0: the ten "ECDF" features are 1/n, 2/n, ..., 10/n of the number of samples, and nothing else.
#
# Guess: "Computes the values of ECDF along the time axis": the share of samples below ten values, so it tells a spike
#        from noise.
# Seen:  the values of the empirical distribution function at the ten smallest samples are 1/n to 10/n for any signal of
#        n samples: noise, an ECG, a flat lead. The default set has all ten of them. There is no warning.
# Means: ten constant columns if all windows are equally long. If they are not, ten columns that hold the length of the
#        window, from which a classifier learns what the length tells: a patient, or a class that was cut shorter. Leave
#        "ECDF" out.
#
# Output seen (the ten features times the number of samples):
#   500 samples of noise: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
#   500 samples of a flat lead: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
#   800 samples of spikes: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
#   recordings of noise of 500 or 520 samples, told apart by ECDF_0: 100 %
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q tsfel==0.2.0 numpy==2.4.6 scipy==1.17.1 pandas==3.0.3
env/bin/python - <<'PYTHON'
import numpy as np
import tsfel

statistical = tsfel.get_features_by_domain("statistical")["statistical"]
assert "ECDF" in statistical
SET = {"statistical": {"ECDF": statistical["ECDF"]}}
generator = np.random.default_rng(0)


def features(signal):
    table = tsfel.time_series_features_extractor(SET, signal, fs=250, verbose=0)
    return [table[f"0_ECDF_{number}"][0] for number in range(10)]


SIGNALS = {
    "500 samples of noise": generator.standard_normal(500),
    "500 samples of a flat lead": np.zeros(500),
    "800 samples of spikes": np.where(np.arange(800) % 200 == 0, 1.0, 0.0),
}
for name, signal in SIGNALS.items():
    found = np.multiply(features(signal), len(signal))
    print(f"{name}: {[round(float(value)) for value in found]}")
    assert np.allclose(found, np.arange(1, 11)), "this has changed"
right = 0
for number in range(40):
    length = 500 if number % 2 else 520
    right += (features(generator.standard_normal(length))[0] > 1 / 510) == (length == 500)
print(f"recordings of noise of 500 or 520 samples, told apart by ECDF_0: {right / 40:.0%}".replace("%", " %"))
assert right == 40, "this has changed"
PYTHON
