#!/usr/bin/env bash
# pyriemann 0.12: mean_covariance(metric=..., sample_weight=...) ignores both, and gives the Riemannian mean of all.
#
# Guess: mean_covariance, deprecated since it is to be called gmean, still gives what it gave: the arithmetic mean for
#        metric="euclid", and a mean without the matrices whose weight is 0.
# Seen:  it passes metric="riemann" and sample_weight=None on, whatever it was called with. gmean is right. The only
#        signs are DeprecationWarnings about names, and the one of mean_covariance is raised inside of the library,
#        where Python does not show it.
# Means: programs that were written for earlier versions run on with another mean: windows that were weighted out, as
#        artefacts or as those of another person, count again. Replace the name by gmean.
#
# Output seen (20 covariances of 4 channels; largest error, relative to the largest value of the definition):
#   euclid: mean_covariance 0.43, gmean 0.00
#   harmonic: mean_covariance 0.75, gmean 0.00
#   riemann, the second half weighted 0: mean_covariance 2.09, gmean 0.00
#   warning: pyriemann.utils.mean is deprecated and will be removed in 0.14.0; use pyriemann.geometry.mean instead.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q pyriemann==0.12 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
cat > means.py <<'PYTHON'
import numpy as np
from pyriemann.utils.mean import gmean, mean_covariance

generator = np.random.default_rng(0)
scales = np.where(np.arange(20) < 10, 1.0, 3.0)[:, None, None]
signals = scales * generator.standard_normal((20, 4, 60))
covariances = signals @ signals.transpose(0, 2, 1) / 60
kept = np.where(np.arange(20) < 10, 1.0, 0.0)


def error(found, right):
    return np.abs(found - right).max() / np.abs(right).max()


RIGHT = {
    "euclid": covariances.mean(axis=0),
    "harmonic": np.linalg.inv(np.linalg.inv(covariances).mean(axis=0)),
}
for metric, right in RIGHT.items():
    old, new = (error(mean(covariances, metric=metric), right) for mean in (mean_covariance, gmean))
    print(f"{metric}: mean_covariance {old:.2f}, gmean {new:.2f}")
    assert new < 1e-6
    assert old > 0.01, "this has changed"
    assert np.array_equal(mean_covariance(covariances, metric=metric), gmean(covariances, metric="riemann"))
right = gmean(covariances[:10])
old, new = (error(mean(covariances, sample_weight=kept), right) for mean in (mean_covariance, gmean))
print(f"riemann, the second half weighted 0: mean_covariance {old:.2f}, gmean {new:.2f}")
assert new < 1e-6
assert old > 0.1, "this has changed"
PYTHON
env/bin/python means.py 2> warnings.txt
sed -n 's/.*DeprecationWarning:/warning:/p' warnings.txt
