#!/usr/bin/env bash
# skorch 1.4.0: after partial_fit on a second task, classes_ has the classes of that task alone, and AUROC reads others.
#
# Guess: partial_fit on classes 0 and 1, then on 2 and 3, leaves classes_ as [0, 1, 2, 3], as scikit-learn's partial_fit
#        does, or asks for classes=. The module has four outputs, and predict() returns all four.
# Seen:  classes_ is [2, 3], and predict_proba has four columns. Scorers of scikit-learn find the column of class 3 by its
#        place in classes_, which is column 1: the AUROC of class 3 against class 2 is computed with the probabilities of
#        class 1. There is no error and no warning.
# Means: scores of a continually trained network belong to outputs of another class. Pass classes=[0, 1, 2, 3] to
#        NeuralNetClassifier.
#
# Output seen:
#   classes_ [2, 3], 4 outputs, predicted [0 1 2 3]
#   AUROC of class 3 against class 2: scorer 0.272, output of class 3 1.000, of class 1 0.272
#   with classes=: [0, 1, 2, 3]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q skorch==1.4.0 torch==2.13.0 scikit-learn==1.9.1 scipy==1.17.1 numpy==2.4.6
env/bin/python - <<'PYTHON'
import warnings

import numpy as np
import torch
from sklearn.metrics import get_scorer, roc_auc_score
from skorch import NeuralNetClassifier

warnings.simplefilter("error", UserWarning)
labels = np.repeat(np.arange(4), 50)
angles = labels * np.pi / 2
noise = np.random.default_rng(0).normal(size=(200, 2))
frames = (3 * np.stack([np.cos(angles), np.sin(angles)], axis=1) + noise).astype(np.float32)
first, second = slice(0, 100), slice(100, 200)


def trained(**given):
    torch.manual_seed(0)
    network = NeuralNetClassifier(
        torch.nn.Linear,
        module__in_features=2,
        module__out_features=4,
        criterion=torch.nn.CrossEntropyLoss,
        max_epochs=20,
        lr=0.1,
        train_split=None,
        verbose=0,
        **given,
    )
    network.partial_fit(frames[first], labels[first])
    return network.partial_fit(frames[second], labels[second])


network = trained()
scored = get_scorer("roc_auc")(network, frames[second], labels[second])
outputs = network.predict_proba(frames[second])
areas = [roc_auc_score(labels[second] == 3, outputs[:, column]) for column in range(4)]
print(f"classes_ {network.classes_.tolist()}, {outputs.shape[1]} outputs, predicted {np.unique(network.predict(frames))}")
print(f"AUROC of class 3 against class 2: scorer {scored:.3f}, output of class 3 {areas[3]:.3f}, of class 1 {areas[1]:.3f}")
named = trained(classes=[0, 1, 2, 3])
print(f"with classes=: {np.asarray(named.classes_).tolist()}")
assert network.classes_.tolist() == [2, 3] and np.isclose(scored, areas[1]) and areas[3] > scored + 0.1, "this has changed"
PYTHON
