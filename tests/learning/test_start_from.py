"""Runs that start from a stored model: its weights are read from the file by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load

from clops_sweep import ContinualRun, RunConfig, SearchSpace, UsageError, encode, load_model, open_frames, read, sweep
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.store.models import ModelFiles
from clops_sweep.store.rerun import differences, repeat, stored_run
from clops_sweep.store.run_store import RunStore
from tests.data.declared_files import declare, forget
from tests.helpers.stores import record_result

CLINICS = """
def recordings(people, classes, shift=0):
    people = np.repeat(people, 6)
    codes = np.arange(len(people)) % 2
    signals = np.random.default_rng(people[0]).normal(size=(len(people), 1, 2500)).astype(np.float32)
    signals += 0.5 * codes[:, None, None]
    part = np.array(["train", "train", "test"])[(people + shift) % 3]
    return Recordings(
        signals, 250, ("II",), "mV", codes, classes, people, split=part,
        domains={"ward": np.array(["A", "B"])[people // 3 % 2]},
    )

@dataset("old", scenarios=("domain_il",))
def old(data_root):
    return recordings(np.arange(18), ("SR", "AF"))

@dataset("new", scenarios=("domain_il",), people_of="old")
def new(data_root):
    return recordings(np.arange(100, 118), ("SR", "AF"))

@dataset("swapped", scenarios=("domain_il",))
def swapped(data_root):
    return recordings(np.arange(200, 218), ("AF", "SR"))

@dataset("leaking", scenarios=("domain_il",), people_of="old")
def leaking(data_root):
    return recordings(np.arange(1, 19), ("SR", "AF"), shift=1)
"""


def config(dataset: str, **settings: Any) -> RunConfig:
    base = {"scenario": "domain_il", "domain": "ward", "strategy": "finetune", "normalize": "none"}
    return RunConfig(dataset=dataset, **base | {"batch_size": 8, "epochs_per_task": 1} | settings)


def computed(folder: Path, of: RunConfig) -> str:
    """Compute a run with its model and predictions, and return its id."""
    plain = of.encoder is None and of.start_from is None
    prepared = folder / "prepared"
    if plain:
        frames = open_frames(of.dataset, prepared_root=prepared, **of.data_key.view)
    else:
        frames = encode(of, folder / "results", prepared_root=prepared)
    run_id = of.run_id(frames.data_hash)
    store = RunStore(folder / "results", keep=["predictions", "models"])
    store.open_for_writing()
    result = ContinualRun(of, frames, keep_predictions=True, keep_models="last").run()
    record_result(store, {run_id: of}, result, lambda _: frames.data_hash, {"device": "cpu"})
    return run_id


def plain_frames(folder: Path) -> FrameSet:
    return open_frames("new", prepared_root=folder / "prepared", leads="all", normalize="none")


def weights_of(folder: Path, run_id: str) -> dict[str, torch.Tensor]:
    (file,) = (folder / "results" / "models" / run_id).glob("*.safetensors")
    return load(file.read_bytes())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("clinics")
    declare(folder / "clinics.py", CLINICS)
    for name in ("old", "new", "swapped", "leaking"):
        prepare(name, prepared_root=folder / "prepared", data_root=None)
    yield folder
    forget()


@pytest.fixture(scope="module")
def linear(folder: Path) -> str:
    """The run on old data with a linear network."""
    return computed(folder, config("old", network="linear"))


NETWORKS: dict[str, dict[str, Any]] = {
    "native kernels": {"network": "clops_cnn"},
    "layers of kernels": {"network": "small_cnn"},
    "PyTorch": {"network": "small_cnn", "precision": "bfloat16"},
    "cosine head": {"network": "linear", "head": "cosine"},
    "GDumb, which begins anew": {"network": "small_cnn", "strategy": "gdumb", "memory_size": 8},
    "joint": {"network": "linear", "strategy": "multitask"},
    "iCaRL": {"network": "linear", "strategy": "icarl", "memory_size": 8},
    "online": {"network": "linear", "stream": "online"},
}


@pytest.mark.parametrize("settings", NETWORKS.values(), ids=NETWORKS)
def test_a_run_starts_with_the_stored_weights_bit_for_bit(folder: Path, settings: dict[str, Any]) -> None:
    before = computed(folder, config("old", **settings))
    of = config("new", start_from=f"run:{before}", **settings)
    run = ContinualRun(of, encode(of, folder / "results", prepared_root=folder / "prepared"))
    stored, started = weights_of(folder, before), run.learner.weights()
    assert stored.keys() == started.keys()
    assert all(torch.equal(stored[name], started[name]) for name in stored)
    drawn = ContinualRun(config("new", **settings), plain_frames(folder))
    assert not all(torch.equal(stored[name], value) for name, value in drawn.learner.weights().items())
    rows = torch.from_numpy(run.scenario.tasks[0].test.rows)
    model = load_model(folder / "results", before)
    with torch.no_grad():
        expected = model(model.normalized(run.frames.signal(rows.numpy()).reshape(len(rows), 1, -1)))
    assert torch.allclose(run.learner.probabilities(rows), expected, atol=1e-5)
    run.run()
    assert not all(torch.equal(stored[name], value) for name, value in run.learner.weights().items())


def test_methods_that_begin_anew_return_to_the_stored_weights(folder: Path) -> None:
    before = computed(folder, config("old", network="small_cnn"))
    of = config("new", network="small_cnn", start_from=f"run:{before}")
    learner = ContinualRun(of, encode(of, folder / "results", prepared_root=folder / "prepared")).learner
    learner.parameters.flat.add_(1)
    learner.begin_anew(1)
    stored = weights_of(folder, before)
    assert all(torch.equal(stored[name], value) for name, value in learner.weights().items())


def test_a_continued_run_takes_the_steps_of_a_loop_by_hand(folder: Path, linear: str) -> None:
    """One step of gradient descent on all recordings of each ward, in float64."""
    settings = {"network": "linear", "optimizer": "sgd", "learning_rate": 0.05, "batch_size": 1000}
    after = computed(folder, config("new", start_from=f"run:{linear}", **settings))
    weights = weights_of(folder, linear)
    (matrix,) = (value.double() for value in weights.values() if value.ndim == 2)
    (bias,) = (value.double() for value in weights.values() if value.ndim == 1)
    network = torch.nn.Linear(matrix.shape[1], 2).double()
    network.load_state_dict({"weight": matrix, "bias": bias})
    frames = plain_frames(folder)
    ward = frames.domains["ward"][0]
    for code in (0, 1):
        rows = np.flatnonzero((ward == code) & (frames.split == 0))
        x = torch.from_numpy(frames.signal(rows).reshape(len(rows), -1)).double()
        loss = torch.nn.functional.cross_entropy(network(x), torch.from_numpy(frames.labels[rows]))
        network.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter -= 0.05 * parameter.grad
    trained = weights_of(folder, after)
    (computed_matrix,) = (value.double() for value in trained.values() if value.ndim == 2)
    assert torch.allclose(computed_matrix, network.weight, atol=1e-5)
    assert not torch.allclose(computed_matrix, matrix, atol=1e-4), "the test can fail"


def test_the_weights_are_part_of_the_identity_and_recorded(folder: Path, linear: str) -> None:
    of = config("new", network="linear", start_from=f"run:{linear}")
    frames = encode(of, folder / "results", prepared_root=folder / "prepared")
    run_id = computed(folder, of)
    row = read(folder / "results", "runs", run_ids=run_id).iloc[0]
    content = ModelFiles(RunStore(folder / "results").files).read(linear)
    assert (row["start_from"], row["start_hash"]) == (f"run:{linear}", hashlib.sha256(content).hexdigest())
    assert '"start_from"' not in config("new").identity
    assert frames.data_hash != plain_frames(folder).data_hash
    other = computed(folder, config("old", network="linear", seed=1))
    of_other = config("new", network="linear", start_from=f"run:{other}")
    assert encode(of_other, folder / "results", prepared_root=folder / "prepared").data_hash != frames.data_hash
    with pytest.raises(UsageError, match=r"start_from = None: the frames are for start_from = 'run:\w+'; open them"):
        ContinualRun(config("new", network="linear"), frames)


def test_a_sweep_continues_a_model_once_and_a_rerun_gives_its_numbers(folder: Path, linear: str) -> None:
    base = config("new", network="linear", start_from=f"run:{linear}", learning_rate=0.02)
    space = SearchSpace("continued", base, {"strategy": ["finetune", "er"]}, seeds=2)
    words = {"results": folder / "results", "prepared_root": folder / "prepared", "ray": False}
    assert "4 finished, 0 pending, 0 failed" in str(sweep(space, **words))
    written = read(folder / "results", "runs")["started_at"].max()
    assert "4 finished, 0 pending, 0 failed" in str(sweep(space, **words))
    assert read(folder / "results", "runs")["started_at"].max() == written, "nothing is computed again"
    store = RunStore(folder / "results")
    rows = read(folder / "results", "runs")
    (run_id,) = rows[(rows["strategy"] == "er") & (rows["learning_rate"] == 0.02) & (rows["seed"] == 0)]["run_id"]
    result = repeat(stored_run(store, run_id), store, folder / "prepared")
    assert differences(result, store, run_id) == []


def test_a_resumed_run_gives_the_same_weights(folder: Path) -> None:
    """GDumb begins anew in each task, also after a checkpoint."""
    settings = {"network": "small_cnn", "strategy": "gdumb", "memory_size": 8}
    before = computed(folder, config("old", network="small_cnn"))
    of = config("new", start_from=f"run:{before}", **settings)
    frames = encode(of, folder / "results", prepared_root=folder / "prepared")
    whole, resumed = ContinualRun(of, frames), ContinualRun(of, frames)
    whole.advance()
    resumed.restore(whole.state())
    for run in (whole, resumed):
        run.run()
    weights = whole.learner.weights()
    assert all(torch.equal(weights[name], value) for name, value in resumed.learner.weights().items())


def test_evaluated_people_whom_the_model_was_trained_on_are_refused(folder: Path, linear: str) -> None:
    of = config("leaking", network="linear", start_from=f"run:{linear}")
    frames = encode(of, folder / "results", prepared_root=folder / "prepared")
    with pytest.raises(UsageError, match=r"patient '\d+' is evaluated, and start_from = 'run:\w+' was trained on them"):
        ContinualRun(of, frames)


def test_what_earlier_models_have_seen_is_known_to_later_ones(folder: Path, linear: str) -> None:
    after = computed(folder, config("new", network="linear", start_from=f"run:{linear}"))
    first = load_model(folder / "results", linear).facts
    second = load_model(folder / "results", after).facts
    assert {*first.people} < {*second.people}
    assert {name for name, _ in second.seen.signals} == {"old", "new"}
    of = config("leaking", network="linear", start_from=f"run:{after}")
    with pytest.raises(UsageError, match="was trained on them"):
        ContinualRun(of, encode(of, folder / "results", prepared_root=folder / "prepared"))


@pytest.mark.parametrize(
    ("dataset", "settings", "said"),
    [
        ("swapped", {}, "classes SR, AF and AF, SR; expected the same network, classes in the same order"),
        ("new", {"network": "mlp"}, "network linear and mlp"),
        ("new", {"normalize": "zscore"}, "normalize none and zscore"),
        ("new", {"head": "cosine"}, "head None and cosine"),
    ],
)
def test_a_model_that_does_not_fit_is_refused_before_any_run(
    folder: Path, linear: str, dataset: str, settings: dict[str, Any], said: str
) -> None:
    of = config(dataset, start_from=f"run:{linear}", **{"network": "linear"} | settings)
    with pytest.raises(UsageError, match=said):
        sweep(SearchSpace("x", of, seeds=1), folder / "results", prepared_root=folder / "prepared", ray=False)


def test_configs_that_start_from_nothing_are_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"start_from = 'mine': expected run:RUN_ID with the 24 digits"):
        config("new", start_from="mine")
    with pytest.raises(UsageError, match=r"strategy 'ncm' computes its head in closed form and trains no network"):
        config("new", network="linear", strategy="ncm", start_from=f"run:{'0' * 24}")
    of = config("new", network="linear", start_from=f"run:{'0' * 24}")
    with pytest.raises(UsageError, match=rf"run {'0' * 24}: no model is stored; run it again"):
        sweep(SearchSpace("x", of, seeds=1), folder / "results", prepared_root=folder / "prepared", ray=False)
