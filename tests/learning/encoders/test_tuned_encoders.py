"""`lora_rank`: runs that train adapters of an encoder, on frames."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load
from torch import nn

from clops_sweep import ContinualRun, RunConfig
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning.models.trained_model import model_from
from clops_sweep.learning.networks.on_features import network_options
from clops_sweep.learning.networks.run_module import made, trained
from tests.learning.encoders.place import Place, config
from tests.learning.encoders.place import trained as pretrained
from tests.learning.encoders.test_stored_encoders import kept


def network_of(place: Place, of: RunConfig) -> tuple[nn.Module, np.ndarray]:
    """Return the network of a run before training, and its input frames."""
    frames = place.frames(of)
    shape = (frames.channels, frames.samples)
    module = made(of.network, NETWORKS[of.network], 0, shape, 4, network_options(of, frames)).eval()
    return module, frames.signal(slice(None)).reshape(-1, *shape)


def test_the_network_computes_with_w_and_ba_and_trains_these_and_the_head(place: Place) -> None:
    whole, signals = network_of(place, config("plain", lora_rank=3))
    x, before = torch.from_numpy(signals[:5]), pretrained(2).double()
    parameters = trained(whole)
    low = "encoder.module.{}.parametrizations.weight.0.{}".format
    adapters = [low(layer, it) for layer in ("conv", "last") for it in "ab"]
    assert set(parameters) == {*adapters, "network.1.weight", "network.1.bias"}
    with torch.no_grad():
        for name in adapters:
            parameters[name].copy_(torch.randn(parameters[name].shape))
    logits = whole.train()(x)
    logits.square().sum().backward()
    assert [name for name, it in whole.named_parameters() if it.grad is not None] == list(parameters)

    def weight(layer: str) -> torch.Tensor:
        own, (a, b) = before.get_submodule(layer).weight, (parameters[low(layer, it)].double() for it in "ab")
        return own + (b @ a / 3).view(own.shape)

    with torch.no_grad():
        hidden = before.norm(F.conv1d(x.double(), weight("conv"), before.conv.bias, 4)).relu().mean(2)
        features = F.linear(hidden, weight("last"), before.last.bias)
        head = parameters["network.1.weight"].double(), parameters["network.1.bias"].double()
        torch.testing.assert_close(logits.double(), F.linear(features, *head), rtol=1e-4, atol=1e-5)


def test_a_run_stores_adapters_and_head_and_its_model_predicts_from_signals(place: Place) -> None:
    of = config("tokens", strategy="er", lora_rank=2, network="mlp", mlp_width=5, learning_rate=0.01)
    run_id, content, result = kept(place, of)
    row = result.runs.iloc[0]
    assert (row["stores"], row["encoder_hash"]) == ("raw", place.frames(of.replace(lora_rank=0)).encoded.encoder_hash)
    assert row["parameters"] == sum(value.numel() for value in load(content).values())
    model = model_from(content, place.data().encoders.of_model)  # type: ignore[union-attr]
    assert model.facts.run_id == run_id
    rows = result.predictions[result.predictions["trained_on"] == 2]
    signals = place.frames(config(None)).signal(rows["instance"].to_numpy())
    with torch.no_grad():
        found = model(model.normalized(signals)).numpy()
    stored = rows[[name for name in rows if name.startswith("probability_")]].to_numpy()
    np.testing.assert_allclose(found, stored, rtol=0, atol=1e-5)
    inner = model.network.encoder.module
    assert torch.equal(inner.conv.parametrizations.weight.original, pretrained(1, True).conv.weight)
    assert not torch.equal(inner.conv.weight, pretrained(1, True).conv.weight)
    further = config(f"run:{run_id}", dataset="other", lora_rank=1)  # adapters on adapters
    ContinualRun(further, place.frames(further)).run()


SPACE = """
from clops_sweep import RunConfig, SearchSpace
BASE = RunConfig(dataset="small", network="linear", epochs_per_task=1, leads="all", encoder="plain")
SPACE = SearchSpace("tuned", BASE, {"lora_rank": [0, 2], "batch_size": [8, 16]}, seeds=[0])
"""
