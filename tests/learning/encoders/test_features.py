"""Features equal the module's output for each frame, are computed once, and do not depend on how."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from clops_sweep import ContinualRun, RunConfig, encode
from clops_sweep.cli.commands import command
from clops_sweep.data.prepared.cache import cached_sets
from clops_sweep.errors import DamagedStore, UsageError
from clops_sweep.experiment.plugins.declarations import EncoderInput
from clops_sweep.learning.encoders.adapting import Signals, adapter
from clops_sweep.learning.encoders.computing import computing
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


def test_single_leads_keep_their_leads(place: Place) -> None:
    place.declare(FILE.replace("sampling_rate=64", "sampling_rate=32"))
    of_lead = config("drawn", scenario="domain_il", leads="single")
    frames = place.frames(of_lead)
    assert len(frames) == 2 * len(place.frames(config("plain")))
    run = ContinualRun(of_lead, frames)
    assert [task.name for task in run.scenario.tasks] == ["Lead I", "Lead II"]


def test_a_run_on_features_never_calls_the_encoder(place: Place) -> None:
    frames = place.frames(config("plain"))
    (place.folder / "plain.pth").unlink()
    place.declare(FILE.replace("module = Net(2)", "raise AssertionError"))
    result = ContinualRun(config("plain", strategy="er"), frames).run()
    row = result.runs.iloc[0]
    assert (row["stores"], row["encoder_hash"]) == ("features", frames.encoded.encoder_hash)
    assert row["memory_bytes"] == row["memory_instances"] * (7 * 4 + 4)
    assert ContinualRun(config("plain", strategy="finetune"), frames).run().runs["stores"].item() == "nothing"


def test_frames_of_another_encoder_are_refused(place: Place) -> None:
    frames, signals = place.frames(config("plain")), place.frames(config(None))
    with pytest.raises(UsageError, match="encoder = 'plain': the frames are signals; open them with encode"):
        ContinualRun(config("plain"), signals)
    with pytest.raises(UsageError, match="encoder = 'tokens': the frames are features of encoder 'plain'"):
        ContinualRun(config("tokens"), frames)


def test_features_do_not_depend_on_the_number_of_workers(place: Place) -> None:
    signals = place.frames(config(None, leads="single"))
    takes = adapter("plain", EncoderInput(2, adapt=frozenset({"repeat"})), Signals.of(signals))
    found = [
        np.concatenate(list(computing("plain", trained(2), takes, signals, workers).batches)) for workers in (1, 2, 5)
    ]
    assert len(signals) > 2 * 32
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert torch.get_num_threads() == 1


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.learning.encoders.place import FILE, Net, Place, config

calls = 0
forward = Net.forward

def dying(self, x):
    global calls
    calls += 1
    if calls == 6:  # four of the probe, and the last batch
        os.kill(os.getpid(), signal.SIGKILL)
    return forward(self, x)

place = Place(Path(sys.argv[1]))
place.data().prepare([config(None).data_key])
Net.forward = dying
place.frames(config("plain"))
"""


def test_a_killed_computation_starts_again(place: Place) -> None:
    folder = place.folder / "killed"
    folder.mkdir()
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", KILLED, folder], env=environment, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (left,) = (folder / "prepared" / "small" / "features").glob("*.partial")
    again = Place(folder)
    assert again.data().data_hash(config("plain").data_key) is None
    frames = again.frames(config("plain"))
    assert frames.data_hash == place.frames(config("plain")).data_hash
    assert not left.exists()


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


def test_features_too_large_for_the_disk_are_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    usage = shutil.disk_usage(place.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=100))
    with pytest.raises(UsageError, match=r"its features of 'small' take 0\.0 GB, and 0\.0 GB are free in "):
        place.frames(config("plain"))
    assert not list(place.prepared.rglob("features.npy"))


def test_the_command_computes_and_lists_them(place: Place) -> None:
    def said(*arguments: str) -> str:
        done = CliRunner().invoke(command, [*arguments, "--prepared-root", str(place.prepared)])
        assert done.exit_code == 0, done.output
        return done.output

    plugins = ("--plugins", str(place.file))
    assert "small: 7 features of plain for each of 64 frames" in said(
        "data", "encode", "small", "--encoder", "plain", *plugins
    )
    assert "plain" in next(line for line in said("data", "list", *plugins).splitlines() if line.startswith("small"))
    (features,) = place.prepared.rglob("features.npy")
    assert (
        cached_sets(place.prepared)[0].size
        > features.stat().st_size + (features.parents[2] / "frames.npy").stat().st_size
    )
    done = CliRunner().invoke(command, ["data", "encode", "small", "--encoder", "plane", *plugins])
    assert isinstance(done.exception, UsageError)
    assert "did you mean 'plain'" in str(done.exception)


def test_the_same_from_python(place: Place) -> None:
    frames = encode(config("plain"), prepared_root=place.prepared)
    assert frames.encoded.encoder == "plain"
    with pytest.raises(UsageError, match="encoder = None"):
        encode(config(None))


HIDDEN = """
import functools, importlib.util, json
from pathlib import Path
HERE = Path(__file__).parent

def scaled(make):
    @functools.wraps(make)
    def made(weights):
        module = make(weights)
        with torch.no_grad():
            module.last.bias += SCALE
        return module
    return made
SCALE = 1.0
FACTORS = []
for factor in [1.0]:
    FACTORS.append(factor)

@encoder("hidden", channels=2)
@scaled
def hidden(weights):
    spec = importlib.util.spec_from_file_location("beside_it", HERE / "beside_it.py")
    beside = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(beside)
    module = Net(2)
    with torch.no_grad():
        module.load_state_dict(torch.load(HERE / "second.pth", weights_only=True))
        module.last.bias += json.loads((HERE / "table.json").read_text())[0] + beside.SHIFT + FACTORS[0]
    return module
"""


@pytest.mark.parametrize("what", ["decorator", "loop", "import", "table", "weights"])
def test_features_are_computed_again_if_the_encoder_computes_others(place: Place, what: str) -> None:
    beside, table, second = (place.folder / name for name in ("beside_it.py", "table.json", "second.pth"))
    beside.write_text("SHIFT = 1\n")
    table.write_text("[1]")
    torch.save(trained(2).state_dict(), second)
    text = FILE + HIDDEN
    place.declare(text)
    of, before = config("hidden"), place.frames(config("hidden"))
    (file,) = place.prepared.rglob("features.npy")
    written = file.stat().st_mtime_ns
    assert place.frames(of).data_hash == before.data_hash
    assert file.stat().st_mtime_ns == written
    if what == "decorator":
        place.declare(text.replace("SCALE = 1.0", "SCALE = 1.5"))
    elif what == "loop":
        place.declare(text.replace("in [1.0]", "in [1.5]"))
    elif what == "import":
        beside.write_text("SHIFT = 1.5 # longer than before\n")
    elif what == "table":
        table.write_text("[1.5]")
    else:
        torch.save(trained(2).state_dict() | {"last.bias": trained(2).last.bias + 0.5}, second)
    after = place.frames(of)
    assert after.data_hash != before.data_hash
    np.testing.assert_allclose(after.signal(slice(None)), before.signal(slice(None)) + 0.5, rtol=0, atol=1e-5)
