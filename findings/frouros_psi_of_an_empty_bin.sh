#!/usr/bin/env bash
# frouros 0.9.0: one empty bin makes the population stability index (PSI) as large as that of a strong drift.
#
# Guess: two samples of 1,000 from one distribution have a PSI of about 0.02, below the common limits of 0.1 (some drift)
#        and 0.25 (strong drift).
# Seen:  an empty bin gets the smallest positive float, 2e-308, as its share. If 2 of 1,000 instances of the other sample
#        lie in the bin, it adds 0.002 * 702 = 1.4 to the index. The ten bins are equally wide between the extremes of
#        both samples, so the outermost bins are often empty. There is no warning.
# Means: the detector reports the extremes of the larger sample. One of three pairs without drift exceeds 0.25, and
#        some exceed the index of a shift of half a standard deviation. Compute the index with a floor of, say, 0.0001.
#
# Output seen (300 pairs of 1,000 normal values; the index with shares of at least 0.0001 in brackets):
#   no drift: median 0.02 (0.02), largest 4.25 (0.06), above 0.25: 33% (0%)
#   shift of 0.5: median 1.64 (0.26), largest 18.61 (0.43), above 0.25: 82% (64%)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q frouros==0.9.0 numpy==2.1.3 scipy==1.14.1
env/bin/python - <<'PYTHON'
import warnings

import numpy as np
from frouros.detectors.data_drift import PSI

warnings.simplefilter("error", RuntimeWarning)
generator = np.random.default_rng(0)


def with_floor(first, second):
    edges = np.histogram_bin_edges(np.concatenate([first, second]), bins=10)
    one = np.maximum(np.histogram(first, edges)[0] / len(first), 1e-4)
    two = np.maximum(np.histogram(second, edges)[0] / len(second), 1e-4)
    return np.sum((two - one) * np.log(two / one))


shares = {}
for name, shift in (("no drift", 0.0), ("shift of 0.5", 0.5)):
    found = []
    right = []
    for _ in range(300):
        first, second = generator.normal(size=1000), generator.normal(shift, size=1000)
        detector = PSI()
        detector.fit(X=first)
        found.append(detector.compare(X=second)[0].distance)
        right.append(with_floor(first, second))
    found, right = np.array(found), np.array(right)
    print(
        f"{name}: median {np.median(found):.2f} ({np.median(right):.2f}), "
        f"largest {found.max():.2f} ({right.max():.2f}), "
        f"above 0.25: {np.mean(found > 0.25):.0%} ({np.mean(right > 0.25):.0%})"
    )
    shares[name] = np.mean(found > 0.25), np.mean(right > 0.25)
assert shares["no drift"][0] > 0.2, "this has changed"
assert shares["no drift"][1] == 0
PYTHON
