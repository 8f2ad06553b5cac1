#!/usr/bin/env bash
# baal 2.1.0: the batch that BatchBALD selects does not have the most informative instance, which it selects first.
#
# Guess: BatchBALD(n).get_ranks(predictions) has the n selected instances first. A batch of one is the instance of the
#        largest BALD score (Kirsch et al., 2019).
# Seen:  it selects one instance too many, n + 1. Their scores are the information of the batch so far, which grows, so
#        the instance that was selected first has the lowest score and rank n + 1. The documentation says that the order
#        may differ from that of the selection, but not that one is missing.
# Means: an active learning loop that labels the first n never labels the best instance of a round. Ask for one less and
#        take n: BatchBALD(n - 1), ranks[:n].
#
# Output seen (40 instances, 3 classes, 30 passes; information of pairs without sampling):
#   batch of 1: BatchBALD [29], largest BALD score [30]; BALD 0.66 instead of 0.70
#   batch of 2: BatchBALD [7, 29], greedy [29, 30]; information 1.27 instead of 1.36
#   rank of instance 30 with 1, 2 and 5 instances: 2, 3 and 6
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
import torch
from baal.active.heuristics import BatchBALD
from scipy.special import xlogy

passes = np.random.default_rng(0).dirichlet([0.3] * 3, size=(40, 30)).transpose(0, 2, 1)


def information(chosen):
    """Return the information of one or two instances: entropy of the mean minus mean of the entropies."""
    if len(chosen) == 1:
        joint = passes[chosen[0]]
    else:
        joint = np.einsum("ak,bk->abk", *passes[chosen]).reshape(9, -1)
    mean = joint.mean(axis=1)
    return -xlogy(mean, mean).sum() + xlogy(joint, joint).sum(axis=0).mean()


def ranks(count):
    torch.manual_seed(0)
    return BatchBALD(count).get_ranks(passes.copy())[0].tolist()


numbers = range(len(passes))
best = max(numbers, key=lambda number: information([number]))
others = [number for number in numbers if number != best]
second = max(others, key=lambda number: information([best, number]))
one, two = ranks(1)[:1], sorted(ranks(2)[:2])
found, right = information(one), information([best])
print(f"batch of 1: BatchBALD {one}, largest BALD score [{best}]; BALD {found:.2f} instead of {right:.2f}")
assert one != [best] and found < right, "this has changed"
found, right = information(two), information([best, second])
print(f"batch of 2: BatchBALD {two}, greedy {sorted([best, second])}; information {found:.2f} instead of {right:.2f}")
assert best not in two and found < right, "this has changed"
places = [ranks(count).index(best) + 1 for count in (1, 2, 5)]
print(f"rank of instance {best} with 1, 2 and 5 instances: {places[0]}, {places[1]} and {places[2]}")
assert places == [2, 3, 6], "this has changed"
PYTHON
