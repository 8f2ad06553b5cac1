#!/usr/bin/env bash
# torchmetrics 1.9.0: metrics with different thresholds become one metric if their first batch cannot tell them apart.
#
# Guess: MetricCollection gives for each metric what the metric gives alone. compute_groups=True, the default, shares
#        states between metrics whose arguments make the same states, as the documentation says of precision and recall.
# Seen:  it compares the numbers in the states after the first batch. Accuracy at the thresholds 0.5 and 0.7 is one
#        metric for ever if no value of the first batch lies between, and so are F1 at 0.5 and recall at 0.7: the second
#        one is computed at the threshold of the first. There is no warning. After another first batch, the same instances
#        give other scores.
# Means: scores depend on the order of batches, and a sanity check on easy instances decides what is computed. Pass
#        compute_groups=False.
#
# Output seen:
#   easy batch first: {'at 50 %': 0.625, 'at 70 %': 0.625}
#   hard batch first: {'at 50 %': 0.625, 'at 70 %': 0.875}
#   compute_groups=False: {'at 50 %': 0.625, 'at 70 %': 0.875}
#   easy batch first: {'F1 at 50 %': 0.667, 'recall at 70 %': 1.0}
#   hard batch first: {'F1 at 50 %': 0.667, 'recall at 70 %': 0.667}
#   compute_groups=False: {'F1 at 50 %': 0.667, 'recall at 70 %': 0.667}
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q torchmetrics==1.9.0 torch==2.13.0 numpy==2.4.6
env/bin/python - <<'PYTHON'
import warnings

import torch
from torchmetrics import MetricCollection
from torchmetrics.classification import BinaryAccuracy, BinaryF1Score, BinaryRecall

warnings.simplefilter("error")


def scores(metrics, batches, **given):
    collection = MetricCollection(metrics(), **given)
    for values, truth in batches:
        collection.update(torch.tensor(values), torch.tensor(truth))
    return {name: round(value.item(), 3) for name, value in collection.compute().items()}


def thresholds():
    return {"at 50 %": BinaryAccuracy(threshold=0.5), "at 70 %": BinaryAccuracy(threshold=0.7)}


def kinds():
    return {"F1 at 50 %": BinaryF1Score(threshold=0.5), "recall at 70 %": BinaryRecall(threshold=0.7)}


easy = ([0.1, 0.9, 0.2, 0.95], [0, 1, 0, 1])
hard = ([0.6, 0.6, 0.6, 0.55], [0, 0, 1, 0])
for metrics in (thresholds, kinds):
    merged = scores(metrics, [easy, hard])
    other = scores(metrics, [hard, easy])
    alone = scores(metrics, [easy, hard], compute_groups=False)
    print("easy batch first:", merged)
    print("hard batch first:", other)
    print("compute_groups=False:", alone)
    assert other == alone
    assert merged != alone and sum(merged[name] == alone[name] for name in alone) == 1, "this has changed"
PYTHON
