"""Invalid encoders, and encoders that do not fit weights or data, give one sentence before anything starts."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from clops_sweep import RunConfig, UsageError
from tests.learning.encoders.place import Place, config, trained


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


def test_existing_runs_keep_their_ids() -> None:
    assert RunConfig().run_id("0" * 64) == RunConfig(encoder=None).run_id("0" * 64)
    assert "encoder" not in RunConfig().identity
    assert np.all([RunConfig().data_key.encoder is None])
