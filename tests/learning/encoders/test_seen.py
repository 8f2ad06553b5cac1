"""What an encoder was trained on is not evaluated: the same signals or people in other data sets, at any distance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from clops_sweep import ContinualRun, UsageError
from clops_sweep.data.scenarios.leaks import Seen
from clops_sweep.learning.encoders.encoders import Encoders
from clops_sweep.learning.models.model_facts import facts_in
from clops_sweep.learning.models.trained_model import model_bytes, model_from
from tests.learning.encoders.place import FILE, Place, config
from tests.learning.encoders.test_stored_encoders import kept, pretrained

OTHERS = """
def changed(noise, name):
    def found(data_root):
        x, people, labels = signals()
        x = x + np.float32(noise) * np.random.default_rng(1).standard_normal(x.shape).astype("f")
        return Recordings(x, 32, ["I", "II"], "mV", labels, ("a", "b", "c", "d"), [f"{name}{it}" for it in people])
    return found

renamed = dataset("renamed")(changed(0, "p"))
again = dataset("again", people_of="small")(changed(1, ""))
third = dataset("third")(changed(2, "q"))
"""


@pytest.fixture
def others(place: Place) -> Any:
    from tests.data.declared_files import forget

    place.declare(FILE + OTHERS)
    yield place
    forget("renamed", "again", "third")


def refused(place: Place, encoder: str, dataset: str) -> None:
    of = config(encoder, dataset=dataset)
    with pytest.raises(UsageError, match=rf"patient .* is evaluated, and was seen by encoder '{encoder}' before"):
        ContinualRun(of, place.frames(of))


def test_equal_signals_and_declared_people_of_other_data_sets_are_not_evaluated(others: Place) -> None:
    run_id, content, _ = pretrained(others)
    for dataset in ("small", "renamed", "again"):
        refused(others, f"run:{run_id}", dataset)
    elsewhere = config(f"run:{run_id}", dataset="third")
    ContinualRun(elsewhere, others.frames(elsewhere))

    def early(asked: str) -> bytes:  # as a model was stored before signals were recorded
        facts = replace(facts_in(content), signals="")
        return model_bytes(model_from(content).network.state_dict(), facts)

    of = config(f"run:{run_id}", dataset="again")
    with pytest.raises(UsageError, match="was seen by encoder"):
        ContinualRun(of, others.frames(of, early))


@pytest.mark.parametrize("dataset", ["renamed", "again"])
def test_data_sets_that_a_declared_encoder_was_trained_on_are_known_to_the_last(others: Place, dataset: str) -> None:
    others.declare(FILE.replace("samples=128)", f'samples=128, trained_on=["{dataset}"])') + OTHERS)
    first, *_ = kept(others, config("plain", dataset="third", network="mlp", mlp_width=4))
    second, *_ = kept(others, config(f"run:{first}", dataset="other", network="mlp", mlp_width=4))
    for encoder in ("plain", f"run:{first}", f"run:{second}"):
        with pytest.raises(UsageError, match=f"dataset '{dataset}': encoder '{encoder}' was trained on its people"):
            others.frames(config(encoder, dataset=dataset))


def test_people_of_a_data_set_and_challenges(others: Place) -> None:
    names = others.frames(config(None)).patient_names
    others.declare(FILE.replace("samples=128)", f'samples=128, trained_on=["small:{names[0]}, {names[5]}"])') + OTHERS)
    frames = others.frames(config("plain"))
    assert {frames.patient_names[code] for code in frames.patients[frames.encoded.seen]} == {names[0], names[5]}
    others.declare(FILE.replace("samples=128)", 'samples=128, trained_on=["smal"])') + OTHERS)
    found, signals = Encoders(others.store.models.read), others.frames(config(None))
    with pytest.warns(UserWarning, match="trained_on: unknown here are smal, so") as warned:
        found.check("plain", signals)
    found.check("plain", signals)  # pytest fails if it warns again
    assert len(warned) == 1
    assert Seen.of_names(["cinc2021"]).has_dataset("chapman")
    assert not Seen.of_names(["mitbih:100"]).has_dataset("mitbih_beats")


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of torch.onnx about its own code
@pytest.mark.nightly
def test_an_encoder_in_an_onnx_file(place: Place) -> None:
    pytest.importorskip("onnxruntime", reason="needs clops-sweep[onnx]")
    module, frames = (
        nn.Sequential(nn.Conv1d(2, 3, 9, stride=4), nn.Tanh(), nn.Flatten()).eval(),
        place.frames(config(None)),
    )
    batch = {0: torch.export.Dim("batch")}
    torch.onnx.export(module, (torch.zeros(2, 2, 128),), place.folder / "e.onnx", dynamo=True, dynamic_shapes=(batch,))
    place.declare(
        FILE.replace('"plain.pth"', '"e.onnx"').replace("    module = Net(2)\n", "    return OnnxEncoder(weights)\n", 1)
        .replace("import Recordings,", "import OnnxEncoder, Recordings,")
    )  # fmt: skip
    found = Encoders(place.store.models.read).features("plain", frames, np.arange(5))
    with torch.no_grad():
        np.testing.assert_allclose(found, module(torch.from_numpy(frames.signal(np.arange(5)))), atol=1e-5)
