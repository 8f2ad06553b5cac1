"""Networks of braindecode in whole runs. Skipped where it is not installed, or does not load."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import nn

from clops_sweep import ContinualRun, RunConfig, SearchSpace, load_model, native, open_frames, read, sweep
from clops_sweep.cli.commands import command
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins import braindecode
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning.batches import Batch
from clops_sweep.learning.encoders.headless import without_head
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.backend import make_learner
from clops_sweep.learning.models.onnx_export import onnx_bytes
from clops_sweep.learning.networks.module_probe import check_networks
from clops_sweep.learning.networks.run_module import made
from clops_sweep.learning.networks.signal import Signal
from clops_sweep.testing import of_shape, tiny_config, tiny_frames
from clops_sweep.testing.strategy_contract import check_named_strategy
from clops_sweep.testing.watch import result_difference, saved_and_loaded
from tests.helpers.braindecode import require_braindecode

pytestmark = pytest.mark.nightly

CPU = torch.device("cpu")
SHAPE = 6, 1000
RATE = 250.0


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    """Import braindecode once; its import prints warnings that the product expects."""
    require_braindecode()


@contextmanager
def warnings_ignored() -> Iterator[None]:
    """Ignore the warnings of braindecode in the block."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def frames_of(scenario: str = "class_il", shape: tuple[int, int] = SHAPE) -> FrameSet:
    """Return tiny frames with a sampling rate."""
    frames = of_shape(tiny_frames(scenario, tasks=2), *shape)  # type: ignore[arg-type]
    return replace(frames, frame_seconds=shape[1] / RATE)


def config_of(model: str, scenario: str = "class_il", **changes: Any) -> RunConfig:
    """Return a tiny run of a model."""
    settings = {"domain": "site"} if scenario == "domain_il" else {}
    return tiny_config(scenario, network=f"braindecode:{model}", **settings, **changes)  # type: ignore[arg-type]


def module_of(model: str, **options: Any) -> nn.Module:
    """Return a model as a run makes it."""
    network = f"braindecode:{model}"
    given = {**RunConfig(network=network, **options).network_options, "signal": Signal(RATE)}
    return made(network, NETWORKS[network], 0, SHAPE, 4, given)


def test_names_are_those_of_the_package() -> None:
    from braindecode.models.util import models_dict

    assert braindecode.names() == [f"braindecode:{name}" for name in sorted(models_dict)]


def test_options_have_the_defaults_of_the_constructors() -> None:
    from inspect import signature

    from braindecode.models.util import models_dict

    for model, found in models_dict.items():
        arguments = signature(found.__init__).parameters
        options = NETWORKS.options(f"braindecode:{model}")
        for option in options.keys() - {braindecode.VERSION}:
            declared = options[option]
            default = arguments[option.removeprefix(f"{model}_")].default
            shown = default.__name__ if isinstance(default, type) else default
            assert declared.default == shown, option


@pytest.mark.parametrize("model", ["EEGNet", "ShallowFBCSPNet", "Deep4Net"])
@pytest.mark.parametrize("scenario", ["class_il", "time_il", "domain_il"])
def test_contract(model: str, scenario: str) -> None:
    """A run is repeated, trained beside another and resumed after each epoch, with equal bits."""
    config, frames = config_of(model, scenario), frames_of(scenario)
    check_networks([config], {config.data_key: frames}, keep_models=True)
    check_named_strategy(config, frames)


@pytest.mark.parametrize("strategy", ["ewc", "gem", "mir", "er_ace", "ranpac", "derpp", "lwf", "mas"])
def test_methods_with_further_demands(strategy: str) -> None:
    """Gradients of instances and memories, losses of a user, closed-form heads: equal bits from a checkpoint."""
    scenario = "class_il_union" if strategy in ("ranpac", "er_ace") else "class_il"
    config, frames = config_of("EEGNet", scenario, strategy=strategy), frames_of(scenario)
    whole, resumed = ContinualRun(config, frames, CPU), ContinualRun(config, frames, CPU)
    first = ContinualRun(config, frames, CPU)
    first.advance()
    resumed.restore(saved_and_loaded(first.state()))
    for run in (whole, resumed):
        while not run.finished:
            run.advance()
    assert result_difference(whole.result(), resumed.result()) is None


@pytest.mark.parametrize("settings", [{"norm": "group"}, {"head": "cosine"}, {"head": "per_class"}])
def test_replaced_layers(settings: dict[str, str]) -> None:
    config, frames = config_of("EEGNet", "time_il", **settings), frames_of("time_il")
    check_networks([config], {config.data_key: frames}, keep_models=True)
    run = ContinualRun(config, frames, CPU)
    while not run.finished:
        run.advance()
    assert float(run.result().columns["runs"]["auc"][0]) > 0


@pytest.mark.parametrize("model", ["EEGNet", "ShallowFBCSPNet", "Deep4Net"])
def test_the_linear_head_gives_the_logits_of_the_convolution(model: str) -> None:
    module = module_of(model).eval()
    import braindecode.models

    with warnings_ignored():
        own = getattr(braindecode.models, model)(n_chans=SHAPE[0], n_times=SHAPE[1], n_outputs=4, sfreq=RATE).eval()
    assert isinstance(list(module.modules())[-1], nn.Linear)
    weights = module.state_dict()
    last = [name for name in own.state_dict() if "conv_classifier" in name]
    given = {name: value for name, value in weights.items() if name in own.state_dict()}
    for name, value in zip(last, list(weights.values())[-2:], strict=True):
        given[name] = value.reshape(own.state_dict()[name].shape)
    own.load_state_dict(given)
    frames = torch.randn(3, *SHAPE)
    torch.testing.assert_close(module(frames), own(frames), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernels", ["native", "off"])
def test_max_norms_act_as_in_a_bare_loop(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps drive weights out of the ball; the learner follows a loop over braindecode's own module."""
    if kernels == "off":
        monkeypatch.setenv("CLOPS_NATIVE", "off")
    elif native.chosen_for_programs() is None:
        pytest.skip("this machine has no native kernels")
    import braindecode.models

    frames = frames_of("time_il")
    config = config_of("EEGNet", "time_il", EEGNet_drop_prob=0.0, EEGNet_conv_spatial_max_norm=0.5)
    options = {**config.network_options, "signal": Signal.of(frames)}
    bank = FrameBank(frames, CPU)
    learner = make_learner(0, "softmax", 4, 0.5, bank, config.network, options, optimizer="sgd")
    with warnings_ignored():
        bare = braindecode.models.EEGNet(
            n_chans=SHAPE[0], n_times=SHAPE[1], n_outputs=4, drop_prob=0.0, conv_spatial_max_norm=0.5
        ).train()
    start = list(learner.weights().values())
    bare.load_state_dict(
        {name: value.reshape(old.shape) for (name, old), value in zip(bare.state_dict().items(), start, strict=True)}
    )
    optimizer = torch.optim.SGD(bare.parameters(), lr=0.5)
    stored = bare.conv_spatial.parametrizations.weight.original.detach()
    stream = np.random.default_rng(0)
    for step in range(4):  # rounding grows tenfold with each
        rows = torch.from_numpy(stream.choice(len(frames.labels), 8, replace=False))
        targets = torch.eye(4)[torch.from_numpy(frames.labels)[rows]]
        batch = Batch(rows, targets, torch.full((8,), 1 / 8), torch.arange(8) + 8 * step)
        learner.train_step(batch, torch.tensor([1, 2], dtype=torch.int32))
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(bare(bank.gather(rows)), targets)
        loss.backward()
        optimizer.step()
    assert (stored.flatten(1).norm(dim=1) > 0.5).any()  # what is stored leaves the ball
    assert (bare.conv_spatial.weight.flatten(1).norm(dim=1) < 0.5 + 1e-5).all()
    for (name, ours), theirs in zip(learner.weights().items(), bare.state_dict().values(), strict=True):
        torch.testing.assert_close(ours.flatten(), theirs.flatten(), rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.filterwarnings("default")
def test_a_short_frame_is_one_sentence() -> None:
    """braindecode warns, and makes a network of other kernels than the run id says."""
    config = config_of("Deep4Net")
    frames = frames_of(shape=(6, 440))
    with pytest.raises(UsageError) as raised:
        check_networks([config], {config.data_key: frames})
    assert "network 'braindecode:Deep4Net': cannot be made for frames of 6 x 440 samples" in str(raised.value)
    assert "smaller than the minimum required (441)" in str(raised.value)


@pytest.mark.parametrize(
    ("model", "shape", "expected"),
    [
        ("ShallowFBCSPNet", (1, 1000), "takes two channels or more"),
        ("REVE", SHAPE, "fetches positions of electrodes from a web server"),
        ("NeuroPose", (22, 1000), "expected a dense float32 tensor"),
        ("EEGMiner", SHAPE, "changes or replaces parameter 'filter.f_mean' in a pass"),
        ("EEGNet", SHAPE, ""),
    ],
)
def test_models_that_cannot_be_trained_are_one_sentence(model: str, shape: tuple[int, int], expected: str) -> None:
    config, frames = config_of(model), frames_of(shape=shape)
    if not expected:
        check_networks([config], {config.data_key: frames})
        return
    with pytest.raises(UsageError) as raised:
        check_networks([config], {config.data_key: frames})
    assert expected in str(raised.value)


def test_a_stored_model_predicts_and_is_exported_and_becomes_an_encoder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepared_root: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(prepared_root))
    pytest.importorskip("onnxruntime")
    network = {"network": "braindecode:EEGNet", "EEGNet_F1": 2, "EEGNet_kernel_length": 16}
    base = RunConfig(scenario="time_il", leads="all", first_tasks=1, strategy="finetune", epochs_per_task=1)
    launch: dict[str, Any] = {"results": "results", "keep": ["models"], "ray": False}
    sweep(SearchSpace("trained", base.replace(**network), seeds=range(1)), **launch)
    (run_id,) = read("results", "runs")["run_id"]
    model = load_model("results", run_id)
    frames = model.normalized(open_frames("synthetic", leads="all").signal(slice(0, 4)))
    with torch.no_grad():
        probabilities = model(frames)
    stored = read("results", "runs").iloc[0]
    assert stored["braindecode_version"] == braindecode.installed_version()
    assert stored["EEGNet_F1"] == 2
    import onnxruntime

    session = onnxruntime.InferenceSession(onnx_bytes(model))
    (exported,) = session.run(None, {"frames": frames.numpy()})
    np.testing.assert_allclose(exported, probabilities.numpy(), atol=1e-5)
    features = without_head(f"run:{run_id}", model)(frames)
    assert features.shape[0] == 4
    assert features.ndim == 2
    written = f"SPACE = SearchSpace('trained', {base.replace(**network)!r}, seeds=range(1))"
    Path("space.py").write_text(f"from clops_sweep import RunConfig, SearchSpace\n{written}\n")
    with monkeypatch.context() as other:  # a later version of the package
        other.setattr(braindecode, "installed_version", lambda: "1.8.99")
        NETWORKS.forget("braindecode:EEGNet")
        told = CliRunner().invoke(command, ["plan", "space.py"]).output
    NETWORKS.forget("braindecode:EEGNet")
    of_now = stored["braindecode_version"]
    expected = f"network 'braindecode:EEGNet': 1 stored run of braindecode {of_now}, and 1.8.99 is installed"
    assert expected in " ".join(told.split())


HEADS_USED = ("ncm", "slda", "ranpac")
HEADS = """
import numpy as np
from clops_sweep import Recordings, RunConfig, SearchSpace, dataset


def waves(seed):
    stream = np.random.default_rng(seed)
    labels = np.arange(96) % 4
    pitch = 4 + 4 * labels[:, None, None]
    frames = np.sin(2 * np.pi * pitch * np.arange(1000) / 250) + stream.normal(0, 1, (96, 6, 1000))
    people = [f"{seed}-{number // 8}" for number in range(96)]
    return Recordings(
        frames.astype("float32"), sampling_rate=250, channels=["Fz", "C3", "Cz", "C4", "Pz", "Oz"], units="uV",
        labels=labels, classes=["A", "B", "C", "D"], patients=people,
    )


@dataset("first")
def first(data_root):
    return waves(1)


@dataset("second")
def second(data_root):
    return waves(2)


TASKS = {"scenario": "class_il_union", "task_classes": [["A", "B"], ["C", "D"]], "batch_size": 8}
BEFORE = RunConfig(dataset="first", network="braindecode:EEGNet", strategy="joint", epochs_per_task=3, **TASKS)
BASE = RunConfig(dataset="second", network="linear", encoder=BEFORE, epochs_per_task=1, **TASKS)
SPACE = SearchSpace("heads", BASE, {"strategy": ["ncm", "slda", "ranpac"]}, seeds=range(1))
"""


def test_a_sweep_of_closed_form_heads_on_a_pretrained_network(tmp_path: Path) -> None:
    (tmp_path / "space.py").write_text(HEADS)
    environment = os.environ | {"CLOPS_PREPARED_ROOT": str(tmp_path / "prepared")}
    launch = [sys.executable, "-m", "clops_sweep", "space.py", "--no-ray", "--no-report"]
    done = subprocess.run(launch, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=290)
    assert done.returncode == 0, done.stdout + done.stderr
    runs = read(str(tmp_path / "results"), "runs").set_index("strategy")
    assert runs["network"].to_dict() == {"joint": "braindecode:EEGNet", **dict.fromkeys(HEADS_USED, "linear")}
    assert set(runs.loc[list(HEADS_USED), "encoder"]) == {f"run:{runs.loc['joint', 'run_id']}"}
    assert (runs.loc[list(HEADS_USED), "balanced_accuracy"] > 0.6).all()  # a quarter by chance
