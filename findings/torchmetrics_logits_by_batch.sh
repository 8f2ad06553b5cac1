#!/usr/bin/env bash
# torchmetrics 1.9.0: whether values are logits is decided anew in each batch, so AUROC and accuracy depend on its size.
#
# Guess: update() with logits in batches gives what one update() with all of them gives; the documentation says that
#        values outside of [0, 1] mark logits, which get a sigmoid or softmax.
# Seen:  a batch whose logits all lie between 0 and 1 is taken for probabilities and stored as it is, beside batches that
#        got a sigmoid: 0.3 stays 0.3 there and becomes 0.57 elsewhere. There is no warning. In batches of one, a third of
#        the values is of the other kind.
# Means: the score of a stream, of batches of one person, or of a small last batch is another one than that of the same
#        outputs at once; a threshold of 0.5 counts other positives. Pass probabilities.
#
# Output seen:
#   batches of 2000: AUROC 0.768, average precision 0.591, accuracy 0.614
#   batches of 4: AUROC 0.767, average precision 0.591, accuracy 0.618
#   batches of 1: AUROC 0.726, average precision 0.530, accuracy 0.705
#   batches of 1, probabilities: AUROC 0.768, average precision 0.591, accuracy 0.614
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q torchmetrics==1.9.0 torch==2.13.0 numpy==2.4.6
env/bin/python - <<'PYTHON'
import warnings

import torch
from torchmetrics.classification import BinaryAccuracy, BinaryAUROC, BinaryAveragePrecision

warnings.simplefilter("error")
torch.manual_seed(0)
positive = (torch.rand(2000) < 0.3).long()
logits = torch.randn(2000) + positive
assert logits.min() < 0 < 1 < logits.max()


def scores(values, size):
    metrics = [BinaryAUROC(), BinaryAveragePrecision(), BinaryAccuracy()]
    for metric in metrics:
        for batch, truth in zip(values.split(size), positive.split(size), strict=True):
            metric.update(batch, truth)
    return [round(metric.compute().item(), 3) for metric in metrics]


at_once = scores(logits, 2000)
one = scores(logits, 1)
one_sigmoid = scores(logits.sigmoid(), 1)
for name, found in (
    ("2000", at_once),
    ("4", scores(logits, 4)),
    ("1", one),
    ("1, probabilities", one_sigmoid),
):
    print(f"batches of {name}: AUROC {found[0]:.3f}, average precision {found[1]:.3f}, accuracy {found[2]:.3f}")
assert one_sigmoid == at_once
assert one[0] < at_once[0] - 0.03 and one[1] < at_once[1] - 0.05 and one[2] > at_once[2] + 0.08, "this has changed"
PYTHON
