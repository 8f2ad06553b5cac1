from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from clops_sweep.cli.commands import command

UNNAMED = """
import numpy as np

from clops_sweep import Recordings, RunConfig, SearchSpace, dataset


@dataset("NAME"STATED)
def wards(data_root):
    y = np.arange(96) % 2
    x = np.random.default_rng(0).normal(size=(96, 2, 50)) + y[:, None, None]
    return Recordings(x, 50, ["I", "II"], "mV", labels=y, classes=["no", "yes"], patients=PATIENTS)


SPACE = SearchSpace("rooms", RunConfig(dataset="NAME", network="small_cnn", epochs_per_task=1), seeds=[0])
"""
WEARABLE = """
import numpy as np

from clops_sweep import Recordings, RunConfig, SearchSpace, dataset


@dataset("NAME"DECLARED)
def wearable(data_root):
    y = np.arange(96) % 2
    x = np.random.default_rng(0).normal(size=(96, 2, 50)) + y[:, None, None]
    x[:, 0] *= 30
    people = np.arange(96) // 4
    return Recordings(x, 50, ["EEG", "acc"], ["uV", "g"], labels=y, classes=["no", "yes"], patients=people)


SPACE = SearchSpace("worn", RunConfig(dataset="NAME", network="small_cnn", epochs_per_task=1GIVEN), seeds=[0])
"""
SPACE = """
import numpy as np

from clops_sweep import Recordings, RunConfig, SearchSpace, dataset

PERSON = np.arange(96) // 4


@dataset("rooms", scenarios=["domain_il"])
def wards(data_root):
    y = np.arange(96) % 2
    x = np.random.default_rng(0).normal(size=(96, 2, 50)) + y[:, None, None]
    ward = np.array(["A", "B"])[PERSON % 2]
    people = {"patients": PERSON, "domains": {"ward": ward}}
    return Recordings(x, 50, ["I", "II"], "mV", labels=y, classes=["no", "yes"], **people)


SPACE = SearchSpace("rooms", RunConfig(dataset="rooms", scenario="domain_il", network="small_cnn"DOMAIN), seeds=[0])
"""


@pytest.mark.parametrize(
    ("domain", "is_said"), [("", True), (", domain='lead'", False), (", domain='ward'", False)], ids=repr
)
def test_domains_that_are_not_used_are_named(domain: str, is_said: bool, tmp_path: Path) -> None:
    file = tmp_path / "wards.py"
    file.write_text(SPACE.replace("DOMAIN", domain))
    prepared = ["--prepared-root", str(tmp_path / "prepared")]
    run = CliRunner().invoke
    done = run(command, ["data", "prepare", "rooms", "--plugins", str(file), *prepared])
    assert done.exit_code == 0, done.output
    tasks = "domain_il by ward" if "ward" in domain else "domain_il"
    assert f"rooms, {tasks}: frames (patients) per task" in done.output, "those of the search space"
    plan = run(command, ["plan", str(file), *prepared, "--results", str(tmp_path / "results")])
    assert plan.exit_code == 0, plan.output
    sentence = "rooms, domain_il: each task is a lead; for tasks by ward, set domain='ward', or domain='lead' to keep"
    assert (sentence in plan.output) == is_said, plan.output


@pytest.mark.parametrize(
    ("name", "stated", "patients", "is_said"),
    [
        ("unknown", "", "None", True),
        ("stated", ", one_recording_per_person=True", "None", False),
        ("one_each", "", "np.arange(96)", False),
        ("several", "", "np.arange(96) // 4", False),
    ],
)
def test_recordings_without_people_are_named(
    name: str, stated: str, patients: str, is_said: bool, tmp_path: Path
) -> None:
    file = tmp_path / "wards.py"
    text = UNNAMED.replace("STATED", stated).replace("PATIENTS", patients)
    file.write_text(text.replace("NAME", name))
    prepared = ["--prepared-root", str(tmp_path / "prepared")]
    store = ["--results", str(tmp_path / "results")]
    run = CliRunner().invoke
    done = run(command, ["data", "prepare", name, "--plugins", str(file), *prepared])
    plan = run(command, ["plan", str(file), *prepared, *store])
    launch = run(command, [str(file), *prepared, *store, "--no-ray", "--no-report"])
    for result in (done, plan, launch):
        assert result.exit_code == 0, result.output
        assert result.output.count("each recording counts as a person, because none is given") == is_said
        assert result.output.count("people may be recordings: each of the 96 people") == (name == "one_each")


def test_a_statement_that_each_person_has_one_recording_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "wards.py"
    stated = UNNAMED.replace("STATED", ", one_recording_per_person=True")
    file.write_text(stated.replace("PATIENTS", "np.arange(96) // 4").replace("NAME", "not_one_each"))
    done = CliRunner().invoke(
        command,
        ["data", "prepare", "not_one_each", "--plugins", str(file), "--prepared-root", str(tmp_path / "prepared")],
    )
    assert done.exit_code != 0
    assert "one_recording_per_person: 96 recordings are of 24 people; leave it out" in str(done.exception)


@pytest.mark.parametrize(("seeds", "is_said"), [([0, 1, 2], True), ([0], False)])
def test_split_seeds_of_a_split_that_is_given_are_said_to_repeat_runs(
    seeds: list[int], is_said: bool, tmp_path: Path
) -> None:
    file = tmp_path / "given.py"
    text = SPACE.replace("rooms", "given_wards").replace("DOMAIN", ", domain='ward'")
    text = text.replace("**people)", "**people,\n        split=np.array(['train', 'test'])[PERSON // 2 % 2])")
    file.write_text(text.replace("seeds=[0]", f"axes={{'split_seed': {seeds}}}, seeds=[0]"))
    prepared = ["--prepared-root", str(tmp_path / "prepared")]
    run = CliRunner().invoke
    done = run(command, ["data", "prepare", "given_wards", "--plugins", str(file), *prepared])
    assert done.exit_code == 0, done.output
    plan = run(command, ["plan", str(file), *prepared, "--results", str(tmp_path / "results")])
    assert plan.exit_code == 0, plan.output
    sentence = (
        "given_wards: its split is given in the data, so all 3 split seeds give the same runs; leave out split_seed"
    )
    assert (sentence in plan.output) == is_said, plan.output


@pytest.mark.parametrize(
    ("name", "declared", "given", "is_noted", "is_doubted"),
    [
        ("worn_default", "", "", True, True),
        ("worn_given", "", ", normalize='zscore'", True, False),
        ("worn_chosen", "", ", normalize='none'", True, False),
        ("worn_declared", ", normalize='zscore'", "", False, False),
    ],
)
def test_channels_of_very_different_scales_are_named(
    name: str, declared: str, given: str, is_noted: bool, is_doubted: bool, tmp_path: Path
) -> None:
    file = tmp_path / "worn.py"
    file.write_text(WEARABLE.replace("DECLARED", declared).replace("GIVEN", given).replace("NAME", name))
    prepared = ["--prepared-root", str(tmp_path / "prepared")]
    run = CliRunner().invoke
    done = run(command, ["data", "prepare", name, "--plugins", str(file), *prepared])
    plan = run(command, ["plan", str(file), *prepared, "--results", str(tmp_path / "results")])
    for result, is_said in ((done, is_noted), (plan, is_doubted)):
        assert result.exit_code == 0, result.output
        words = " ".join(result.output.split())
        assert words.count("scales of channels differ by a factor of") == is_said, result.output
        assert ("set normalize='zscore' in RunConfig" in words) == is_said


def test_a_network_that_ends_in_a_sigmoid_is_named_by_plan_and_one_that_ends_in_a_softmax_refused(
    tmp_path: Path,
) -> None:
    file = tmp_path / "ending.py"
    text = WEARABLE.replace("DECLARED", "").replace("GIVEN", "").replace("NAME", "ending").replace("small_cnn", "ends")
    network = """
from torch import nn

from clops_sweep import network


@network("ends")
def ends(channels, samples, outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * samples, outputs), nn.LAST)


SPACE ="""
    text = text.replace("SPACE =", network)
    prepared = ["--prepared-root", str(tmp_path / "prepared")]
    run = CliRunner().invoke
    file.write_text(text.replace("LAST", "Sigmoid()"))
    assert run(command, ["data", "prepare", "ending", "--plugins", str(file), *prepared]).exit_code == 0
    plan = run(command, ["plan", str(file), *prepared, "--results", str(tmp_path / "results")])
    assert plan.exit_code == 0, plan.output
    assert "network 'ends': returns values from 0 to 1 alone; losses take logits" in plan.output
    file.write_text(text.replace("LAST", "Softmax(1)"))
    plan = run(command, ["plan", str(file), *prepared, "--results", str(tmp_path / "results")])
    assert plan.exit_code != 0
    assert "network 'ends': returns probabilities, rows that sum to 1, instead of logits" in str(plan.exception)
