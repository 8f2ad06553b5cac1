#!/usr/bin/env bash
# netcal 1.4.0: TemperatureScaling.temperature is one over the temperature, and can be negative.
#
# Guess: for outputs whose logits are twice too large, the temperature of softmax(s / T), the formula of the
#        documentation, is 2. A temperature is positive.
# Seen:  .temperature is 0.5: it is the factor of the logits, not their divisor. transform() is right. For outputs that
#        rank two classes the wrong way round it is -0.5, and transform() turns their order. No warning; the maintainers
#        said so in a closed issue, the documentation does not.
# Means: a network whose temperature is reported as 0.5 looks underconfident and is overconfident; dividing logits by it
#        makes them four times too large. Take 1 / temperature.
#
# Output seen (outputs of a calibrated network with doubled logits):
#   two classes: temperature 0.50, of scipy 2.01, calibrated outputs off by at most 0.001
#   four classes: temperature 0.51, of scipy 1.98, calibrated outputs off by at most 0.004
#   two classes, labels exchanged: temperature -0.50
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q netcal==1.4.0 torch==2.13.0 scipy==1.17.1 numpy==2.4.6
MPLBACKEND=agg env/bin/python -W ignore - <<'PYTHON'
import numpy as np
from netcal.scaling import TemperatureScaling
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

assert r"\sigma(s / T)" in TemperatureScaling.__doc__
generator = np.random.default_rng(0)
for count, name in ((2, "two"), (4, "four")):
    logits = generator.normal(0, 2, (5000, count))
    calibrated = softmax(logits, axis=1)
    labels = np.array([generator.choice(count, p=row) for row in calibrated])
    overconfident = softmax(2 * logits, axis=1)
    method = TemperatureScaling()
    method.fit(overconfident, labels)

    def loss(temperature):
        return -log_softmax(np.log(overconfident) / temperature, axis=1)[np.arange(5000), labels].mean()

    right = minimize_scalar(loss, bounds=(0.1, 10), method="bounded").x
    found = method.temperature.item()
    transformed = method.transform(overconfident)
    expected = calibrated[:, 1] if transformed.ndim == 1 else calibrated
    error = np.abs(transformed - expected).max()
    print(
        f"{name} classes: temperature {found:.2f}, of scipy {right:.2f}, calibrated outputs off by at most {error:.3f}"
    )
    assert error < 0.02 and abs(right - 2) < 0.1
    assert np.isclose(found, 1 / right, rtol=0.01), "this has changed"
    if count == 2:
        exchanged = TemperatureScaling()
        exchanged.fit(overconfident, 1 - labels)
        negative = exchanged.temperature.item()
print(f"two classes, labels exchanged: temperature {negative:.2f}")
assert np.isclose(negative, -0.5, atol=0.05), "this has changed"
PYTHON
