"""Folds that a table gives: people keep those of an earlier edition when labels are corrected or people are added."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from clops_sweep.cli.commands import command
from clops_sweep.data.catalog import DataKey
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, forget

FOLDS = [DataKey("wards", 3, "none", split=f"fold:{fold}/4") for fold in (1, 2, 3, 4)]
WARDS = """
@dataset("wards", files=["labels.npy"], scenarios=("domain_il",)FOLDS)
def wards(data_root):
    labels = np.load(data_root / "labels.npy")
    people = np.arange(len(labels)) // 6
    signals = np.random.default_rng(1).normal(size=(len(labels), 1, 60)).astype(np.float32)
    return Recordings(
        signals, 50, ["II"], "mV", labels, ("SR", "AF"), [f"P{p:02d}" for p in people],
        domains={"ward": np.array(list("ABC"))[people % 3]}, names=[f"r{i}" for i in range(len(labels))],
    )
"""


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    forget("wards")
    yield
    forget("wards")


def usual_labels(people: int = 36) -> np.ndarray:
    return np.arange(6 * people) % 2


def corrected(people: int = 36) -> np.ndarray:
    """Return labels by which five people have one class instead of two, so that all are dealt anew."""
    labels = usual_labels(people)
    labels[:30] = 0
    return labels


def prepared(folder: Path, labels: np.ndarray, folds: str = "") -> PreparedData:
    """Prepare the wards with these labels, as a launch does."""
    np.save(folder / "labels.npy", labels)
    forget("wards")
    declare(folder / "wards.py", WARDS.replace("FOLDS", folds))
    data = PreparedData(folder / "prepared", folder)
    data.prepare(FOLDS)
    return data


def fold_of_people(data: PreparedData) -> dict[str, int]:
    return data.fold_of_people("wards", 4, 3)


def run(folder: Path, *words: str) -> str:
    arguments = ["data", "folds", "wards", "--number", "4", "--split-seed", "3", *words]
    result = CliRunner().invoke(command, [*arguments, "--prepared-root", str(folder / "prepared")])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_people_keep_the_folds_of_an_earlier_edition_and_new_ones_are_dealt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = fold_of_people(prepared(tmp_path, usual_labels()))
    assert set(before.values()) == {1, 2, 3, 4}
    moved = prepared(tmp_path, corrected())
    assert "@dataset(..., folds=FILE)" in capsys.readouterr().err
    assert fold_of_people(moved) != before
    (kept,) = (tmp_path / "prepared").glob("wards@*")
    text = run(tmp_path, "--edition", kept.name.partition("@")[2][:6])
    assert text == run(tmp_path, "--edition", kept.name)
    assert {row["person"]: int(row["fold"]) for row in csv.DictReader(io.StringIO(text))} == before
    assert run(tmp_path, "--edition", kept.name, "--output", str(tmp_path / "folds.csv")).startswith("folds: ")
    assert (tmp_path / "folds.csv").read_text() == text
    fixed = prepared(tmp_path, corrected(), ', folds="folds.csv"')
    assert fold_of_people(fixed) == before
    edition = json.loads((tmp_path / "prepared" / "wards" / "manifest.json").read_text())["data_hash"]
    present = csv.DictReader(io.StringIO(run(tmp_path, "--edition", f"wards@{edition[:8]}")))
    assert {row["person"]: int(row["fold"]) for row in present} == before
    with_new = prepared(tmp_path, corrected(40), ', folds="folds.csv"')
    now = fold_of_people(with_new)
    assert {person: now[person] for person in before} == before
    assert sorted(now[f"P{person}"] for person in range(36, 40)) == [1, 2, 3, 4], "new people are spread"
    assert "folds: folds.csv, split_seed 3: 4 people without a fold, dealt by labels" in with_new.notes("wards")
    assert "all 36 people of the earlier edition stay in the same fold" in capsys.readouterr().err


def test_frames_keep_their_hashes_without_a_table_and_folds_count_with_one(tmp_path: Path) -> None:
    plain = prepared(tmp_path, usual_labels())
    hashes = [plain.data_hash(key) for key in FOLDS]
    (tmp_path / "folds.csv").write_text(run(tmp_path))
    fixed = prepared(tmp_path, usual_labels(), ', folds="folds.csv"')
    assert set(hashes).isdisjoint(fixed.data_hash(key) for key in FOLDS), (
        "another edition, whose reports need its table"
    )
    assert fold_of_people(fixed) == fold_of_people(plain)
    again = prepared(tmp_path, usual_labels())
    assert [again.data_hash(key) for key in FOLDS] == hashes


def test_folds_are_printed_as_json_of_several_split_seeds_and_stratified(tmp_path: Path) -> None:
    data = prepared(tmp_path, usual_labels())
    found = json.loads(run(tmp_path, "--split-seed", "5", "--stratify", "ward", "--json"))["folds"]
    for split_seed in (3, 5):
        of_seed = {row["person"]: row["fold"] for row in found if row["split_seed"] == split_seed}
        assert of_seed == data.fold_of_people("wards", 4, split_seed, "ward")
        assert len(of_seed) == 36


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        (FOLDS[0]._replace(split_seed=0), "split_seed = 0: its folds are given for split_seed 3; take one of them"),
        (FOLDS[0]._replace(split="fold:1/3"), "its folds are given, and they are 4; expected fold:1/4 to fold:4/4"),
    ],
)
def test_other_folds_than_those_of_the_table_are_refused(key: DataKey, sentence: str, tmp_path: Path) -> None:
    prepared(tmp_path, usual_labels())
    (tmp_path / "folds.csv").write_text(run(tmp_path))
    data = prepared(tmp_path, usual_labels(), ', folds="folds.csv"')
    with pytest.raises(UsageError, match=sentence):
        data.data_hash(key)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (["name,fold,split_seed", "P00,1,0"], "folds.csv has no column 'person'; it has name, fold, split_seed"),
        (["person,fold,split_seed"], "folds.csv: has no rows"),
        (["person,fold,split_seed", "P00,0,0"], "line 2, fold: expected a whole number from 1, not '0'"),
        (["person,fold,split_seed", "P00,1.5,0"], "line 2, fold: expected a whole number from 1, not '1.5'"),
        (["person,fold,split_seed", "P00,1,0", "P00,2,0"], "line 3: 'P00' is in fold 2 and in fold 1; expected one"),
        (["person,fold,split_seed", "P00,1,0", "P01,3,0"], "split_seed 0: no one is in fold 2; expected three folds"),
        (["person,fold,split_seed", "P00,1,0", "P01,2,0"], "split_seed 0: there are 2 folds; expected three folds"),
        (
            ["person,fold,split_seed", "Q1,1,0", "Q2,2,0", "Q3,3,0"],
            "none of its 3 people, such as 'Q1', is in the data",
        ),
    ],
)
def test_invalid_tables_are_refused(rows: list[str], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "folds.csv").write_text("\n".join(rows))
    with pytest.raises(UsageError) as refused:
        prepared(tmp_path, usual_labels(), ', folds="folds.csv"')
    assert sentence in str(refused.value)


def test_a_table_beside_a_given_split_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", usual_labels())
    text = WARDS.replace("FOLDS", ', folds="folds.csv"').replace(
        "domains=", 'split=np.where(people % 3 == 0, "test", "train"), domains='
    )
    declare(tmp_path / "wards.py", text)
    with pytest.raises(UsageError, match=r"has no folds\.csv"):
        prepare("wards", prepared_root=tmp_path / "prepared", data_root=tmp_path)
    (tmp_path / "folds.csv").write_text("person,fold,split_seed\nP00,1,0\nP01,2,0\nP02,3,0\n")
    with pytest.raises(UsageError, match="folds: the split of the recordings is given, too; leave out one of them"):
        prepare("wards", prepared_root=tmp_path / "prepared", data_root=tmp_path)


def test_an_edition_that_is_not_kept_is_refused_with_those_that_are(tmp_path: Path) -> None:
    prepared(tmp_path, usual_labels())
    with pytest.raises(
        UsageError, match=r"edition 'abc': no earlier edition of wards in .*; those that are kept: none"
    ):
        run(tmp_path, "--edition", "abc")


SPACES = """
from clops_sweep import RunConfig, SearchSpace, folds
BASE = RunConfig(dataset="wards", scenario="domain_il", domain="ward", network="linear", stratify="ward")
SPACE = SearchSpace("by_ward", BASE, {"split": folds(4), "split_seed": [3, 5]}, seeds=[0])
"""


def run_file(folder: Path, file: Path, *words: str) -> tuple[str, str]:
    """Return what `data folds FILE.py` prints and says on standard error."""
    arguments = ["data", "folds", str(file), *words, "--data-root", str(folder)]
    result = CliRunner().invoke(command, [*arguments, "--prepared-root", str(folder / "prepared")])
    if result.exception is not None:
        raise result.exception
    return result.stdout, result.stderr


def with_spaces(folder: Path, spaces: str) -> Path:
    """Return a file that has the wards, as they are prepared, and search spaces."""
    file = folder / "wards.py"
    forget("wards")
    declare(file, WARDS.replace("FOLDS", ""))
    file.write_text(file.read_text() + spaces)
    forget("wards")
    return file


def test_a_table_has_the_folds_of_the_runs_of_a_file(tmp_path: Path) -> None:
    data = prepared(tmp_path, usual_labels())
    of_seeds = {seed: data.fold_of_people("wards", 4, seed, "ward") for seed in (3, 5)}
    assert of_seeds[3] != fold_of_people(data)
    file = with_spaces(tmp_path, SPACES)
    text, said = run_file(tmp_path, file)
    written = list(csv.DictReader(io.StringIO(text)))
    for seed, expected in of_seeds.items():
        of_seed = {row["person"]: int(row["fold"]) for row in written if row["split_seed"] == str(seed)}
        assert of_seed == expected
    assert "wards: 4 folds of split_seed 3, 5, stratified by ward, as in search space 'by_ward'" in said
    forget("wards")
    one, _ = run_file(tmp_path, file, "--split-seed", "5", "--number", "4", "--stratify", "ward")
    assert one.splitlines()[1:] == [line for line in text.splitlines() if line.endswith(",5")]


@pytest.mark.parametrize(
    ("spaces", "words", "sentence"),
    [
        (SPACES, ["--stratify", "sex"], "--stratify sex: the runs of search space 'by_ward' are stratified by ward"),
        (SPACES, ["--number", "5"], "--number 5: search space 'by_ward' has 4 folds"),
        (
            SPACES + 'SPACE = [SPACE, SearchSpace("plain", BASE.replace(stratify=None), SPACE.axes, seeds=[0])]\n',
            [],
            "deal people in 2 ways ('by_ward': stratified by ward; 'plain': not stratified)",
        ),
        (SPACES.replace('"split": folds(4), ', ""), [], "no search space on wards has folds; give their number"),
    ],
)
def test_other_folds_than_those_of_the_file_are_refused(
    spaces: str, words: list[str], sentence: str, tmp_path: Path
) -> None:
    prepared(tmp_path, usual_labels())
    with pytest.raises(UsageError) as refused:
        run_file(tmp_path, with_spaces(tmp_path, spaces), *words)
    assert sentence in str(refused.value)


def test_an_edition_is_read_while_the_present_data_are_not_prepared(tmp_path: Path) -> None:
    before = fold_of_people(prepared(tmp_path, usual_labels()))
    after = fold_of_people(prepared(tmp_path, corrected()))
    manifest = json.loads((tmp_path / "prepared" / "wards" / "manifest.json").read_text())
    (kept,) = (tmp_path / "prepared").glob("wards@*")
    np.save(tmp_path / "labels.npy", usual_labels(48))
    forget("wards")
    file = with_spaces(tmp_path, SPACES.replace(', stratify="ward"', ""))
    for edition, expected in ((kept.name, before), (manifest["data_hash"][:8], after)):
        forget("wards")
        text, _ = run_file(tmp_path, file, "--split-seed", "3", "--edition", edition)
        assert {row["person"]: int(row["fold"]) for row in csv.DictReader(io.StringIO(text))} == expected
    forget("wards")
    with pytest.raises(UsageError, match="changed since it was prepared"):
        run_file(tmp_path, file)


def test_a_table_of_other_folds_than_those_of_the_runs_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_ward = [key._replace(stratify="ward") for key in FOLDS]
    data = prepared(tmp_path, usual_labels())
    data.prepare(by_ward)
    right = data.fold_of_people("wards", 4, 3, "ward")
    (tmp_path / "folds.csv").write_text(run(tmp_path))  # not stratified
    capsys.readouterr()

    def keep(file: str) -> tuple[PreparedData, str]:
        forget("wards")
        declare(tmp_path / "wards.py", WARDS.replace("FOLDS", f', folds="{file}"'))
        kept = PreparedData(tmp_path / "prepared", tmp_path)
        kept.prepare(by_ward)
        return kept, capsys.readouterr().err

    wrong, said = keep("folds.csv")
    moved = sum(right[person] != fold for person, fold in fold_of_people(wrong).items())
    assert moved > 3
    assert f"{moved} of 36 people are now in another fold than in the earlier edition, because the table" in said
    assert "which are of split_seed 3 and stratified by ward; it has those that are not stratified;" in said
    assert "wards: folds= gives the folds, which were dealt; the earlier edition" in said
    recommended = shlex.split(said.partition("again by '")[2].partition("', and name")[0])
    recommended[recommended.index("NEW.csv")] = str(tmp_path / "new.csv")
    result = CliRunner().invoke(command, recommended[1:])
    assert result.exit_code == 0, result.output
    kept, said = keep("new.csv")
    assert kept.fold_of_people("wards", 4, 3, "ward") == right
    assert "the table that folds= names has other folds; the earlier edition" in said
    forget("wards")
    declare(tmp_path / "wards.py", WARDS.replace("FOLDS", ""))
    PreparedData(tmp_path / "prepared", tmp_path).prepare(FOLDS)
    said = capsys.readouterr().err
    assert "folds= is not given any more, so folds are dealt; the earlier edition" in said
    assert "because folds= is not given any more and people are dealt; declare folds= with its table again" in said
