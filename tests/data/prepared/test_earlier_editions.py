"""Editions that runs have used are kept when a data set is prepared anew, and their reports find them."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from clops_sweep import ContinualRun, RunConfig, read, update_report
from clops_sweep.analysis.runs_of_folds import runs_to_pool
from clops_sweep.cli.commands import command
from clops_sweep.cli.data import data as data_commands
from clops_sweep.data.catalog import DataKey
from clops_sweep.data.prepared.cache import cached_sets
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError
from clops_sweep.store.run_store import RunStore
from tests.data.declared_files import declare, forget
from tests.helpers.stores import record_result

PEOPLE = np.repeat(np.arange(36), 6)
KEY = DataKey("wards", 0, "none")
FOLDS = [KEY._replace(split=f"fold:{fold}/3") for fold in (1, 2, 3)]
WARDS = """
@dataset("wards", files=["labels.npy"], scenarios=("domain_il",))
def wards(data_root):
    people = np.repeat(np.arange(36), 6)
    signals = np.random.default_rng(1).normal(size=(216, 1, 60)).astype(np.float32)
    signals[1::2] += np.where(people[1::2] % 3 == 2, -0.5, 0.5)[:, None, None]
    return Recordings(
        signals, 50, ["II"], "mV", np.load(data_root / "labels.npy"), ("SR", "AF"), people,
        domains={"ward": np.array(list("ABC"))[people % 3]}, names=[f"r{i}" for i in range(216)],
    )
"""


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """The prepared folder of wards, prepared from labels that alternate; no run has used it."""
    _label(tmp_path, np.arange(216) % 2)
    forget("wards")
    declare(tmp_path / "wards.py", WARDS)
    prepare("wards", prepared_root=tmp_path / "prepared", data_root=tmp_path)
    yield tmp_path / "prepared"
    forget("wards")


def _label(folder: Path, labels: np.ndarray) -> None:
    np.save(folder / "labels.npy", labels)


def _correct(root: Path, changed: int = 3) -> None:
    """Change the labels of the first recordings of a person each, and prepare again."""
    labels = np.arange(216) % 2
    labels[: 6 * changed : 6] ^= 1
    _label(root.parent, labels)
    prepare("wards", prepared_root=root, data_root=root.parent)


def _kept(root: Path) -> list[str]:
    return sorted(folder.name for folder in root.glob("wards@*"))


def test_frames_that_no_run_used_are_replaced(root: Path) -> None:
    _correct(root)
    assert not _kept(root)


def test_frames_that_runs_used_are_kept_named_and_can_be_removed(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = PreparedData(root, root.parent)
    before.prepare([KEY])
    content = before.data_hash(KEY)
    labels = np.array(before.frames(KEY).labels)
    capsys.readouterr()
    _correct(root)
    (kept,) = _kept(root)
    said = capsys.readouterr().err
    assert "wards: 3 recordings have other labels; the earlier edition, which runs have used, is kept" in said
    assert f"data evict {kept}" in said
    now = PreparedData(root, root.parent)
    assert now.data_hash(KEY) != content
    earlier = now.holding(KEY, content)
    np.testing.assert_array_equal(earlier.frames(KEY).labels, labels)
    assert (now.frames(KEY).labels != labels).sum() == 3
    assert now.holding(KEY, "unknown") is now
    assert [it.folder.name for it in cached_sets(root)] == ["wards", kept]


def test_an_edition_is_kept_once_and_also_after_an_equal_preparation(root: Path) -> None:
    PreparedData(root, root.parent).prepare([KEY])
    prepare("wards", prepared_root=root, data_root=root.parent, anew=True)  # the same frames, which runs have used
    _correct(root)
    PreparedData(root, root.parent).prepare([KEY])
    assert len(_kept(root)) == 1
    _correct(root, 0)
    PreparedData(root, root.parent).prepare([KEY])
    _correct(root)
    assert len(_kept(root)) == 2, "both editions, each once"


def test_the_command_that_removes_an_edition_works_as_typed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PreparedData(root, root.parent).prepare([KEY])
    _correct(root)
    name, words, *typed = shlex.split(capsys.readouterr().err.partition("remove it if none is needed: ")[2])
    assert (name, words) == ("clops-sweep", "data")
    assert CliRunner().invoke(data_commands, typed).exit_code == 0
    assert not _kept(root)
    assert (root / "wards").is_dir()


def test_people_who_are_in_another_fold_are_counted(root: Path) -> None:
    data = PreparedData(root, root.parent)
    data.prepare(FOLDS)
    assert data.people_moved(FOLDS) == "", "there is no earlier edition"
    before = _folds(data)
    labels = np.arange(216) % 2
    labels[PEOPLE < 5] = 0  # these people have one class now, so all are dealt anew
    _label(root.parent, labels)
    prepare("wards", prepared_root=root, data_root=root.parent)
    data = PreparedData(root, root.parent)
    now = _folds(data)
    moved = sum(before[person] != now[person] for person in range(36))
    assert moved > 3
    sentence = data.people_moved(FOLDS)
    assert sentence.startswith(f"{moved} of 36 people are now in another fold than in the earlier edition")
    one = data.people_moved(FOLDS[:1])
    assert "in another part (training, validation or test)" in one


def _folds(data: PreparedData) -> dict[int, int]:
    """Return the fold that tests each person."""
    folds = {}
    for number, key in enumerate(FOLDS):
        frames = data.frames(key)
        for person in np.unique(frames.patients[frames.split == 2]).tolist():
            folds[int(frames.patient_names[person])] = number
    return folds


def test_people_of_a_split_that_labels_do_not_change_stay(root: Path) -> None:
    PreparedData(root, root.parent).prepare([KEY])
    _correct(root, 1)
    same = "all 36 people of the earlier edition stay in the same part of each split"
    assert PreparedData(root, root.parent).people_moved([KEY]) == same


def test_a_report_and_the_people_behind_it_are_those_of_the_edition_of_the_run(root: Path) -> None:
    config = RunConfig(dataset="wards", scenario="domain_il", domain="ward", network="linear", epochs_per_task=1)
    folder = root.parent / "results"
    data = PreparedData(root, root.parent)
    data.prepare([config.data_key])
    run_id = _computed(config, data, folder)
    report = update_report(folder, run_id, prepared_root=root)
    who = _who(run_id, root)
    assert "edition" not in report.data
    labels = np.arange(216) % 2
    tested = read(folder, "predictions", run_ids=[run_id])["instance"].unique()[:2]
    labels[tested] ^= 1
    _label(root.parent, labels)
    prepare("wards", prepared_root=root, data_root=root.parent)
    again = update_report(folder, run_id, prepared_root=root)
    assert again.data["edition"].endswith("since then, 2 recordings have other labels")
    assert again.without_frames == ""
    assert (again.flips, again.people, again.tracings) == (report.flips, report.people, report.tracings)
    assert _who(run_id, root) == who
    shutil.rmtree(root / _kept(root)[0])
    lost = update_report(folder, run_id, prepared_root=root)
    assert "is another edition than that of the run, which is not kept there" in lost.without_frames
    with pytest.raises(UsageError, match=r"groups: needs the prepared frames that run .* another edition"):
        update_report(folder, run_id, groups=["ward"], prepared_root=root)


@pytest.mark.nightly
def test_pooled_folds_are_those_of_the_runs_that_were_named(root: Path) -> None:
    base = RunConfig(dataset="wards", scenario="domain_il", domain="ward", network="linear", epochs_per_task=1)
    folder = root.parent / "results"
    before = _folds_computed(base, root, folder)
    _correct(root)
    after = _folds_computed(base, root, folder)
    assert not {*before["er"], *before["finetune"]} & {*after["er"], *after["finetune"]}
    asked = {"folds": True, "prepared_root": root}
    for one, other in ((after, before), (before, after)):
        er, tuned = one["er"], other["finetune"]
        named = rf"run {tuned[2]} is on the .*, but run {er[0]} is on the .*against='{one['finetune'][2]}'"
        with pytest.raises(UsageError, match=named):
            update_report(folder, er[0], against=tuned[2], **asked)
        with pytest.raises(UsageError, match="both have the same settings, so name a run of other settings"):
            update_report(folder, er[0], against=other["er"][1], **asked)
        data = PreparedData(root, root.parent)
        (row,) = RunStore(folder).rows("runs", run_ids=[er[1]])
        assert runs_to_pool(RunStore(folder), row, data) == er
    report = update_report(folder, before["er"][1], against=before["finetune"][2], **asked)
    assert (report.run_id, report.against) == (before["er"][0], before["finetune"][0])
    assert [fold.run_id for fold in report.folds] == before["er"]
    shutil.rmtree(root / _kept(root)[0])
    with pytest.raises(UsageError, match=rf"run {before['er'][1]} is on .*against='{after['er'][1]}'"):
        update_report(folder, after["finetune"][0], against=before["er"][1], **asked)
    (row,) = RunStore(folder).rows("runs", run_ids=[before["er"][1]])
    assert runs_to_pool(RunStore(folder), row, PreparedData(root, root.parent)) == []


def _folds_computed(base: RunConfig, root: Path, folder: Path) -> dict[str, list[str]]:
    """Compute the runs of all folds of two strategies, and return their ids by strategy."""
    data = PreparedData(root, root.parent)
    data.prepare(FOLDS)
    ids: dict[str, list[str]] = {"er": [], "finetune": []}
    for strategy, of_folds in ids.items():
        for key in FOLDS:
            config = base.model_copy(update={"strategy": strategy, "split": key.split})
            of_folds.append(_computed(config, data, folder))
    return ids


def _computed(config: RunConfig, data: PreparedData, folder: Path) -> str:
    """Compute a run, and return its id."""
    frames = data.frames(config.data_key)
    result = ContinualRun(config, frames, keep_predictions=True).run()
    store = RunStore(folder, keep=["predictions"])
    store.open_for_writing()
    run_id = config.run_id(frames.data_hash)
    record_result(store, {run_id: config}, result, lambda _: frames.data_hash, {"device": "cpu"})
    return run_id


def _who(run_id: str, root: Path) -> str:
    words = ["update-report", run_id, "--who", "flipped", "--results", str(root.parent / "results")]
    result = CliRunner().invoke(command, [*words, "--prepared-root", str(root)])
    assert result.exit_code == 0, result.exception
    return result.output
