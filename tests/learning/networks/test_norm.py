"""`norm`: the replacement of batch norm layers."""

from __future__ import annotations

import torch
from torch import nn

from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning.networks.run_module import made


def network_with(norm: str) -> nn.Module:
    return made("clops_cnn", NETWORKS["clops_cnn"], 0, (1, 2500), 1, {} if norm == "batch" else {"norm": norm})


def test_layer_norm_is_over_the_channels_and_samples_of_an_instance() -> None:
    layer = network_with("layer").norm1
    x = torch.randn(3, 4, 20, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(layer(x), nn.functional.layer_norm(x, (4, 20)))


def test_group_norm_has_at_most_eight_groups_of_two_channels_or_more() -> None:
    layers = [network_with("group").get_submodule(f"norm{block}") for block in (1, 2, 3)]
    assert [(layer.num_groups, layer.num_channels) for layer in layers] == [(2, 4), (8, 16), (8, 32)]


def test_none_removes_the_layers_and_other_weights_stay() -> None:
    plain, without = network_with("batch").state_dict(), network_with("none").state_dict()
    assert set(without) == {name for name in plain if not name.startswith("norm")}
    assert all(torch.equal(without[name], plain[name]) for name in without)


def test_an_instance_does_not_depend_on_its_batch_in_training() -> None:
    module = network_with("layer").train()
    module.dropout.p = 0.0
    x = torch.randn(4, 1, 2500, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(module(x)[:2], module(x[:2]))
