#!/usr/bin/env bash
# torchmetrics 1.9.0: a class without instances counts as an AUROC of 0 in the mean, and is left out of other means.
#
# Guess: the macro mean of MulticlassAUROC leaves out a class that no instance has, since its AUROC is undefined, or is
#        NaN. MulticlassAveragePrecision does the former.
# Seen:  the class counts as 0, so a perfect network of four classes has 0.75. With two classes absent, it has 0.5.
#        MultilabelAUROC counts a label without positives as 0, too. A warning says that the "true positive value should
#        be meaningless", without the class.
# Means: tasks of class-incremental learning have classes that are absent, and an early task scores lower the more
#        classes come later; a person without the rare class lowers a mean over people. Take average="none" and leave
#        them out.
#
# Output seen (perfect outputs of four classes):
#   0 classes absent: AUROC 1.00, average precision 1.00
#   1 classes absent: AUROC 0.75, average precision 1.00
#   2 classes absent: AUROC 0.50, average precision 1.00
#   one label of three without positives: AUROC 0.67, average precision 0.67
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q torchmetrics==1.9.0 torch==2.13.0 numpy==2.4.6
env/bin/python -W ignore - <<'PYTHON'
import torch
from torchmetrics.classification import (
    MulticlassAUROC,
    MulticlassAveragePrecision,
    MultilabelAUROC,
    MultilabelAveragePrecision,
)


def score(metric, values, truth):
    return metric(values, truth).item()


for absent in range(3):
    truth = torch.arange(200) % (4 - absent)
    perfect = 0.05 + 0.8 * torch.nn.functional.one_hot(truth, 4)
    area, precision = MulticlassAUROC(4), MulticlassAveragePrecision(4)
    area, precision = score(area, perfect, truth), score(precision, perfect, truth)
    print(f"{absent} classes absent: AUROC {area:.2f}, average precision {precision:.2f}")
    assert round(precision, 6) == 1
    assert round(area, 6) == 1 - absent / 4, "this has changed"
labels = (torch.arange(200)[:, None] % torch.tensor([2, 3, 5]) == 0).long()
labels[:, 2] = 0
perfect = 0.05 + 0.8 * labels
area = score(MultilabelAUROC(3), perfect, labels)
precision = score(MultilabelAveragePrecision(3), perfect, labels)
print(f"one label of three without positives: AUROC {area:.2f}, average precision {precision:.2f}")
assert round(area, 3) == 0.667, "this has changed"
PYTHON
