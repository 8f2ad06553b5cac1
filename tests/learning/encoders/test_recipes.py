"""Encoders of docs/encoders: the published weights of openecg, and what recipes for others declare."""

from __future__ import annotations

import sys
import types
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.registry import ENCODERS
from clops_sweep.experiment.spaces.executed_file import names_in
from clops_sweep.learning.encoders.adapting import Signals, adapter
from clops_sweep.learning.encoders.encoders import Encoders
from tests.learning.encoders.place import Place, config

FOLDER = Path(__file__).parents[3] / "docs" / "encoders"
LEADS = ["I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6"]


@pytest.mark.skipif(find_spec("openecg") is None, reason="openecg is not installed")
@pytest.mark.filterwarnings("ignore:enable_nested_tensor:UserWarning")
def test_the_published_weights_of_openecg_give_features(place: Place) -> None:
    names_in(FOLDER / "openecg_encoder.py")
    signals = place.frames(config(None, leads="single"))
    rows = np.random.default_rng(0).standard_normal((len(signals), 5000)).cumsum(1).astype(np.float32)
    encoders, frames = Encoders(place.store.models.read), replace(signals, frames=rows, frame_seconds=10.0)
    found = encoders.features("openecg", frames, np.arange(2))
    assert found.shape == (2, 256)
    assert 0.01 < found.std(0).max() < np.inf
    with pytest.raises(UsageError, match="was trained on its people"):
        encoders.check("openecg", replace(frames, name="mitbih_beats"))


@pytest.mark.parametrize(
    ("name", "library", "shape"),
    [
        ("ecg_founder", "net1d", (12, 5000)),
        ("ecg_fm", None, (12, 2500)),
        ("hubert_encoder", "hubert_ecg", (12, 500)),
    ],
)
def test_recipes_adapt_frames_of_ptbxl(
    name: str, library: str | None, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    if library is not None:  # the authors' code, which is not on PyPI: only the declaration is tested
        module = types.ModuleType(library)
        module.__dict__.update(Net1D=torch.nn.Module, HuBERTECG=None)
        monkeypatch.setitem(sys.modules, library, module)
    names_in(FOLDER / f"{name}.py")
    declared = ENCODERS.declaration(name.replace("encoder", "ecg")).encoder
    adapt = adapter(name, declared.takes, Signals("ptbxl", LEADS[::-1], 5000, 500.0, "none", "mV"))
    assert adapt(np.random.default_rng(0).standard_normal((2, 12, 5000)).astype(np.float32)).shape[1:] == shape
