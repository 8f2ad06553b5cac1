#!/usr/bin/env bash
# MAPIE 1.6.0: spiegelhalter_p_value is one-sided and finds overconfident predictions only.
#
# Guess: Spiegelhalter's z is compared with a normal distribution on both sides: |z| > 1.96 rejects calibration at 5 %.
#        The documentation speaks of the probability of the statistic under perfect calibration.
# Seen:  the p value is 1 - Phi(z), without the absolute value. Predictions that are too close to 0.5 have a very
#        negative z and a p value of 1, the best there is. The Kolmogorov-Smirnov and Kuiper tests reject both kinds.
# Means: strong regularisation, label smoothing or a temperature that is too large pass this test, and the more so the
#        worse they are. Use 2 * (1 - Phi(|z|)) of spiegelhalter_statistic.
#
# Output seen (rejections at 5 % in 500 samples of 300 predictions):
#   calibrated: spiegelhalter 6.2 %, two-sided 5.2 %, kolmogorov_smirnov 4.0 %, kuiper 4.8 %
#   overconfident: spiegelhalter 99.8 %, two-sided 99.8 %, kolmogorov_smirnov 61.4 %, kuiper 74.8 %
#   underconfident: spiegelhalter 0.0 %, two-sided 100.0 %, kolmogorov_smirnov 63.2 %, kuiper 69.6 %
#   underconfident: median p value 1.0000, median z -4.5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q mapie==1.6.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
env/bin/python -W ignore - <<'PYTHON'
import numpy as np
from mapie.metrics import calibration
from scipy.special import expit, logit
from scipy.stats import norm

generator = np.random.default_rng(0)
TESTS = ("spiegelhalter", "kolmogorov_smirnov", "kuiper")
found = {}
for name, factor in (("calibrated", 1), ("overconfident", 0.5), ("underconfident", 2)):
    p_values, statistics = [], []
    for _ in range(500):
        predicted = generator.uniform(size=300)
        true = expit(factor * logit(predicted))
        labels = (generator.uniform(size=300) < true).astype(int)
        p_values.append([getattr(calibration, f"{test}_p_value")(labels, predicted) for test in TESTS])
        numerator = np.sum((labels - predicted) * (1 - 2 * predicted))
        statistics.append(numerator / np.sqrt(np.sum((1 - 2 * predicted) ** 2 * predicted * (1 - predicted))))
        assert np.isclose(calibration.spiegelhalter_statistic(labels, predicted), statistics[-1])
    p_values, statistics = np.array(p_values), np.array(statistics)
    assert np.allclose(p_values[:, 0], norm.sf(statistics)), "this has changed"
    one_sided, smirnov, kuiper = 100 * np.mean(p_values < 0.05, axis=0)
    two_sided = 100 * np.mean(2 * norm.sf(np.abs(statistics)) < 0.05)
    print(
        f"{name}: spiegelhalter {one_sided:.1f} %, two-sided {two_sided:.1f} %, "
        f"kolmogorov_smirnov {smirnov:.1f} %, kuiper {kuiper:.1f} %"
    )
    found[name] = (one_sided, two_sided, smirnov)
print(f"{name}: median p value {np.median(p_values[:, 0]):.4f}, median z {np.median(statistics):.1f}")
assert max(found["calibrated"]) < 10
assert found["overconfident"][0] > 95 and found["overconfident"][1] > 95
assert found["underconfident"][1] > 95 and found["underconfident"][2] > 30
assert found["underconfident"][0] == 0, "this has changed"
PYTHON
