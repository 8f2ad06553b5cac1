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
