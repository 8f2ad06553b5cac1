#!/usr/bin/env bash
# baal 2.1.0: the heuristics Entropy, Margin and Certainty average logits over Monte Carlo passes, not probabilities.
#
# Guess: logits are converted to probabilities and then averaged, as BALD does: the entropy of the mean prediction. BALD
#        is this entropy minus the mean entropy, so it is never larger.
# Seen:  Entropy and Margin average the passes first and apply the softmax to the mean logits; Certainty applies none.
#        Where half of the passes are certain of one class and half of another, the larger logits win: the entropy is 0,
#        and BALD is 0.69 for the same predictions. With probabilities as input the values are right. No warning.
# Means: predict_on_dataset returns logits for most networks. Active learning by entropy then passes over the instances
#        that the passes disagree about most. Apply the softmax to each pass before.
#
# Output seen (three classes, 20 passes; logits and their softmax):
#   passes disagree: entropy 0.00 instead of 0.69, margin 1.00 instead of 0.00, certainty 15.00 instead of 0.50, BALD 0.69
#   passes agree weakly: entropy 0.67 instead of 0.67, margin 0.68 instead of 0.68, certainty 2.00 instead of 0.79, BALD 0.00
#   instance of the largest entropy: passes agree weakly instead of passes disagree
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q torch==2.13.0 torchmetrics==1.9.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 \
    structlog==22.3.0 pillow==13.0.0 matplotlib==3.11.2 tqdm==4.70.1
# Without jupyter, which the heuristics do not need.
env/bin/pip install -q --no-deps baal==2.1.0
env/bin/python -W ignore - <<'PYTHON'
import numpy as np
from baal.active.heuristics import BALD, Certainty, Entropy, Margin
from scipy.special import softmax, xlogy

PASSES = 20
disagree = np.zeros((3, PASSES))
disagree[0, : PASSES // 2] = 30
disagree[1, PASSES // 2 :] = 12
weakly = np.repeat([[2.0], [0.0], [0.0]], PASSES, axis=1)
NAMES = ("passes disagree", "passes agree weakly")
logits = np.stack([disagree, weakly])
passes = softmax(logits, axis=1)
mean = passes.mean(axis=2)
right_entropy = -xlogy(mean, mean).sum(axis=1)
ordered = np.sort(mean, axis=1)
right_margin, right_certainty = ordered[:, 2] - ordered[:, 1], ordered[:, 2]
right_bald = right_entropy + xlogy(passes, passes).sum(axis=1).mean(axis=1)

for heuristic, right in ((Entropy(), right_entropy), (Margin(), right_margin), (Certainty(), right_certainty)):
    assert np.allclose(heuristic.get_uncertainties(passes.copy()), right)
entropy = Entropy().get_uncertainties(logits.copy())
margin = Margin().get_uncertainties(logits.copy())
certainty = Certainty().get_uncertainties(logits.copy())
bald = BALD().get_uncertainties(logits.copy())
assert np.allclose(bald, right_bald)
for place, name in enumerate(NAMES):
    print(
        f"{name}: entropy {entropy[place]:.2f} instead of {right_entropy[place]:.2f}, "
        f"margin {margin[place]:.2f} instead of {right_margin[place]:.2f}, "
        f"certainty {certainty[place]:.2f} instead of {right_certainty[place]:.2f}, BALD {abs(bald[place]):.2f}"
    )
print(f"instance of the largest entropy: {NAMES[entropy.argmax()]} instead of {NAMES[right_entropy.argmax()]}")
assert entropy[0] < 0.01 and bald[0] > 0.69, "this has changed"
assert margin[0] > 0.99 and certainty[0] > 1, "this has changed"
PYTHON
