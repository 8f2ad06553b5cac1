"""The memory of passes, beside numbers counted by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from clops_sweep.errors import UsageError
from clops_sweep.learning.networks.pass_memory import PassMemory


def test_what_a_pass_keeps_and_its_widest_result() -> None:
    network = nn.Sequential(nn.Conv1d(1, 4, 5), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 96, 3))
    found = PassMemory.of("own", network, (1, 100))
    parameters = 4 * 5 + 4 + 4 * 96 * 3 + 3
    hidden = 4 * 96
    assert found == PassMemory(network=4 * parameters, kept=4 * (100 + hidden), widest=4 * hidden)
    before = torch.get_rng_state()
    PassMemory.of("own", nn.Sequential(nn.Dropout(0.5), *network), (1, 100))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_network_that_takes_other_frames_is_named() -> None:
    with pytest.raises(UsageError, match=r"^network 'own': raises on frames \[2, 3, 100\] \(RuntimeError: "):
        PassMemory.of("own", nn.Conv1d(1, 4, 5), (3, 100))
