#!/usr/bin/env bash
# hummingbird-ml 0.4.12 and scikit-learn 1.9.1: a converted LogisticRegression of three classes has other probabilities.
#
# Guess: convert(model, "torch").predict_proba(x) agrees with model.predict_proba(x) to rounding: the softmax of the
#        scores. The documentation calls the converted model equivalent.
# Seen:  the scores pass through one sigmoid per class and are then divided by their sum. predict() agrees, so a check
#        of the predicted classes finds nothing. The converter reads multi_class, which LogisticRegression no longer has
#        in this scikit-learn; with the attribute set by hand the probabilities are right. Two classes are right. There
#        is no warning.
# Means: the deployed model is much less confident than the tested one; thresholds, calibration and log loss change.
#        Compare predict_proba, not predict, after a conversion; or set model.multi_class = "auto" before.
#
# Output seen (3000 windows):
#   3 classes: same predictions 100 %, largest difference of a probability 0.44, log loss 0.74 instead of 0.58
#   difference from normalised sigmoids of the scores 0.0000
#   with multi_class set by hand: largest difference 0.0000
#   2 classes: largest difference 0.0000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q torch==2.13.0 scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1 onnx==1.23.2 psutil==7.2.2 \
    dill==0.4.1 packaging==26.4
# Without the old onnx that they ask for, which has no wheels for new Python versions.
env/bin/pip install -q --no-deps hummingbird-ml==0.4.12 onnxconverter-common==1.16.0
env/bin/python -W ignore - <<'PYTHON'
import numpy as np
from hummingbird.ml import convert
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

generator = np.random.default_rng(0)
features = generator.normal(size=(3000, 4)).astype(np.float32)
rhythm = np.digitize(features[:, 0] + 0.5 * generator.normal(size=3000), [-0.5, 0.5])
model = LogisticRegression().fit(features, rhythm)
right = softmax(features @ model.coef_.T + model.intercept_, axis=1)
assert np.allclose(model.predict_proba(features), right, atol=1e-5)

converted = convert(model, "torch")
found = converted.predict_proba(features)
same = np.mean(converted.predict(features) == model.predict(features))
difference = np.abs(found - right).max()
print(
    f"3 classes: same predictions {same:.0%}, largest difference of a probability {difference:.2f}, "
    f"log loss {log_loss(rhythm, found):.2f} instead of {log_loss(rhythm, right):.2f}".replace("%", " %")
)
assert same == 1 and difference > 0.3, "this has changed"
sigmoids = expit(features @ model.coef_.T + model.intercept_)
normalised = sigmoids / sigmoids.sum(axis=1, keepdims=True)
print(f"difference from normalised sigmoids of the scores {np.abs(found - normalised).max():.4f}")
assert np.allclose(found, normalised, atol=1e-4), "this has changed"

model.multi_class = "auto"
difference = np.abs(convert(model, "torch").predict_proba(features) - right).max()
print(f"with multi_class set by hand: largest difference {difference:.4f}")
assert difference < 1e-4

binary = LogisticRegression().fit(features, (rhythm == 2).astype(int))
difference = np.abs(convert(binary, "torch").predict_proba(features) - binary.predict_proba(features)).max()
print(f"2 classes: largest difference {difference:.4f}")
assert difference < 1e-4
PYTHON
