#!/usr/bin/env bash
# skl2onnx 1.20.0: an imputer with add_indicator=True loses its columns, and the classifier after it uses other weights.
#
# Guess: SimpleImputer(add_indicator=True) before a LogisticRegression is exported with a column for each feature that
#        can be missing, or to_onnx refuses it, or onnxruntime refuses a model with weights for columns that it lacks.
# Seen:  to_onnx drops the option without a word: 8 columns become 4. onnxruntime runs a classifier with weights for 8
#        columns on 4, and returns probabilities. Also rows in which nothing is missing are wrong. With
#        add_indicator=False the two agree. PowerTransformer gives numbers for missing samples where scikit-learn gives
#        NaN. Only a forest after the imputer fails, in onnxruntime.
# Means: where "not measured" tells something, as in clinical tables, the deployed model is another one. Compare the
#        outputs of both on rows with missing values before deployment. Trees that learnt from missing values are
#        exported without it, too (issue 1253 of the project).
#
# Output seen (4 features; 300 rows, of which a third lacks a value):
#   add_indicator=False: columns 4 and 4, other labels 0%
#   add_indicator=True: columns 8 and 4, other labels 29%, in rows without a missing value 21%
#   PowerTransformer: NaN 134 and 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q skl2onnx==1.20.0 onnxruntime==1.32.0 scikit-learn==1.9.1 numpy==2.4.6
env/bin/python -W ignore - <<'PYTHON'
import numpy as np
import onnxruntime
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer
from skl2onnx import to_onnx

onnxruntime.set_default_logger_severity(3)
generator = np.random.default_rng(0)
table = generator.normal(size=(800, 4)).astype(np.float32)
table[generator.random(table.shape) < 0.1] = np.nan
labels = (np.isnan(table[:, 0]) | (np.nan_to_num(table[:, 1]) > 1)).astype(int)
known, new = table[:500], table[500:]
whole = ~np.isnan(new).any(axis=1)


def run(model):
    """Return the outputs of the exported model for the new rows."""
    exported = to_onnx(model, known[:1])
    session = onnxruntime.InferenceSession(exported.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"X": new})


for add in (False, True):
    imputer = SimpleImputer(add_indicator=add).fit(known)
    columns = (imputer.transform(new).shape[1], run(imputer)[0].shape[1])
    model = make_pipeline(SimpleImputer(add_indicator=add), LogisticRegression()).fit(known, labels[:500])
    other = run(model)[0] != model.predict(new)
    seen = f", in rows without a missing value {other[whole].mean():.0%}" if add else ""
    print(f"add_indicator={add}: columns {columns[0]} and {columns[1]}, other labels {other.mean():.0%}{seen}")
    if add:
        assert columns == (8, 4)
        assert other.mean() > 0.1
    else:
        assert columns == (4, 4)
        assert not other.any()

power = PowerTransformer().fit(known)
missing = (int(np.isnan(power.transform(new)).sum()), int(np.isnan(run(power)[0]).sum()))
print(f"PowerTransformer: NaN {missing[0]} and {missing[1]}")
assert missing[0] > 0
assert missing[1] == 0
PYTHON
