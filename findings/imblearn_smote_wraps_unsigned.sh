#!/usr/bin/env bash
# imbalanced-learn 0.14.2: SMOTE on unsigned samples invents values that lie between no two rows.
#
# Guess: a synthetic row lies on the line between two rows of its class, rounded to the type of the samples, so that the
#        range of each column stays as it was. fit_resample accepts integers and returns their type.
# Seen:  the difference of two rows is computed in the type of the samples. A negative one wraps: 12-bit samples in
#        uint16 between 982 and 3,104 become up to 65,535, half of all synthetic values, without a warning. SMOTE,
#        BorderlineSMOTE, SVMSMOTE and ADASYN do so, with uint8 too, and with int16 from a difference of 32,768 on.
# Means: a classifier tells the rare class by values that no recorder makes, and reaches a high score on the balanced
#        training data. Convert samples to float before.
#
# Output seen:
#   rare class: 982 to 3104
#   SMOTE: 247 to 64774, 50% differ from those of float samples
#   BorderlineSMOTE: 44 to 65535, 50% differ from those of float samples
#   SVMSMOTE: 113 to 65476, 51% differ from those of float samples
#   ADASYN: 77 to 65525, 50% differ from those of float samples
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q imbalanced-learn==0.14.2 scikit-learn==1.9.1 numpy==2.4.6
env/bin/python - <<'PYTHON'
import warnings

import numpy as np
from imblearn.over_sampling import ADASYN, SMOTE, SVMSMOTE, BorderlineSMOTE

warnings.simplefilter("error")
generator = np.random.default_rng(0)
phases = generator.uniform(0, 2 * np.pi, (60, 1))
waves = 2048 + 1000 * np.sin(np.arange(50) / 8 + phases) + generator.normal(0, 40, (60, 50))
samples = waves.round().astype(np.uint16)  # 60 windows of a 12-bit recorder
classes = np.repeat([0, 1], [50, 10])
lowest, highest = samples[classes == 1].min(), samples[classes == 1].max()
print(f"rare class: {lowest} to {highest}")
for method in (SMOTE, BorderlineSMOTE, SVMSMOTE, ADASYN):
    balanced, _ = method(random_state=0).fit_resample(samples, classes)
    right, _ = method(random_state=0).fit_resample(samples.astype(float), classes)
    synthetic, expected = balanced[60:], right[60:]
    assert balanced.dtype == np.uint16
    assert expected.min() >= lowest and expected.max() <= highest
    differ = (np.abs(synthetic - expected) > 1).mean()
    print(f"{method.__name__}: {synthetic.min()} to {synthetic.max()}, {differ:.0%} differ from those of float samples")
    assert synthetic.max() > 60_000 and differ > 0.1, "this has changed"
PYTHON
