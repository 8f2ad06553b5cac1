#!/usr/bin/env bash
# frouros 0.9.0: KuiperTest computes the statistic of the Kolmogorov-Smirnov test, and the p value as if it were Kuiper's.
#
# Guess: the statistic is V = D+ + D-, the sum of the largest differences of both signs (Kuiper, 1960), so the test finds
#        a change of the spread better than the Kolmogorov-Smirnov test does, and errs in 5 % of pairs without drift.
# Seen:  the statistic is the larger of the two differences. Kuiper's distribution expects a larger number, so the p value
#        is too large: at 0.05 the test never rejects without drift, and misses most changes of the spread.
# Means: "no drift" of this detector says little, and less than KSTest says. Take V, or KSTest.
#
# Output seen (300 pairs of 200 normal values; share with p < 0.05):
#   no drift: KuiperTest 0%, Kuiper by hand 6%, Kolmogorov-Smirnov 4%
#   spread times 1.3: KuiperTest 3%, Kuiper by hand 66%, Kolmogorov-Smirnov 18%
#   spread times 1.5: KuiperTest 16%, Kuiper by hand 97%, Kolmogorov-Smirnov 56%
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q frouros==0.9.0 numpy==2.1.3 scipy==1.14.1
env/bin/python - <<'PYTHON'
import numpy as np
from frouros.detectors.data_drift import KuiperTest
from scipy.stats import ks_2samp

COUNT = 200
generator = np.random.default_rng(0)


def kuiper(first, second):
    """Return V and its asymptotic p value (Stephens, 1970)."""
    values = np.sort(np.concatenate([first, second]))
    one = np.searchsorted(np.sort(first), values, side="right") / len(first)
    two = np.searchsorted(np.sort(second), values, side="right") / len(second)
    statistic = np.max(one - two) + np.max(two - one)
    root = np.sqrt(len(first) * len(second) / (len(first) + len(second)))
    scaled = (root + 0.155 + 0.24 / root) * statistic
    squares = (np.arange(1, 101) * scaled) ** 2
    return statistic, np.sum(2 * (4 * squares - 1) * np.exp(-2 * squares))


shares = {}
for name, spread in (("no drift", 1.0), ("spread times 1.3", 1.3), ("spread times 1.5", 1.5)):
    rejected = []
    for _ in range(300):
        first, second = generator.normal(size=COUNT), generator.normal(0, spread, size=COUNT)
        detector = KuiperTest()
        detector.fit(X=first)
        found = detector.compare(X=second)[0]
        other = ks_2samp(first, second)
        assert found.statistic == other.statistic, "this has changed"
        p_values = (found.p_value, kuiper(first, second)[1], other.pvalue)
        rejected.append(np.array(p_values) < 0.05)
    found, right, other = np.mean(rejected, axis=0)
    print(f"{name}: KuiperTest {found:.0%}, Kuiper by hand {right:.0%}, Kolmogorov-Smirnov {other:.0%}")
    shares[name] = found, right, other
assert shares["no drift"][0] < 0.01, "this has changed"
assert 0.01 < shares["no drift"][1] < 0.09
found, right, other = shares["spread times 1.3"]
assert found < other < right, "this has changed"
PYTHON
