"""Update reports against the stored model of a run on other data, whose weights are applied here by hand."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from safetensors.numpy import load

from clops_sweep import ContinualRun, Criteria, RunConfig, UsageError, open_frames, read, update_report
from clops_sweep.analysis.update.report import UpdateReport
from clops_sweep.cli.commands import command
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.store.run_store import RunStore
from tests.data.declared_files import declare, forget
from tests.helpers.stores import record_result

pytestmark = pytest.mark.usefixtures("unpainted")

WARDS = """
PEOPLE = np.repeat(np.arange({people}), 6)
CODES = np.arange(len(PEOPLE)) % 2  # 1: AF

@dataset("{name}", scenarios=("domain_il", "class_il_union"){more})
def wards(data_root):
    signals = np.random.default_rng(1).normal(size=(5000, {channels}, 60)).astype(np.float32)[:len(PEOPLE)]
    signals += 0.5 * np.where(PEOPLE % 4 == 3, -1, 1)[:, None, None] * np.sin(np.arange(60)) * CODES[:, None, None]
    classes = {classes}
    codes = np.array([classes.index({labels}[code]) for code in CODES])
    return Recordings(
        7 * signals, {rate}, {leads}, "mV", codes, classes, PEOPLE + {shift},
        domains={{"ward": np.array(list("{letters}"))[PEOPLE % {wards}]}},
        groups={{"sex": [("f", "m")[person % 2] for person in PEOPLE]}},
    )
"""
USUAL = {
    "name": "wards",
    "more": "",
    "people": 36,
    "wards": 3,
    "letters": "ABCD",
    "classes": ("SR", "AF"),
    "labels": ("SR", "AF"),
    "channels": 2,
    "leads": ("II", "V5"),
    "rate": 50,
    "shift": 0,
}
OTHERS = {
    "wards_2027": {"people": 60, "wards": 4, "classes": ("AF", "SR"), "more": ', people_of="wards"'},
    "first_is_new": {"people": 60, "wards": 4, "letters": "ABC0", "more": ', people_of="wards"'},
    "two_are_new": {"people": 90, "wards": 5, "letters": "ABC0Z", "more": ', people_of="wards"'},
    "others_alone": {"people": 60, "wards": 3, "letters": "XYZ", "shift": 1000, "more": ', people_of="wards"'},
    "renamed": {"people": 60, "shift": 1000},
    "flutter": {"classes": ("SR", "flutter"), "labels": ("SR", "flutter")},
    "one_lead": {"channels": 1, "leads": ("II",)},
    "faster": {"rate": 100},
    "nothing_new": {"more": ', people_of="wards"'},
}


def written(**changes: Any) -> str:
    return WARDS.format(**USUAL | changes)


def config(dataset: str, **settings: Any) -> RunConfig:
    base = {
        "scenario": "domain_il",
        "domain": "ward",
        "network": "linear",
        "epochs_per_task": 2,
        "strategy": "finetune",
    }
    return RunConfig(dataset=dataset, **base | {"learning_rate": 0.01} | settings)


def add(folder: Path, of: RunConfig, *keep: str) -> str:
    """Compute a run, and return its id."""
    frames = open_frames(of.dataset, prepared_root=folder / "prepared", **of.data_key.view)
    models = "last" if "models" in keep else None
    result = ContinualRun(of, frames, keep_predictions="predictions" in keep, keep_models=models).run()
    store = RunStore(folder / "results", keep=keep)
    store.open_for_writing()
    run_id = of.run_id(frames.data_hash)
    record_result(store, {run_id: of}, result, lambda _: frames.data_hash, {"device": "cpu"})
    return run_id


def split_of_trained(folder: Path, name: str, trained: list[str]) -> int:
    """A split seed whose test people are all among some people."""
    for seed in range(100):
        frames = open_frames(name, prepared_root=folder / "prepared", split_seed=seed)
        if {frames.patient_names[person] for person in frames.patients[frames.split == 2]} <= {*trained}:
            return seed
    raise AssertionError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder with a store, and the ids of its runs: on wards A, B and C, on their next edition and on other data."""
    folder = tmp_path_factory.mktemp("wards")
    declare(folder / "wards.py", written())
    prepare("wards", prepared_root=folder / "prepared", data_root=None)
    ids = {"old": add(folder, config("wards", normalize="zscore"), "models")}
    ids["no model"] = add(folder, config("wards", seed=1), "predictions")
    trained = open_frames("wards", prepared_root=folder / "prepared", leads="all")
    ids["trained on"] = ",".join(sorted({trained.patient_names[p] for p in trained.patients[trained.split < 2]}))
    forget()
    declare(folder / "wards.py", written(people=60, wards=4))
    prepare("wards", prepared_root=folder / "prepared", data_root=None)
    ids["wards"] = add(folder, config("wards", normalize="none"), "predictions")
    for name, changes in OTHERS.items():
        declare(folder / f"{name}.py", written(**changes, name=name))
        prepare(name, prepared_root=folder / "prepared", data_root=None)
        seed = 0 if name != "nothing_new" else split_of_trained(folder, name, ids["trained on"].split(","))
        ids[name] = add(folder, config(name, normalize="minmax", split_seed=seed), "predictions")
    yield folder, ids
    forget()


@pytest.mark.nightly
@pytest.mark.parametrize("dataset", ["wards", "wards_2027"])
def test_the_stored_model_predicts_test_people_whom_it_has_not_seen(
    made: tuple[Path, dict[str, str]], dataset: str
) -> None:
    """Class order and normalisation differ between the two runs."""
    folder, ids = made
    report = update_report(
        folder / "results",
        ids[dataset],
        against=ids["old"],
        groups=["sex"],
        criteria=Criteria(max_flips=1.0, min_new_accuracy=0.0),
        prepared_root=folder / "prepared",
    )
    frames = open_frames(dataset, prepared_root=folder / "prepared", normalize="none", leads="all")
    rows = read(folder / "results", "predictions", run_ids=ids[dataset])
    rows = rows[rows["trained_on"] == 4].drop_duplicates("instance")
    trained = ids["trained on"].split(",")
    compared = rows[~rows["patient"].isin(trained)]
    assert 0 < compared["patient"].nunique() < rows["patient"].nunique(), "the test can fail"
    signals = frames.signal(compared["instance"].to_numpy()).astype(float)
    normal = (signals - signals.mean(-1, keepdims=True)) / signals.std(-1, keepdims=True)
    weights = load((folder / "results" / "models" / ids["old"] / "task_3.safetensors").read_bytes())
    (matrix,) = (value for value in weights.values() if value.ndim == 2)
    (bias,) = (value for value in weights.values() if value.ndim == 1)
    logits = normal.reshape(len(normal), -1) @ matrix.T.astype(float) + bias
    decided = np.array(["SR", "AF"])[logits.argmax(1)]
    right_before = decided == compared["label"].to_numpy()
    of_class = {name: compared[f"target_{frames.classes.index(name)}"] > 0 for name in ("SR", "AF")}
    right_after = np.where(compared["probability_0"] > 0.5, *frames.classes) == compared["label"].to_numpy()
    everything = report.flips[0]
    assert (report.instances, report.units) == (len(compared), compared["patient"].nunique())
    assert everything.accuracy.before.value == pytest.approx(right_before.mean())
    assert everything.accuracy.after.value == pytest.approx(right_after.mean())
    assert everything.right_to_wrong.value == pytest.approx((right_before & ~right_after).mean())
    exact = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    brier = sum((exact[:, place] - of_class[name]) ** 2 for place, name in enumerate(("SR", "AF")))
    assert report.overall[1].before.value == pytest.approx(brier.mean(), abs=1e-5)
    in_d = compared["task"].str.endswith("D")
    assert report.last_task is not None
    assert report.last_task.title == "ward D"
    assert report.last_task.accuracy.value == pytest.approx(right_after[in_d].mean())
    (row,) = (task for task in report.earlier if task.title == "ward D")
    (group,) = (part for part in report.flips if (part.column, part.name) == ("task", "ward D"))
    (verdict,) = (of for of in report.criteria if of.criterion == "min_new_accuracy")
    one_interval = {row.accuracy.after, group.accuracy.after, verdict.measured, report.last_task.accuracy}
    assert len(one_interval) == 1, "one number has one interval, wherever it is"
    assert np.isfinite(verdict.measured.low)
    tested, left = rows["patient"].nunique(), rows[rows["patient"].isin(trained)]["patient"].nunique()
    assert f"trained or validated on {left} of the {tested} test patients: they are left out" in report.other_data
    assert report.other_data.endswith("It has learned ward A, ward B, ward C, and has never seen ward D.")
    facts = {name: (before, after) for name, before, after in report.models}
    content = (folder / "results" / "models" / ids["old"] / "task_3.safetensors").read_bytes()
    assert facts["SHA-256 of the model"][0] == hashlib.sha256(content).hexdigest()
    assert facts["tasks learned"] == ("3 of 3", "4 of 4")


LIMITS = Criteria(
    max_flips=1.0,
    max_group_flips=1.0,
    min_accuracy=0.0,
    max_accuracy_loss=1.0,
    max_task_accuracy_loss=1.0,
    min_sensitivity={"AF": 0.0},
    min_specificity={"AF": 0.0},
    max_calibration_error=1.0,
    max_drift=1.0,
    min_new_accuracy=0.0,
    min_new_sensitivity={"AF": 0.0},
    min_new_specificity={"AF": 0.0},
)


def on_both(folder: Path, ids: dict[str, str], dataset: str) -> pd.DataFrame:
    """Ward, class, sex, person and decisions of both models on people whom the old model has not seen, by hand."""
    frames = open_frames(dataset, prepared_root=folder / "prepared", normalize="none", leads="all")
    rows = read(folder / "results", "predictions", run_ids=ids[dataset])
    rows = rows[rows["trained_on"] == rows["trained_on"].max()].drop_duplicates("instance")
    rows = rows[~rows["patient"].isin(ids["trained on"].split(","))]
    signals = frames.signal(rows["instance"].to_numpy()).astype(float)
    normal = (signals - signals.mean(-1, keepdims=True)) / signals.std(-1, keepdims=True)
    weights = load((folder / "results" / "models" / ids["old"] / "task_3.safetensors").read_bytes())
    (matrix,) = (value for value in weights.values() if value.ndim == 2)
    (bias,) = (value for value in weights.values() if value.ndim == 1)
    logits = normal.reshape(len(normal), -1) @ matrix.T.astype(float) + bias
    sex = np.where(rows["patient"].astype(int) % 2 == 0, "f", "m")
    return pd.DataFrame(
        {
            "ward": rows["task"].str[-1].to_numpy(),
            "patient": rows["patient"].to_numpy(),
            "sex": sex,
            "af": rows["label"].to_numpy() == "AF",
            "before": logits.argmax(1) == 1,
            "after": rows["probability_1"].to_numpy() > 0.5,
        }
    )


def by_hand(part: pd.DataFrame) -> dict[str, float]:
    """Measures of the decisions of the new model, and the share that became wrong."""
    right_before, right = part["before"] == part["af"], part["after"] == part["af"]
    return {
        "flips": (right_before & ~right).mean(),
        "accuracy": right.mean(),
        "loss": right_before.mean() - right.mean(),
        "sensitivity": right[part["af"]].mean(),
        "specificity": right[~part["af"]].mean(),
    }


@pytest.mark.parametrize(("dataset", "new"), [("first_is_new", "0"), ("two_are_new", "0Z")])
def test_criteria_tell_new_wards_from_those_that_the_old_model_has_learned(
    made: tuple[Path, dict[str, str]], tmp_path: Path, dataset: str, new: str
) -> None:
    """The new ward comes first in the alphabet, so it is not the last task."""
    folder, ids = made
    report = update_report(
        folder / "results",
        ids[dataset],
        against=ids["old"],
        groups=["sex"],
        criteria=LIMITS,
        prepared_root=folder / "prepared",
    )
    both = on_both(folder, ids, dataset)
    is_new = both["ward"].isin([*new])
    learned = by_hand(both[~is_new])
    everything = by_hand(both)
    assert learned["flips"] != everything["flips"], "the test can fail"
    expected = {
        ("max_flips", ""): learned["flips"],
        ("min_accuracy", ""): learned["accuracy"],
        ("max_accuracy_loss", ""): learned["loss"],
        ("min_sensitivity", "AF"): learned["sensitivity"],
        ("min_specificity", "AF"): learned["specificity"],
    }
    for sex in ("f", "m"):
        expected["max_group_flips", f"sex {sex}"] = by_hand(both[~is_new & (both["sex"] == sex)])["flips"]
    for ward in "ABC":
        expected["max_task_accuracy_loss", f"ward {ward}"] = by_hand(both[both["ward"] == ward])["loss"]
    values = {(of.criterion, of.of): of.measured.value for of in report.criteria if "new" not in of.criterion}
    others = {key: values.pop(key) for key in [("max_calibration_error", ""), ("max_drift", "")]}
    assert values == pytest.approx(expected)
    of_learned = [of for of in report.criteria if of.criterion in ("max_flips", "max_drift", "max_calibration_error")]
    for of in of_learned:
        assert (of.instances, of.units) == ((~is_new).sum(), both["patient"][~is_new].nunique())
        assert of.where == "ward A, ward B and ward C"
    assert others["max_drift", ""] != report.drift.value, "the drift is that of learned wards, too"
    new_values = {
        (of.criterion, of.where): (of.measured.value, of.units) for of in report.criteria if "new" in of.criterion
    }
    of_new = {}
    for ward in new:
        part = both[both["ward"] == ward]
        measures = by_hand(part)
        for name in ("accuracy", "sensitivity", "specificity"):
            of_new[f"min_new_{name}", f"ward {ward}"] = (measures[name], part["patient"].nunique())
    assert {key: units for key, (_, units) in new_values.items()} == {key: units for key, (_, units) in of_new.items()}
    assert {key: of for key, (of, _) in new_values.items()} == pytest.approx(
        {key: of for key, (of, _) in of_new.items()}
    )
    assert report.flips[0].right_to_wrong.value == pytest.approx(everything["flips"]), "beside: over all wards"
    assert report.last_task is not None
    assert report.last_task.accuracy.value == pytest.approx(by_hand(both[is_new])["accuracy"])
    named = " and ".join(f"ward {ward}" for ward in new)
    assert report.last_task.title == named
    assert report.judged_on.endswith(
        "which the model before has never seen; all others are about what it has learned: ward A, ward B, ward C. "
        "Other numbers are over all tasks."
    )
    for task in report.earlier:
        (group,) = (part for part in report.flips if (part.column, part.name) == ("task", task.title))
        assert group.accuracy == task.accuracy, "one number has one interval"
        for of in report.criteria:
            if (of.criterion, of.of) == ("max_task_accuracy_loss", task.title):
                np.testing.assert_equal(of.measured.low, -task.accuracy.difference.high)
    limits = tmp_path / "criteria.toml"
    limits.write_text("max_flips = 1.0\nmin_new_accuracy = 0.0\n")
    words = ["update-report", ids[dataset], "--against", ids["old"], "--output", str(tmp_path / "page.html")]
    ending = [
        "--criteria",
        str(limits),
        "--results",
        str(folder / "results"),
        "--prepared-root",
        str(folder / "prepared"),
    ]
    done = CliRunner().invoke(command, [*words, *ending], standalone_mode=False)
    for text in (done.output, (tmp_path / "page.html").read_text()):
        assert report.judged_on in text


def test_a_criterion_about_a_ward_that_is_not_there_is_refused(made: tuple[Path, dict[str, str]]) -> None:
    """No ward is new, or none was learned."""
    folder, ids = made

    def judged(dataset: str, **limits: float) -> UpdateReport:
        return update_report(
            folder / "results", ids[dataset], against=ids["old"], criteria=limits, prepared_root=folder / "prepared"
        )

    with pytest.raises(
        UsageError, match=r"min_new_accuracy: run \w+ has learned every ward of run \w+, so there is no new"
    ):
        judged("renamed", min_new_accuracy=0.0)
    report = judged("renamed", max_flips=1.0)
    assert report.judged_on == "Criteria are about all tasks, which both models have learned: ward A, ward B, ward C."
    assert report.criteria[0].measured == report.flips[0].right_to_wrong
    with pytest.raises(UsageError, match=r"max_flips: run \w+ has learned none of the wards that run \w+ tests"):
        judged("others_alone", max_flips=1.0)
    assert [of.where for of in judged("others_alone", min_new_accuracy=0.0).criteria] == ["ward X", "ward Y", "ward Z"]
    with pytest.raises(
        UsageError, match=r"'0' is no task that the model before has learned; tasks that .*: ward A, ward B"
    ):
        judged("first_is_new", max_task_accuracy_loss={"0": 0.1})


def test_people_with_other_names_are_recognised_by_their_signals(made: tuple[Path, dict[str, str]]) -> None:
    folder, ids = made
    named = update_report(
        folder / "results", ids["wards"], against=ids["old"], prepared_root=folder / "prepared"
    ).other_data
    renamed = update_report(
        folder / "results", ids["renamed"], against=ids["old"], prepared_root=folder / "prepared"
    ).other_data
    assert "they are left out" in renamed
    assert "they are left out" in named


def test_page_and_terminal_say_what_was_compared(made: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    folder, ids = made
    words = ["update-report", ids["wards"], "--against", ids["old"], "--output", str(tmp_path / "page.html")]
    ending = ["--results", str(folder / "results"), "--prepared-root", str(folder / "prepared")]
    done = CliRunner().invoke(command, [*words, *ending], standalone_mode=False)
    assert done.exit_code == 3, done.output
    sentence = f"the stored model of run {ids['old'][:8]} was applied to the test recordings of run {ids['wards'][:8]}."
    page = (tmp_path / "page.html").read_text()
    for text in (page, done.output):
        assert sentence in text
        assert "has never seen ward D." in text


@pytest.mark.parametrize(
    ("dataset", "said"),
    [
        ("flutter", "differ in classes SR, AF and SR, flutter; expected runs with the same classes"),
        ("one_lead", "differ in channels II, V5 and II; expected"),
        ("faster", "differ in sampling rate 50 and 100 Hz; expected"),
        ("nothing_new", None),
    ],
)
def test_data_that_the_model_does_not_fit_are_refused(
    made: tuple[Path, dict[str, str]], dataset: str, said: str | None
) -> None:
    folder, ids = made
    if said is None:
        said = f"the model of run {ids['old']} was trained on all"
    with pytest.raises(UsageError, match=re.escape(said)):
        update_report(folder / "results", ids[dataset], against=ids["old"], prepared_root=folder / "prepared")


def test_a_run_without_its_model_is_refused(made: tuple[Path, dict[str, str]]) -> None:
    folder, ids = made
    with pytest.raises(UsageError, match=rf"the model of run {ids['no model']} is not stored; expected a run with"):
        update_report(folder / "results", ids["wards"], against=ids["no model"], prepared_root=folder / "prepared")
