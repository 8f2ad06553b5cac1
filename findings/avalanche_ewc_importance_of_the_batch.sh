#!/usr/bin/env bash
# avalanche-lib 0.6.0: EWC squares the gradient of a batch, so the same ewc_lambda protects nothing with large batches.
#
# Guess: the importance of a weight after a task, "computed with an additional pass on the training set", is a property
#        of the network and the data: the mean of the squared gradients of the instances (the Fisher information of
#        Kirkpatrick et al., 2017), whatever train_mb_size is.
# Seen:  it is the mean of the squared gradients of batches of train_mb_size instances. In a trained network the
#        gradients of a batch cancel: at 64 instances the importance is about 1/64 of the one at 1. The documentation is
#        silent.
# Means: whoever changes the batch size changes the penalty by the same factor, and tunes ewc_lambda anew without
#        knowing why; comparisons of EWC at other batch sizes compare strengths. Scale ewc_lambda with the batch size.
#
# Output seen (a trained linear network, 1,024 instances, weights unchanged; sum of importances, and of the instances):
#   batches of 1: 3.6987 of 3.6987
#   batches of 8: 0.4689 of 3.6987
#   batches of 64: 0.0539 of 3.6987
#   batches of 256: 0.0097 of 3.6987
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q avalanche-lib==0.6.0 torch==2.12.1 torchvision==0.27.1 numpy==2.4.6
env/bin/python -W ignore - <<'PYTHON'
import copy

import torch
from avalanche.benchmarks import benchmark_from_datasets
from avalanche.benchmarks.utils import as_classification_dataset
from avalanche.training.plugins import EWCPlugin
from avalanche.training.supervised import EWC
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
values = torch.randn(1024, 10)
labels = (values[:, 0] + torch.randn(1024) > 0).long()
network = torch.nn.Linear(10, 2)
optimizer = torch.optim.LBFGS(network.parameters(), max_iter=200, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = cross_entropy(network(values), labels)
    loss.backward()
    return loss


optimizer.step(closure)
right = 0.0
for value, label in zip(values, labels, strict=True):
    network.zero_grad()
    cross_entropy(network(value[None]), label[None]).backward()
    right += sum((weight.grad**2).sum().item() for weight in network.parameters()) / 1024

dataset = torch.utils.data.TensorDataset(values, labels)
dataset.targets = labels.tolist()
task = as_classification_dataset(dataset)
benchmark = benchmark_from_datasets(train=[task], test=[task])
for size in (1, 8, 64, 256):
    model = copy.deepcopy(network)
    still = torch.optim.SGD(model.parameters(), lr=0.0)
    strategy = EWC(
        model=model,
        optimizer=still,
        criterion=torch.nn.CrossEntropyLoss(),
        ewc_lambda=1.0,
        train_mb_size=size,
        evaluator=None,
    )
    strategy.train(benchmark.train_stream[0])
    assert torch.equal(model.weight, network.weight)
    (plugin,) = (plugin for plugin in strategy.plugins if isinstance(plugin, EWCPlugin))
    (importances,) = plugin.importances.values()
    found = sum(importance.data.sum().item() for importance in importances.values())
    print(f"batches of {size}: {found:.4f} of {right:.4f}")
    assert abs(found / right * size - 1) < 0.5, "this has changed"
    assert size > 1 or abs(found / right - 1) < 1e-3
PYTHON
