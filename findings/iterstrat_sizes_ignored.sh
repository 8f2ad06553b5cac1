#!/usr/bin/env bash
# iterative-stratification 0.1.9: a shuffle split with two sizes takes all samples, and keeps only their ratio.
#
# Guess: MultilabelStratifiedShuffleSplit(train_size=100, test_size=200) gives 100 and 200 of 1,000 samples, plus or
#        minus a few for the sake of the labels, as the splits of scikit-learn do, whose parameters it documents.
# Seen:  it gives 333 and 667 samples. The sizes are made to add up to 1, so that no sample is left over: 0.3 and 0.3
#        give two halves. There is no warning. With one of the two sizes alone, it is right.
# Means: a curve over the size of the training set has other sizes than its axis says, and test sets of another size at
#        each point; data that were to be kept aside are used. Give one size, and split twice.
#
# Output seen:
#   train_size=100, test_size=200: 333 and 667 samples, scikit-learn 100 and 200
#   train_size=0.3, test_size=0.3: 500 and 500 samples, scikit-learn 300 and 300
#   train_size=0.05, test_size=0.2: 200 and 800 samples, scikit-learn 50 and 200
#   train_size=None, test_size=0.2: 800 and 200 samples, scikit-learn 800 and 200
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q iterative-stratification==0.1.9 scikit-learn==1.9.1 scipy==1.17.1 numpy==2.4.6
env/bin/python - <<'PYTHON'
import warnings

import numpy as np
from iterstrat.ml_stratifiers import MultilabelStratifiedShuffleSplit
from sklearn.model_selection import ShuffleSplit

warnings.simplefilter("error")
labels = (np.random.default_rng(0).random((1000, 5)) < [0.5, 0.1, 0.03, 0.2, 0.02]).astype(int)


def sizes(kind, train, test):
    (first, second), = kind(n_splits=1, train_size=train, test_size=test, random_state=0).split(labels, labels)
    return len(first), len(second)


def near(found, expected):
    return bool(np.all(np.abs(np.subtract(found, expected)) <= 3))


for train, test in ((100, 200), (0.3, 0.3), (0.05, 0.2), (None, 0.2)):
    found, expected = sizes(MultilabelStratifiedShuffleSplit, train, test), sizes(ShuffleSplit, train, test)
    print(
        f"train_size={train}, test_size={test}: {found[0]} and {found[1]} samples, "
        f"scikit-learn {expected[0]} and {expected[1]}"
    )
    if train is None:
        assert near(found, expected)
    else:
        share = expected[0] / sum(expected)
        assert sum(found) == 1000 and near(found, (1000 * share, 1000 * (1 - share))), "this has changed"
PYTHON
