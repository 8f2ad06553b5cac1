"""`lora_rank`: runs that train adapters of an encoder, on frames."""

from __future__ import annotations

import numpy as np
import torch
from safetensors.torch import load

from clops_sweep import ContinualRun
from clops_sweep.learning.models.trained_model import model_from
from tests.learning.encoders.place import Place, config
from tests.learning.encoders.place import trained as pretrained
from tests.learning.encoders.test_stored_encoders import kept


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
