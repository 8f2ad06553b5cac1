"""A small data set of two channels, and encoders for it with real weights, in files as users have them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from clops_sweep import FrameSet, RunConfig
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.experiment.spaces.executed_file import names_in
from clops_sweep.learning.encoders.encoders import Encoders
from clops_sweep.store.run_store import RunStore

RATE, SAMPLES, PEOPLE = 32.0, 128, 16

FILE = """
import numpy as np, torch
from safetensors.torch import load_file
from torch import nn
from clops_sweep import Recordings, dataset, encoder
from tests.learning.encoders.place import Net, signals

def recordings(data_root, seed=0):
    x, people, labels = signals(seed)
    return Recordings(x, 32, ["I", "II"], "mV", labels, ("a", "b", "c", "d"), people)

small = dataset("small", scenarios=("class_il", "domain_il"))(recordings)

@dataset("other", scenarios=("class_il",))
def other(data_root):
    return recordings(data_root, seed=1)

@encoder("plain", weights="plain.pth", channels=2, sampling_rate=32, samples=128)
def plain(weights):
    module = Net(2)
    module.load_state_dict(torch.load(weights, weights_only=True))
    return module

@encoder("tokens", weights="tokens.safetensors", channels=["II"], samples=200, adapt=["select", "pad"])
def tokens(weights):
    module = Net(1, tokens=True)
    module.load_state_dict(load_file(weights))
    return module

@encoder("drawn", channels=1, sampling_rate=64)
def drawn(weights):
    assert weights is None
    return Net(1)
"""


class Net(nn.Module):
    """Conv, batch norm with running statistics, dropout: layers that depend on evaluation mode."""

    def __init__(self, channels: int, tokens: bool = False) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv1d(channels, 12, 9, stride=4), nn.BatchNorm1d(12)
        self.dropout, self.last, self.tokens = nn.Dropout(0.5), nn.Linear(12, 7), tokens

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.dropout(self.norm(self.conv(x)).relu()).transpose(1, 2)
        return self.last(hidden if self.tokens else hidden.mean(1))


def signals(seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return recordings [n, 2, samples] of 16 people, one per person and class, with people and labels."""
    stream = np.random.default_rng(seed)
    labels, people = np.tile(np.arange(4), PEOPLE), np.repeat(np.arange(PEOPLE), 4)
    time = np.arange(SAMPLES) / RATE
    waves = np.sin(2 * np.pi * (labels[:, None] + 1) * time + stream.uniform(0, 6, (len(labels), 1)))
    x = waves[:, None] * np.array([1, 0.5])[:, None] + 0.3 * stream.standard_normal((len(labels), 2, SAMPLES))
    return x.astype(np.float32), people, labels


def trained(channels: int, tokens: bool = False) -> Net:
    """Return a network whose running statistics are not the initial ones."""
    torch.manual_seed(1)
    module = Net(channels, tokens)
    with torch.no_grad():
        for _ in range(3):
            module.train()(torch.randn(8, channels, SAMPLES))
    return module.eval()


class Place:
    """A folder with the file, its weights, prepared data and a store."""

    def __init__(self, folder: Path, text: str = FILE) -> None:
        self.folder, self.prepared = folder, folder / "prepared"
        self.file, self.weights = folder / "space.py", folder / "plain.pth"
        self.store = RunStore(folder / "results")
        torch.save(trained(2).state_dict(), self.weights)
        save_file(trained(1, True).state_dict(), folder / "tokens.safetensors")
        self.declare(text)

    def declare(self, text: str) -> None:
        """Write the file and execute it."""
        self.file.write_text(text)
        names_in(self.file)

    def data(self, read_model: Callable[[str], bytes] | None = None) -> PreparedData:
        """Return the data as a new process sees it."""
        return PreparedData(self.prepared, None, Encoders(read_model or self.store.models.read))

    def frames(self, config: RunConfig, read_model: Callable[[str], bytes] | None = None) -> FrameSet:
        """Return the frames, prepared if necessary."""
        data = self.data(read_model)
        data.prepare([config.data_key])
        return data.frames(config.data_key)


def config(encoder: str | None, **changes: Any) -> RunConfig:
    """Return a config for the small data set."""
    settings = {"dataset": "small", "leads": "all", "network": "linear", "epochs_per_task": 2, "batch_size": 8}
    return RunConfig(**(settings | {"encoder": encoder} | changes))
