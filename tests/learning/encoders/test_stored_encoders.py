"""The network of a stored run as an encoder: its features, its people, and models on top of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result
from safetensors.torch import load

from clops_sweep import ContinualRun, FrameSet, RunConfig, UsageError
from clops_sweep.cli.commands import command
from clops_sweep.execution.display.live import SweepDisplay
from clops_sweep.execution.jobs import Resources
from clops_sweep.execution.launch import launch
from clops_sweep.execution.outcome import Outcome
from clops_sweep.experiment.plugins.registry import NETWORKS, STRATEGIES
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.learning.models.model_facts import facts_in
from clops_sweep.learning.models.trained_model import model_from
from clops_sweep.learning.networks.head import features_of, head_of
from clops_sweep.learning.result import RunResult
from clops_sweep.planning.request import Request
from tests.learning.encoders.place import Place, config


def kept(place: Place, of: RunConfig, frames: FrameSet | None = None) -> tuple[str, bytes, RunResult]:
    """Return a run whose model is stored."""
    frames = place.frames(of) if frames is None else frames
    result = ContinualRun(of, frames, keep_predictions=True, keep_models="last").run()
    run_id = of.run_id(frames.data_hash)
    place.store.models.write(run_id, result.models, "last")
    return run_id, result.models[max(result.models)], result


def pretrained(place: Place, **changes: Any) -> tuple[str, bytes, RunResult]:
    settings = {"leads": "all", "network": "mlp", "mlp_width": 5, "strategy": "finetune"}
    return kept(place, config(None, **(settings | changes)))


def test_its_features_are_what_its_last_layer_saw(place: Place) -> None:
    run_id, content, _ = pretrained(place)
    frames = place.frames(config(f"run:{run_id}", dataset="other"))
    network = model_from(content).network
    signals = torch.from_numpy(place.frames(config(None, dataset="other")).signal(slice(None)))
    expected = features_of(head_of("mlp", network, 1)[1], network, signals)
    np.testing.assert_allclose(frames.signal(slice(None)), expected.numpy(), rtol=0, atol=1e-6)
    assert frames.encoded.encoder == f"run:{run_id}"


@pytest.mark.parametrize("encoder", ["plain", "tokens", "stored"])
def test_a_loaded_model_predicts_from_signals_what_its_run_predicted(place: Place, encoder: str) -> None:
    of = config(encoder, dataset="other", network="mlp") if encoder != "stored" else None
    if of is None:
        of = config(f"run:{pretrained(place)[0]}", dataset="other", network="mlp")
    run_id, content, result = kept(place, of)
    facts = facts_in(content)
    assert (facts.encoder, facts.samples, facts.channels, facts.unit) == (of.encoder, 128, ("I", "II"), "mV")
    model = model_from(content, place.data().encoders.of_model)  # type: ignore[union-attr]
    rows = result.predictions[result.predictions["trained_on"] == 2]
    signals = place.frames(config(None, dataset="other")).signal(rows["instance"].to_numpy())
    with torch.no_grad():
        found = model(model.normalized(signals)).numpy()
    stored = rows[[name for name in rows if name.startswith("probability_")]].to_numpy()
    np.testing.assert_allclose(found, stored, rtol=0, atol=1e-5)
    assert not model.training
    assert set(load(content)) == set(NETWORKS["mlp"](*facts.shape, 1, mlp_width=256).state_dict())  # only the head
    assert run_id == facts.run_id


FIRST = "RunConfig(dataset='small', leads='all', network='mlp', mlp_width=5, strategy='finetune', epochs_per_task=1)"
SPACE = """
from clops_sweep import RunConfig, SearchSpace
BASE = RunConfig(dataset="{dataset}", network="linear", epochs_per_task=1, leads="all", encoder={first})
SPACE = SearchSpace("heads", BASE, {{"strategy": ["finetune", "er"]}}, seeds=[0])
"""


def said(place: Place, dataset: str, *arguments: str, first: str = FIRST, space: str = SPACE) -> Result:
    file = place.folder / "heads.py"
    file.write_text(space.format(dataset=dataset, first=first))
    roots = ["--prepared-root", str(place.prepared), "--results", str(place.store.files.root)]
    return CliRunner().invoke(command, [*arguments, str(file), *roots])


def test_a_config_as_encoder_is_run_once_before_the_others(place: Place) -> None:
    launch = ("launch", "--no-ray", "--no-report")
    before = said(place, "other", "plan")
    assert "pretraining of encoders, before the others: 1 run asked for, 0 finished, 1 pending, 0 failed; " in (
        before.output
    )
    assert said(place, "other", *launch).exit_code == 0, before.output
    rows = place.store.read("runs").set_index("dataset")
    first = rows.loc["small", "run_id"]
    assert rows.loc["other", "encoder"].tolist() == [f"run:{first}"] * 2
    assert list(place.store.models.runs("last")) == [first]
    again = said(place, "other", *launch, "--json")
    assert json.loads(again.stdout)["part"] == "all"
    again = said(place, "other", *launch)
    assert "nothing is pending: 2 runs asked for, 2 finished" in again.output
    written = said(place, "other", "plan", "--json")
    assert json.loads(written.output)["finished"] == 2
    place.store.models.delete([first])
    assert json.loads(said(place, "other", "plan", "--json").output)["pretraining"][0]["without_kept"] == 1


BROKEN = """
from clops_sweep import strategy
from clops_sweep.learning.strategies.finetune import FineTuning


@strategy("broken")
class Broken(FineTuning):
    def __init__(self, training):
        raise ValueError("broken")
"""


def test_the_outcome_of_a_failed_pretraining_says_so(place: Place) -> None:
    first = FIRST.replace("finetune", "broken")
    try:
        done = said(place, "other", "launch", "--no-ray", "--no-report", "--json", first=first, space=BROKEN + SPACE)
    finally:
        STRATEGIES.forget("broken")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert (found["part"], found["complete"], found["asked"], found["failed"]) == ("pretraining", False, 1, 1)


INNERMOST = (
    "RunConfig(dataset='third', leads='all', network='mlp', mlp_width=4, strategy='finetune', epochs_per_task=1)"
)
THIRD = """
from clops_sweep import Recordings, dataset
from tests.learning.encoders.place import signals


@dataset("third", scenarios=("class_il",))
def third(data_root):
    x, people, labels = signals(2)
    return Recordings(x, 32, ["I", "II"], "mV", labels, ("a", "b", "c", "d"), people + 1000)
"""
NESTED = FIRST.replace("RunConfig(", f"RunConfig(encoder={INNERMOST}, ")


@pytest.mark.nightly
def test_an_encoder_with_an_encoder_of_its_own_comes_second(place: Place) -> None:
    done = said(place, "other", "launch", "--no-ray", "--no-report", first=NESTED, space=THIRD + SPACE)
    assert done.exit_code == 0, done.exception
    first, second, *others = place.store.read("runs").sort_values("started_at").to_dict("records")
    assert (first["dataset"], second["dataset"]) == ("third", "small")
    assert second["encoder"] == f"run:{first['run_id']}"
    assert {run["encoder"] for run in others} == {f"run:{second['run_id']}"}
    again = said(place, "other", "launch", "--no-ray", "--no-report", first=NESTED, space=THIRD + SPACE)
    assert "nothing is pending" in again.output


TUNED = """
from clops_sweep import OptunaSearch, RunConfig, SearchSpace, TuneOn
BASE = RunConfig(dataset="{dataset}", network="mlp", epochs_per_task=1, leads="all", encoder={first})
SEARCH = OptunaSearch(sampler="grid", parameters={{"mlp_width": [4, 8]}}, tune_on=TuneOn(tasks=1))
SPACE = SearchSpace("tuned", BASE, seeds=1, search=SEARCH)
"""


@pytest.mark.nightly
def test_one_launch_pretrains_then_searches_then_reports_what_is_chosen(place: Place) -> None:
    done = said(place, "other", "launch", "--no-ray", "--no-report", space=TUNED)
    if done.exc_info:
        import traceback

        traceback.print_exception(*done.exc_info)
    assert done.exit_code == 0, (done.output, done.exception)
    runs = place.store.read("runs").sort_values("started_at")
    first, *later = runs.to_dict("records")
    assert (first["dataset"], len(later)) == ("small", 3)
    assert {row["encoder"] for row in later} == {f"run:{first['run_id']}"}
    *trials, reported = later
    assert [row["first_tasks"] for row in trials] == [1, 1]
    assert reported["mlp_width"] == max(trials, key=lambda row: row["auc"])["mlp_width"]


def launched(place: Place, starting: Callable[..., None] = lambda state, runs, resources: None) -> Outcome:
    file = place.folder / "heads.py"
    file.write_text(TUNED.format(dataset="other", first=FIRST))
    place.store.open_for_writing()
    request = Request(Selection.of_files([file]), place.data(), place.store)
    return launch(request, Resources(workers="this process"), partial(SweepDisplay, "status", None), starting=starting)


def test_a_launch_that_cannot_go_on_after_the_encoders_is_stopped_and_keeps_them(place: Place) -> None:
    """Here another program writes to the file of the studies meanwhile."""
    journal = Path(place.store.files.root) / "optuna.journal"
    stopped = launched(place, lambda state, runs, resources: journal.write_text("of another\nprogram\n"))
    assert stopped.stopped is not None
    assert stopped.stopped.startswith(f"studies {journal}: damaged, or edited")
    assert (stopped.complete, stopped.ran, stopped.counts["finished"]) == (False, True, 0)
    (first,) = place.store.read("runs").to_dict("records")
    assert (first["dataset"], first["status"]) == ("small", "finished")
    journal.unlink()
    assert launched(place).complete
    assert len(place.store.read("runs")) == 4


def test_people_of_a_run_to_come_are_not_evaluated(place: Place) -> None:
    for what in ("launch", "plan"):  # which knows them once the data are prepared
        refused = said(place, "small", what)
        assert isinstance(refused.exception, UsageError)
        assert re.search(r"patient .* is evaluated, and was seen by encoder .RunConfig\(", str(refused.exception))
    assert not len(place.store.read("runs"))


SEARCH = (
    SPACE
    + """
from clops_sweep import OptunaSearch, TuneOn
METHODS = {{"er": {{"encoder": [{first}], "mlp_width": [4, 8]}}}}
BASE = RunConfig(dataset="{dataset}", network="mlp", epochs_per_task=1, leads="all", validation=0.2)
SEARCH = OptunaSearch(methods=METHODS, trials_each=1, tune_on=TuneOn(tasks=1))
SPACE = SearchSpace("tuned", BASE, seeds=1, search=SEARCH)
"""
)


UNKNOWN_OPTION = TUNED.replace('sampler="grid"', 'sampler="tpe", n_trials=2, sampler_options={{"no_such": 1}}')


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"first": FIRST.replace("'all'", "'single'")}, r"encoder .RunConfig\(.* takes 1 channel"),
        ({"option": "--shard=1/2"}, r"--shard 1/2: the run of encoder = .* expected a launch with --limit 1 before"),
        (
            {"space": SEARCH},
            r"encoder = .*: an encoder that a run trains cannot be searched over; expected it in base or axes",
        ),
        ({"space": UNKNOWN_OPTION}, r"search space 'tuned': sampler_options of 'tpe' \(no_such\): TypeError"),
    ],
)
def test_what_cannot_be_pretrained_is_refused_before_it_is(change: dict[str, str], sentence: str, place: Place) -> None:
    option = change.pop("option", "--no-report")
    refused = said(place, "other", "launch", "--no-ray", option, **change)
    assert isinstance(refused.exception, UsageError), refused.output
    assert re.search(sentence, str(refused.exception)), refused.exception
    assert not len(place.store.read("runs"))
