"""Low-rank adapters: weights as in the formula, and nothing else is trained."""

from __future__ import annotations

import copy

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from clops_sweep import ContinualRun, lora, network
from clops_sweep.learning.models.trained_model import model_from
from clops_sweep.testing import tiny_config, tiny_frames


def pretrained() -> nn.Sequential:
    torch.manual_seed(3)
    convolutions = [
        nn.Conv1d(1, 8, 25, 10),
        nn.BatchNorm1d(8),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Conv1d(8, 8, 5, groups=2),
    ]
    return nn.Sequential(*convolutions, nn.AdaptiveAvgPool1d(2), nn.Flatten(), nn.Linear(16, 6))


@network("lora_of_test")
def lora_of_test(channels: int, samples: int, outputs: int) -> nn.Module:
    with torch.random.fork_rng():
        module = pretrained()
    return nn.Sequential(lora(module, 2), nn.Linear(6, outputs))


def test_it_begins_as_the_module_and_changes_weights_by_the_formula() -> None:
    before = pretrained().eval()
    adapted = lora(copy.deepcopy(before), 2)
    x = torch.randn(3, 1, 300)
    assert torch.equal(adapted.train()(x), before(x))
    trained = {name: it for name, it in adapted.named_parameters() if it.requires_grad}
    assert len(trained) == 6  # A and B of three layers
    with torch.no_grad():
        for parameter in trained.values():
            parameter.copy_(torch.randn(parameter.shape))
    layers = adapted.module
    weights = []
    for place in (0, 4, 7):
        low = layers[place].parametrizations.weight[0]
        change = low.b.double() @ low.a.double() / 2
        weights.append(before[place].weight.double() + change.view(before[place].weight.shape))
    with torch.no_grad():
        hidden = F.conv1d(x.double(), weights[0], before[0].bias.double(), 10)
        hidden = F.conv1d(before[1].double()(hidden).relu(), weights[1], before[4].bias.double(), groups=2)
        pooled = F.adaptive_avg_pool1d(hidden, 2).flatten(1)
        expected = F.linear(pooled, weights[2], before[7].bias.double())
        np.testing.assert_allclose(adapted(x).numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


def test_a_run_trains_adapters_and_head_alone() -> None:
    config, frames = (
        tiny_config("class_il", network="lora_of_test", epochs_per_task=2, learning_rate=0.01),
        tiny_frames("class_il"),
    )
    result = ContinualRun(config, frames, keep_models="last", keep_predictions=True).run()
    of_adapters = 2 * (25 + 8) + 2 * (20 + 8) + 2 * (16 + 6)
    assert result.runs["parameters"].item() == of_adapters + 6 + 1
    content = result.models[3]
    model, before = model_from(content), pretrained()
    after = model.network[0].module
    for place in (0, 4, 7):
        low = after[place].parametrizations.weight
        assert torch.equal(low.original, before[place].weight)
        assert low[0].b.abs().max() > 0
    assert torch.equal(after[1].running_mean, before[1].running_mean)
    rows = result.predictions[result.predictions["trained_on"] == 3]
    x = torch.from_numpy(frames.signal(rows["instance"].to_numpy()))[:, None]
    with torch.no_grad():
        np.testing.assert_allclose(model(x).numpy()[:, 0], rows["probability_0"], rtol=0, atol=1e-5)
