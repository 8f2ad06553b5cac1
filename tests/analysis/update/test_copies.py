"""Recordings that are there twice, under two names, of which one is trained on and the other tested."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from clops_sweep import ContinualRun, RunConfig, open_frames, read, update_report
from clops_sweep.analysis.update import folds
from clops_sweep.analysis.update.stored_model import left_out_in_words
from clops_sweep.cli.commands import command
from clops_sweep.data.frames import TEST, TRAINING, VALIDATION, FrameSet
from clops_sweep.data.prepared.pseudonyms import kept_pseudonyms
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.data.scenarios.leaks import copies_in_training
from clops_sweep.store.run_store import RunStore
from clops_sweep.testing import tiny_frames
from tests.data.declared_files import declare, forget
from tests.helpers.stores import record_result

pytestmark = pytest.mark.usefixtures("unpainted")

COPIED = """
N = 144
PEOPLE = np.arange(N) // 4

@dataset("copied", scenarios=("domain_il",))
def copied(data_root):
    signals = np.random.default_rng(1).normal(size=(N, 1, 100)).astype(np.float32)
    signals[PEOPLE == 20] = signals[PEOPLE == 3]
    return Recordings(
        signals, 50, ("II",), "mV", np.arange(N) % 2, ("SR", "AF"), [f"P{person}" for person in PEOPLE],
        domains={"ward": np.array(["A", "B"])[PEOPLE % 2]},
    )
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with prepared frames in which P20 has the recordings of P3."""
    folder = tmp_path_factory.mktemp("copied")
    declare(folder / "copied.py", COPIED)
    prepare("copied", prepared_root=folder / "prepared", data_root=None)
    yield folder
    forget()


def parts_of(frames: FrameSet) -> dict[str, int]:
    """The part of the split of each person."""
    parts = {}
    for person, name in enumerate(frames.patient_names):
        parts[name] = int(frames.split[frames.patients == person][0])
    return parts


def seed_with(folder: Path, apart: bool) -> int:
    """A split seed with one of the two people in test and the other not; or else with both together."""
    for seed in range(50):
        parts = parts_of(open_frames("copied", prepared_root=folder / "prepared", split_seed=seed))
        two = {parts["P3"], parts["P20"]}
        if apart == (TEST in two and len(two) == 2):
            return seed
    raise AssertionError("no such seed")


@pytest.mark.parametrize("apart", [True, False])
def test_the_report_says_at_the_top_which_test_patients_are_in_training_too(copied: Path, apart: bool) -> None:
    seed = seed_with(copied, apart)
    frames = open_frames("copied", prepared_root=copied / "prepared", split_seed=seed)
    config = RunConfig(
        dataset="copied", scenario="domain_il", domain="ward", network="linear", strategy="finetune",
        epochs_per_task=1, split_seed=seed,
    )  # fmt: skip
    run_id = config.run_id(frames.data_hash)
    store = RunStore(copied / "results", keep=["predictions"])
    store.open_for_writing()
    result = ContinualRun(config, frames, keep_predictions=True).run()
    record_result(store, {run_id: config}, result, lambda _: frames.data_hash, {"device": "cpu"})
    report = update_report(copied / "results", run_id, prepared_root=copied / "prepared")
    page = report.html()
    assert "records with the samples of an earlier record: 4;" in report.data["may be there twice"]
    roots = ["--results", str(copied / "results"), "--prepared-root", str(copied / "prepared")]
    said = CliRunner().invoke(command, ["update-report", run_id, *roots], standalone_mode=False).output
    for shown in (said, json.dumps(report.as_data()), re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL)):
        names = set(re.findall(r"\b(?:P[0-9]{1,2}|recording [0-9]+|[0-9]+ repeats)\b", shown))
        assert names == set(), "an update report has pseudonyms alone"
    prepared = (
        CliRunner()
        .invoke(command, ["data", "counts", "copied", "--split-seed", str(seed), *roots[2:]], standalone_mode=False)
        .output.replace("\n", " ")
    )
    assert "warning: records with the samples of an earlier record: 4" in prepared
    of_split = f"split_seed {seed}: "
    if not apart:
        assert (report.copies, 'class="copies"' in page) == ("", False)
        assert of_split not in prepared
        return
    tested = read(copied / "results", "predictions", run_ids=run_id)["patient"]
    (person,) = {"P3", "P20"} & set(tested)
    pseudonym = kept_pseudonyms("copied", copied / "prepared").of(person)
    expected = f"1 of {tested.nunique()} test patients ({pseudonym}) has recordings that are also in the training"
    assert report.copies.startswith(expected)
    header = page.partition("<header>")[2].partition("</header>")[0]
    assert report.copies in header
    assert report.copies in said
    other = "P20" if person == "P3" else "P3"
    sentence = f"{of_split}1 of {tested.nunique()} people in test ({person} those of {other})"
    assert sentence in prepared


@pytest.mark.parametrize("left_out", [0, 1])
def test_people_are_told_apart_by_id_alone_where_some_may_be_there_twice(left_out: int) -> None:
    qualified = ", by patient id; but one patient may be there under two"
    assert qualified in left_out_in_words(left_out, 19, "patient", True)
    assert qualified not in left_out_in_words(left_out, 19, "patient", False)
    for recipes in (1, 2):
        assert qualified in folds.tested_once(5, 19, "patient", recipes, are_doubted=True)
        assert qualified not in folds.tested_once(5, 19, "patient", recipes, are_doubted=False)


def test_copies_are_found_by_their_samples_or_their_shape() -> None:
    frames = tiny_frames("class_il")
    people = frames.patients
    tested, trained = np.flatnonzero(frames.split == TEST), np.flatnonzero(frames.split == TRAINING)
    assert copies_in_training(frames, tested, trained) == {}
    first, source = int(tested[0]), int(trained[0])
    expected = {frames.patient_names[people[first]]: frames.patient_names[people[source]]}

    def with_copy(instances: np.ndarray, scale: float) -> FrameSet:
        signals = np.random.default_rng(0).normal(size=frames.frames.shape).astype(np.float32)
        for instance in instances.tolist():
            signals[rows_of(instance)] = scale * signals[rows_of(source)]
        return replace(frames, frames=signals)

    def rows_of(instance: int) -> np.ndarray:
        return np.array([instance]) if frames.members is None else frames.members[instance]

    of_person = np.flatnonzero((people == people[first]) & (frames.split == TEST))
    assert copies_in_training(with_copy(of_person[:1], 1.0), tested, trained) == expected
    assert copies_in_training(with_copy(of_person, 3.0), tested, trained) == expected
    assert copies_in_training(with_copy(of_person, 0.0), tested, trained) == {}, "a constant signal is no copy"
    validated = np.flatnonzero(frames.split == VALIDATION)
    assert copies_in_training(with_copy(of_person, 1.0), tested, validated) == {}
    own = np.flatnonzero(people == people[first])
    assert copies_in_training(with_copy(of_person, 1.0), own, own) == {}, "one person may repeat a signal"
