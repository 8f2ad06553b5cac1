"""Invalid encoders, and encoders that do not fit weights or data, give one sentence before anything starts."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from clops_sweep import RunConfig, UsageError, encoder
from clops_sweep.experiment.plugins.declarations import EncoderInput
from clops_sweep.learning.encoders.adapting import Signals, adapter
from clops_sweep.learning.encoders.computing import computing
from clops_sweep.testing import tiny_frames
from tests.learning.encoders.place import FILE, Place, config, trained


class Executed:
    """Creates a file when it is unpickled."""

    def __reduce__(self) -> Any:
        return (os.system, (f"touch {Path.cwd() / 'executed'}",))


def refused(place: Place, encoder: str = "plain", **changes: Any) -> str:
    with pytest.raises(UsageError) as error:
        place.frames(config(encoder, **changes))
    assert not list(place.prepared.rglob("features.*"))
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def test_weights_that_cannot_be_used_are_named(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    weights = place.folder / "plain.pth"
    torch.save({"weights": Executed()}, weights)
    assert f"encoder 'plain': weights {weights}: cannot be loaded without executing code in them" in refused(place)
    assert not (tmp_path / "executed").exists()
    weights.write_bytes(pickle.dumps([1, 2]))
    assert "weights" in refused(place)
    torch.save(trained(1).state_dict(), weights)
    assert "do not fit its module (size mismatch for conv.weight" in " ".join(refused(place).split())
    (place.folder / "tokens.safetensors").write_bytes(b"no weights")
    assert "encoder 'tokens': raises when it is made with weights " in refused(place, "tokens")
    weights.unlink()
    monkeypatch.delenv("CLOPS_DATA_ROOT", raising=False)
    assert f"weights plain.pth: there is no such file; looked for {weights}" in refused(place)


def test_data_that_do_not_fit_are_refused(place: Place) -> None:
    assert "takes 2 channels, and frames of 'small' have 1" in refused(place, leads="single")
    place.declare(FILE.replace("samples=128)", 'samples=128, trained_on=["small"])'))
    assert "dataset 'small': encoder 'plain' was trained on its people" in refused(place)
    assert place.frames(config("plain", dataset="other")).encoded is not None
    place.declare(FILE.replace("samples=128)", 'samples=128, trained_on=["ptblx", "nowhere:7"])'))
    with pytest.warns(UserWarning, match="'plain': trained_on: unknown here are nowhere, ptblx, so no run is refused"):
        place.frames(config("plain"))


def test_declarations_are_checked() -> None:
    for arguments, says in (
        ({"channels": 0}, "channels = 0"),
        ({"channels": ["I", "I"]}, "names that differ"),
        ({"channels": 1, "adapt": ["stretch"]}, "adapt: 'stretch'"),
        ({"channels": 1, "sampling_rate": "fast"}, "sampling_rate"),
        ({"channels": 1, "sampling_rate": 1e12}, r"sampling_rate = 1000000000000.0: .*at most 1e\+09"),
        ({"channels": 1, "samples": 10**9}, "samples = 1000000000: .*at most 67,108,864"),
        ({"channels": 10**9}, "channels = 1000000000: .*at most 100,000"),
        ({"channels": 1, "normalize": "log"}, "normalize"),
        ({"channels": 1, "weights": 3}, "weights = 3"),
        ({"channels": 1, "trained_on": "ptbxl"}, "trained_on"),
    ):
        with pytest.raises(UsageError, match=says):
            encoder("mine", **arguments)
    with pytest.raises(UsageError, match=r"expected a function \(weights\)"):
        encoder("mine", channels=1)(lambda: None)


class Bad(nn.Module):
    """An encoder with one fault."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault, self.calls = fault, 0
        self.seen: Any = 0
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> Any:
        self.calls += 1
        features = x[:, 0, ::100]
        match self.fault:
            case "nan":
                return features / (features - features)
            case "late nan":
                return features * (torch.nan if self.calls > 4 else 1)
            case "shape":
                return features[:, : 2 + len(x)]
            case "rows":
                return features.mean(0)
            case "state":
                before, self.seen = self.seen, features.mean()
                return features + before
            case "buffer":
                self.steps += 1
                return features
            case "random":
                return features + torch.rand(1)
            case "mixed":
                return features - features.mean(0)
            case "tuple":
                return features, features
            case "whole numbers":
                return features.long()
            case "no feature":
                return features[:, :0]
            case "sparse":
                return features.to_sparse()
            case "meta":
                return features.to("meta")
            case "raises":
                return torch.nn.functional.linear(features, torch.zeros(2, 3))
        return features


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("nan", "not finite for instance 0 of 'synthetic' (patient 'P000')"),
        ("late nan", "not finite for instance"),
        ("shape", "returns [1, 3] for a batch of one and [2, 4] for a batch of two"),
        ("rows", "expected floating point [B, features] or [B, tokens, features]"),
        ("state", "gives other features when it is called again"),
        ("buffer", "changes 'steps' when it computes features"),
        ("random", "draw no random numbers"),
        ("mixed", "gives an instance other features when others are in its batch"),
        ("tuple", "returns tuple; expected a tensor"),
        ("whole numbers", "returns int64"),
        ("no feature", "returns float32 [2, 0]"),
        ("sparse", "returns a tensor of kind sparse_coo; expected a dense one with values"),
        ("meta", "returns a tensor of kind meta; expected a dense one with values"),
        ("raises", "raises on signals [2, 1, 2500] (RuntimeError: "),
    ],
)
def test_a_module_that_is_no_encoder_is_refused(fault: str, says: str) -> None:
    frames = tiny_frames("class_il")
    takes = adapter("bad", EncoderInput(1), Signals.of(frames))
    with pytest.raises(UsageError) as error:
        list(computing("bad", Bad(fault), takes, frames).batches)
    assert str(error.value).startswith("encoder 'bad': ")
    assert says in str(error.value)


def test_existing_runs_keep_their_ids() -> None:
    assert RunConfig().run_id("0" * 64) == RunConfig(encoder=None).run_id("0" * 64)
    assert "encoder" not in RunConfig().identity
    assert np.all([RunConfig().data_key.encoder is None])
