"""Criteria on the last task of a run, the number of decimals of shares, and commands that repeat a report."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.metrics import roc_auc_score

from clops_sweep import ContinualRun, Criteria, RunConfig, UpdateReport, UsageError, open_frames, update_report
from clops_sweep.analysis.update.criteria import read_criteria
from clops_sweep.analysis.update.earlier import clear_changes
from clops_sweep.analysis.update.measures import Change, Quantity, Slice
from clops_sweep.analysis.update.page import (
    by_verdict,
    earlier_in_words,
    settings_that_differ,
    verdict,
    what_can_be_shown,
)
from clops_sweep.analysis.update.people import BECAME
from clops_sweep.analysis.update.shares import bound_without_flips, measured, percent, percents
from clops_sweep.analysis.update.verdicts import decision
from clops_sweep.cli.commands import command
from clops_sweep.data.prepared.pseudonyms import SECRET, pseudonyms
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.errors import several
from clops_sweep.store.run_store import RunStore
from tests.data.declared_files import declare, forget
from tests.helpers.stores import record_failure, record_result

pytestmark = pytest.mark.usefixtures("unpainted")

WARDS = """
from tests.data.declared_files import waves
N = 192
PEOPLE = np.arange(N) // 4

@dataset("hospital", scenarios=("domain_il", "subject_il"))
def hospital(data_root):
    signals = waves(N, 1, 100) + 8 * np.random.default_rng(0).standard_normal((N, 1, 100))
    return Recordings(
        signals, 50, ("II",), "mV", np.arange(N) % 2, ("SR", "AF"), PEOPLE,
        domains={"ward": np.array(["A", "B", "C"])[PEOPLE % 3]},
        groups={"sex": ["f" if person % 2 else "m" for person in PEOPLE]},
        times=np.datetime64("2020-01-01T08:00:00") + np.arange(N).astype("timedelta64[D]"),
        names=[f"strip-{number}" for number in range(N)],
    )
"""


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with prepared frames of a data set of three wards."""
    folder = tmp_path_factory.mktemp("hospital")
    declare(folder / "hospital.py", WARDS)
    prepare("hospital", prepared_root=folder / "prepared", data_root=None)
    yield folder
    forget()


def trained(folder: Path, strategy: str = "finetune", **settings: str | float) -> str:
    """Train a run, store it with its predictions, and return its id."""
    config = RunConfig(
        **{"dataset": "hospital", "scenario": "domain_il", "domain": "ward", "network": "linear", "epochs_per_task": 2}
        | {"strategy": strategy}
        | settings
    )
    frames = open_frames("hospital", prepared_root=folder / "prepared", split_seed=config.split_seed)
    store = RunStore(folder / "results", keep=["predictions"])
    store.open_for_writing()
    run_id = config.run_id(frames.data_hash)
    result = ContinualRun(config, frames, keep_predictions=True).run()
    record_result(store, {run_id: config}, result, lambda config: frames.data_hash, {"device": "cpu", "torch": "2"})
    return run_id


def reported(folder: Path, run_id: str, criteria: Any, against: str | None = None) -> UpdateReport:
    return update_report(
        folder / "results", run_id, against=against, criteria=criteria, prepared_root=folder / "prepared"
    )


def test_criteria_on_the_new_ward_are_about_its_recordings_alone(hospital: Path) -> None:
    run_id = trained(hospital)
    criteria = Criteria(
        max_flips=1.0,
        min_sensitivity={"AF": 0.0},
        min_new_accuracy=0.4,
        min_new_sensitivity={"AF": 0.3},
        min_new_specificity={"AF": 0.3},
    )
    report = reported(hospital, run_id, criteria)
    verdicts = {judged.criterion: judged for judged in report.criteria}
    predictions = RunStore(hospital / "results").read("predictions", run_id)
    last = predictions[(predictions["trained_on"] == 3) & (predictions["evaluated_on"] == 3)]
    has_af = (last["label"] == "AF").to_numpy()
    says_af = (last["probability_1"] > last["probability_0"]).to_numpy()
    right = says_af == has_af
    assert 0 < right.mean() < 1
    expected = {
        "min_new_accuracy": (right.mean(), len(last), last["patient"].nunique()),
        "min_new_sensitivity": (right[has_af].mean(), has_af.sum(), last["patient"][has_af].nunique()),
        "min_new_specificity": (right[~has_af].mean(), (~has_af).sum(), last["patient"][~has_af].nunique()),
    }
    for name, (value, instances, people) in expected.items():
        judged = verdicts[name]
        assert judged.measured.value == pytest.approx(value)
        assert (judged.instances, judged.units, judged.where) == (instances, people, "ward C")
        assert judged.holds == (value >= judged.limit)
    assert {verdicts[name].where for name in ("max_flips", "min_sensitivity")} == {"ward A and ward B"}
    page = report.html()
    assert "accuracy after, in ward C (new)" in page
    assert "Each class in ward C, after the update" in page


def test_an_earlier_ward_may_lose_as_much_as_its_own_limit(hospital: Path) -> None:
    run_id = trained(hospital, learning_rate=0.1)
    report = reported(hospital, run_id, Criteria(max_task_accuracy_loss={"A": 0.0, "ward B": 1.0}))
    rows = RunStore(hospital / "results").read("predictions", run_id)
    rows["right"] = (rows["probability_1"] > rows["probability_0"]) == (rows["label"] == "AF")
    accuracy = rows.groupby(["evaluated_on", "trained_on"])["right"].mean()
    assert [(judged.of, judged.where, judged.limit) for judged in report.criteria] == [
        ("ward A", "ward A", 0.0),
        ("ward B", "ward B", 1.0),
    ]
    for number, judged in enumerate(report.criteria, 1):
        loss = accuracy[number, 2] - accuracy[number, 3]
        assert judged.measured.value == pytest.approx(loss)
        gain = report.earlier[number - 1].accuracy.difference
        assert (judged.measured.low, judged.measured.high) == pytest.approx((-gain.high, -gain.low), nan_ok=True)
        assert judged.holds == (loss <= judged.limit)
        of_ward = rows[(rows["evaluated_on"] == number) & (rows["trained_on"] == 3)]
        assert (judged.instances, judged.units) == (len(of_ward), of_ward["patient"].nunique())
    assert any(judged.measured.value for judged in report.criteria), "the test can fail"
    assert "loss of accuracy in ward A" in report.html()
    for_each = reported(hospital, run_id, Criteria(max_task_accuracy_loss=0.5))
    assert [(judged.of, judged.limit) for judged in for_each.criteria] == [("ward A", 0.5), ("ward B", 0.5)]


def test_a_ward_that_is_no_earlier_one_is_refused_with_those_that_are(hospital: Path, tmp_path: Path) -> None:
    run_id = trained(hospital)
    for name in ("ICU", "C", "ward C"):
        said = f"max_task_accuracy_loss: '{name}' is no earlier task; earlier tasks: ward A, ward B"
        with pytest.raises(UsageError, match=f"^{re.escape(said)}$"):
            reported(hospital, run_id, Criteria(max_task_accuracy_loss={name: 0.1}))
    for name, meant in (("a", "A"), ("Ward b", "ward B")):
        with pytest.raises(UsageError, match=rf"'{name}' is no earlier task \(did you mean '{meant}'\?\); earlier"):
            reported(hospital, run_id, Criteria(max_task_accuracy_loss={name: 0.1}))
    with pytest.raises(UsageError, match=r"'Af' is not a class of the compared instances \(did you mean 'AF'\?\); cl"):
        reported(hospital, run_id, Criteria(min_sensitivity={"Af": 0.8}))
    file = tmp_path / "limits.toml"
    for text, message in (
        ("[max_task_accuracy_loss]\n", 'expected a limit by task, such as {"ICU": 0.02}, not {}'),
        ("[max_task_accuracy_loss]\nA = 2\n", "expected a number from 0 to 1, not 2"),
        ("max_task_accuracy_loss = -0.1\n", "expected a number from 0 to 1, not -0.1"),
    ):
        file.write_text(text)
        with pytest.raises(UsageError, match=re.escape(message)):
            read_criteria(file)
    one_for_all = trained(hospital, scenario="subject_il", domain="lead", people_per_task=10)
    with pytest.raises(UsageError, match="every task is tested on the same recordings, so none has a loss of its own"):
        reported(hospital, one_for_all, Criteria(max_task_accuracy_loss=0.1))


def test_another_run_is_judged_on_the_ward_that_it_learned_last(hospital: Path) -> None:
    run_id, other = trained(hospital), trained(hospital, "er")
    alone = reported(hospital, run_id, Criteria(min_new_accuracy=0.0))
    both = reported(hospital, run_id, Criteria(min_new_accuracy=0.0), against=other)
    assert both.criteria == alone.criteria
    assert both.flips[0].instances > alone.flips[0].instances
    (include, leave_out) = (
        "All comparisons of the two models include them",
        "No comparison of the two models includes",
    )
    page = both.html()
    assert include in page
    assert leave_out not in page
    assert "accuracy after, in ward C</dt>" in page
    assert both.data["split of the patients"] == alone.data["split of the patients"] == "random, split_seed 0"
    assert both.data["data hash"] == alone.data["data hash"]
    page = alone.html()
    assert leave_out in page
    assert include not in page


def test_a_criterion_on_a_last_task_without_recordings_of_its_own_is_refused(hospital: Path) -> None:
    run_id = trained(hospital, scenario="subject_il", domain="lead", people_per_task=10)
    with pytest.raises(UsageError, match=r"min_new_accuracy: the last task has no test instances of its own, .* take"):
        reported(hospital, run_id, Criteria(min_new_accuracy=0.5))
    assert reported(hospital, run_id, Criteria(min_accuracy=0.5)).last_task is None


def test_a_person_of_the_page_is_looked_up_with_the_secret_alone(hospital: Path, tmp_path: Path) -> None:
    run_id = trained(hospital, learning_rate=0.1)
    report = reported(hospital, run_id, Criteria(max_flips=1.0))
    person = report.people[0]
    patients = RunStore(hospital / "results").read("predictions", run_id)["patient"].unique().tolist()
    for patient in patients:
        guess = hashlib.sha256(f"{report.data['data hash']}:{patient}".encode()).hexdigest()[:8]
        assert guess != person.pseudonym, "the page gives the person away"
    words = ["update-report", run_id, "--who", person.pseudonym, "--results", str(hospital / "results")]
    (found,) = who(hospital, run_id, person.pseudonym)["people"]
    predictions = RunStore(hospital / "results").read("predictions", run_id)
    of_flip = predictions[predictions["instance"] == person.flips[0].instance]
    assert set(of_flip["patient"]) == {found["person"]}
    elsewhere = update_report(hospital / "results", run_id, prepared_root=tmp_path / "elsewhere")
    assert {one.pseudonym for one in elsewhere.people}.isdisjoint(one.pseudonym for one in report.people)
    done = CliRunner().invoke(command, [*words, "--prepared-root", str(tmp_path / "elsewhere")], standalone_mode=False)
    assert "has the pseudonym" in str(done.exception)
    done = CliRunner().invoke(command, [*words, "--prepared-root", str(tmp_path / "none")], standalone_mode=False)
    assert ".pseudonym_secret: not found" in str(done.exception)


def who(hospital: Path, run_id: str, *asked: str) -> dict[str, Any]:
    """Return what `update-report --who` prints as JSON."""
    words = ["update-report", run_id, "--json", "--results", str(hospital / "results")]
    words += ["--prepared-root", str(hospital / "prepared")]
    for one in asked:
        words += ["--who", one]
    done = CliRunner().invoke(command, words, standalone_mode=False)
    assert done.exit_code == 0, done.exception
    return json.loads(done.stdout)


def test_people_are_looked_up_with_all_their_recordings(hospital: Path) -> None:
    run_id = trained(hospital, learning_rate=0.05)
    report = reported(hospital, run_id, Criteria(max_flips=1.0))
    one, other = report.people[0].pseudonym, report.new_people[0].pseudonym
    found = who(hospital, run_id, f"{one},{other.upper()}")
    assert found == who(hospital, run_id, one, other)
    assert {person["pseudonym"] for person in found["people"]} == {one, other}
    rows = RunStore(hospital / "results").read("predictions", run_id)
    for person in found["people"]:
        of_person = rows[(rows["patient"] == person["person"]) & (rows["evaluated_on"] > 0)]
        assert {recording["instance"] for recording in person["recordings"]} == set(of_person["instance"])
        for recording in person["recordings"]:
            number = recording["instance"]
            assert recording["recording"] == f"strip-{number}"
            assert recording["time"] == str(np.datetime64("2020-01-01 08:00:00") + np.timedelta64(number, "D")).replace(
                "T", " "
            )
            of_stages = of_person[of_person["instance"] == number].set_index("trained_on")
            assert recording["task"] == "ward " + "ABC"[int(of_stages.loc[3, "evaluated_on"]) - 1]
            label = of_stages.loc[3, "label"]
            assert recording["label"] == label
            for stage, which in ((2, "before"), (3, "after")):
                likely = [of_stages.loc[stage, f"probability_{output}"] for output in range(2)]
                assert recording[which] == ("SR", "AF")[int(np.argmax(likely))]
                assert recording[f"probability_{which}"] == pytest.approx(likely[("SR", "AF").index(label)])
            is_right = recording["before"] == label, recording["after"] == label
            expected = {(True, False): "wrong", (False, True): "right"}.get(is_right, "")
            assert recording["became"] == expected
        became = [recording["became"] for recording in person["recordings"]]
        assert (person["became_wrong"], person["became_right"]) == (became.count("wrong"), became.count("right"))


def test_all_people_whose_decisions_changed_are_looked_up_as_a_table(hospital: Path) -> None:
    run_id = trained(hospital, learning_rate=0.05)
    report = reported(hospital, run_id, Criteria(max_flips=1.0))
    changed = [*report.people, *report.new_people]
    found = who(hospital, run_id, "flipped")["people"]
    assert {person["pseudonym"] for person in found} == {person.pseudonym for person in changed}
    words = ["update-report", run_id, "--who", "flipped", "--results", str(hospital / "results")]
    said = CliRunner().invoke(command, [*words, "--prepared-root", str(hospital / "prepared")]).stdout
    flips = [flip for person in changed for flip in person.flips]
    assert set(re.findall("strip-[0-9]+", said)) == {f"strip-{flip.instance}" for flip in flips}
    both = {person.pseudonym for person in report.people} & {person.pseudonym for person in report.new_people}
    assert not both, "people are in one ward"
    first = found[: len(report.people)]
    assert {person["pseudonym"] for person in first} == {person.pseudonym for person in report.people}
    assert [person["became_wrong"] for person in found] == [person.count("wrong") for person in changed]
    places = ["compared tasks"] * len(report.people) + ["last task"] * len(report.new_people)
    assert [person["changed_in"] for person in found] == places
    assert (
        f"\n{len(found)} people: {len(report.people)} in the compared tasks, which the page counts at its top, and "
        f"{len(report.new_people)} in the last task, ward C\n"
    ) in said
    wrong, affected = [], []
    for people in (report.people, report.new_people):
        counts = [person.count("wrong") for person in people]
        wrong.append(several(sum(counts), "decision"))
        affected.append(several(sum(count > 0 for count in counts), "person").replace("persons", "people"))
    assert (
        f"\nbecame wrong: {wrong[0]} of {affected[0]} in the compared tasks, {wrong[1]} of {affected[1]} in the last "
        "task\n"
    ) in said
    assert "changed in" in said.splitlines()[0]
    page = report.html()
    table = page.partition('<figure id="recordings-changed">')[2].partition("</figure>")[0]
    assert table.count("<tr>") - 1 == len(flips)
    for name in ("strip-", "2020-"):
        assert name not in page, "the page has neither names nor dates of recordings"
    flip = flips[0]
    row = next(row for row in table.split("<tr>") if f">{flip.instance}<" in row)
    for text in (flip.task_title, flip.label, flip.before, flip.after, f"{flip.probability_after:.2f}"):
        assert f">{text}<" in row
    assert flip.task_title in ("ward A", "ward B")


def test_a_date_without_a_time_of_day_is_printed_alone(hospital: Path, tmp_path: Path) -> None:
    forget("hospital")
    try:
        declare(tmp_path / "hospital.py", WARDS.replace("01T08:00:00", "01T00:00:00"))
        prepare("hospital", prepared_root=tmp_path / "prepared", data_root=None)
        run_id = trained(tmp_path, learning_rate=0.05)
        assert reported(tmp_path, run_id, Criteria(max_flips=1.0)).pseudonyms_are_kept
        words = ["update-report", run_id, "--who", "flipped", "--results", str(tmp_path / "results")]
        done = CliRunner().invoke(command, [*words, "--prepared-root", str(tmp_path / "prepared")])
        assert re.search(r"strip-\d+  2020-\d\d-\d\d  ward", done.stdout), done.output
        assert "00:00" not in done.stdout
    finally:
        forget("hospital")
        declare(hospital / "hospital.py", WARDS)


def test_a_subgroup_of_the_new_ward_alone_is_named_as_not_tested(hospital: Path, tmp_path: Path) -> None:
    forget("hospital")
    try:
        groups = 'groups={"device": ["Holter X" if person % 3 == 2 else "Holter Y" for person in PEOPLE]},'
        declare(tmp_path / "hospital.py", re.sub(r"groups=.*", groups, WARDS))
        prepare("hospital", prepared_root=tmp_path / "prepared", data_root=None)
        run_id = trained(tmp_path)
        criteria = tmp_path / "criteria.toml"
        criteria.write_text("max_group_flips = 1.0\nmin_group_accuracy = 0.0\n")
        words = ["update-report", run_id, "--groups", "device", "--criteria", str(criteria)]
        words += ["--results", str(tmp_path / "results"), "--prepared-root", str(tmp_path / "prepared")]
        done = CliRunner().invoke(command, words)
        for line in (
            "max_group_flips of device Holter X: not tested, limit 100 %",
            "min_group_accuracy of device Holter X",
        ):
            assert f"  -----  {line}" in done.stdout
        assert "no compared recording: only ward C has this subgroup" in done.stdout
        assert "holds  max_group_flips of device Holter Y" in done.stdout
        assert done.exit_code == 3, "not all subgroups are judged"
        (page,) = (tmp_path / "results" / "report").iterdir()
        assert ">not tested<" in page.read_text()
    finally:
        forget("hospital")
        declare(hospital / "hospital.py", WARDS)


def test_ends_of_an_interval_show_on_which_side_of_the_limit_they_are() -> None:
    crossing = decision("max_flips", "", 0.05, Quantity(0.022, 0.0, 0.0511), 180, 30)
    assert crossing.crosses
    assert measured(crossing) == "2 % [0, 5.1]"
    within = decision("max_flips", "", 0.05, Quantity(0.022, 0.0, 0.0496), 180, 30)
    assert not within.crosses
    assert measured(within) == "2 % [0, 4.96]"
    plain = decision("max_flips", "", 0.05, Quantity(0.022, 0.0, 0.08), 180, 30)
    assert measured(plain) == "2 % [0, 8]"


def test_an_id_in_place_of_a_pseudonym_is_answered_with_the_pseudonym(hospital: Path) -> None:
    run_id = trained(hospital, learning_rate=0.1)
    found = who(hospital, run_id, "flipped")["people"]
    one = found[0]
    words = ["update-report", run_id, "--results", str(hospital / "results")]
    words += ["--prepared-root", str(hospital / "prepared"), "--who"]
    done = CliRunner().invoke(command, [*words, one["person"]], standalone_mode=False)
    assert str(done.exception).endswith(f"got '{one['person']}'; for the same people: --who {one['pseudonym']}")
    done = CliRunner().invoke(command, [*words, "MRN1012"], standalone_mode=False)
    assert "has the pseudonym 'MRN1012' with the secret" in str(done.exception)
    assert "--who flipped lists those of all people whose decisions changed, with their ids" in str(done.exception)
    assert who(hospital, run_id, one["pseudonym"].upper())["people"] == [one]
    assert who(hospital, run_id, "Flipped")["people"] == found


def test_another_order_of_tasks_is_named_by_the_tasks(hospital: Path) -> None:
    one, other = trained(hospital), trained(hospital, task_order=(1, 0, 2))
    report = reported(hospital, one, Criteria(), against=other)
    rows = {name: (before, after) for name, before, after in report.description}
    assert rows["task_order"] == ("ward B, ward A, ward C", "ward A, ward B, ward C")


def test_names_of_recordings_need_the_frames_and_unknown_pseudonyms_are_named(hospital: Path, tmp_path: Path) -> None:
    run_id = trained(hospital, learning_rate=0.1)
    pseudonyms("hospital", hospital / "prepared")  # makes the secret
    (tmp_path / SECRET).write_bytes((hospital / "prepared" / SECRET).read_bytes())
    words = ["update-report", run_id, "--results", str(hospital / "results"), "--prepared-root", str(tmp_path), "--who"]
    said = CliRunner().invoke(command, [*words, "flipped"]).stdout
    assert "strip-" not in said
    assert "no names of recordings: dataset 'hospital' is not prepared in" in said
    done = CliRunner().invoke(command, [*words, "flipped,0000,1111"], standalone_mode=False)
    assert "has one of the pseudonyms '0000', '1111' with the secret" in str(done.exception)
    done = CliRunner().invoke(command, [*words, "a,,b"], standalone_mode=False)
    assert str(done.exception) == "--who 'a,,b': expected pseudonyms with commas between them, or flipped"


@pytest.mark.parametrize(
    ("value", "units", "text"),
    [
        (0.1234, 99, "12 %"),
        (0.1234, 100, "12.3 %"),
        (0.001, 12, "< 1 %"),
        (0.9999, 100, "> 99.9 %"),
        (0.0, 12, "0 %"),
        (1.0, 12, "100 %"),
    ],
)
def test_a_share_has_no_decimal_that_its_people_do_not_support(value: float, units: int, text: str) -> None:
    assert percent(Quantity(value, float("nan"), float("nan")), units) == text


@pytest.mark.parametrize(
    ("before", "after", "units", "texts"),
    [
        (0.444, 0.435, 9, ("44.4 %", "43.5 %", "-0.9 points")),
        (0.4440, 0.4360, 9, ("44.4 %", "43.6 %", "-0.8 points")),
        (0.44, 0.442, 9, ("44 %", "44 %", "0 points")),
        (0.44, 0.46, 9, ("44 %", "46 %", "+2 points")),
        (0.44, 0.44, 9, ("44 %", "44 %", "0 points")),
        (0.44449, 0.44351, 200, ("44.45 %", "44.35 %", "-0.10 points")),
        (0.9083, 0.9042, 30, ("90.8 %", "90.4 %", "-0.4 points")),
    ],
)
def test_before_and_after_do_not_round_alike_with_a_difference(
    before: float, after: float, units: int, texts: tuple[str, str, str]
) -> None:
    none = float("nan")
    change = Change("accuracy", *(Quantity(value, none, none) for value in (before, after, after - before)))
    assert percents(change, units) == texts


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (0.052, 0.05, "5.2 %"),
        (0.0496, 0.05, "4.96 %"),
        (0.05, 0.05, "5 %"),
        (0.0541, 0.058, "5 %"),
        (0.0579, 0.058, "5.79 %"),
    ],
)
def test_the_value_of_a_verdict_is_shown_on_its_side_of_the_limit(value: float, limit: float, text: str) -> None:
    said = measured(decision("max_flips", "", limit, Quantity(value, 0.0, 0.18), 28, 7))
    assert said.partition(" [")[0] == text


@pytest.mark.parametrize(("units", "certain"), [(3, False), (19, False), (58, False), (59, True)])
def test_no_flip_is_certain_only_with_enough_patients(units: int, certain: bool) -> None:
    nothing = Quantity(0.0, float("nan"), float("nan"))
    assert decision("max_flips", "", 0.05, nothing, 2 * units, units).certain is certain
    everything = Quantity(1.0, float("nan"), float("nan"))
    assert decision("min_accuracy", "", 0.95, everything, 2 * units, units).certain is certain


def test_criteria_can_ask_for_patients_and_for_certain_verdicts(hospital: Path) -> None:
    run_id = trained(hospital)
    loose = reported(hospital, run_id, Criteria(max_flips=1.0))
    assert loose.holds is True
    assert verdict(loose) == "The acceptance criterion is met, but not certain."
    many = reported(hospital, run_id, Criteria(max_flips=1.0, min_patients=loose.units + 1))
    assert many.holds is None
    asked = f"about fewer than {loose.units + 1} patients."
    assert asked in verdict(many)
    assert asked in many.html()
    assert reported(hospital, run_id, Criteria(max_flips=1.0, min_patients=loose.units)).holds is True
    strict = reported(hospital, run_id, Criteria(max_flips=1.0, certain=True))
    assert strict.holds is None
    assert (
        verdict(strict)
        == "No acceptance criterion can be judged. 1 is within the limit, but not certainly, as the criteria demand."
    )
    assert strict.data["SHA-256 of the criteria"] != loose.data["SHA-256 of the criteria"]
    (hospital / "strict.toml").write_text("max_flips = 1.0\nmin_patients = 3\ncertain = true\n")
    roots = ["--results", str(hospital / "results"), "--prepared-root", str(hospital / "prepared")]
    words = ["update-report", run_id, "--criteria", str(hospital / "strict.toml"), *roots]
    done = CliRunner().invoke(command, words, standalone_mode=False)
    assert done.exit_code == 3
    assert re.search(r"-----  max_flips: .*; not certain: fewer than 20 patients", done.output)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("min_patients = 0", "min_patients: expected a whole number from 1, not 0"),
        ("certain = 1", "certain: expected true or false, not 1"),
        ("min_accuracy = 2", "min_accuracy: expected a number from 0 to 1, not 2"),
    ],
)
def test_invalid_demands_on_verdicts_name_file_and_key(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "limits.toml"
    file.write_text(f"max_flips = 0.1\n{line}\n")
    with pytest.raises(UsageError, match=re.escape(f"{file}: {message}")):
        read_criteria(file)
    file.write_text("certain = true\n")
    with pytest.raises(UsageError, match="has no limit"):
        read_criteria(file)
    file.write_text('certain = "yes"\n')
    with pytest.raises(UsageError, match=re.escape(f"{file}: certain: expected true or false, not 'yes'")):
        read_criteria(file)


@pytest.mark.parametrize("line", ["max_flips = 0.02", "certain = true", "min_patients = 20"])
def test_a_criterion_below_a_table_is_to_be_written_above_it(tmp_path: Path, line: str) -> None:
    file = tmp_path / "limits.toml"
    file.write_text(f"[min_sensitivity]\nAF = 0.9\n{line}\n")
    name = line.split()[0]
    said = (
        f"{file}: min_sensitivity: '{name}' is a criterion, not one of the names in this table; write it above the "
        "line [min_sensitivity]"
    )
    with pytest.raises(UsageError, match=re.escape(said)):
        read_criteria(file)


def test_criteria_may_be_a_file_or_a_dict(hospital: Path) -> None:
    run_id = trained(hospital)
    limits = hospital / "of_python.toml"
    limits.write_text("max_flips = 0.02\n[min_sensitivity]\nAF = 0.9\n")
    expected = reported(hospital, run_id, Criteria(max_flips=0.02, min_sensitivity={"AF": 0.9})).criteria
    by_dict = {"max_flips": 0.02, "min_sensitivity": {"AF": 0.9}}
    for criteria in (limits, str(limits), by_dict):
        assert repr(reported(hospital, run_id, criteria).criteria) == repr(expected)
    commands = reported(hospital, run_id, limits).commands
    assert f"--criteria {limits}" in commands[-1][1]
    with pytest.raises(UsageError, match=r"criteria: 'max_flip' is not a criterion \(did you mean 'max_flips'"):
        reported(hospital, run_id, {"max_flip": 0.02})
    with pytest.raises(UsageError, match=r"criteria = 0.02: expected Criteria\(...\), a dict or the path of a TOML"):
        reported(hospital, run_id, 0.02)
    with pytest.raises(UsageError, match=r"nowhere\.toml"):
        reported(hospital, run_id, "nowhere.toml")


def test_runs_on_other_splits_are_refused_with_the_seeds_of_both(hospital: Path) -> None:
    one, other = trained(hospital), trained(hospital, split_seed=1)
    with pytest.raises(
        UsageError, match=r"use different data \(split_seed 0 and 1\), and the model of run \w+ is not stored"
    ) as raised:
        reported(hospital, one, Criteria(), against=other)
    assert not re.search("[0-9a-f]{64}", str(raised.value))


def test_a_failed_run_is_refused_with_its_error(hospital: Path, tmp_path: Path) -> None:
    store = RunStore(tmp_path / "results", keep=["predictions"])
    store.open_for_writing()
    config = RunConfig(dataset="hospital", scenario="domain_il", domain="ward", network="linear")
    run_id = config.run_id("data")
    error = "Traceback:\nValueError: the loss is not finite"
    record_failure(store, {run_id: config}, error, lambda config: "data", {"device": "cpu"})
    with pytest.raises(UsageError, match=r"it failed, so it has no predictions: ValueError: the loss is not finite"):
        update_report(tmp_path / "results", run_id)


def test_a_class_that_is_unknown_names_the_file_of_criteria(hospital: Path, tmp_path: Path) -> None:
    limits = tmp_path / "limits.toml"
    limits.write_text("[min_sensitivity]\nVF = 0.5\n")
    roots = ["--results", str(hospital / "results"), "--prepared-root", str(hospital / "prepared")]
    words = ["update-report", trained(hospital), "--criteria", str(limits), *roots]
    done = CliRunner().invoke(command, words, standalone_mode=False)
    assert str(done.exception).startswith(f"{limits}: min_sensitivity: 'VF' is not a class")


def test_the_top_names_the_settings_that_differ_and_that_differences_are_of_unrounded_values(hospital: Path) -> None:
    one, other = trained(hospital), trained(hospital, "ewc", learning_rate=0.05)
    report = reported(hospital, one, Criteria(), against=other)
    page = report.html()
    top = page.partition('<p class="lead">')[2].partition("</p>")[0]
    assert f"replaces that of run {other[:8]}" in top
    assert "strategy ewc before, finetune after" in top
    assert "learning_rate 0.05 before, 0.001 after" in top
    assert re.search(r"difference [^<]* points[^<]*, of unrounded values<", page)
    assert "Differences are those of unrounded values." in page
    assert settings_that_differ(reported(hospital, one, Criteria())) == ""
    same = replace(report, description=report.description[:2])
    assert settings_that_differ(same) == "Both have the same settings."


def test_a_report_says_what_it_found_in_one_line(hospital: Path) -> None:
    report = reported(hospital, trained(hospital), Criteria(max_flips=1.0))
    assert str(report) == f"{report.data['compared on']}. {verdict(report)}"
    assert repr(report) == f"<UpdateReport of run {report.run_id}: {report}>"


def test_the_people_of_the_page_have_every_decision_that_changed(hospital: Path) -> None:
    report = reported(hospital, trained(hospital, learning_rate=0.05), Criteria(max_flips=1.0))
    became = [flip.became for person in report.people for flip in person.flips]
    wrong, right, otherwise = map(became.count, BECAME)
    changed = len(became)
    assert changed > 1
    assert changed == round(report.changed_decisions.value * report.instances)
    page = report.html()
    assert f"{changed} recordings: {wrong} became wrong, {right} right, {otherwise} stayed wrong" in page
    assert "stayed wrong</button>" in page


def test_people_of_the_new_ward_have_a_table_of_their_own(hospital: Path) -> None:
    run_id = trained(hospital, learning_rate=0.05)
    report = reported(hospital, run_id, Criteria(max_flips=1.0))
    predictions = RunStore(hospital / "results").read("predictions", run_id)
    new = predictions[predictions["evaluated_on"] == 3]
    said = new.assign(said=new["probability_1"] > new["probability_0"]).pivot_table("said", "instance", "trained_on")
    changed = set(said.index[said[2] != said[3]])
    assert changed
    assert {flip.instance for person in report.new_people for flip in person.flips} == changed
    earlier = {flip.instance for person in report.people for flip in person.flips}
    assert earlier.isdisjoint(changed)
    page = report.html()
    table = page.partition('<figure id="new-people-changed">')[2].partition("</figure>")[0]
    assert "Those of ward C (new)" in table
    assert f"{several(len(changed), 'recording')}: " in table
    assert all(f">{person.pseudonym}<" in table for person in report.new_people)
    assert report.as_data()["new_people"][0]["flips"]


def test_a_table_of_people_has_a_hundred(hospital: Path) -> None:
    report = reported(hospital, trained(hospital, learning_rate=0.05), Criteria(max_flips=1.0))
    person = report.people[0]
    for many, said in ((22, False), (100, False), (101, True)):
        people = tuple(replace(person, pseudonym=f"{number:08x}") for number in range(many))
        table = replace(report, people=people).html().partition('<figure id="people-changed">')[2]
        table = table.partition("</figure>")[0]
        assert table.count("<tr>") - 1 == min(many, 100)
        assert ("The first 100 of 101; JSON has all." in table) == said


def test_cards_count_the_decisions_and_people_that_an_update_affects(hospital: Path) -> None:
    run_id = trained(hospital, learning_rate=0.05)
    page = reported(hospital, run_id, Criteria(max_flips=1.0)).html()
    predictions = RunStore(hospital / "results").read("predictions", run_id)
    old = predictions[predictions["evaluated_on"] < 3]
    said = old.assign(said=old["probability_1"] > old["probability_0"]).pivot_table("said", "instance", "trained_on")
    of_instances = old.groupby("instance")[["label", "patient"]].first()
    has_af = of_instances["label"] == "AF"
    right = [(said[task] > 0.5) == has_af for task in (2, 3)]
    for title, changed in (
        ("became wrong: right before, wrong after", right[0] & ~right[1]),
        ("became right: wrong before, right after", ~right[0] & right[1]),
    ):
        card = page.partition(f"<dt>{title}</dt>")[2].partition("</div>")[0]
        people = of_instances["patient"][changed].nunique()
        assert f">{changed.sum()} of {len(changed)} recordings<" in card
        assert f">{people} of {of_instances['patient'].nunique()} patients affected<" in card


def test_the_failed_criteria_are_named_from_the_farthest_beyond_its_limit_on(hospital: Path) -> None:
    report = reported(hospital, trained(hospital), Criteria(max_flips=1.0))
    value = Quantity(0.5, 0.4, 0.6)
    failed = [
        decision("max_flips", "", 0.45, value, 48, 24),
        decision("max_group_flips", "sex f", 0.4, value, 48, 24),
        decision("min_accuracy", "", 0.6, Quantity(float("nan"), float("nan"), float("nan")), 48, 24),
        decision("min_sensitivity", "AF", 0.9, value, 48, 24),
        decision("max_drift", "", 0.3, value, 48, 24),
    ]
    assert [made.beyond for made in failed] == pytest.approx([0.05, 0.1, float("inf"), 0.4, 0.2])
    holds = decision("max_flips", "", 0.9, value, 48, 24)
    criteria = (holds, *failed)
    assert by_verdict(criteria) == [failed[2], failed[3], failed[4], failed[1], failed[0], holds]
    said = verdict(replace(report, criteria=criteria))
    assert said == (
        "5 of 6 acceptance criteria not met, worst first: accuracy \N{EN DASH} (limit: at least 60 %); sensitivity "
        "of AF 50 % (limit: at least 90 %); drift of the probabilities 50 % (limit: at most 30 %); and 2 more."
    )


def test_each_earlier_ward_has_its_row(hospital: Path) -> None:
    run_id = trained(hospital, learning_rate=0.05)
    report = reported(hospital, run_id, Criteria(max_flips=1.0))
    rows = RunStore(hospital / "results").read("predictions", run_id)
    rows["right"] = (rows["probability_1"] > rows["probability_0"]) == (rows["label"] == "AF")
    assert [task.title for task in report.earlier] == ["ward A", "ward B"], "without the new ward"
    page = report.html()
    table = page.partition('<figure id="earlier">')[2].partition("</table>")[0]
    for number, task in enumerate(report.earlier, 1):
        stages = []
        for stage in (2, 3):
            chosen = (rows["evaluated_on"] == number) & (rows["trained_on"] == stage)
            stages.append(rows[chosen].set_index("instance").sort_index())
        before, after = stages
        for quantity, stage in ((task.auc.before, before), (task.auc.after, after)):
            expected = roc_auc_score(stage["label"] == "AF", stage["logit_1"] - stage["logit_0"])
            assert quantity.value == pytest.approx(expected)
        assert task.accuracy.after.value == pytest.approx(after["right"].mean())
        assert (task.instances, task.units) == (len(after), after["patient"].nunique())
        wrong = (before["right"] & ~after["right"]).sum()
        assert task.right_to_wrong == wrong
        assert task.wrong_to_right == (~before["right"] & after["right"]).sum()
        changed = after["patient"][before["right"] != after["right"]].nunique()
        assert task.units_changed == changed
        row = table.partition(f">{task.title}<")[2].partition("</tr>")[0]
        assert f">{wrong} of {len(after)}<" in row
        assert f">{changed} of {task.units}<" in row
    assert sum(task.right_to_wrong for task in report.earlier) > 0, "the test can fail"


def test_a_clear_change_of_a_ward_is_named(hospital: Path) -> None:
    report = reported(hospital, trained(hospital), Criteria(max_flips=1.0))
    one = report.earlier[0]
    worse = replace(one.auc, difference=Quantity(-0.2, -0.3, -0.1))
    better = replace(one.accuracy, difference=Quantity(0.2, 0.1, 0.3))
    unclear = replace(one.auc, difference=Quantity(-0.2, -0.3, 0.0))
    assert clear_changes(replace(one, auc=worse, accuracy=better)) == "AUC worse, accuracy better"
    assert clear_changes(replace(one, auc=worse, accuracy=replace(worse, name="accuracy"))) == "accuracy and AUC worse"
    assert clear_changes(replace(one, auc=unclear, accuracy=replace(unclear, name="accuracy"))) == ""
    lines = [*earlier_in_words(replace(report, earlier=(replace(one, auc=worse, accuracy=better),)))]
    assert lines[0].startswith("ward A: AUC ")
    assert lines[0].endswith("clear change: AUC worse, accuracy better (few patients)")
    many = replace(one, auc=worse, accuracy=better, units=20)
    assert next(earlier_in_words(replace(report, earlier=(many,)))).endswith("accuracy better")


def test_auc_before_and_after_and_its_difference_do_not_contradict_each_other(hospital: Path) -> None:
    report = reported(hospital, trained(hospital), Criteria(max_flips=1.0))
    nan = float("nan")
    for before, after, texts in (
        (0.994, 0.997, (">0.994 → 0.997<", ">0.003<")),
        (0.9949, 0.9951, (">0.995 → 0.995<", ">0.000<")),
        (0.9, 0.8, (">0.90 → 0.80<", ">-0.10<")),
    ):
        values = [Quantity(value, nan, nan) for value in (before, after, after - before)]
        one = replace(report.earlier[0], auc=Change("AUC", *values))
        page = replace(report, earlier=(one,)).html()
        assert all(text in page for text in texts)


def test_of_many_earlier_tasks_those_that_lose_most_are_shown(hospital: Path) -> None:
    report = reported(hospital, trained(hospital), Criteria(max_flips=1.0))
    tasks = []
    for number in range(20):
        change = replace(report.earlier[0].accuracy, difference=Quantity(0.01 * number, -1.0, 1.0))
        tasks.append(replace(report.earlier[0], title=f"ward {number}", accuracy=change))
    page = replace(report, earlier=tuple(reversed(tasks))).html()
    table = page.partition('<figure id="earlier">')[2].partition("</table>")[0]
    assert re.findall(r">(ward \d+)<", table) == [f"ward {number}" for number in range(12)]
    assert "Of 20 tasks, those whose accuracy falls most" in page


def test_the_dearest_group_is_named_only_if_its_interval_excludes_0(hospital: Path) -> None:
    report = reported(hospital, trained(hospital), Criteria(max_flips=1.0))
    everything = report.flips[0]
    nan = float("nan")
    for share, named in (
        (Quantity(0.5, 0.0, 1.0), False),
        (Quantity(0.0, nan, nan), False),
        (Quantity(0.5, 0.02, 1.0), True),
        (Quantity(1.0, nan, nan), True),  # all resamples agree
    ):
        part = replace(everything, column="class", name="AF", right_to_wrong=share)
        page = replace(report, flips=(everything, part)).html()
        assert ("The update costs most for class AF" in page) == named


def test_the_dearest_group_is_the_worst_of_all_kinds_with_enough_people(hospital: Path) -> None:
    report = reported(hospital, trained(hospital), Criteria(max_flips=1.0))
    everything = report.flips[0]
    nan = float("nan")

    def part(column: str, name: str, share: Quantity, units: int = 9) -> Slice:
        return replace(everything, column=column, name=name, right_to_wrong=share, units=units)

    parts = [
        part("age", "unknown", Quantity(0.61, 0.3, 0.9)),
        part("class", "SR", Quantity(0.1, 0.05, 0.2)),
        part("class", "AF", Quantity(1.0, nan, nan)),
        part("class", "rare", Quantity(1.0, nan, nan), units=2),
        part("task", "ward B", Quantity(0.2, 0.1, 0.3)),
    ]
    page = replace(report, flips=(everything, *parts)).html()
    (sentence,) = re.findall("The update costs most for [^.]*[.]", page)
    assert sentence == (
        "The update costs most for class AF (100 % became wrong, 9 patients) and age unknown (61 % [30, 90] became "
        "wrong, 9 patients)."
    )
    worse = [*parts[:-1], part("task", "ward B", Quantity(0.7, 0.4, 0.9))]
    page = replace(report, flips=(everything, *worse)).html()
    assert "costs most for class AF (100 % became wrong, 9 patients) and ward B (70 % [40, 90] became wrong" in page


@pytest.mark.parametrize("units", [3, 7, 60])
def test_the_bound_without_flips_is_missed_by_one_sample_in_twenty(units: int) -> None:
    assert (1 - bound_without_flips(units)) ** units == pytest.approx(0.05)


def test_a_report_says_what_its_number_of_people_cannot_rule_out(hospital: Path) -> None:
    report = reported(hospital, trained(hospital), Criteria(max_flips=0.05))
    bound = round(100 * bound_without_flips(report.units))
    sentence = what_can_be_shown(report)
    assert sentence.startswith(f"{report.units} test patients cannot rule out rare harm")
    assert f"up to {bound} of 100 other patients" in sentence
    assert "fewer than 20" in sentence
    assert "fewer than 1 of 100 other patients" in what_can_be_shown(replace(report, units=1000))
    assert report.html().count(sentence) == 1
    (hospital / "limits.toml").write_text("max_flips = 0.05\n")
    roots = ["--results", str(hospital / "results"), "--prepared-root", str(hospital / "prepared")]
    words = ["update-report", report.run_id, "--criteria", str(hospital / "limits.toml"), *roots]
    said = CliRunner().invoke(command, words, standalone_mode=False).output
    assert sentence in said
    assert re.search(r"max_flips: [^;]*; \d+ recordings of \d+ patients in ward A and ward B", said)


def test_the_last_section_has_commands_that_repeat_the_report(
    hospital: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = trained(hospital)
    limits = hospital / "limits.toml"
    limits.write_text("min_new_accuracy = 0.1\n")
    roots = ["--results", str(hospital / "results"), "--prepared-root", str(hospital / "prepared")]
    words = ["update-report", run_id, "--groups", "sex", "--criteria", str(limits), "--output"]
    first, second = tmp_path / "first.html", tmp_path / "second.html"
    CliRunner().invoke(command, [*words, str(first), *roots, "--json"], standalone_mode=False)
    sections = re.findall('<section id="([^"]+)"', first.read_text())
    assert sections[-1] == "reproduce"
    section = first.read_text().rpartition('<section id="reproduce">')[2]
    for said in (run_id, "2 of 3", "3 of 3", "seed 0, split_seed 0", "PyTorch", "hospital: "):
        assert said in section
    shown = re.findall('<code class="command">(.*?)</code>', section)
    lines = [unescape(re.sub("</?span>", "", line)) for line in shown]
    assert [shlex.split(line)[1] for line in lines] == ["data", "rerun", "update-report"]
    monkeypatch.chdir(tmp_path)  # commands work in any folder
    for line in lines:
        _, *again = shlex.split(line)
        if again[0] == "update-report":
            again += ["--output", str(second)]
        done = CliRunner().invoke(command, again, standalone_mode=False)
        assert done.exit_code == 0, done.output
    assert second.read_text() == first.read_text()
    of_python = reported(hospital, run_id, Criteria(min_new_accuracy=0.1))
    assert "--criteria criteria.toml" in of_python.commands[-1][1]
    assert json.dumps(of_python.as_data())
