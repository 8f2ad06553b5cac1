"""`clops-sweep export`, and what `plan` says of models before they are stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result

from clops_sweep import ContinualRun, UsageError, load_model
from clops_sweep.cli.commands import command
from clops_sweep.store.run_store import RunStore
from clops_sweep.testing import tiny_config, tiny_frames
from tests.cli.documented import documented
from tests.helpers.stores import record_result
from tests.learning.encoders.conftest import forgotten
from tests.learning.encoders.place import Place, config
from tests.learning.encoders.test_stored_encoders import kept

Run = Callable[..., Result]


@pytest.fixture
def ask() -> Run:
    return lambda *arguments: CliRunner().invoke(command, [*map(str, arguments)], standalone_mode=False)


def stored(results: Path, **settings: object) -> str:
    config, frames = tiny_config("class_il", epochs_per_task=1, **settings), tiny_frames("class_il")
    run_id = config.run_id(frames.data_hash)
    store = RunStore(results, keep=["models"])
    store.open_for_writing()
    result = ContinualRun(config, frames, keep_models="last").run()
    record_result(store, {run_id: config}, result, lambda config: frames.data_hash, {"device": "cpu"})
    return run_id


@pytest.mark.nightly
def test_an_exported_model_gives_the_same_probabilities(ask: Run, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs clops-sweep[onnx]")
    run_id, file = stored(tmp_path / "results"), tmp_path / "model.onnx"
    done = ask("export", run_id[:8], file, "--results", tmp_path / "results", "--json")
    printed = json.loads(done.stdout)
    assert set(printed) == documented("export")
    assert (printed["run_id"], printed["file"], printed["classes"]) == (run_id, str(file), ["B|D|F"])
    session = onnxruntime.InferenceSession(file.read_bytes(), providers=["CPUExecutionProvider"])
    x = np.random.default_rng(0).normal(size=(7, 1, 2500)).astype(np.float32)
    with torch.no_grad():
        expected = load_model(tmp_path / "results", run_id)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(session.run(None, {"frames": x})[0], expected, rtol=0, atol=1e-5)
    x[1, 0, 1000], x[3, 0, 0] = np.nan, np.inf
    expected[[1, 3]] = np.nan
    np.testing.assert_allclose(session.run(None, {"frames": x})[0], expected, rtol=0, atol=1e-5)
    facts = json.loads(session.get_modelmeta().custom_metadata_map["clops_sweep"])
    assert (facts["run_id"], facts["classes"], "people" in facts) == (run_id, ["B|D|F"], False)


@pytest.mark.nightly
def test_a_model_on_features_is_loaded_and_exported_with_its_encoder(ask: Run, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs clops-sweep[onnx]")
    place = Place(tmp_path)
    below, *_ = kept(place, config("tokens", lora_rank=2, network="mlp", mlp_width=3, epochs_per_task=1))
    of = config(f"run:{below}", dataset="other")
    frames = place.frames(of)
    result = ContinualRun(of, frames, keep_models="last").run()
    place.store.open_for_writing()
    run_id, file = of.run_id(frames.data_hash), tmp_path / "model.onnx"
    store = RunStore(place.store.uri, keep=["models"])
    record_result(store, {run_id: of}, result, lambda _: frames.data_hash, {"device": "cpu"})
    done = ask("export", run_id[:8], file, "--results", store.uri)
    assert done.exit_code == 0, done.exception
    model = load_model(store.uri, run_id)
    signals = model.normalized(place.frames(config(None, dataset="other")).signal(slice(0, 4)))
    session = onnxruntime.InferenceSession(file.read_bytes(), providers=["CPUExecutionProvider"])
    with torch.no_grad():
        expected = model(signals).numpy()
    np.testing.assert_allclose(session.run(None, {"frames": signals.numpy()})[0], expected, rtol=0, atol=1e-5)
    (place.folder / "tokens.safetensors").unlink()
    with pytest.raises(UsageError, match=r"weights tokens\.safetensors: there is no such file"):
        load_model(store.uri, run_id)
    forgotten()
