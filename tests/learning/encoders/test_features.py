"""Features equal the module's output for each frame, are computed once, and do not depend on how."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from clops_sweep import ContinualRun, RunConfig
from clops_sweep.errors import DamagedStore
from tests.learning.encoders.place import FILE, Place, config, trained


def test_features_are_those_of_the_module_frame_by_frame(place: Place) -> None:
    frames, signals = place.frames(config("plain")), place.frames(config(None))
    with torch.no_grad():
        expected = [trained(2)(torch.from_numpy(signals.signal(slice(i, i + 1)))) for i in range(len(signals))]
    np.testing.assert_allclose(frames.signal(slice(None)), torch.cat(expected).numpy(), rtol=0, atol=1e-6)
    assert (frames.channels, frames.samples, frames.frames.dtype) == (1, 7, np.float32)
    for name in ("patients", "labels", "split", "leads"):
        np.testing.assert_array_equal(getattr(frames, name), getattr(signals, name))
    assert not frames.frames.flags.writeable


def test_tokens_are_channels(place: Place) -> None:
    frames, signals = place.frames(config("tokens")), place.frames(config(None))
    padded = np.pad(signals.signal(slice(None))[:, 1:], ((0, 0), (0, 0), (0, 200 - 128)))
    with torch.no_grad():
        expected = trained(1, True)(torch.from_numpy(padded)).numpy()
    np.testing.assert_allclose(frames.signal(slice(None)), expected, rtol=0, atol=1e-6)
    assert (frames.channels, frames.samples) == expected.shape[1:]


def test_a_run_on_features_never_calls_the_encoder(place: Place) -> None:
    frames = place.frames(config("plain"))
    (place.folder / "plain.pth").unlink()
    place.declare(FILE.replace("module = Net(2)", "raise AssertionError"))
    result = ContinualRun(config("plain", strategy="er"), frames).run()
    row = result.runs.iloc[0]
    assert (row["stores"], row["encoder_hash"]) == ("features", frames.encoded.encoder_hash)
    assert row["memory_bytes"] == row["memory_instances"] * (7 * 4 + 4)
    assert ContinualRun(config("plain", strategy="finetune"), frames).run().runs["stores"].item() == "nothing"


def run_id(place: Place, of: RunConfig) -> str:
    return of.run_id(place.frames(of).data_hash)


def test_whatever_features_depend_on_is_part_of_the_run_id(place: Place) -> None:
    ids = {run_id(place, config(None)), run_id(place, config("plain"))}
    weights = place.folder / "plain.pth"
    content = bytearray(weights.read_bytes())
    place_of_a_bias = content.find(trained(2).last.bias.detach().numpy().tobytes())
    content[place_of_a_bias] ^= 1
    weights.write_bytes(content)
    ids.add(run_id(place, config("plain")))
    for change in (("samples=128", "samples=128, adapt=['pad']"), ("module = Net(2)", "module = (Net(2))")):
        place.declare(FILE.replace(*change))
        ids.add(run_id(place, config("plain")))
    ids |= {run_id(place, config("plain", split_seed=1)), run_id(place, config("plain", normalize="zscore"))}
    assert len(ids) == 7
    assert len(list((place.prepared / "small" / "features").iterdir())) == 5  # the same for all splits


def test_features_that_changed_are_not_used(place: Place) -> None:
    of = config("plain")
    before = place.frames(of).data_hash
    (file,) = place.prepared.rglob("features.npy")
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"?")
    with pytest.raises(DamagedStore, match=f"{file}: has changed since it was computed; delete {file.parent}"):
        place.frames(of)
    file.write_bytes(content)
    facts = file.with_name("features.json")
    written = facts.read_text()
    place.frames(of)
    facts.write_text(written.replace("7\n ]", "14\n ]").replace("64", "32"))
    with pytest.raises(DamagedStore):
        place.frames(of)
    facts.write_text(written)
    file.write_bytes(content[:-1])
    assert place.data().data_hash(of.data_key) is None
    assert place.frames(of).data_hash == before
